// A server of a TypeScript SDK 1: `old.mjs PACKAGE stdio`, or `old.mjs PACKAGE http` or `sse` on a free port of 127.0.0.1.
// As in the SDK's own examples, a session over HTTP begins with `initialize`, and another first request is refused.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { json } from 'node:stream/consumers';

const [sdk, mode] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const { Server } = require(`${sdk}/server/index.js`);
const { SSEServerTransport } = require(`${sdk}/server/sse.js`);
const { StdioServerTransport } = require(`${sdk}/server/stdio.js`);
const { StreamableHTTPServerTransport } = require(`${sdk}/server/streamableHttp.js`);
const types = require(`${sdk}/types.js`);

const number = { type: 'integer' };
const inputSchema = { type: 'object', properties: { a: number, b: number }, required: ['a', 'b'] };
const uri = 'config://theme';

function create() {
  const server = new Server({ name: 'old', version: '1' }, { capabilities: { tools: {}, resources: {} } });
  server.setRequestHandler(types.ListToolsRequestSchema, () => ({ tools: [{ name: 'add', inputSchema }] }));
  server.setRequestHandler(types.CallToolRequestSchema, ({ params: { arguments: { a, b } } }) => ({
    content: [{ type: 'text', text: String(a + b) }],
  }));
  server.setRequestHandler(types.ListResourcesRequestSchema, () => ({ resources: [{ uri, name: 'theme' }] }));
  server.setRequestHandler(types.ReadResourceRequestSchema, () => ({ contents: [{ uri, text: 'dark' }] }));
  return server;
}

const sessions = new Map();

async function overHttp(request, response) {
  const body = request.method === 'POST' ? await json(request) : undefined;
  let transport = sessions.get(request.headers['mcp-session-id']);
  if (!transport && body?.method === 'initialize') {
    transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => sessions.set(session, transport),
    });
    await create().connect(transport);
  }
  if (!transport) {
    const error = { code: -32000, message: 'Bad Request: No valid session ID provided' };
    response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', error, id: null }));
    return;
  }
  await transport.handleRequest(request, response, body);
}

async function overSse(request, response) {
  const url = new URL(request.url, 'http://localhost');
  if (request.method === 'POST') {
    const transport = sessions.get(url.searchParams.get('sessionId'));
    await (transport ? transport.handlePostMessage(request, response) : response.writeHead(400).end());
  } else if (url.pathname === '/sse') {
    const transport = new SSEServerTransport('/messages', response);
    sessions.set(transport.sessionId, transport);
    await create().connect(transport);
  } else {
    response.writeHead(404).end();
  }
}

if (mode === 'stdio') {
  await create().connect(new StdioServerTransport());
} else {
  const http = createServer(mode === 'sse' ? overSse : overHttp);
  http.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}`));
}
