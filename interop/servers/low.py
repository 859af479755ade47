"""A low-level server of the Python SDK 2: `low.py stdio`, or `low.py http` on a free port of 127.0.0.1."""

import asyncio
import sys

import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}


async def list_tools(ctx, params):
    annotations = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tool = types.Tool(name="add", description="Adds.", input_schema=SCHEMA, annotations=annotations)
    return types.ListToolsResult(tools=[tool])


async def call_tool(ctx, params):
    arguments = params.arguments or {}
    total = arguments.get("a", 0) + arguments.get("b", 0)
    return types.CallToolResult(content=[types.TextContent(type="text", text=str(total))])


async def list_resources(ctx, params):
    return types.ListResourcesResult(resources=[types.Resource(uri="config://theme", name="theme")])


async def read_resource(ctx, params):
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
