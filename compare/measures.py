"""What is measured. Each measure takes its servers in turns, so that a busy moment meets all of them."""

import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path

from install import node
from processes import REHEARSE, TARGET, Failure

HERE = Path(__file__).resolve().parent
URL = r"(http://127\.0\.0\.1:\d+)"
CONNECTIONS = (1, 8, 32, 128)
ECHO = "tools: [{ name: echo, inputSchema: { type: object, properties: { text: { type: string } }, required: [text] }, reply: { text: \"{{ args.text }}\" } }]\n"
HELLO = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}\n'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
CALL = """wrk.method = "POST"
wrk.headers = { ["Content-Type"] = "application/json", ["Accept"] = "application/json, text/event-stream",
  ["MCP-Protocol-Version"] = "2026-07-28", ["Mcp-Method"] = "tools/call", ["Mcp-Name"] = "echo" }
wrk.body = [[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"test"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"wrk","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}]]
"""
AIMOCK = {"mcp": {"tools": [{"name": "echo", "description": "Returns a text.", "inputSchema": {"type": "object"}, "result": "test"}]}}


def all(processes, folder, peers, official, quick):
    """Every measure, as data for the page."""
    build_servers(processes)
    bench = Bench(processes, folder, peers, official, quick)
    return {
        "machine": machine(),
        "versions": bench.versions(),
        **bench.http(),
        "sessions": bench.sessions(),
        "stdio": bench.stdio(),
        "cold": bench.cold_start(),
        "commands": bench.commands(),
        "discovery": bench.discovery(),
        "checks": bench.checks(),
        "scenarios": bench.scenarios(),
        "memory": bench.memory(),
        "soak": json.loads(soak.read_text()) if (soak := TARGET / "soak.json").exists() else None,
    }


def build_servers(processes):
    command = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", str(HERE / "servers/Cargo.toml")]
    home = {"HOME": str(Path.home()), "CARGO_TARGET_DIR": str(TARGET / "compare")}
    code, out, err = processes.run(command, home, seconds=1200)
    if code != 0:
        raise Failure(f"the servers to compare with cannot be built\n{out}{err}")


