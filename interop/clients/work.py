"""An application on the Python SDK (1.x or 2.x) or on FastMCP: `work.py ERA TRANSPORT ADDRESS`.

It does its usual work with whatever the server offers: it lists, calls every tool, reads a resource, gets a prompt, and
answers what the server asks. What fails is printed, and the rest goes on. ADDRESS is a URL, or a command for stdio.
"""

import asyncio
import shlex
import sys
from contextlib import asynccontextmanager
from importlib.metadata import version

import mcp.types as types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client

try:
    from mcp.client.streamable_http import streamable_http_client
except ImportError:
    from mcp.client.streamable_http import streamablehttp_client as streamable_http_client

ERA, TRANSPORT, ADDRESS = sys.argv[1:4]
IS_FASTMCP = len(sys.argv) > 4
IS_OLD = version("mcp").startswith("1.")
LIMIT = 10


def link():
    match TRANSPORT:
        case "stdio":
            command, *args = shlex.split(ADDRESS)
            return stdio_client(StdioServerParameters(command=command, args=args))
        case "http":
            return streamable_http_client(ADDRESS)
        case "sse":
            return sse_client(ADDRESS)
        case "ws":
            from mcp.client.websocket import websocket_client

            return websocket_client(ADDRESS)


async def sample(context, params):
    content = types.TextContent(type="text", text="An answer.")
    return types.CreateMessageResult(role="assistant", content=content, model="m", **{"stopReason": "endTurn"})


async def elicit(context, params):
    schema = getattr(params, "requestedSchema", None) or getattr(params, "requested_schema", None)
    if schema is None:
        return types.ElicitResult(action="decline")
    return types.ElicitResult(action="accept", content=example(schema))


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///srv/work", name="work")])


@asynccontextmanager
async def session():
    answers = {"sampling_callback": sample, "elicitation_callback": elicit, "list_roots_callback": roots}
    if IS_FASTMCP:
        from fastmcp import Client
        from fastmcp.client.transports import SSETransport, StdioTransport, StreamableHttpTransport

        command, *args = shlex.split(ADDRESS)
        kinds = {"http": StreamableHttpTransport, "sse": SSETransport}
        transport = StdioTransport(command, args) if TRANSPORT == "stdio" else kinds[TRANSPORT](ADDRESS)
        async with Client(transport, roots=["file:///srv/work"]) as client:
            yield client
    elif IS_OLD:
        async with link() as (read, write, *_):
            async with ClientSession(read, write, **answers) as client:
                await client.initialize()
                yield client
    else:
        from mcp import Client

        mode = "auto" if ERA == "modern" else "legacy"
        async with Client(link(), mode=mode, cache=None, **answers) as client:
            yield client


def example(schema):
    """An object with a value for each property that is required."""
    if not isinstance(schema, dict):
        return {}
    values = {"string": "x", "number": 1, "integer": 1, "boolean": True, "array": [], "object": {}}
    properties = schema.get("properties", {})
    value = lambda one: one["enum"][0] if one.get("enum") else one.get("default", values.get(one.get("type"), "x"))
    return {name: value(properties.get(name, {})) for name in schema.get("required", [])}


async def tried(what, awaitable):
    try:
        return await asyncio.wait_for(awaitable, LIMIT)
    except Exception as error:
        print(f"{what}: {type(error).__name__}: {error}", file=sys.stderr)


def member(result, *names):
    """The member of a result that has one of these names, or the result itself: FastMCP returns lists."""
    found = next((getattr(result, name) for name in names if hasattr(result, name)), result)
    return found or []


async def offered(client):
    capabilities = client.initialize_result.capabilities if IS_FASTMCP else None
    if IS_OLD and not IS_FASTMCP:
        capabilities = client.get_server_capabilities()
    return capabilities or getattr(client, "server_capabilities", None)


async def main():
    async with session() as client:
        has = lambda name: getattr(capabilities, name, None) is not None
        capabilities = await offered(client)
        if has("tools"):
            tools = member(await tried("tools/list", client.list_tools()), "tools")
            for tool in tools:
                schema = getattr(tool, "inputSchema", None) or getattr(tool, "input_schema", None)
                await tried(f"call of {tool.name}", client.call_tool(tool.name, example(schema)))
        if has("resources"):
            resources = member(await tried("resources/list", client.list_resources()), "resources")
            await tried("resources/templates/list", client.list_resource_templates())
            for resource in resources[:2]:
                await tried(f"read of {resource.uri}", client.read_resource(resource.uri))
        if has("prompts"):
            prompts = member(await tried("prompts/list", client.list_prompts()), "prompts")
            for prompt in prompts[:1]:
                arguments = {argument.name: "x" for argument in prompt.arguments or []}
                await tried(f"prompt {prompt.name}", client.get_prompt(prompt.name, arguments))


asyncio.run(main())
