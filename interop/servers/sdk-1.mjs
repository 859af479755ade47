// A server of TypeScript SDK 1: `sdk-1.mjs stdio`, or `sdk-1.mjs http` with sessions on a free port of 127.0.0.1.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const { McpServer, ResourceTemplate } = require('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = require('@modelcontextprotocol/sdk/server/stdio.js');
const { StreamableHTTPServerTransport } = require('@modelcontextprotocol/sdk/server/streamableHttp.js');
const z = require('zod');

function create() {
  const server = new McpServer({ name: 'sdk-1', version: '1.0.0' }, { capabilities: { logging: {} } });
  const annotations = { readOnlyHint: true, openWorldHint: false };
  const sum = { a: z.number(), b: z.number() };
  server.registerTool('add', { description: 'Adds.', inputSchema: sum, outputSchema: { sum: z.number() }, annotations },
    ({ a, b }) => ({ content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }], structuredContent: { sum: a + b } }));
  server.registerTool('refuse', { description: 'Always fails.', annotations }, () => { throw new Error('No.'); });
  server.registerTool('count', { description: 'Reports progress.', inputSchema: { to: z.number().int().min(1).max(3) }, annotations },
    async ({ to }, extra) => {
      const progressToken = extra._meta?.progressToken;
      for (let progress = 1; progress <= to && progressToken !== undefined; progress += 1) {
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress, total: to } });
      }
      return { content: [{ type: 'text', text: String(to) }] };
    });
  server.registerResource('theme', 'config://theme', { mimeType: 'text/plain' },
    (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'dark' }] }));
  server.registerResource('profile', new ResourceTemplate('user://{name}/profile', { list: undefined }), {},
    (uri, { name }) => ({ contents: [{ uri: uri.href, text: `This is ${name}.` }] }));
  server.registerPrompt('review', { description: 'Asks for a review.', argsSchema: { code: z.string() } },
    ({ code }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${code}` } }] }));
  return server;
}

if (process.argv[2] === 'stdio') {
  await create().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const http = createServer(async (request, response) => {
    if (request.headers.origin && !/^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?$/.test(request.headers.origin)) {
      response.writeHead(403).end();
      return;
    }
    const id = request.headers['mcp-session-id'];
    let transport = sessions.get(id);
    if (!transport && id) {
      response.writeHead(404, { 'content-type': 'application/json' })
        .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
      return;
    }
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (session) => sessions.set(session, transport),
        onsessionclosed: (session) => sessions.delete(session),
      });
      await create().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  http.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}`));
}
