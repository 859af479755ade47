"""A real host that runs with a server of ours: what it made of the server, and what the server got."""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
REHEARSE = os.path.abspath(os.environ.get("REHEARSE", TARGET / "debug/rehearse"))
HOSTS = Path(os.environ.get("REHEARSE_HOSTS", TARGET / "hosts"))
# The model of a host that need not call a tool.
SILENT = {"rules": [{"reply": "done"}]}
# How long a host may take to ask its model: a server may be slow, and the machine busy.
PATIENCE = 240


class NotRun(Exception):
    """A host could not be run; what happened, for people."""


class Seen:
    """What came of a run."""

    def __init__(self, run, sessions):
        self.run, self.sessions = run, sessions

    def tool(self, name):
        return next((tool for tool in self.run.get("tools", []) if tool["name"] == name), {})

    def shown(self):
        """The tools of the server that the model saw, from their names to what it saw of them."""
        return {tool["name"]: tool for tool in self.run.get("tools", []) if "shown" in tool}

    def arrived(self, name):
        return bool(self.tool(name).get("call", {}).get("arrived"))

    def requests(self, method):
        """The requests of a method that the host sent to the server."""
        return [request for session in self.sessions for request in session if request.get("method") == method]

    def methods(self):
        return {request.get("method") for session in self.sessions for request in session}

    def capabilities(self):
        return self.run.get("connection", {}).get("capabilities") or {}


class RealHost:
    """A host in a version that is installed below a folder."""

    def __init__(self, name, title, version, hosts=HOSTS):
        self.name, self.title, self.version, self.hosts = name, title, version, hosts
        text = (ROOT / f"crates/client-configs/hosts/{name}.yaml").read_text()
        text = re.sub(r"(?m)^  startLimit: .*\n", "", text)
        self.file = text.replace("\nheadless:\n", f"\nheadless:\n  startLimit: {PATIENCE}s\n")
        program = re.search(r"(?m)^  command:\s*\[(.*?),", text)[1]
        places = [hosts / name / folder / program for folder in ("node_modules/.bin", "bin")]
        self.program = next(place for place in places if place.exists())

    def meet(self, server, model=None, transport="stdio", url=None, seconds=PATIENCE, listed=None):
        """Runs it with a mock script, or the server at a URL. Without a script of the model, each tool is called once.

        With `listed`, this mock answers when we list the tools, before the host does.
        """
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            for name, value in (("server.json", server), ("listed.json", listed or server), ("model.json", model)):
                (folder / name).write_text(value if isinstance(value, str) else json.dumps(value))
            (folder / f"{self.name}.yaml").write_text(self.file)
            # We know the version, and need not start it once more for that.
            executable(folder / self.program.name, f'[ "$1" = --version ] && exit\nexec "{self.program}" "$@"\n')
            command = [REHEARSE, "host", "run", folder / f"{self.name}.yaml", "--hosts", self.hosts, "--format", "json"]
            command += ["--max-time", f"{seconds}s", *(["--model", folder / "model.json"] if model else [])]
            if url is not None:
                return self.result([*command, f"--{transport}", url], folder)
            if transport == "stdio":
                # We come first; and each process has a journal of its own.
                first = f'if mkdir first 2> /dev/null; then exec "{REHEARSE}" mock listed.json; fi'
                rest = f'exec "{REHEARSE}" mock server.json --journal $$.jsonl'
                executable(folder / "server", f'cd "{folder}"\n{first}\n{rest}\n')
                return self.result([*command, "--", folder / "server"], folder)
            variable = {"http": "REHEARSE_URL", "sse": "REHEARSE_SSE_URL"}[transport]
            words = " ".join(f'"{word}"' for word in map(str, command))
            mock = [REHEARSE, "mock", folder / "server.json", "--journal", folder / f"{transport}.jsonl"]
            serve = [*mock, "--exec", "--", "sh", "-c"]
            return self.result([*serve, f'exec {words} --{transport} "${variable}"'], folder)

    def result(self, command, folder):
        done = subprocess.run(command, capture_output=True, text=True)
        try:
            [run] = json.loads(done.stdout)["hosts"]
        except (ValueError, KeyError):
            raise NotRun(f"{self.name}: {(done.stderr or done.stdout).strip()[-600:]}") from None
        # What a host does not come to on a busy machine is no finding.
        if re.search("within the time|did not end in time", run.get("error") or ""):
            raise NotRun(f"{self.name}: {run['error']}")
        return Seen(run, sessions(folder))


def executable(path, text):
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)


def sessions(folder):
    """The requests of each connection of the host to the server."""
    found = []
    for path in sorted(folder.glob("*.jsonl")):
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        by_session = {}
        for entry in entries:
            if isinstance(entry.get("request"), dict):
                by_session.setdefault(entry.get("session"), []).append(entry["request"])
        found += by_session.values()
    # We list the tools first, in a session of our own.
    return [requests for requests in found if not is_ours(requests)]


def is_ours(requests):
    first = requests[0].get("params") or {}
    client = first.get("clientInfo") or (first.get("_meta") or {}).get("io.modelcontextprotocol/clientInfo") or {}
    return client.get("name") in ("rehearse", "mcp-rehearsal")
