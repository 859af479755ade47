"""`rehearse check`, `rehearse fuzz` and `rehearse run`."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from ._program import RehearseError, rehearse_path

Path = Union[str, "os.PathLike[str]"]
Words = Union[str, Iterable[str]]

# How much of a failure is shown; the report has all.
_FOUND, _FRAMES, _FRAME_LENGTH = 5, 4, 300


def check(
    server: Union[str, Sequence[str]],
    *,
    only: Words = (),
    protocol: Words = (),
    allow_tools: Words = (),
    allow_prompts: Words = (),
    tool_args: Optional[Mapping[str, Any]] = None,
    profiles: Words = (),
    baseline: Optional[Path] = None,
    strict: bool = False,
    token: Optional[str] = None,
    headers: Optional[Mapping[str, str]] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[str] = None,
    start_timeout: Optional[str] = None,
    budget: Optional[str] = None,
    args: Iterable[str] = (),
) -> dict[str, Any]:
    """Checks a server, a command or a URL, against the specification. Returns the report.

    Raises AssertionError if the verdict is that it failed, RehearseError if nothing could be checked.
    """
    __tracebackhide__ = True
    options = [*_session(server, protocol, allow_tools, tool_args, token, headers, env), *_repeated("--only", only)]
    options += [*_repeated("--allow-prompt", allow_prompts), *_repeated("--profile", profiles)]
    options += _options(timeout=timeout, start_timeout=start_timeout, budget=budget, baseline=baseline, strict=strict)
    done = _rehearse("check", *options, *args)
    report: dict[str, Any] = json.loads(done.stdout or "{}")
    if done.returncode == 1:
        raise AssertionError(_describe(report))
    if done.returncode:
        errors = [f"{it['target']}: {it['error']}" for it in report.get("servers", []) if it["error"]]
        why = "\n".join(errors or _reasons(report)) or done.stderr or "nothing was tested"
        raise RehearseError(f"the server cannot be checked (exit code {done.returncode}):\n{why}")
    return report


def fuzz(
    server: Union[str, Sequence[str]],
    *,
    protocol: Words = (),
    allow_tools: Words = (),
    tool_args: Optional[Mapping[str, Any]] = None,
    budget: str = "30s",
    cases: Optional[int] = None,
    seed: int = 1,
    corpus: Optional[Path] = None,
    strict: bool = False,
    token: Optional[str] = None,
    headers: Optional[Mapping[str, str]] = None,
    env: Optional[Mapping[str, str]] = None,
    timeout: Optional[str] = None,
    start_timeout: Optional[str] = None,
    args: Iterable[str] = (),
) -> dict[str, Any]:
    """Looks for inputs that break a server, a command or a URL. Returns the report.

    Raises AssertionError if a bug was found, RehearseError if nothing could be tried.
    """
    __tracebackhide__ = True
    options = _session(server, protocol, allow_tools, tool_args, token, headers, env)
    options += _options(timeout=timeout, start_timeout=start_timeout, budget=budget, cases=cases, seed=seed)
    options += _options(corpus=corpus, strict=strict)
    done = _rehearse("fuzz", *options, *args)
    report: dict[str, Any] = json.loads(done.stdout or "{}")
    if done.returncode == 1:
        lines = ["an input breaks the server"]
        for bug in report["bugs"]:
            lines += [f"✗ {bug['oracle']} {bug['kind']} {bug['name']}", f"  {bug['message']}"]
            lines.append(f"  with {json.dumps(bug['arguments'])[:_FRAME_LENGTH]}")
        raise AssertionError("\n".join(lines))
    if done.returncode:
        reasons = [f"{it['kind']} {it['name']}: {it['reason']}" for it in report.get("targets", []) if "reason" in it]
        why = report.get("error") or "\n".join(reasons) or done.stderr
        raise RehearseError(f"the server cannot be fuzzed (exit code {done.returncode}):\n{why}")
    return report


def run(*paths: Path, filters: Words = (), check: bool = False) -> str:
    """Runs scenarios: files or folders. Returns the report.

    Raises AssertionError if a scenario failed, RehearseError if they could not run.
    """
    __tracebackhide__ = True
    options = [*(os.fspath(path) for path in paths), *_repeated("--filter", filters), *(["--check"] if check else [])]
    done = _rehearse("run", *options)
    if done.returncode == 1:
        raise AssertionError(f"a scenario failed:\n{done.stdout}")
    if done.returncode:
        raise RehearseError(f"the scenarios cannot run (exit code {done.returncode}):\n{done.stdout}{done.stderr}")
    return done.stdout


def _rehearse(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [rehearse_path(), *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")


def _target(server: Union[str, Sequence[str]]) -> list[str]:
    """The option that names the server. As in scenarios, a URL that ends in `/sse` is one for HTTP+SSE."""
    if not isinstance(server, str):
        return ["--stdio", shlex.join(server)]
    scheme, separator, _ = server.partition("://")
    kinds = {"http": "--http", "https": "--http", "ws": "--ws", "wss": "--ws"}
    kind = kinds.get(scheme, "--stdio") if separator else "--stdio"
    return ["--sse" if kind == "--http" and server.endswith("/sse") else kind, server]


def _session(
    server: Union[str, Sequence[str]],
    protocol: Words,
    allow_tools: Words,
    tool_args: Optional[Mapping[str, Any]],
    token: Optional[str],
    headers: Optional[Mapping[str, str]],
    env: Optional[Mapping[str, str]],
) -> list[str]:
    """The options of a session with a server, and of a report as JSON."""
    options = [*_target(server), "--format", "json", *_options(token=token)]
    options += [*_repeated("--protocol", protocol), *_repeated("--allow-tool", allow_tools)]
    options += _repeated("--tool-args", [f"{name}={json.dumps(it)}" for name, it in (tool_args or {}).items()])
    options += _repeated("--header", [f"{name}: {value}" for name, value in (headers or {}).items()])
    return options + _repeated("--env", [f"{name}={value}" for name, value in (env or {}).items()])


def _options(**values: Any) -> list[str]:
    """Options with their values. None and False are left out."""
    options = []
    for name, value in values.items():
        flag = f"--{name.replace('_', '-')}"
        if value is not None and value is not False:
            options.append(flag if value is True else f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
    return options


def _reasons(report: dict[str, Any]) -> list[str]:
    """Why nothing was tested."""
    versions = [version for server in report.get("servers", []) for version in server["versions"]]
    checks = [check for version in versions for check in version["checks"] if check["verdict"] == "not-tested"]
    return list(dict.fromkeys(check["reason"] for check in checks if "reason" in check))[:_FOUND]


def _repeated(option: str, values: Words) -> list[str]:
    return [f"{option}={value}" for value in ([values] if isinstance(values, str) else values)]


def _describe(report: dict[str, Any]) -> str:
    failures = {"fail", "warn"} if report["strict"] else {"fail"}
    checks: dict[tuple[str, str], tuple[dict[str, Any], list[str]]] = {}
    for server in report["servers"]:
        for version in server["versions"]:
            for check in version["checks"]:
                if check["verdict"] in failures:
                    checks.setdefault((server["target"], check["id"]), (check, []))[1].append(version["version"])
    lines = ["the server does not keep to the specification"]
    for check, versions in checks.values():
        lines += [f"✗ {check['id']} ({check['level']}, {', '.join(versions)})", f"  {check['rule']}"]
        violations = [it for it in check["violations"] if "accepted" not in it]
        subjects = [f"{it['subject']}: " if "subject" in it else "" for it in violations]
        found = [f"    {subject}found {it['found']}" for subject, it in zip(subjects, violations)]
        lines += list(dict.fromkeys(found))[:_FOUND]
        for frame in violations[0]["evidence"][:_FRAMES] if violations else []:
            text, arrow = frame["text"], "→" if frame["direction"] == "client-to-server" else "←"
            lines.append(f"  {arrow} {text[:_FRAME_LENGTH]}{'…' if len(text) > _FRAME_LENGTH else ''}")
        lines += [f"  {key}: {check[key]}" for key in ("reason", "help", "spec", "again") if key in check]
    baseline = report.get("baseline", {})
    lines += [f"✗ the baseline {baseline['file']} accepts what no longer occurs: {it}" for it in baseline.get("stale", [])]
    return "\n".join(lines)
