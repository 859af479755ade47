rehearse mcp call-tool search query=x --trace-file traces/monday.jsonl -- node server.js
