"""The applications that `rehearse check client` checks, over every transport that they have.

As for servers, `known-violations/client-NAME.yaml` lists where a client violates the specification, each with the sentence
of the specification. Anything else that fails is a fault of `rehearse`, and so is an entry that no longer fails.
"""

import json
from pathlib import Path

from checked import failed, passed
from processes import REHEARSE, TARGET

HERE = Path(__file__).resolve().parent
ADDRESSES = {"stdio": "{command}", "http": "{url}", "sse": "{sse_url}", "ws": "{ws_url}"}
LEGACY, MODERN = ("stdio", "http", "sse"), ("stdio", "http")


class CheckedClients:
    """All applications, met with the processes and the installed packages of a run."""

    def __init__(self, peers, build_rmcp):
        self.processes, self.folder = peers.processes, peers.folder
        self.node, self.modules, self.build_rmcp = peers.node, peers.modules, build_rmcp

    def all(self):
        """The name of every client with what checks it; that returns a summary and the failures."""
        python = lambda generation: [str(self.folder / generation / "bin/python"), str(HERE / "clients/work.py")]
        node = lambda package: [self.node, str(HERE / "clients/work.mjs"), f"@modelcontextprotocol/{package}"]
        clients = [
            ("python-sdk-1", python("python-1"), "legacy", (*LEGACY, "ws")),
            ("python-sdk-2", python("python-2"), "legacy", LEGACY),
            ("python-sdk-2-modern", python("python-2"), "modern", MODERN),
            ("fastmcp-2", python("python-fastmcp-2"), "legacy", LEGACY),
            ("fastmcp-3", python("python-fastmcp-3"), "legacy", LEGACY),
            ("typescript-sdk-1", node("sdk"), "legacy", LEGACY),
            ("typescript-sdk-2", node("client"), "legacy", LEGACY),
            ("typescript-sdk-2-modern", node("client"), "modern", MODERN),
        ]
        for name, command, era, transports in clients:
            for transport in transports:
                words = [*command, era, transport, ADDRESSES[transport]]
                words += ["fastmcp"] if name.startswith("fastmcp") else []
                yield f"check client {name} · {transport}", self.check(name, transport, words)
        rmcp = [str(TARGET / "interop-rmcp/debug/interop-rmcp"), "client"]
        for transport in MODERN:
            words = [*rmcp, transport, ADDRESSES[transport]]
            yield f"check client rmcp · {transport}", self.check("rmcp", transport, words)
        ours = {"stdio": "--stdio", "http": "--http", "sse": "--sse", "ws": "--ws"}
        for transport, flag in ours.items():
            words = [REHEARSE, "mcp", "list-tools", flag, ADDRESSES[transport]]
            yield f"check client rehearse · {transport}", self.check("rehearse", transport, words)

    def check(self, name, transport, command):
        def meet():
            if name == "rmcp":
                self.build_rmcp()
            report = self.processes.scratch / f"client-{name}-{transport}.json"
            known = HERE / f"known-violations/client-{name}.yaml"
            options = ["--format", "json", "--output", str(report), "--idle", "2s", "--sdk"]
            options += ["--baseline", str(known)] if known.exists() else []
            environment = {"MODULES": str(self.modules.parent)}
            arguments = [REHEARSE, "check", "client", *options, "--", *command]
            code, out, err = self.processes.run(arguments, environment, seconds=600)
            if code != 0:
                return "", [f"it ended with {code}\n{out}{err}{failed(report)}"]
            used = {server["transport"] for server in json.loads(report.read_text())["servers"]}
            return passed(report), [] if used == {transport} else [f"it used {used}"]

        return meet
