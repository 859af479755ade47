// A server of TypeScript SDK 2: `sdk-2.mjs stdio`, or `sdk-2.mjs http` on a free port of 127.0.0.1. It serves both eras.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const { McpServer, ResourceTemplate, createMcpHandler } = require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { localhostHostValidation, localhostOriginValidation, toNodeHandler } = require('@modelcontextprotocol/node');
const z = require('zod');

function create() {
  const server = new McpServer({ name: 'sdk-2', version: '1.0.0' }, { capabilities: { logging: {} } });
  const annotations = { readOnlyHint: true, openWorldHint: false };
  const inputSchema = z.object({ a: z.number(), b: z.number() });
  const outputSchema = z.object({ sum: z.number() });
  server.registerTool('add', { description: 'Adds.', inputSchema, outputSchema, annotations },
    ({ a, b }) => ({ content: [{ type: 'text', text: JSON.stringify({ sum: a + b }) }], structuredContent: { sum: a + b } }));
  server.registerTool('refuse', { description: 'Always fails.', annotations }, () => { throw new Error('No.'); });
  server.registerResource('theme', 'config://theme', { mimeType: 'text/plain' },
    (uri) => ({ contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'dark' }] }));
  server.registerResource('profile', new ResourceTemplate('user://{name}/profile', { list: undefined }), {},
    (uri, { name }) => ({ contents: [{ uri: uri.href, text: `This is ${name}.` }] }));
  server.registerPrompt('review', { description: 'Asks for a review.', argsSchema: z.object({ code: z.string() }) },
    ({ code }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Review ${code}` } }] }));
  return server;
}

if (process.argv[2] === 'stdio') {
  await serveStdio(create);
} else {
  const handle = toNodeHandler(createMcpHandler(create));
  const [isHost, isOrigin] = [localhostHostValidation(), localhostOriginValidation()];
  const http = createServer((request, response) => {
    if (isHost(request, response) && isOrigin(request, response)) handle(request, response);
  });
  http.listen(0, '127.0.0.1', () => console.error(`listening on http://127.0.0.1:${http.address().port}`));
}
