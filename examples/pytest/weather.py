"""The code under test: asks a weather server over MCP (2026-07-28) for the warmer of two cities."""

import json
import urllib.request

VERSION = "2026-07-28"


class Busy(Exception):
    pass


def warmer(url, cities):
    return max(cities, key=lambda city: forecast(url, city))


def forecast(url, city, attempts=2):
    for _ in range(attempts):
        result = call(url, "forecast", {"city": city})
        if not result.get("isError"):
            return result["structuredContent"]["celsius"]
    raise Busy(city)


def call(url, tool, arguments):
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)["result"]
