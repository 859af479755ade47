"""An agent with the standard library alone: it asks a model, and calls the tools of an MCP server that the model wants."""

import json
import urllib.request


def ask(question, url, model_url):
    definitions = [
        {"name": tool["name"], "description": tool.get("description", ""), "input_schema": tool["inputSchema"]}
        for tool in request(url, "tools/list")["tools"]
    ]
    messages = [{"role": "user", "content": question}]
    while True:
        body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "tools": definitions, "messages": messages}
        answer = post(f"{model_url}/v1/messages", body, {"x-api-key": "sk-0", "anthropic-version": "2023-06-01"})
        messages.append({"role": "assistant", "content": answer["content"]})
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in answer["content"] if block["type"] == "text")
        messages.append({"role": "user", "content": [tool_result(url, call) for call in calls]})


def tool_result(url, call):
    result = request(url, "tools/call", call["name"], {"arguments": call["input"]})
    text = "".join(block["text"] for block in result["content"] if block["type"] == "text")
    return {"type": "tool_result", "tool_use_id": call["id"], "content": text, "is_error": result.get("isError", False)}


def request(url, method, name=None, params=None):
    """One request over streamable HTTP in 2026-07-28, which needs no session."""
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
    params = {**(params or {}), "_meta": {f"io.modelcontextprotocol/{key}": value for key, value in meta.items()}}
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
    if name:
        params["name"] = headers["Mcp-Name"] = name
    answer = post(url, {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers)
    return answer["result"]


def post(url, body, headers):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)
