"""A low-level server of the Python SDK 2: `low.py stdio`, or `low.py http` on a free port of 127.0.0.1."""

import asyncio
import sys

import mcp_types as types
import uvicorn
from mcp import MCPError
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


async def list_tools(ctx, params):
    annotations = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tool = types.Tool(name="add", description="Adds.", input_schema=SCHEMA, annotations=annotations)
    return types.ListToolsResult(tools=[tool])


async def call_tool(ctx, params):
    if params.name != "add":
        raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
    numbers = [(params.arguments or {}).get(name) for name in ("a", "b")]
    is_valid = all(type(number) is int for number in numbers)
    text = str(sum(numbers)) if is_valid else "a and b must be integers."
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)], is_error=not is_valid)


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="config://theme", name="theme")])


async def read_resource(ctx, params):
    if str(params.uri) != "config://theme":
        raise MCPError(types.INVALID_PARAMS, f"Unknown resource: {params.uri}")
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text="dark")])


server = Server(
    "low",
    version="1.0.0",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_list_resources=list_resources,
    on_read_resource=read_resource,
)


async def serve_stdio():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        asyncio.run(serve_stdio())
    else:
        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=0)
