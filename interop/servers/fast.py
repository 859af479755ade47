"""A FastMCP server: `fast.py stdio`, `fast.py http` or `fast.py sse`; the last two on a free port of 127.0.0.1."""

import socket
import sys

from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image

mcp = FastMCP("fast", version="1.0.0", instructions="Ask for a sum.")


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@mcp.tool
def greet(name: str, excited: bool = False) -> dict:
    """Greets in every script."""
    return {"greeting": f"Grüße, {name}{'!' if excited else '.'}", "length": len(name)}


@mcp.tool
def refuse(why: str) -> str:
    """Always fails."""
    raise ToolError(f"No: {why}")


@mcp.tool
def pixel() -> Image:
    """An image of eight bytes."""
    return Image(data=b"\x89PNG\r\n\x1a\n", format="png")


@mcp.tool
async def count(to: int, ctx: Context) -> str:
    """Counts, and reports how far it has come."""
    for number in range(1, to + 1):
        await ctx.report_progress(progress=number, total=to, message=f"at {number}")
    return f"counted to {to}"


@mcp.resource("config://theme", mime_type="application/json")
def theme() -> str:
    """The theme."""
    return '{"theme": "Nächtlich"}'


@mcp.resource("user://{name}/profile")
def profile(name: str) -> str:
    """The profile of a user."""
    return f"This is {name}."


@mcp.prompt
def review(code: str, language: str = "Rust") -> str:
    """Asks for a review."""
    return f"Review this {language} code:\n{code}"


if __name__ == "__main__":
    transport = sys.argv[1]
    # FastMCP 2 takes port 0 for its default one.
    with socket.create_server(("127.0.0.1", 0)) as free:
        network = {} if transport == "stdio" else {"host": "127.0.0.1", "port": free.getsockname()[1]}
    mcp.run(transport=transport, show_banner=False, **network)
