"""A mock server for the session; every test begins with it as new, and is held to what it expects and to the
MCP specification.
"""

import json
import os
import subprocess
import urllib.request
from pathlib import Path

import pytest

HERE = Path(__file__).parent


class Mock:
    """A mock that is running, with its admin API."""

    def __init__(self, started):
        self.url = started["http"]
        self._admin = started["admin"]

    def admin(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._admin['token']}"}
        request = urllib.request.Request(self._admin["url"] + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.loads(response.read() or "null")

    def rule(self, tool, **rule):
        """Puts a rule in front of a tool's own: mock.rule("forecast", when={…}, reply="…")."""
        return self.admin("POST", "/rules", {"tool": tool, "rule": rule})["id"]

    def calls(self):
        """The arguments of each call of a tool, in the order in which they came."""
        entries = self.admin("GET", "/journal")["entries"]
        return [entry["request"]["params"]["arguments"] for entry in entries if entry["method"] == "tools/call"]


@pytest.fixture(scope="session")
def server():
    command = [os.environ.get("REHEARSE", "rehearse"), "mock", HERE / "weather.yaml"]
    command += ["--listen", ":0", "--admin", "--check", "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield Mock(json.loads(process.stdout.readline()))
        finally:
            process.terminate()


@pytest.fixture
def weather(server):
    server.admin("POST", "/reset")
    yield server
    verified = server.admin("GET", "/verify")
    assert verified["holds"], verified["report"]
    violations = server.admin("GET", "/violations")["violations"]
    assert not violations, [f"{it['rule']}: {it['found']}" for it in violations]
