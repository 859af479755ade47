cat > scenarios/forecast.yaml <<'END'
servers: { weather: { mock: ../weather.yaml } }
matrix: { transport: stdio }
steps: [{ call: { tool: forecast, args: { city: Oslo } } }]
END
rehearse mcp call-tool search query=x --trace-file files.jsonl -- node server.js
cat > session.har <<'END'
{ "log": { "version": "1.2", "creator": { "name": "a browser", "version": "1" }, "entries": [{
  "startedDateTime": "2026-11-25T09:30:00.000Z", "time": 2,
  "request": { "method": "POST", "url": "http://127.0.0.1/mcp", "httpVersion": "HTTP/1.1", "headers": [
      { "name": "Content-Type", "value": "application/json" },
      { "name": "Accept", "value": "application/json, text/event-stream" }],
    "postData": { "mimeType": "application/json", "text": "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"a\",\"version\":\"1\"}}}" } },
  "response": { "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": [{ "name": "Content-Type", "value": "application/json" }],
    "content": { "mimeType": "application/json", "text": "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"serverInfo\":{\"name\":\"b\",\"version\":\"1\"}}}" } } }] } }
END
