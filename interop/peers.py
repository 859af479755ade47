"""Who is met, and how."""

import json
import os
import re
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from install import node
from matrix import Matrix
from processes import REHEARSE, ROOT, TARGET, Failure

HERE = Path(__file__).resolve().parent

MOCKS = ["basic", "pages", "library", "prompts", "worker"]
AUTHORIZED = [("http", "legacy", "2025-11-25"), ("http", "modern", "2026-07-28"), ("sse", "legacy", "2025-11-25")]
SDK_CHECKS = """handshake tools echo large tool_error bad_arguments structured unknown_tool timeout cancel alive parallel
    pagination resources prompts progress logging subagent_tools subagent_answer subagent_cancel subagent_close""".split()
INSPECTOR_CHECKS = """handshake tools echo tool_error bad_arguments structured unknown_tool slow pagination resources
    prompts progress""".split()
MODEL_CHECKS = [f"{api}_{check}" for api in ("messages", "chat", "responses") for check in ("text", "tools_round", "stream", "errors")]


class Peers:
    """All peers; each is met with the processes, the installed packages and the mocks that they share."""

    def __init__(self, processes, folder, update):
        self.processes, self.folder, self.update = processes, folder, update
        self.targets = {}
        self.node = node(folder)
        self.modules = folder / "node_modules/@modelcontextprotocol"
        processes.env |= {
            "NODE": self.node,
            "MODULES": str(folder),
            "SERVERS": str(self.modules),
            "PYTHON": str(folder / "python-2/bin/python"),
            "PATH": f"{Path(REHEARSE).parent}:{os.environ['PATH']}",
        }

    def version(self, package):
        """Of an npm package, of rmcp, or of a Python package in one of the lists."""
        pins = json.loads((HERE / "package.json").read_text())["dependencies"]
        if package in pins:
            return pins[package].rsplit("@", 1)[-1]
        if package == "rmcp":
            lock = (HERE / "servers/rmcp/Cargo.lock").read_text()
            return re.search(r'^name = "rmcp"\nversion = "(.*)"$', lock, re.M)[1]
        generation, name = package.split(":")
        return re.search(rf"^{name}==(.*)$", (HERE / f"{generation}.txt").read_text(), re.M)[1]

    def all(self):
        """The name of every peer with what meets it; that returns a summary and the failures."""
        js = "@modelcontextprotocol/"
        everything = f"server-everything {self.version(js + 'server-everything')}"
        fast = f"FastMCP {self.version('python-2:fastmcp')}"
        for name in ("filesystem", "memory"):
            yield f"server-{name} {self.version(f'{js}server-{name}')} · stdio", self.scenario(name)
        for transport, mode in (("stdio", None), ("http", "streamableHttp"), ("sse", "sse")):
            yield f"{everything} · {transport}", self.scenario("everything", transport, self.everything, mode)
            yield f"{fast} · {transport}", self.scenario("fast", transport, self.fast, transport)
        yield from Matrix(self).all()
        for transport, era, version in AUTHORIZED:
            yield f"{fast} with OAuth · {transport} · {era}", self.authorized(transport, version)
        sdk = [self.node, str(HERE / "clients/typescript.mjs")]
        python = [str(HERE / "clients/python.py")]
        clients = [
            ("Inspector", js + "inspector", [sys.executable, str(HERE / "clients/inspector.py")], INSPECTOR_CHECKS),
            ("TypeScript SDK", js + "sdk", [*sdk, js + "sdk"], SDK_CHECKS),
            ("TypeScript SDK", js + "client", [*sdk, js + "client"], SDK_CHECKS),
            ("Python SDK", "python-1:mcp", [str(self.folder / "python-1/bin/python"), *python], SDK_CHECKS),
            ("Python SDK", "python-2:mcp", [str(self.folder / "python-2/bin/python"), *python], SDK_CHECKS),
        ]
        yield f"codegen, TypeScript SDK {self.version(js + 'sdk')} · stdio", self.bindings
        for name, package, command, checks in clients:
            legacy_only = package in (js + "sdk", "python-1:mcp")
            cells = [("legacy", "stdio"), ("legacy", "http"), ("legacy", "sse")]
            cells += [("legacy", "ws")] if package == "python-1:mcp" else []
            cells += [] if legacy_only else [("modern", "stdio"), ("modern", "http")]
            for era, transport in cells:
                title = f"{name} {self.version(package)} · {transport} · {era}"
                yield title, self.client([*command, era, transport], checks, partial(self.mocks_and_subagent, transport))

        versions = f"{self.version('python-models:anthropic')}, {self.version('python-models:openai')}"
        python = [str(self.folder / "python-models/bin/python"), str(HERE / "clients/models.py")]
        yield f"Python SDKs of models {versions}", self.client(python, MODEL_CHECKS, self.model)
        versions = f"{self.version('@anthropic-ai/sdk')}, {self.version('openai')}"
        yield f"TypeScript SDKs of models {versions}", self.client([self.node, str(HERE / "clients/models.mjs")], MODEL_CHECKS, self.model)

    def build_rmcp(self):
        """Builds the server and client of rmcp; the path of the program."""
        target = TARGET / "interop-rmcp"
        manifest = HERE / "servers/rmcp/Cargo.toml"
        command = ["cargo", "build", "--quiet", "--locked", "--manifest-path", str(manifest)]
        home = {"HOME": str(Path.home()), "CARGO_TARGET_DIR": str(target)}
        code, out, err = self.processes.run(command, home, seconds=600)
        if code != 0:
            raise Failure(f"the server of rmcp cannot be built\n{out}{err}")
        return str(target / "debug/interop-rmcp")

    def model(self):
        """The address of a new scripted model."""
        command = [REHEARSE, "model", str(HERE / "model.yaml"), "--listen", "127.0.0.1:0"]
        return self.processes.listen(command, r"ANTHROPIC_BASE_URL=(http://127\.0\.0\.1:\d+)")

    def everything(self, mode):
        """The address of a new server-everything."""
        command = [self.node, "--require", str(HERE / "loopback.cjs"), str(self.modules / "server-everything/dist/index.js")]
        address = self.processes.listen([*command, mode], r"listening on (http://127\.0\.0\.1:\d+)", {"PORT": "0"})
        return address + ("/sse" if mode == "sse" else "/mcp")

    def fast(self, transport, program="fast.py"):
        """The address of a new FastMCP server."""
        command = [self.processes.env["PYTHON"], str(HERE / "servers" / program), transport]
        address = self.processes.listen(command, r"running on (http://127\.0\.0\.1:\d+)")
        return address + ("/sse" if transport == "sse" else "/mcp")

    def scenario(self, name, transport="stdio", serve=None, how=None):
        """Runs a scenario; over a network with only the entry of the server replaced, and against the same snapshots."""

        def meet():
            path = HERE / f"scenarios/{name}.yaml"
            mode = ["--update"] if self.update else []
            if transport != "stdio":
                path, mode = self.over_network(path, transport, serve(how)), []
            command = [REHEARSE, "run", str(path), "--keep-going", "--jobs", "3", *mode]
            code, out, err = self.processes.run(command)
            summary = next((line for line in reversed(out.splitlines()) if re.search(r"cells?:", line)), "no summary")
            cells = re.search(r"cells?: (.*?) \(", summary)
            return cells[1] if cells else summary, [] if code == 0 and cells else [f"it ended with {code}\n{out}{err}"]

        return meet

    def authorized(self, transport, version):
        """Gets a token from a server that issues it itself, uses it and forgets it."""

        def meet():
            url = self.fast(transport, "guarded.py")
            data = self.processes.scratch / f"tokens-{transport}-{version}"
            call = ["call-tool", "add", "a=2", "b=40", "--protocol", version]
            steps = [
                (call, 3, r"\Z", rf"hint: rehearse mcp auth --{transport} {re.escape(url)}; "),
                (["auth", "--headless"], 0, r"✓ 127\.0\.0\.1\n(.*\n)*  Scopes: notes\n", ""),
                (call, 0, r"42\n", ""),
                ([*call, "--trace"], 0, r"42\n", "tools/call"),
                (["auth", "--status"], 0, "✓ 127", ""),
                (["auth", "--logout"], 0, "The token of 127", ""),
                (call, 3, r"\Z", "requires authorization"),
            ]
            failures, tokens = [], set()
            for args, expected, said, told in steps:
                command = [REHEARSE, "mcp", *args, f"--{transport}", url]
                code, out, err = self.processes.run(command, {"XDG_DATA_HOME": str(data)})
                kept = "".join(path.read_text() for path in data.glob("rehearse/tokens/*.json"))
                tokens |= set(re.findall(r'"(?:access|refresh|secret)": "(.+)"', kept))
                if code != expected or not re.match(said, out, re.S) or not re.search(told, err):
                    failures.append(f"{' '.join(args)} ended with {code}\n{out}{err}")
                if any(token in out + err for token in tokens):
                    failures.append(f"{' '.join(args)} shows a token")
            if not tokens:
                failures.append("no token was kept")
            return f"{len(steps)} steps", failures

        return meet

    def over_network(self, scenario, transport, url):
        entry = re.compile(rf"^  {scenario.stem}: \{{ command: .*\}}$", re.M)
        text, count = entry.subn(f"  {scenario.stem}: {{ url: {url}, type: {transport} }}", scenario.read_text())
        assert count == 1, f"the entry of the server in {scenario} does not stand on one line"
        folder = self.processes.scratch / transport / scenario.stem
        (folder / "scenarios").mkdir(parents=True)
        (folder / "snapshots").symlink_to(HERE / "snapshots")
        copy = folder / "scenarios" / scenario.name
        copy.write_text(text)
        return copy

    def bindings(self):
        """Writes typed functions for the tools of a mock, and calls them."""
        mock = [REHEARSE, "mock", str(ROOT / "crates/code-mode/src/codegen/tests/tools.json")]
        file = self.processes.scratch / "tools.mts"
        write = [REHEARSE, "codegen", "--lang", "typescript", "--out", str(file), "--stdio", " ".join(mock)]
        code, out, err = self.processes.run(write)
        if code != 0:
            return "no bindings", [f"codegen ended with {code}\n{out}{err}"]
        program = [self.node, "--no-warnings", str(HERE / "clients/bindings.mjs"), str(file)]
        checks = ["structured", "blocks", "tool_error", "collision"]
        return self.client(program, checks, lambda: json.dumps(mock))()

    def client(self, command, expected, target):
        """Runs a client that reports its checks as JSON lines; all expected checks must be among them."""

        def meet():
            code, out, err = self.processes.run([*command, target()])
            reports = [json.loads(line) for line in out.split("\n") if line.startswith('{"check"')]
            failures = [f"{report['check']}: {report['error'][:200]}" for report in reports if report["error"] is not None]
            missing = [name for name in expected if name not in {report["check"] for report in reports}]
            if missing:
                failures.append(f"it said nothing about {', '.join(missing)}")
            if missing or code != 0:
                failures.append(f"it ended with {code}\n{err[-2000:]}")
            return f"{len(reports)} checks", failures

        return meet

    def start_mocks(self):
        """Starts the network mocks that all clients share, and notes how each is reached over every transport."""
        for mock in MOCKS:
            script = str(ROOT / f"mock-servers/{mock}.yaml")
            address = self.processes.listen(
                [REHEARSE, "mock", script, "--listen", "127.0.0.1:0"], r"http://(127\.0\.0\.1:\d+)/mcp"
            )
            self.targets[mock] = {"command": REHEARSE, "args": ["mock", script], **urls(address)}

    def mocks_and_subagent(self, transport):
        """The targets of a client: the mocks, and a subagent of its own, whose processes run in a new folder."""
        folder = Path(tempfile.mkdtemp(dir=self.processes.scratch)).resolve() / "subagent"
        shutil.copytree(ROOT / "tests/subagents", folder)
        args = ["serve", "--config", "probe.cpe.yaml"]
        probe = {"command": REHEARSE, "args": args, "cwd": str(folder)}
        if transport != "stdio":
            command = [REHEARSE, *args, "--listen", "127.0.0.1:0"]
            probe |= urls(self.processes.listen(command, r"http://(127\.0\.0\.1:\d+)/mcp", cwd=folder))
        return json.dumps(self.targets | {"probe": probe})


def urls(address):
    """Of a server of ours, by transport."""
    return {"http": f"http://{address}/mcp", "sse": f"http://{address}/sse", "ws": f"ws://{address}/ws"}
