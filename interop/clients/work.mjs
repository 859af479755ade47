// An application on the TypeScript SDK: `work.mjs PACKAGE ERA TRANSPORT ADDRESS`. It does its usual work with whatever the
// server offers: it lists, calls every tool, reads a resource, gets a prompt, and answers what the server asks. What fails
// is printed, and the rest goes on. ADDRESS is a URL, or a command for stdio.
import { createRequire } from 'node:module';

const [pkg, era, transport, address] = process.argv.slice(2);
const require = createRequire(`${process.env.MODULES}/`);
const isOld = pkg === '@modelcontextprotocol/sdk';
const sdk = isOld
  ? {
      ...require(`${pkg}/client/index.js`),
      ...require(`${pkg}/client/stdio.js`),
      ...require(`${pkg}/client/streamableHttp.js`),
      ...require(`${pkg}/client/sse.js`),
      ...require(`${pkg}/types.js`),
    }
  : { ...require(pkg), ...require(`${pkg}/stdio`) };

function link() {
  const [command, ...args] = address.split(' ');
  switch (transport) {
    case 'stdio':
      return new sdk.StdioClientTransport({ command, args });
    case 'http':
      return new sdk.StreamableHTTPClientTransport(new URL(address));
    case 'sse':
      return new sdk.SSEClientTransport(new URL(address));
  }
}

/** An object with a value for each property that is required. */
function example({ properties = {}, required = [] }) {
  const values = { string: 'x', number: 1, integer: 1, boolean: true, array: [], object: {} };
  const value = ({ type, enum: one, default: usual } = {}) => one?.[0] ?? usual ?? values[type] ?? 'x';
  return Object.fromEntries(required.map((name) => [name, value(properties[name])]));
}

async function tried(what, run) {
  try {
    return await run();
  } catch (error) {
    console.error(`${what}: ${error?.message ?? error}`);
  }
}

const capabilities = { sampling: {}, elicitation: {}, roots: {} };
const mode = era === 'modern' ? 'auto' : 'legacy';
const client = new sdk.Client({ name: 'work', version: '1.0.0' }, { capabilities, versionNegotiation: { mode } });
const answer = (method, schema, handler) => client.setRequestHandler(isOld ? sdk[schema] : method, handler);
answer('sampling/createMessage', 'CreateMessageRequestSchema', () => ({
  role: 'assistant',
  content: { type: 'text', text: 'An answer.' },
  model: 'm',
  stopReason: 'endTurn',
}));
answer('elicitation/create', 'ElicitRequestSchema', ({ params }) =>
  params.requestedSchema ? { action: 'accept', content: example(params.requestedSchema) } : { action: 'decline' },
);
answer('roots/list', 'ListRootsRequestSchema', () => ({ roots: [{ uri: 'file:///srv/work', name: 'work' }] }));

await client.connect(link());
const offered = client.getServerCapabilities() ?? {};
const timeout = 10_000;
if (offered.tools) {
  const { tools } = (await tried('tools/list', () => client.listTools())) ?? { tools: [] };
  for (const { name, inputSchema } of tools) {
    const params = { name, arguments: example(inputSchema) };
    await tried(`call of ${name}`, () => (isOld ? client.callTool(params, undefined, { timeout }) : client.callTool(params, { timeout })));
  }
}
if (offered.resources) {
  const { resources } = (await tried('resources/list', () => client.listResources())) ?? { resources: [] };
  await tried('resources/templates/list', () => client.listResourceTemplates());
  for (const { uri } of resources.slice(0, 2)) {
    await tried(`read of ${uri}`, () => client.readResource({ uri }));
  }
}
if (offered.prompts) {
  const { prompts } = (await tried('prompts/list', () => client.listPrompts())) ?? { prompts: [] };
  for (const { name, arguments: needed = [] } of prompts.slice(0, 1)) {
    const args = Object.fromEntries(needed.map((argument) => [argument.name, 'x']));
    await tried(`prompt ${name}`, () => client.getPrompt({ name, arguments: args }));
  }
}
await client.close();
