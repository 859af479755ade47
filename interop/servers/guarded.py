"""A FastMCP server that wants tokens, and issues them itself to whoever asks: `guarded.py http` or `guarded.py sse`, on a
free port of 127.0.0.1."""

import socket
import sys

import uvicorn
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

listener = socket.create_server(("127.0.0.1", 0))
address = f"http://127.0.0.1:{listener.getsockname()[1]}"
registration = ClientRegistrationOptions(enabled=True, valid_scopes=["notes"])
auth = InMemoryOAuthProvider(
    base_url=address, client_registration_options=registration, required_scopes=["notes"]
)
mcp = FastMCP("guarded", auth=auth)


@mcp.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


if __name__ == "__main__":
    app = mcp.http_app(transport=sys.argv[1])
    print(f"running on {address}", flush=True)
    uvicorn.Server(uvicorn.Config(app)).run(sockets=[listener])
