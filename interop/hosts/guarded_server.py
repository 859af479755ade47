"""A server over HTTP that wants a token from everyone but those who list its tools first: that is us."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL = {"name": "read", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}


class GuardedServer:
    """Notes the path of each request that has no token."""

    def __init__(self):
        guard = self
        self.asked, self.is_open = [], True

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=None, **headers):
                body = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **headers}.items():
                    self.send_header(name.replace("_", "-"), str(value))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                guard.asked.append(self.path)
                if "oauth-protected-resource" in self.path:
                    return self.answer(200, {"resource": f"{guard.url}", "authorization_servers": [guard.origin]})
                return self.answer(404 if "well-known" in self.path else 401, WWW_Authenticate="Bearer")

            do_DELETE = do_GET

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")
                if not guard.is_open:
                    guard.asked.append(self.path)
                    metadata = f"{guard.origin}/.well-known/oauth-protected-resource/mcp"
                    return self.answer(401, WWW_Authenticate=f'Bearer resource_metadata="{metadata}"')
                result = guard.result(body)
                if "id" not in body:
                    return self.answer(202)
                if result is None:
                    return self.answer(200, {"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32601, "message": "none"}})
                return self.answer(200, {"jsonrpc": "2.0", "id": body["id"], "result": result})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        self.url = f"{self.origin}/mcp"

    def result(self, request):
        if request.get("method") == "initialize":
            capabilities = {"tools": {}}
            return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "guarded", "version": "1"}}
        if request.get("method") == "tools/list":
            self.is_open = False
            return {"tools": [TOOL]}
        return None

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
