"""The matrix: each SDK that users still have × each transport that it serves × each command that opens a session.

A new version of an SDK is a row of `SDKS` and its pins; a new command is an entry of `COMMANDS`.
"""

import json
import re
import shlex
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from processes import REHEARSE, Failure

HERE = Path(__file__).resolve().parent
READY = r"(?:listening on|running on) (http://127\.0\.0\.1:\d+)"
PATHS = {"http": "/mcp", "sse": "/sse", "ws": "/ws"}
BOTH = "2025-11-25 2026-07-28"

# An SDK, where its version is pinned, its program in `servers/`, the versions of MCP that it is to agree on, its transports.
SDKS = [
    ("Python SDK", "python-1.6:mcp", "old.py", "2024-11-05", "stdio sse ws"),
    ("Python SDK", "python-1.9:mcp", "old.py", "2025-03-26", "stdio sse ws"),
    ("Python SDK", "python-1.15:mcp", "old.py", "2025-06-18", "stdio http sse ws"),
    ("Python SDK", "python-1:mcp", "old.py", "2025-11-25", "stdio http sse ws"),
    ("Python SDK", "python-2:mcp", "old.py", BOTH, "stdio http sse"),
    ("FastMCP", "python-fastmcp-2:fastmcp", "fast.py", "2025-11-25", "stdio http sse"),
    ("FastMCP", "python-fastmcp-3:fastmcp", "fast.py", "2025-11-25", "stdio http sse"),
    ("FastMCP", "python-2:fastmcp", "fast.py", BOTH, "stdio http sse"),
    ("TypeScript SDK", "sdk-1.10", "old.mjs", "2024-11-05", "stdio http sse"),
    ("TypeScript SDK", "sdk-1.20", "old.mjs", "2025-06-18", "stdio http sse"),
    ("TypeScript SDK", "@modelcontextprotocol/sdk", "old.mjs", "2025-11-25", "stdio http sse"),
    ("TypeScript SDK", "@modelcontextprotocol/server", "sdk-2.mjs", BOTH, "stdio http"),
    ("rmcp", "rmcp", "rmcp", "2025-11-25", "stdio http"),
]

# The words of a command, and what its output must have. SERVER stands for the words that name the server, RECORDED for
# those of a recorder before it; `server.json` is a client's config with the server `it`.
SERVER, RECORDED = object(), object()
COMMANDS = {
    "list-tools": (["mcp", "list-tools", SERVER], r"\badd\b"),
    "call-tool": (["mcp", "call-tool", "add", "a=2", "b=40", SERVER], r"\b42\b"),
    "repl": (["repl", "--yes", SERVER], r"\b42\b", "call add a=2 b=40\n"),
    "chat": (["chat", "--yes", "--model", "scripted:model.yaml", SERVER], r"It is .*\b42\b", "What is 2 + 40?\n"),
    "serve": (["mcp", "call-tool", "ask", "prompt=2 + 40", "--", REHEARSE, "serve", "--no-save", "--config", "agent.yaml"], r"It is .*\b42\b"),
    "surface": (["surface", SERVER], r'"name": "add"'),
    "diff": (["diff", "--mcp-config", "server.json", "it", "it"], "no changes"),
    "fuzz": (["fuzz", "--cases", "5", "--budget", "20s", "--allow-tool", "add", SERVER], "no bug"),
    "init": (["init", "new", "--allow-tool", "add", SERVER], r"cells?: \d+ passed \("),
    "bench call": (["bench", "call", "--requests", "5", "--warmup", "0s", "--tool", "add", "--allow-tool", "add", SERVER], r"^passed"),
    "bench discovery": (["bench", "discovery", "--requests", "1", SERVER], r"^passed"),
    "validate-config": (["validate-config", "--connect", "server.json"], r"it: \d tools?\b"),
    "record": (["mcp", "call-tool", "add", "a=2", "b=40", RECORDED], r"\b42\b"),
    "check": (["check", "--only", "tools.list.name-*", SERVER], "^passed"),
    "run": (["run", "scenario.yaml"], r"cells?: \d+ passed[ ,]"),
}
# What does not exist over WebSocket: a recorder, and a server in the config of an agent.
NOT_OVER_WS = {"record", "serve"}
# Cells that fail for a known reason; one that passes is a failure, too. README.md says why.
KNOWN = {
    ("sdk-1.10", "http"): {"init", "check"},
    ("python-1.6:mcp", "stdio"): {"fuzz"},
    ("python-1.6:mcp", "sse"): {"fuzz"},
    ("python-1.6:mcp", "ws"): {"fuzz"},
}
MODEL = [{"turns": [{"calls": [{"tool": "add", "args": {"a": 2, "b": 40}}]}, "It is {{ result }}."]}]


