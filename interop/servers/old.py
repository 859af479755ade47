"""A server of an old Python SDK 1 over stdio. It leaves `server/discover` unanswered, and does not survive it."""

from mcp.server.fastmcp import FastMCP

mcp = FastMCP("old")


@mcp.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if __name__ == "__main__":
    mcp.run()
