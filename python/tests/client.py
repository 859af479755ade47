"""Calls of a tool over streamable HTTP in 2026-07-28."""

import json
import urllib.request


def call(url, tool, arguments, name=None):
    """`name`: what the header says in place of the tool."""
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body["params"] = {"name": tool, "arguments": arguments, "_meta": meta}
    return post(url, body, {"Mcp-Method": "tools/call", "Mcp-Name": name or tool})


def post(url, body, headers):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), {"MCP-Protocol-Version": "2026-07-28", **headers})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as response:
        return json.loads(response.read())
