// What `rehearse codegen --lang typescript` wrote, with the client of the TypeScript SDK: `bindings.mjs FILE TARGET`, where
// TARGET is a JSON array with the command of the server. Node ignores the types in FILE. Writes one JSON line for each check.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

const [file, target] = process.argv.slice(2);
const [command, ...args] = JSON.parse(target);
const require = createRequire(`${process.env.MODULES}/`);
const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { ToolError, tools } = await import(file);
const client = new Client({ name: 'bindings', version: '1.0.0' });
await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
const { search_files, draw, delete_, get_user, get_user2 } = tools(client);
const checks = {
  structured: async () =>
    assert.deepEqual(await search_files({ pattern: 'x', type: 'file' }), { files: [{ path: 'a.rs', size: 3 }] }),
  blocks: async () => assert.match(await draw({ shape: { kind: 'circle', radius: 1 } }), /^drawn\n\{"type":"image",/),
  tool_error: async () => assert.rejects(delete_(), new ToolError('It is not allowed.')),
  // The tool `get_user` keeps its name; `get-user` gets a number.
  collision: async () => assert.deepEqual([await get_user(), await get_user2()], ['one', 'two']),
};
for (const [check, run] of Object.entries(checks)) {
  const error = await run().then(() => null, String);
  console.log(JSON.stringify({ check, error }));
}
await client.close();
