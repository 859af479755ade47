"""The client of the Python SDK, 1.x or 2.x, against our mocks: `python.py ERA TRANSPORT TARGETS`.

TARGETS is a JSON object from the name of a mock, or of the subagent `probe`, to { command, args, cwd, http, sse, ws }.
Writes one JSON line for each check.
"""

import asyncio
import json
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

ERA, TRANSPORT, TARGETS = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
IS_OLD = version("mcp").startswith("1.")
VERSION = "2026-07-28" if ERA == "modern" else "2025-11-25"
UNICODE = 'Grüße, 世界! 👩‍👩‍👧 עברית \0 \u2028 "quoted" \\ back\n\ttab'


def link(mock):
    """A transport to a mock; its output is not part of the report."""
    target = TARGETS[mock]
    match TRANSPORT:
        case "stdio":
            quiet = open("/dev/null", "w")
            server = StdioServerParameters(command=target["command"], args=target["args"], cwd=target.get("cwd"))
            return stdio_client(server, errlog=quiet)
        case "http":
            return streamable_http_client(target["http"])
        case "sse":
            return sse_client(target["sse"])
        case "ws":
            from mcp.client.websocket import websocket_client

            return websocket_client(target["ws"])


class Old:
    """SDK 1.x: a session over two streams."""

    def __init__(self, session, info):
        self.session, self.info = session, info

    @staticmethod
    @asynccontextmanager
    async def open(mock, on_log=None):
        async with AsyncExitStack() as stack:
            read, write, *_ = await stack.enter_async_context(link(mock))
            session = await stack.enter_async_context(ClientSession(read, write, logging_callback=on_log))
            info = await session.initialize()
            yield Old(session, (info.serverInfo.name, info.protocolVersion))

    async def call(self, tool, arguments=None, timeout=None, progress=None):
        timeout = timedelta(seconds=timeout) if timeout else None
        return wire(await self.session.call_tool(tool, arguments or {}, timeout, progress))

    async def list(self, kind, cursor=None):
        from mcp.types import PaginatedRequestParams

        params = PaginatedRequestParams(cursor=cursor)
        return wire(await getattr(self.session, f"list_{kind}")(params=params))

    async def read(self, uri):
        return wire(await self.session.read_resource(uri))

    async def prompt(self, name, arguments=None):
        return wire(await self.session.get_prompt(name, arguments))

    async def ping(self):
        await self.session.send_ping()

    async def log_level(self, level):
        await self.session.set_logging_level(level)

    async def cancelled(self):
        """Says that the last request is cancelled: this SDK does not."""
        from mcp.types import CancelledNotification, CancelledNotificationParams, ClientNotification

        params = CancelledNotificationParams(requestId=self.session._request_id - 1)
        message = CancelledNotification(method="notifications/cancelled", params=params)
        await self.session.send_notification(ClientNotification(message))


class New:
    """SDK 2.x: a client that owns its transport."""

    def __init__(self, client):
        self.client = client
        self.info = (client.server_info and client.server_info.name, client.protocol_version)

    @staticmethod
    @asynccontextmanager
    async def open(mock, on_log=None):
        from mcp import Client

        # A pin sends no discovery, so that the server's name stays unknown; `auto` sends one.
        mode = "auto" if ERA == "modern" else "legacy"
        level = "info" if ERA == "modern" and on_log else None
        async with Client(link(mock), mode=mode, cache=None, logging_callback=on_log, log_level=level) as client:
            yield New(client)

    async def call(self, tool, arguments=None, timeout=None, progress=None):
        return wire(await self.client.call_tool(tool, arguments or {}, timeout, progress))

    async def list(self, kind, cursor=None):
        return wire(await getattr(self.client, f"list_{kind}")(cursor=cursor))

    async def read(self, uri):
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name, arguments=None):
        return wire(await self.client.get_prompt(name, arguments))

    async def ping(self):
        await self.client.send_ping()

    async def log_level(self, level):
        if ERA == "legacy":
            await self.client.set_logging_level(level)

    async def cancelled(self):
        """The SDK has said so."""


def wire(result):
    """A result with the names of the wire, which both versions share."""
    return result.model_dump(by_alias=True, mode="json", exclude_none=True)


def equal(found, expected):
    if found != expected:
        raise AssertionError(f"expected {str(expected)[:200]!r}, found {str(found)[:200]!r}")


async def refused(awaitable, code):
    try:
        result = await awaitable
    except Exception as error:
        equal(getattr(getattr(error, "error", None), "code", error), code)
    else:
        raise AssertionError(f"expected the error {code}, found {result}")


async def check(name, run):
    try:
        await run
    except Exception as error:
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        failure = f"{type(error).__name__}: {error}"
    else:
        failure = None
    print(json.dumps({"check": name, "error": failure}), flush=True)


def text(result):
    return "\n".join(block.get("text", "") for block in result["content"])


def names(items):
    return [item["name"] for item in items]


async def pages(client, kind):
    items, count, cursor = [], 0, None
    while count == 0 or cursor:
        page = await client.list(kind, cursor)
        items, count, cursor = items + page[kind], count + 1, page.get("nextCursor")
    return names(items), count


async def handshake(client):
    equal(client.info, ("basic", VERSION))


async def tools(client):
    listed = (await client.list("tools"))["tools"]
    equal(names(listed), ["echo", "fail", "slow", "json_response"])
    equal(listed[0]["inputSchema"]["required"], ["text"])


