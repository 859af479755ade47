"""The command line of the MCP Inspector against our mocks: `inspector.py ERA TRANSPORT TARGETS`.

TARGETS is a JSON object from the name of a mock to { command, args, http, sse }. Writes one JSON line for each check.
Every check is one process or a few; two run at once, besides the call that takes five seconds.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ERA, TRANSPORT, TARGETS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
VERSION = "2026-07-28" if ERA == "modern" else "2025-11-25"
UNICODE = 'Grüße, 世界! 👩‍👩‍👧 עברית \0 \u2028 "quoted" \\ back\n\ttab'
INSPECTOR = [
    os.environ["NODE"],
    f"{os.environ['MODULES']}/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js",
    *["--cli", "--format", "json", "--quiet", "--protocol-era", ERA],
]


def inspect(mock, method, *options):
    """What the Inspector prints, and its exit code."""
    target = TARGETS[mock]
    stdio = [target["command"], *target["args"]]
    where = stdio if TRANSPORT == "stdio" else ["--transport", TRANSPORT, "--server-url", target[TRANSPORT]]
    run = subprocess.run(
        [*INSPECTOR, *where, "--method", method, *options], capture_output=True, encoding="utf-8", timeout=60
    )
    try:
        return json.loads(run.stdout or run.stderr), run.returncode
    except json.JSONDecodeError:
        raise AssertionError(f"no JSON in its output: {run.stdout[-300:]!r} {run.stderr[-300:]!r}") from None


def succeeds(mock, method, *options):
    output, code = inspect(mock, method, *options)
    equal((code, "result" in output), (0, True), output)
    return output["result"]


def call(tool, arguments):
    return "basic", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)


def equal(found, expected, context=""):
    if found != expected:
        raise AssertionError(f"expected {expected!r}, found {found!r} {context}")


def names(items):
    return [item["name"] for item in items]


def handshake():
    info = succeeds("basic", "initialize")
    equal((info["serverInfo"]["name"], info["protocolVersion"], info["capabilities"]), ("basic", VERSION, {"tools": {}}))


def tools():
    listed = succeeds("basic", "tools/list")["tools"]
    equal(names(listed), ["echo", "fail", "slow", "json_response"])
    equal(listed[0]["inputSchema"]["required"], ["text"])


def echo():
    equal(succeeds(*call("echo", {"text": UNICODE}))["content"], [{"type": "text", "text": UNICODE}])


def tool_error():
    output, code = inspect(*call("fail", {}))
    equal((code, output["result"]["isError"]), (5, True))
    equal(output["result"]["content"][0]["text"], "This tool always fails.")


def bad_arguments():
    output, code = inspect(*call("echo", {"text": 5}))
    equal((code, output["result"]["isError"], "/text" in output["result"]["content"][0]["text"]), (5, True, True))


def structured():
    result = succeeds(*call("json_response", {}))
    equal((result["structuredContent"], json.loads(result["content"][0]["text"])), ({"ok": True}, {"ok": True}))


def unknown_tool():
    # It looks for the tool in the list, and does not call what is not there.
    output, code = inspect(*call("no_such_tool", {}))
    equal((code, output["error"]["code"]), (5, "tool_not_found"))


def slow():
    equal(succeeds(*call("slow", {}))["content"], [{"type": "text", "text": "done"}])


def pagination():
    for kind in ("tools", "resources", "prompts"):
        listed = names(succeeds("pages", f"{kind}/list")[kind])
        equal(listed, ["alpha", "beta", "gamma", "delta", "epsilon"])


def resources():
    equal(names(succeeds("library", "resources/list")["resources"]), ["readme", "logo", "settings"])
    read = succeeds("library", "resources/read", "--uri", "file:///readme.md")
    equal(read["contents"][0]["text"], "# Hello\nA resource with two lines.\n")
    output, code = inspect("library", "resources/read", "--uri", "file:///missing")
    equal((code, output["error"]["message"]), (1, "Resource not found"))


def prompts():
    equal(names(succeeds("prompts", "prompts/list")["prompts"]), ["review"])
    get = ("prompts", "prompts/get", "--prompt-name", "review", "--prompt-args", "language=Rust")
    filled = succeeds(*get, "code=fn main() {}")
    equal(filled["messages"][0]["content"]["text"], "Review this Rust code:\nfn main() {}")
    output, code = inspect(*get)
    equal((code, output["error"]["message"]), (1, "Missing required argument: code"))


def progress():
    result = succeeds("worker", "tools/call", "--tool-name", "work", "--tool-args-json", '{"item":"bread"}')
    equal(result["content"], [{"type": "text", "text": "baked bread"}])


def check(run):
    try:
        run()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


CHECKS = [slow, handshake, tools, echo, tool_error, bad_arguments, structured, unknown_tool, pagination, resources]
CHECKS += [prompts, progress]
with ThreadPoolExecutor(3) as pool:
    for run, failure in zip(CHECKS, pool.map(check, CHECKS)):
        print(json.dumps({"check": run.__name__, "error": failure}), flush=True)
