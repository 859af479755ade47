// The clients of the TypeScript SDK against our mocks: `typescript.mjs PACKAGE ERA TRANSPORT TARGETS`, where TARGETS is
// a JSON object from the name of a mock, or of the subagent `probe`, to { command, args, cwd, http, sse }. Writes one JSON line for each check.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';

const [pkg, era, transport, targetsJson] = process.argv.slice(2);
const targets = JSON.parse(targetsJson);
const require = createRequire(`${process.env.MODULES}/`);
const sdk =
  pkg === '@modelcontextprotocol/sdk'
    ? {
        ...require(`${pkg}/client/index.js`),
        ...require(`${pkg}/client/stdio.js`),
        ...require(`${pkg}/client/streamableHttp.js`),
        ...require(`${pkg}/client/sse.js`),
        call: (client, params, options) => client.callTool(params, undefined, options),
      }
    : {
        ...require(pkg),
        ...require(`${pkg}/stdio`),
        call: (client, params, options) => client.callTool(params, options),
      };
const version = era === 'modern' ? '2026-07-28' : '2025-11-25';
const UNICODE = 'Grüße, 世界! 👩‍👩‍👧 עברית \u0000 \u2028 "quoted" \\ back\n\ttab';

function open({ command, args, cwd, http, sse }) {
  switch (transport) {
    case 'stdio':
      return new sdk.StdioClientTransport({ command, args, cwd, stderr: 'ignore' });
    case 'http':
      return new sdk.StreamableHTTPClientTransport(new URL(http));
    case 'sse':
      return new sdk.SSEClientTransport(new URL(sse));
  }
}

/** Connects, hands the client, the methods it sends and the frames it receives to `use`, and disconnects. */
async function withClient(mock, use) {
  const link = open(targets[mock]);
  const methods = [];
  const received = [];
  const send = link.send.bind(link);
  link.send = (message, ...rest) => {
    methods.push(message.method);
    return send(message, ...rest);
  };
  const mode = era === 'modern' ? { pin: version } : 'legacy';
  const client = new sdk.Client({ name: 'interop', version: '1.0.0' }, { versionNegotiation: { mode } });
  await client.connect(link);
  const { onmessage } = link;
  link.onmessage = (message, ...rest) => {
    received.push(message);
    onmessage(message, ...rest);
  };
  try {
    return await use(client, methods, received);
  } finally {
    await client.close();
  }
}

async function check(name, run) {
  let error = null;
  try {
    await run();
  } catch (thrown) {
    error = String(thrown?.message ?? thrown);
  }
  console.log(JSON.stringify({ check: name, error }));
}

const text = (result) => result.content.map((block) => block.text).join('\n');
const names = (items) => items.map((item) => item.name);

/** Every page of a list; the newer SDK reads all pages itself. */
async function all(list, key) {
  const items = [];
  let cursor;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    items.push(...page[key]);
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return items;
}

await withClient('basic', async (client, methods) => {
  const call = (name, args = {}, options = undefined) => sdk.call(client, { name, arguments: args }, options);

  await check('handshake', () => {
    assert.equal(client.getServerVersion()?.name, 'basic');
    assert.deepEqual(client.getServerCapabilities(), { tools: {} });
    assert.equal(methods.includes('initialize'), era === 'legacy');
    if (client.getNegotiatedProtocolVersion) assert.equal(client.getNegotiatedProtocolVersion(), version);
  });
  await check('tools', async () => {
    const { tools } = await client.listTools();
    assert.deepEqual(names(tools), ['echo', 'fail', 'slow', 'json_response']);
    assert.deepEqual(tools[0].inputSchema.required, ['text']);
  });
  await check('echo', async () => assert.equal(text(await call('echo', { text: UNICODE })), UNICODE));
  await check('large', async () => {
    const large = 'megabyte'.repeat(125000);
    assert.ok(text(await call('echo', { text: large })) === large, 'a megabyte came back changed');
  });
  await check('tool_error', async () => {
    const result = await call('fail');
    assert.equal(result.isError, true);
    assert.equal(text(result), 'This tool always fails.');
  });
  await check('bad_arguments', async () => {
    const result = await call('echo', { text: 5 });
    assert.equal(result.isError, true);
    assert.match(text(result), /\/text/);
  });
  await check('structured', async () => {
    const result = await call('json_response');
    assert.deepEqual(result.structuredContent, { ok: true });
    assert.deepEqual(JSON.parse(text(result)), { ok: true });
  });
  await check('unknown_tool', () => assert.rejects(call('no_such_tool'), (error) => error.code === -32602));
  await check('timeout', async () => {
    const start = performance.now();
    await assert.rejects(call('slow', {}, { timeout: 100 }), /timed? ?out/i);
    assert.ok(performance.now() - start < 3000, 'the timeout came late');
  });
  await check('cancel', async () => {
    const controller = new AbortController();
    const slow = call('slow', {}, { signal: controller.signal });
    setTimeout(() => controller.abort('enough'), 50);
    await assert.rejects(slow, /enough/);
    assert.equal(methods.includes('notifications/cancelled'), era === 'legacy' || transport === 'stdio');
  });
  await check('alive', async () => {
    if (era === 'legacy') await client.ping();
    assert.equal(text(await call('echo', { text: 'alive' })), 'alive');
  });
  await check('parallel', async () => {
    const texts = Array.from({ length: 20 }, (_, index) => `number ${index}`);
    const results = await Promise.all(texts.map((each) => call('echo', { text: each })));
    assert.deepEqual(results.map(text), texts);
  });
});