class Matrix:
    def __init__(self, peers):
        self.peers, self.processes = peers, peers.processes

    def all(self):
        for sdk in SDKS:
            name, package, _, _, transports = sdk
            for transport in transports.split():
                yield f"server: {name} {self.peers.version(package)} · {transport}", self.cells(sdk, transport)

    def program(self, package, program):
        """The words that start a server, without its transport."""
        if program == "rmcp":
            return [self.peers.build_rmcp()]
        path = str(HERE / "servers" / program)
        if program.endswith(".py"):
            return [str(self.peers.folder / package.split(":")[0] / "bin/python"), path]
        return [self.peers.node, path, *([package] if program == "old.mjs" else [])]

    def warm(self, program):
        """The words that start a Python server on stdio; its imports were done before."""
        python, path = program
        address = f"{tempfile.mkdtemp(dir=self.processes.scratch)}/socket"
        warm = str(HERE / "servers/warm.py")
        self.processes.listen([python, warm, address, path], r"warm at (.*)")
        return [sys.executable, "-S", "-E", warm, address]

    def cells(self, sdk, transport):
        """Gives every command to one server, one after the other."""

        def meet():
            _, package, program, versions, _ = sdk
            start = [*self.program(package, program), transport]
            if transport == "stdio" and program.endswith(".py"):
                start = self.warm(start[:2])
            words, entry = ["--", *start], {"command": start[0], "args": start[1:]}
            if transport != "stdio":
                address = self.processes.listen(start, READY) + PATHS[transport]
                address = address.replace("http:", "ws:") if transport == "ws" else address
                words, entry = [f"--{transport}", address], {"type": transport, "url": address}
            folder = Path(tempfile.mkdtemp(dir=self.processes.scratch))
            write_files(folder, entry, versions.split())
            names = [name for name in COMMANDS if not (transport == "ws" and name in NOT_OVER_WS)]
            known = KNOWN.get((package, transport), set())

            def wrong(name):
                command, *expected = COMMANDS[name]
                command = self.command(command, words, folder)
                failure = self.failure(command, folder, *expected)
                if failure is None:
                    return f"{name}: it passes, and is in KNOWN" if name in known else None
                started = "" if transport == "stdio" else f"server: MODULES={self.peers.folder} {shlex.join(start)}\n"
                return None if name in known else f"{name}: {failure}\n{started}repeat: {shlex.join(command)}"

            # Most of the time is silence that a client has to wait out.
            with ThreadPoolExecutor(4) as pool:
                failures = [failure for failure in pool.map(wrong, names) if failure]
            return f"{len(names) - len(failures)} of {len(names)} commands", failures

        return meet

    def command(self, words, server, folder):
        if RECORDED in words:
            recorder = [REHEARSE, "record", "--trace-file", str(folder / "trace.jsonl")]
            if server[0] == "--":
                server = ["--", *recorder, *server]
            else:
                listening = self.processes.listen([*recorder, "--listen", "127.0.0.1:0", "--to", server[1]], r"(http://127\.0\.0\.1:\d+/(?:mcp|sse))")
                server = [server[0], listening]
        parts = [[word] if isinstance(word, str) else server for word in words]
        return [REHEARSE, *(word for part in parts for word in part)]

    def failure(self, command, folder, pattern, typed=""):
        """What is wrong with the exit or the output of a command."""
        try:
            code, out, err = self.processes.run(command, seconds=180, input=typed, cwd=folder)
        except Failure as failure:
            return str(failure)
        if code == 0 and re.search(pattern, out, re.M):
            return None
        wrong = f"it ended with {code}" if code != 0 else f"its output has no {pattern}"
        return "\n".join([wrong, *(out + err).splitlines()[-8:]])


def write_files(folder, entry, versions):
    """The files that the commands read. All are JSON, which is YAML too."""
    agent = {
        "version": "1.0",
        "models": [{"ref": "script", "display_name": "Script", "id": "model.yaml", "type": "scripted"}],
        "defaults": {"model": "script"},
        "subagent": {"name": "ask", "description": "Adds."},
        "mcpServers": {"it": {"type": "stdio", **entry}},
    }
    steps = [
        {"discover": {}, "expect": {"at": {"/tools/0": {"name": "add"}}}},
        {"call": {"tool": "add", "args": {"a": 2, "b": 40}}, "expect": {"at": {"/content/0/text": {"contains": "42"}}}},
    ]
    scenario = {"servers": {"it": entry}, "matrix": {"protocol": [*versions, "auto"]}, "steps": steps}
    files = {"server.json": {"mcpServers": {"it": entry}}, "agent.yaml": agent, "model.yaml": {"rules": MODEL}, "scenario.yaml": scenario}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=2))
