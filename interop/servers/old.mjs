// A server of an old TypeScript SDK over stdio. It answers `server/discover` with an error.
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.MODULES}/`);
const { Server } = require('sdk-1.10/server/index.js');
const { StdioServerTransport } = require('sdk-1.10/server/stdio.js');
const { CallToolRequestSchema, ListToolsRequestSchema } = require('sdk-1.10/types.js');

const inputSchema = { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } } };
const server = new Server({ name: 'old', version: '1' }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: 'add', inputSchema }] }));
server.setRequestHandler(CallToolRequestSchema, ({ params: { arguments: { a, b } } }) => ({
  content: [{ type: 'text', text: String(a + b) }],
}));
await server.connect(new StdioServerTransport());
