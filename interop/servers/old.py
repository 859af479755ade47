"""A server of a Python SDK, 1.x or 2.x: `old.py stdio`, or `old.py http`, `sse` or `ws` on a free port of 127.0.0.1."""

import sys

import uvicorn

try:
    from mcp.server.fastmcp import FastMCP
except ImportError:
    from mcp.server.mcpserver import MCPServer as FastMCP

mcp = FastMCP("old")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def websocket_app():
    from mcp.server.websocket import websocket_server
    from starlette.applications import Starlette
    from starlette.routing import WebSocketRoute

    async def connect(socket):
        async with websocket_server(socket.scope, socket.receive, socket.send) as (read, write):
            server = mcp._mcp_server
            await server.run(read, write, server.create_initialization_options())

    return Starlette(routes=[WebSocketRoute("/ws", connect)])


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        mcp.run()
    else:
        apps = {"http": "streamable_http_app", "sse": "sse_app"}
        app = websocket_app() if sys.argv[1] == "ws" else getattr(mcp, apps[sys.argv[1]])()
        uvicorn.run(app, host="127.0.0.1", port=0)
