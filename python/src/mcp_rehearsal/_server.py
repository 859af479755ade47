"""Servers by `rehearse` for the time of a `with` block."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional, TypeVar, Union
from urllib.parse import urlsplit

from ._program import RehearseError, rehearse_path

Script = Union[str, "os.PathLike[str]", Mapping[str, Any]]
_Self = TypeVar("_Self", bound="Server")

# The command of --exec. It reports its variables, and ends when its standard input does: when `stop` closes it, or when
# this process ends, however that happens. With the command, `rehearse` ends.
_COMMAND = "import json, os, sys; print(json.dumps(dict(os.environ)), flush=True); sys.stdin.read()"
# Ctrl-C is for the tests, which stop the server themselves.
_ALONE: dict[str, Any] = {"start_new_session": True}
if sys.platform == "win32":
    _ALONE = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
_STOP_TIMEOUT = 10.0
_ADMIN_TIMEOUT = 30.0
# How much the report of a failed test has of a server.
_REPORT_LINES, _PARAMS_LENGTH = 100, 200


class Server:
    """What `rehearse` serves. Use it in a `with` block, or call `stop`."""

    def __init__(self, command: str, script: Script, options: Iterable[str]) -> None:
        __tracebackhide__ = True
        line = [rehearse_path(), command]
        self._folder = tempfile.TemporaryDirectory(prefix="rehearse-")
        path = Path(self._folder.name, "script.yaml")
        if isinstance(script, Mapping):
            path.write_text(json.dumps(script), encoding="utf-8")
        else:
            path = Path(script)
        self.name = f"{command} {path.name}"
        self._log: Optional[str] = None
        line += [str(path), *options, "--exec", "--", sys.executable, "-I", "-S", "-c", _COMMAND]
        with open(self._log_path, "wb") as log:
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=log, **_ALONE)
        assert self._process.stdout
        variables = self._process.stdout.readline()
        if not variables:
            self.stop()
            raise RehearseError(f"cannot serve the {self.name} (exit code {self._process.returncode}):\n{self.log}")
        self._variables: dict[str, str] = json.loads(variables)

    @property
    def _log_path(self) -> Path:
        return Path(self._folder.name, "log")

    @property
    def log(self) -> str:
        """What the server has written to standard error; that of a model has its requests."""
        return self._log_path.read_text("utf-8", "replace") if self._log is None else self._log

    @property
    def is_stopped(self) -> bool:
        return self._log is not None

    def stop(self) -> None:
        """Ends the server. Does nothing if it was stopped before."""
        if not self.is_stopped:
            try:
                self._process.communicate(timeout=_STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.communicate()
            self._log = self.log
            self._folder.cleanup()

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()


class Model(Server):
    """A scripted language model, as `rehearse model` serves it."""

    def __init__(self, script: Script) -> None:
        __tracebackhide__ = True
        super().__init__("model", script, ["--verbose"])
        #: The base URL for clients of Anthropic's API.
        self.url = self._variables["ANTHROPIC_BASE_URL"]
        #: The base URL for clients of OpenAI's API.
        self.openai_url = self._variables["OPENAI_BASE_URL"]


class _Variable:
    """A variable that `rehearse mock --exec` sets, unless the script makes it impossible."""

    def __init__(self, name: str, what: str) -> None:
        self._name, self._what = name, what

    def __get__(self, mock: Mock, owner: object) -> str:
        __tracebackhide__ = True
        if self._name not in mock._variables:
            raise RehearseError(f"the {mock.name} has no {self._what}")
        return mock._variables[self._name]


class Mock(Server):
    """A mock MCP server, as `rehearse mock` serves it. All transports lead to the same state and the same journal."""

    url = _Variable("REHEARSE_URL", "protocol version with streamable HTTP")
    sse_url = _Variable("REHEARSE_SSE_URL", "protocol version with HTTP+SSE")
    ws_url = _Variable("REHEARSE_WS_URL", "protocol version with WebSocket")
    #: The first token of `auth` in the script.
    token = _Variable("REHEARSE_TOKEN", "token")

    def __init__(self, script: Script) -> None:
        __tracebackhide__ = True
        super().__init__("mock", script, ["--admin", "--check"])

    @property
    def stdio_command(self) -> list[str]:
        """A command that connects to this mock over stdio."""
        return shlex.split(self._variables["REHEARSE_STDIO"])

    def journal(self) -> list[dict[str, Any]]:
        """The messages that have arrived, and how they were answered."""
        return list(self._admin("GET", "/journal")["entries"])

    def calls(self, tool: Optional[str] = None) -> list[dict[str, Any]]:
        """The arguments of each call of this tool, or of every tool, in the order of arrival."""
        calls = [_params(entry) for entry in self.journal() if entry.get("method") == "tools/call"]
        return [call.get("arguments", {}) for call in calls if tool in (None, call.get("name"))]

    def verify(self) -> None:
        """Raises AssertionError if an expectation of the script is not met, or a client broke the protocol."""
        __tracebackhide__ = True
        found = self._admin("GET", "/verify")
        if not found["holds"]:
            raise AssertionError(f"the {self.name} expected something else:\n{found['report']}")

    def violations(self) -> list[dict[str, Any]]:
        """The rules of the specification that the clients have violated so far."""
        return list(self._admin("GET", "/violations")["violations"])

    def assert_conformant(self) -> None:
        """Raises AssertionError if a client has violated a MUST of the specification."""
        __tracebackhide__ = True
        found = [it for it in self.violations() if it["isMust"]]
        if found:
            lines = [f"  {it['rule']} ({it['version']}): {it['text']} Found {it['found']}" for it in found]
            hint = "hint: `rehearse check --explain RULE` explains a rule"
            raise AssertionError("\n".join([f"a client of the {self.name} violates the specification:", *lines, hint]))

    def add_rule(self, rule: Mapping[str, Any], **item: str) -> str:
        """Puts a rule in front of those of an item: `add_rule({"reply": "…"}, tool="forecast")`. Returns its id."""
        __tracebackhide__ = True
        return str(self._admin("POST", "/rules", {**item, "rule": rule})["id"])

    def reset(self) -> None:
        """Restores the state, the journal, the counters and the rules of the script."""
        __tracebackhide__ = True
        self._admin("POST", "/reset")

    @property
    def state(self) -> dict[str, Any]:
        """The state of the script. Assign to it to replace it."""
        return dict(self._admin("GET", "/state"))

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        self._admin("PUT", "/state", state)

    def _admin(self, method: str, path: str, body: Optional[Mapping[str, Any]] = None) -> Any:
        __tracebackhide__ = True
        # Imported here, since it takes half of the time in which `mcp-rehearsal` starts.
        from http.client import HTTPConnection, HTTPException

        # Not with urllib, which would ask the proxy that the environment may name.
        address = urlsplit(self._variables["REHEARSE_ADMIN_URL"]).netloc
        connection = HTTPConnection(address, timeout=_ADMIN_TIMEOUT)
        headers = {"Authorization": f"Bearer {self._variables['REHEARSE_ADMIN_TOKEN']}"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            answer = json.loads(response.read() or "null")
        except (OSError, HTTPException) as error:
            code = self._process.poll()
            why = error if code is None else f"it has ended with exit code {code}"
            raise RehearseError(f"the {self.name} does not answer: {why}\n{self.log}") from error
        except RecursionError as error:
            raise RehearseError("a client has sent JSON that is too deep for Python; reset() the mock before you go on") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise RehearseError(f"the {self.name} refuses {method} {path}: {json.dumps(answer, ensure_ascii=False)}")
        return answer


def _params(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a message of the journal; empty if it is not a request as it should be."""
    request = entry.get("request")
    params = request.get("params") if isinstance(request, dict) else None
    return params if isinstance(params, dict) else {}


def describe(server: Server) -> str:
    """The log of a server, and for a mock the latest requests and how they were answered."""
    lines = server.log.splitlines()
    if isinstance(server, Mock) and not server.is_stopped:
        try:
            entries = server.journal()
        except RehearseError as error:
            return str(error)
        for entry in entries:
            params = {key: value for key, value in _params(entry).items() if key in ("name", "uri", "arguments")}
            text = json.dumps(params, ensure_ascii=False)[:_PARAMS_LENGTH] if params else ""
            what = entry.get("method") or entry.get("http", "?")
            answer = ": ".join(entry[key] for key in ("outcome", "reason") if key in entry) or entry.get("answer", "")
            lines.append(f"{entry['transport']}  {what} {text}  {entry['handling']}{answer and ' → ' + answer}")
    return "\n".join(lines[-_REPORT_LINES:])