await check('pagination', () =>
  withClient('pages', async (client, methods) => {
    const expected = ['alpha', 'beta', 'gamma', 'delta', 'epsilon'];
    assert.deepEqual(names(await all((params) => client.listTools(params), 'tools')), expected);
    assert.deepEqual(names(await all((params) => client.listResources(params), 'resources')), expected);
    assert.deepEqual(names(await all((params) => client.listPrompts(params), 'prompts')), expected);
    for (const kind of ['tools', 'resources', 'prompts']) {
      assert.equal(methods.filter((method) => method === `${kind}/list`).length, 3, `${kind}: not three pages`);
    }
    await assert.rejects(client.listTools({ cursor: 'made up' }), (error) => error.code === -32602);
  }),
);

await check('resources', () =>
  withClient('library', async (client, _, received) => {
    assert.deepEqual(names((await client.listResources()).resources), ['readme', 'logo', 'settings']);
    const { contents } = await client.readResource({ uri: 'file:///readme.md' });
    assert.equal(contents[0].text, '# Hello\nA resource with two lines.\n');
    assert.equal((await client.readResource({ uri: 'file:///logo.png' })).contents[0].blob, 'iVBORw0KGgo=');
    // The newer SDK gives its users the modern code in both eras.
    await assert.rejects(client.readResource({ uri: 'file:///missing' }), /Resource not found/);
    assert.equal(received.at(-1).error.code, era === 'modern' ? -32602 : -32002);
  }),
);

await check('prompts', () =>
  withClient('prompts', async (client) => {
    assert.deepEqual(names((await client.listPrompts()).prompts), ['review']);
    const args = { language: 'Rust', code: 'fn main() {}' };
    const { messages } = await client.getPrompt({ name: 'review', arguments: args });
    assert.equal(messages[0].content.text, 'Review this Rust code:\nfn main() {}');
    assert.equal(messages[1].role, 'assistant');
    await assert.rejects(client.getPrompt({ name: 'review' }), (error) => error.code === -32602);
  }),
);

await check('progress', () =>
  withClient('worker', async (client, _, received) => {
    const expected = [
      { progress: 1, total: 3 },
      { progress: 2, total: 3 },
      { progress: 3, total: 3, message: 'done' },
    ];
    const seen = [];
    const onprogress = (progress) => seen.push(progress);
    const result = await sdk.call(client, { name: 'work', arguments: { item: 'bread' } }, { onprogress });
    assert.equal(text(result), 'baked bread');
    const onWire = received.filter((message) => message.method === 'notifications/progress');
    assert.deepEqual(onWire.map(({ params: { progressToken, ...progress } }) => progress), expected);
    assert.equal(received.at(-1).id, onWire[0].params.progressToken, 'the token is the id of the call');
    // The SDKs forget the callback when the answer arrives, and lose a progress that came in the same read.
    assert.ok(seen.length >= 1, 'none reached the callback');
    assert.deepEqual(seen, expected.slice(0, seen.length));
  }),
);
await check('logging', () =>
  withClient('worker', async (client, _, received) => {
    if (era === 'legacy') await client.setLoggingLevel('info');
    const _meta = era === 'modern' ? { 'io.modelcontextprotocol/logLevel': 'info' } : {};
    await sdk.call(client, { name: 'work', arguments: { item: 'bread' }, _meta });
    const messages = received.filter((message) => message.method === 'notifications/message');
    const expected = [{ level: 'info', logger: 'oven', data: { item: 'bread' } }];
    assert.deepEqual(messages.map((message) => message.params), expected);
  }),
);

/** Waits until so many processes in the folder of the subagent have this in their command. */
async function subagentProcesses(part, count) {
  const isOne = (id) => {
    try {
      if (readlinkSync(`/proc/${id}/cwd`) !== targets.probe.cwd) return false;
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ').includes(part);
    } catch {
      return false; // it has ended, or is not ours
    }
  };
  const deadline = performance.now() + 10000;
  let found;
  while ((found = readdirSync('/proc').filter(isOne)).length !== count) {
    assert.ok(performance.now() < deadline, `expected ${count} processes, found ${found}`);
    await sleep(20);
  }
}

await withClient('probe', async (client, _, received) => {
  const call = (prompt, options) => sdk.call(client, { name: 'probe', arguments: { prompt } }, options);
  const answer = async () => {
    const seen = [];
    const start = received.length;
    const { structuredContent } = await call('look at sea', { onprogress: (progress) => seen.push(progress) });
    assert.deepEqual(structuredContent, { answer: 'at sea' });
    const onWire = received.slice(start).filter((message) => message.method === 'notifications/progress');
    const expected = ['turn 1: calls look', 'turn 2: calls final_answer'];
    assert.deepEqual(onWire.map(({ params }) => params.message), expected);
    assert.deepEqual(seen[0], { progress: 1, message: expected[0] });
  };

  await check('subagent_tools', async () => {
    const { tools } = await client.listTools();
    assert.deepEqual(names(tools), ['probe']);
    const { properties, required } = tools[0].inputSchema;
    assert.deepEqual([Object.keys(properties), required], [['prompt', 'inputs'], ['prompt']]);
    assert.deepEqual(tools[0].outputSchema.required, ['answer']);
  });
  await check('subagent_answer', answer);
  await check('subagent_cancel', async () => {
    const controller = new AbortController();
    const works = Promise.withResolvers();
    const hanging = call('hang', { signal: controller.signal, onprogress: works.resolve });
    await Promise.race([works.promise, hanging]);
    await subagentProcesses('tools.yaml', 1);
    controller.abort('enough');
    await assert.rejects(hanging, /enough/);
    await subagentProcesses('tools.yaml', 0);
    await answer();
  });
});
await check('subagent_close', () => subagentProcesses('', transport === 'stdio' ? 0 : 1));

// Idle connections of the SDK's HTTP client would keep the process for some seconds.
process.exit(0);