def machine():
    model = next((line.split(": ")[1] for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    return {"processor": model.strip(), "processors": os.cpu_count(), "system": f"{platform.system()} {platform.release()}",
            "load": os.getloadavg()[0], "date": time.strftime("%Y-%m-%d")}


class Bench:
    def __init__(self, processes, folder, peers, official, quick):
        self.processes, self.folder, self.peers, self.official, self.quick = processes, folder, peers, official, quick
        self.node, self.modules = node(folder), folder / "node_modules"
        self.servers = str(TARGET / "compare/release/compare-servers")
        self.everything = [self.node, str(self.modules / "@modelcontextprotocol/server-everything/dist/index.js")]
        self.fast = [str(peers / "python-fastmcp-3/bin/python"), str(HERE / "fast.py")]
        self.echo = self.file("echo.yaml", ECHO)
        self.streams = self.file("streams.yaml", ECHO + "http: { answers: sse }\n")

    def file(self, name, text):
        path = self.processes.scratch / name
        path.write_text(text)
        return str(path)

    def versions(self):
        """The versions of everything that is compared."""
        package = lambda name: json.loads((self.modules / name / "package.json").read_text())["version"]
        names = ["@copilotkit/aimock", "@modelcontextprotocol/inspector", "@modelcontextprotocol/server-everything", "mcporter"]
        rmcp = re.search(r'name = "rmcp"\nversion = "(.*)"', (HERE / "servers/Cargo.lock").read_text())[1]
        python = [str(self.peers / "python-fastmcp-3/bin/python"), "-c", "import fastmcp; print(fastmcp.__version__)"]
        output = lambda command: self.processes.run(command)[1].strip()
        return {"rehearse": output([REHEARSE, "--version"]).split()[-1], **{name: package(name) for name in names},
                "rmcp": rmcp, "FastMCP": output(python), "Node": output([self.node, "--version"])}

    def listen(self, command, pattern=URL, path="/mcp", env=None):
        address = self.processes.listen(command, pattern, env)
        return address if address.endswith(path) else address + path

    def everything_url(self):
        command = ["sh", "-c", f"PORT={free_port()} exec \"$@\"", "sh", *self.everything, "streamableHttp"]
        port = self.listen(command, r"port (\d+)", "")
        return f"http://127.0.0.1:{port}/mcp"

    def bench(self, arguments):
        """The report of `rehearse bench`."""
        report = self.processes.scratch / "report.json"
        command = [REHEARSE, "bench", *arguments, "--format", "json", "--output", str(report)]
        code, out, err = self.processes.run(command, seconds=900)
        if code != 0:
            raise Failure(f"{' '.join(command)} ended with {code}\n{out}{err}{report.read_text()[:2000] if report.exists() else ''}")
        return json.loads(report.read_text())

    def calls(self, names, targets, *options):
        """Calls of `echo` at each target: rates of the slices, and latencies."""
        seconds = 2 if self.quick else 6
        common = ["call", *targets, "--tool", "echo", "--allow-tool", "echo", "--duration", f"{seconds}s", *options]
        report = self.bench(common)
        return {"warnings": report.get("warnings", []), "servers": {
            name: {**series(target["measures"][0]), "version": target["version"], "cpu": target.get("process", {}).get("cpuSeconds")}
            for name, target in zip(names, report["targets"], strict=True)
        }}

    def http(self):
        """Streamable HTTP, JSON, each server in the newest version that it speaks."""
        mock = self.listen([REHEARSE, "mock", self.echo, "--listen", "127.0.0.1:0"])
        bare = self.listen([self.servers, "bare"])
        rmcp = self.listen([self.servers, "rmcp"])
        aimock = self.file("aimock.json", json.dumps(AIMOCK))
        aimock = self.listen([self.node, str(self.modules / "@copilotkit/aimock/dist/aimock-cli.js"), "--config", aimock])
        everything = self.everything_url()
        fast = self.listen([*self.fast, "http"])
        names = ["bare hyper handler", "rehearse mock", "rmcp", "aimock", "FastMCP", "server-everything"]
        targets = [word for url in (bare, mock, rmcp, aimock, fast, everything) for word in ("--http", url)]
        calls = {str(count): self.calls(names, targets, "--connections", str(count)) for count in CONNECTIONS}
        return {"http": calls, "wrk": self.wrk(bare, mock)}

    def wrk(self, *urls):
        """The rates that `wrk` finds with 32 connections, if it is installed: a check of the load generator."""
        if not shutil.which("wrk"):
            return None
        script = self.file("call.lua", CALL)
        rates = {url: [] for url in urls}
        for _ in range(1 if self.quick else 5):
            for url in urls:
                code, out, err = self.processes.run(["wrk", "-t1", "-c32", "-d2s", "-s", script, url], seconds=60)
                found = re.search(r"Requests/sec:\s+([\d.]+)", out)
                if code != 0 or not found or "Non-2xx" in out:
                    raise Failure(f"wrk ended with {code}\n{out}{err}")
                rates[url].append(float(found[1]))
        return list(rates.values())

    def sessions(self):
        """Sessions of 2025-11-25 with event streams."""
        mock = self.listen([REHEARSE, "mock", self.streams, "--listen", "127.0.0.1:0"])
        bare = self.listen([self.servers, "bare"])
        targets = ["--http", bare, "--http", mock]
        return self.calls(["bare hyper handler", "rehearse mock"], targets, "--connections", "32", "--protocol", "2025-11-25")

    def stdio(self):
        """Calls over stdio, 32 at once."""
        commands = {"rehearse mock": [REHEARSE, "mock", self.echo], "rmcp": [self.servers, "rmcp-stdio"],
                    "FastMCP": [*self.fast, "stdio"], "server-everything": [*self.everything, "stdio"]}
        targets = [word for command in commands.values() for word in ("--stdio", " ".join(command))]
        # The processor time counts from the start of the process.
        return self.calls(list(commands), targets, "--in-flight", "32", "--warmup", "100ms")

    def cold_start(self):
        """From the start of a process to its first answer; and processes that only start and end."""
        def answer(command):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.processes.env)
            process.stdin.write(HELLO)
            process.stdin.flush()
            if b'"result"' not in process.stdout.readline():
                raise Failure(f"no answer of {command}")
            ended = time.monotonic()
            process.kill()
            process.wait()
            return ended

        def end(command):
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=self.processes.env)
            return time.monotonic()

        return self.timed({
            "/bin/true": lambda: end(["/bin/true"]),
            "rehearse --version": lambda: end([REHEARSE, "--version"]),
            "rehearse mock basic": lambda: answer([REHEARSE, "mock", "basic"]),
            "rmcp": lambda: answer([self.servers, "rmcp-stdio"]),
            "server-everything": lambda: answer([*self.everything, "stdio"]),
            "FastMCP": lambda: answer([*self.fast, "stdio"]),
        }, 5 if self.quick else 30)

    def commands(self):
        """One command that lists the tools of a server on stdio."""
        def run(command, env=None):
            code, out, err = self.processes.run(command, env, seconds=60)
            if code != 0 or "echo" not in out:
                raise Failure(f"{command} ended with {code}\n{out}{err}")
            return time.monotonic()

        def alone(command):
            """The same session with requests that are prepared before."""
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=self.processes.env)
            for message in (HELLO, INITIALIZED, LIST):
                process.stdin.write(message)
                process.stdin.flush()
                while b"id" in message and b'"result"' not in process.stdout.readline():
                    pass
            process.stdin.close()
            process.wait()
            return time.monotonic()

        mock = [REHEARSE, "mock", "basic"]
        list_tools = lambda server: [REHEARSE, "mcp", "list-tools", "--stdio", " ".join(server)]
        inspector = str(self.modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js")
        mcporter = str(self.modules / "mcporter/dist/cli.js")
        everything = [*self.everything, "stdio"]
        work = {
            "the mock alone": lambda: alone(mock),
            "rehearse mcp list-tools": lambda: run(list_tools(mock)),
            "server-everything alone": lambda: alone(everything),
            "rehearse mcp list-tools, server-everything": lambda: run(list_tools(everything)),
            "Inspector CLI": lambda: run([self.node, inspector, "--cli", *mock, "--method", "tools/list"]),
            "mcporter": lambda: run([self.node, mcporter, "list", "--stdio", " ".join(mock), "--schema"]),
            "FastMCP": lambda: run([str(Path(self.fast[0]).parent / "fastmcp"), "list", "--command", " ".join(mock)]),
        }
        return self.timed(work, 3 if self.quick else 15)

    def timed(self, work, rounds):
        """The times of each piece of work in seconds, in turns."""
        times = {name: [] for name in work}
        for _ in range(rounds):
            for name, run in work.items():
                begun = time.monotonic()
                times[name].append(run() - begun)
        return times

    def discovery(self):
        """Many mocks on stdio: the whole command, and the same servers with prepared requests."""
        found = {}
        for count in (1, 10, 100):
            servers = {f"s{number}": {"command": REHEARSE, "args": ["mock", "basic"]} for number in range(count)}
            config = self.file(f"{count}.json", json.dumps({"mcpServers": servers}))

            def run():
                command = [REHEARSE, "mcp", "list-tools", "--mcp-config", config, "--parallel", str(count), "--quiet"]
                code, out, err = self.processes.run(command, seconds=120)
                if code != 0:
                    raise Failure(f"{command} ended with {code}\n{err}")
                return time.monotonic()

            times = self.timed({"rehearse mcp list-tools": run}, 2 if self.quick else 10)
            if count > 1:
                report = self.bench(["discovery", "--script", "basic", "--copies", str(count), "--requests", "5"])
                measure = next(it for it in report["targets"][-1]["measures"] if it["name"] == "all at once")
                times["prepared requests"] = [measure["latency"]["p50Ms"] / 1e3]
            found[str(count)] = times
        return found

    def checks(self):
        """All checks of one server over HTTP, by `rehearse check` and by the official suite; with how many each made."""
        url = self.everything_url()
        report = self.processes.scratch / "check.json"
        suite = [self.node, str(self.official / "node_modules/@modelcontextprotocol/conformance/dist/index.js"), "server"]
        made = {}

        def rehearse():
            code, out, err = self.processes.run([REHEARSE, "check", "--http", url, "--format", "json", "--output", str(report)], seconds=300)
            if code not in (0, 1):
                raise Failure(f"rehearse check ended with {code}\n{out}{err}")
            totals = json.loads(report.read_text())["totals"]
            made["rehearse check"] = sum(totals[it] for it in ("passed", "failed", "warnings", "info"))
            return time.monotonic()

        def official():
            code, out, err = self.processes.run([*suite, "--url", url, "--suite", "all"], cwd=self.processes.scratch, seconds=300)
            found = re.findall(r"(\d+) passed, (\d+) failed", out)
            if code not in (0, 1) or not found:
                raise Failure(f"the official suite ended with {code}\n{out}{err}")
            made["official suite"] = sum(map(int, found[-1]))
            return time.monotonic()

        times = self.timed({"rehearse check": rehearse, "official suite": official}, 1 if self.quick else 3)
        return {"times": times, "made": made}

    def scenarios(self):
        """All shipped scenarios."""
        def run():
            code, out, err = self.processes.run([REHEARSE, "run"], cwd=HERE.parent, seconds=120)
            if code != 0:
                raise Failure(f"the scenarios ended with {code}\n{out}{err}")
            return time.monotonic()

        return self.timed({"rehearse run": run}, 1 if self.quick else 3)

    def memory(self):
        """The memory of a mock after few and after many calls, in bytes."""
        calls = (1_000, 20_000) if self.quick else (1_000, 1_000_000)
        process = self.processes.start([REHEARSE, "mock", self.echo, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        url = next(match[0] for line in process.stdout if (match := re.search(URL + "/mcp", line)))
        found = {}
        for count in calls:
            self.bench(["call", "--http", url, "--tool", "echo", "--allow-tool", "echo", "--connections", "32", "--requests", str(count), "--warmup", "0s"])
            status = Path(f"/proc/{process.pid}/status").read_text()
            found[str(count)] = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024
        self.processes.stop(process)
        return found


def series(measure):
    """The rate of each slice in requests per second, and latencies in milliseconds."""
    rates = [slice["latency"]["count"] / slice["seconds"] for slice in measure["slices"]]
    latency = {key: measure["latency"][key] for key in ("p50Ms", "p99Ms")}
    return {"rates": rates, "count": measure["latency"]["count"], "errors": measure.get("errors", {}), **latency}


def free_port():
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def ratio(values, base):
    """The median of the ratios of pairs, and their spread."""
    ratios = sorted(value / of for value, of in zip(values, base))
    return statistics.median(ratios), ratios[0], ratios[-1]