async def echo(client, sent=UNICODE):
    equal(text(await client.call("echo", {"text": sent})), sent)


async def large(client):
    await echo(client, "megabyte" * 125000)


async def tool_error(client):
    result = await client.call("fail")
    equal((result["isError"], text(result)), (True, "This tool always fails."))


async def bad_arguments(client):
    result = await client.call("echo", {"text": 5})
    equal((result["isError"], "/text" in text(result)), (True, True))


async def structured(client):
    result = await client.call("json_response")
    equal((result["structuredContent"], json.loads(text(result))), ({"ok": True}, {"ok": True}))


async def unknown_tool(client):
    await refused(client.call("no_such_tool"), -32602)


async def timeout(client):
    start = time.monotonic()
    try:
        await client.call("slow", timeout=0.1)
    except Exception as error:
        if "timed out" not in str(error).lower():
            raise
    else:
        raise AssertionError("the call did not time out")
    if time.monotonic() - start > 3:
        raise AssertionError("the timeout came late")


async def cancel(client):
    with anyio.move_on_after(0.1) as scope:
        await client.call("slow")
    equal(scope.cancelled_caught, True)


async def alive(client):
    if ERA == "legacy":
        await client.ping()
    await echo(client, "alive")


async def parallel(client):
    texts = [f"number {index}" for index in range(20)]
    results = await asyncio.gather(*(client.call("echo", {"text": each}) for each in texts))
    equal([text(result) for result in results], texts)


async def pagination():
    async with KIND.open("pages") as client:
        for kind in ("tools", "resources", "prompts"):
            equal(await pages(client, kind), (["alpha", "beta", "gamma", "delta", "epsilon"], 3))
        await refused(client.list("tools", "made up"), -32602)


async def resources():
    async with KIND.open("library") as client:
        equal(names((await client.list("resources"))["resources"]), ["readme", "logo", "settings"])
        equal((await client.read("file:///readme.md"))["contents"][0]["text"], "# Hello\nA resource with two lines.\n")
        equal((await client.read("file:///logo.png"))["contents"][0]["blob"], "iVBORw0KGgo=")
        await refused(client.read("file:///missing"), -32602 if ERA == "modern" else -32002)


async def prompts():
    async with KIND.open("prompts") as client:
        equal(names((await client.list("prompts"))["prompts"]), ["review"])
        filled = await client.prompt("review", {"language": "Rust", "code": "fn main() {}"})
        equal(filled["messages"][0]["content"]["text"], "Review this Rust code:\nfn main() {}")
        equal(filled["messages"][1]["role"], "assistant")
        await refused(client.prompt("review"), -32602)


async def progress():
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    async with KIND.open("worker") as client:
        equal(text(await client.call("work", {"item": "bread"}, progress=on_progress)), "baked bread")
    equal(seen, [(1, 3, None), (2, 3, None), (3, 3, "done")])


async def logging():
    seen = []

    async def on_log(params):
        seen.append(wire(params))

    async with KIND.open("worker", on_log) as client:
        await client.log_level("info")
        await client.call("work", {"item": "bread"})
    equal(seen, [{"level": "info", "logger": "oven", "data": {"item": "bread"}}])


async def subagent_tools(client):
    tools = (await client.list("tools"))["tools"]
    equal(names(tools), ["probe"])
    schema = tools[0]["inputSchema"]
    equal((list(schema["properties"]), schema["required"]), (["prompt", "inputs"], ["prompt"]))
    equal(tools[0]["outputSchema"]["required"], ["answer"])


async def subagent_answer(client):
    seen = []

    async def on_progress(progress, total, message):
        seen.append((progress, total, message))

    result = await client.call("probe", {"prompt": "look at sea"}, progress=on_progress)
    equal(result["structuredContent"], {"answer": "at sea"})
    equal(seen, [(1, None, "turn 1: calls look"), (2, None, "turn 2: calls final_answer")])


async def subagent_cancel(client):
    works = anyio.Event()

    async def on_progress(*_):
        works.set()

    async def hang():
        await client.call("probe", {"prompt": "hang"}, progress=on_progress)

    async with anyio.create_task_group() as group:
        group.start_soon(hang)
        await works.wait()
        await subagent_processes("tools.yaml", 1)
        group.cancel_scope.cancel()
    await client.cancelled()
    await subagent_processes("tools.yaml", 0)
    await subagent_answer(client)


async def subagent_processes(part, count):
    """Waits until so many processes in the folder of the subagent have this in their command."""

    def commands():
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (process / "cwd").readlink() == Path(TARGETS["probe"]["cwd"]):
                    yield (process / "cmdline").read_text().replace("\0", " ")

    deadline = time.monotonic() + 10
    while len(found := [command for command in commands() if part in command]) != count:
        if time.monotonic() > deadline:
            raise AssertionError(f"expected {count} processes, found {found}")
        await anyio.sleep(0.02)


async def main():
    async with KIND.open("basic") as client:
        first = (handshake, tools, echo, large, tool_error, bad_arguments, structured, unknown_tool)
        for run in (*first, timeout, cancel, alive, parallel):
            await check(run.__name__, run(client))
    for run in (pagination, resources, prompts, progress, logging):
        await check(run.__name__, run())
    async with KIND.open("probe") as client:
        for run in (subagent_tools, subagent_answer, subagent_cancel):
            await check(run.__name__, run(client))
    await check("subagent_close", subagent_processes("", 0 if TRANSPORT == "stdio" else 1))


KIND = Old if IS_OLD else New
asyncio.run(main())
