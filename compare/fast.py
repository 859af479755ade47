"""A FastMCP server with the tool `echo`: `fast.py stdio` or `fast.py http`, on a free port of 127.0.0.1."""

import socket
import sys

from fastmcp import FastMCP

mcp = FastMCP("fast", version="1.0.0")


@mcp.tool
def echo(text: str) -> str:
    """Returns its input text."""
    return text


if sys.argv[1] == "stdio":
    mcp.run(show_banner=False)
else:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    mcp.run("http", host="127.0.0.1", port=port, show_banner=False, stateless_http=True, json_response=True, log_level="info", uvicorn_config={"access_log": False})
