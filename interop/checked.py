"""The servers that `rehearse check` checks, over every transport that they have.

A server may violate the specification: `known-violations/NAME.yaml` lists where, each with the sentence of the
specification. Anything else that fails is a fault of `rehearse`, and so is an entry that no longer fails.
"""

import json
import os
from contextlib import nullcontext
from pathlib import Path

from load import load
from processes import REHEARSE, TARGET

HERE = Path(__file__).resolve().parent
READY = r"(?:listening on|running on) (http://127\.0\.0\.1:\d+)"
# True violations that do not come in every run, so that they cannot be in the list: a process of Python's SDK 1 ends, or
# its session over HTTP, if a request is cancelled in the moment in which it is answered.
CANCELLED = {"io.crash.none", "http.stream.response-included"}
RACES = {"fastmcp-2": CANCELLED, "fastmcp-3": CANCELLED}
# Tools without annotations that may be called.
ALLOWED = {"everything": ["echo", "get-*"], "filesystem": ["list_*"], "memory": ["read_graph"]}


class Checked:
    """All servers, met with the processes and the installed packages of a run."""

    def __init__(self, peers, is_loaded=False):
        self.is_loaded = is_loaded
        self.processes, self.folder = peers.processes, peers.folder
        self.node, self.modules, self.peers = peers.node, peers.modules, peers
        self.rmcp = TARGET / "interop-rmcp/debug/interop-rmcp"

    def all(self):
        """The name of every server with what checks it; that returns a summary and the failures."""
        node = [self.node, "--require", str(HERE / "loopback.cjs")]
        program = lambda name: str(self.modules / f"server-{name}/dist/index.js")
        fast = lambda generation: [str(self.folder / generation / "bin/python"), str(HERE / "servers/fast.py")]
        files = str(self.processes.scratch)
        servers = [
            ("everything", [*node, program("everything")], {"stdio": "stdio", "http": "streamableHttp", "sse": "sse"}),
            ("filesystem", [*node, program("filesystem"), files], {"stdio": None}),
            ("memory", [*node, program("memory")], {"stdio": None}),
            ("fastmcp-2", fast("python-fastmcp-2"), {"stdio": "stdio", "http": "http", "sse": "sse"}),
            ("fastmcp-3", fast("python-fastmcp-3"), {"stdio": "stdio", "http": "http", "sse": "sse"}),
            ("fastmcp-4", fast("python-2"), {"stdio": "stdio", "http": "http", "sse": "sse"}),
            ("python-sdk-2", [fast("python-2")[0], str(HERE / "servers/low.py")], {"stdio": "stdio", "http": "http"}),
            ("typescript-sdk-1", [self.node, str(HERE / "servers/sdk-1.mjs")], {"stdio": "stdio", "http": "http"}),
            ("typescript-sdk-2", [self.node, str(HERE / "servers/sdk-2.mjs")], {"stdio": "stdio", "http": "http"}),
            ("rmcp", [str(self.rmcp)], {"stdio": "stdio", "http": "http"}),
        ]
        for name, command, transports in servers:
            for transport, mode in transports.items():
                yield f"check {name} · {transport}", self.check(name, transport, [*command, *([mode] if mode else [])])

    def check(self, name, transport, command):
        def meet():
            if name == "rmcp":
                self.peers.build_rmcp()
            target = ["--stdio", " ".join(command)]
            if transport != "stdio":
                env = {"PORT": "0", "FASTMCP_PORT": "0"}
                address = self.processes.listen(command, READY, env)
                target = [f"--{transport}", address + ("/sse" if transport == "sse" else "/mcp")]
            allowed = [part for tool in ALLOWED.get(name, []) for part in ("--allow-tool", tool)]
            allowed += ["--allow-prompt", "*"]
            report = self.processes.scratch / f"{name}-{transport}.json"
            options = ["--sdk", "--format", "json", "--output", str(report), "--start-timeout", "60s"]
            if self.is_loaded:
                return self.compare(name, [REHEARSE, "check", *target, *allowed, *options], report)
            accepted = ["--baseline", str(HERE / f"known-violations/{name}.yaml"), "--budget", "120s"]
            code, out, err = self.processes.run([REHEARSE, "check", *target, *allowed, *accepted, *options])
            races = {line.split(":")[0].split(" ")[1] for line in failed(report).splitlines()}
            if code != 0 and not (code == 1 and races and races <= RACES.get(name, set())):
                return "", [f"it ended with {code}\n{out}{err}{failed(report)}"]
            return passed(report), []

        return meet

    def compare(self, name, command, report):
        """Nothing is said against a server on a busy machine that is not said on an idle one."""
        found = []
        for is_busy in (False, True):
            with load(self.processes) if is_busy else nullcontext():
                code, out, err = self.processes.run([*command, "--budget", "10m"], seconds=660)
            if not report.exists():
                return "", [f"it ended with {code}\n{out}{err}"]
            found.append({(check["id"], version) for version, check in checks(report) if check["verdict"] in ("fail", "warn")})
            summary = passed(report)
        idle, busy = found
        new = sorted((check, version) for check, version in busy - idle if check not in RACES.get(name, ()))
        extra = [f"{version} {check}: only on a busy machine" for check, version in new]
        return f"{summary}; {len(idle)} findings idle, {len(busy)} busy", extra


def checks(report):
    for server in json.loads(report.read_text())["servers"]:
        for version in server["versions"]:
            for check in version["checks"]:
                yield version["version"], check


def failed(report):
    if not report.exists():
        return ""
    lines = []
    for version, check in checks(report):
        if check["verdict"] == "fail":
            found = "; ".join(it["found"] for it in check["violations"][:3])
            lines.append(f"{version} {check['id']}: {check['rule']} found {found}")
    return "\n".join(lines)


def passed(report):
    verdicts = [check["verdict"] for _, check in checks(report)]
    return f"{verdicts.count('pass')} passed, {verdicts.count('warn')} warnings"
