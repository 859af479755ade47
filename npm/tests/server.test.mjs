import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { check, fuzz, run, startMock, startModel } from "mcp-rehearsal";
import { PROGRAM, call, folder, watched } from "./common.mjs";

const SHOP = {
  state: { open: true },
  tools: [{ name: "buy", rules: [{ expect: { calls: 1 }, when: { args: { what: "pears" } }, reply: "Here." }] }],
};

async function started(t, server) {
  const it = await server;
  t.after(() => it.stop());
  return it;
}

/** Sets variables for one test. */
function use(t, variables) {
  Object.assign(process.env, variables);
  t.after(() => Object.keys(variables).forEach((name) => delete process.env[name]));
}

test("a mock has one journal for every transport", async (t) => {
  const mock = await started(t, startMock(SHOP));
  call(mock.url, "buy", { what: "pears" });
  const [program, ...args] = mock.stdioCommand;
  const input = `${JSON.stringify({ jsonrpc: "2.0", id: 7, method: "ping" })}\n`;
  assert.equal(JSON.parse(spawnSync(program, args, { input }).stdout).id, 7);
  const calls = (await mock.journal()).filter(({ method }) => ["tools/call", "ping"].includes(method));
  assert.deepEqual(calls.map(({ transport, method }) => `${transport} ${method}`), ["http tools/call", "stdio ping"]);
  assert.equal(mock.sseUrl, mock.url.replace("/mcp", "/sse"));
  assert.equal(mock.wsUrl, mock.url.replace("http:", "ws:").replace("/mcp", "/ws"));
  await mock.verify();
});

test("verify throws the closest request", async (t) => {
  const mock = await started(t, startMock(SHOP));
  call(mock.url, "buy", { what: "figs" });
  await assert.rejects(mock.verify(), ({ message, report }) => {
    assert.match(message, /tools\.buy.*expected 1 call, got 0 calls[\s\S]*"pears"/);
    return report.unmet.length === 1;
  });
});

test("rules, state and reset", async (t) => {
  const mock = await started(t, startMock(SHOP));
  await mock.addRule({ when: { args: { what: "plums" } }, reply: "Sold out." }, { tool: "buy" });
  assert.equal(call(mock.url, "buy", { what: "plums" }), "Sold out.");
  assert.deepEqual([await mock.calls(), await mock.calls("sell")], [[{ what: "plums" }], []]);
  assert.deepEqual(await mock.setState({ open: false }), { open: false });
  await mock.reset();
  assert.deepEqual([await mock.calls(), await mock.state()], [[], { open: true }]);
  await assert.rejects(mock.addRule({ repply: "No." }, { tool: "buy" }), /has no key `repply`[\s\S]*hint: did you mean `reply`/);
});

test("violations are those of the clients", async (t) => {
  const mock = await started(t, startMock("basic"));
  call(mock.url, "echo", { text: "a" });
  assert.deepEqual(await mock.violations(), []);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  await fetch(mock.url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const rules = (await mock.violations()).map(({ rule }) => rule);
  assert.deepEqual(rules, ["client-life.init.first", "client-http.accept.both"]);
  await assert.rejects(mock.verify(), /the mock's expectations failed:\n.*Mcp-Session-Id header is missing/);
});

test("a mistake in a script has its place and a hint", async () => {
  const mistake = startMock({ tools: [{ nam: "a" }] });
  await assert.rejects(mistake, /did not start \(exit code 2\)[\s\S]*a tool has no key `nam`[\s\S]*did you mean `name`/);
  await assert.rejects(startModel("none.yaml"), /rehearse model did not start[\s\S]*none\.yaml/);
});

test("a folder with spaces and quotes is good for files, which are removed", async (t) => {
  const TMPDIR = join(folder(t), "it's here");
  mkdirSync(TMPDIR);
  use(t, { TMPDIR });
  const mock = await startMock({});
  const [program, ...args] = mock.stdioCommand;
  assert.ok(args.at(-1).startsWith(TMPDIR));
  assert.equal(spawnSync(program, args, { input: "" }).status, 0);
  await mock.stop();
  assert.deepEqual(readdirSync(TMPDIR), []);
});

test("variables of this process that are not meant for a mock do not reach it", async (t) => {
  use(t, { REHEARSE_SSE_URL: "http://another.mock/sse", NODE_OPTIONS: "--require=./no-such-file.cjs" });
  const mock = await started(t, startMock({ protocol: ["2026-07-28"] }));
  assert.equal(mock.sseUrl, undefined);
});

test("a killed mock is an error that says so", { timeout: 30_000 }, async (t) => {
  const { program, ended, pid } = watched(t);
  use(t, { REHEARSE: program });
  const mock = await startMock("basic");
  process.kill(pid(), "SIGKILL");
  await ended;
  await assert.rejects(mock.journal(), /the mock has ended, or does not answer \(ECONNREFUSED\)\nbasic listens/);
  await mock.stop();
});

test("nothing is left when a mock or a model is stopped", { timeout: 30_000 }, async (t) => {
  for (const start of [() => startMock("basic"), () => startModel({ rules: [{ reply: "Hi" }] })]) {
    const { program, ended } = watched(t);
    use(t, { REHEARSE: program });
    await (await start())[Symbol.asyncDispose]();
    await ended;
  }
});

const ENDS = {
  "is killed": ['startMock("basic").then(() => console.log("up")); process.stdin.resume()', (child) => child.kill("SIGKILL")],
  "forgets to stop it": ['startMock("basic").then(() => console.log("up"))', () => {}],
  "exits during a check": ['check(["sleep", "60"]); console.log("up"); process.stdin.once("data", process.exit)', (child) => child.stdin.write("x")],
};
for (const [how, [source, end]] of Object.entries(ENDS)) {
  test(`nothing is left when the process ${how}`, { timeout: 20_000 }, async (t) => {
    const { program, begun, ended } = watched(t);
    const all = `const { check, startMock } = require("mcp-rehearsal"); ${source}`;
    const child = spawn(process.execPath, ["-e", all], { env: { ...process.env, REHEARSE: program } });
    await Promise.all([once(child.stdout, "data"), begun]);
    end(child);
    await ended;
  });
}

test("a model answers both APIs", async (t) => {
  const model = await started(t, startModel({ rules: [{ reply: "You said {{ prompt }}." }] }));
  const body = JSON.stringify({ model: "any", max_tokens: 9, messages: [{ role: "user", content: "Hello" }] });
  const ask = async (url) => (await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body })).json();
  assert.equal((await ask(`${model.url}/v1/messages`)).content[0].text, "You said Hello.");
  assert.equal((await ask(`${model.openaiUrl}/chat/completions`)).choices[0].message.content, "You said Hello.");
});

test("check returns the report of a command and of a URL", async (t) => {
  const mock = await started(t, startMock("basic"));
  for (const target of [[PROGRAM, "mock", "basic"], `${PROGRAM} mock basic`, mock.url, mock.sseUrl, mock.wsUrl]) {
    const { verdict, servers } = await check(target, { only: "tools.list", protocol: target === mock.sseUrl ? [] : ["2025-11-25"] });
    assert.deepEqual([verdict, servers.length], ["passed", 1]);
  }
});

test("check throws what is violated, and the command that shows it again", async (t) => {
  const tool = (name) => ({
    name,
    outputSchema: { type: "object", properties: { amount: {} }, required: ["amount"] },
    reply: { result: { content: [{ type: "text", text: '{"sum":1}' }], structuredContent: { sum: 1 } } },
  });
  const { url } = await started(t, startMock({ tools: [tool("known"), tool("price")] }));
  const options = { only: ["tools.call"], protocol: "2025-11-25", allowTools: "*", strict: true };
  const baseline = join(folder(t), "accepted.yaml");
  const accept = (...entries) => writeFileSync(baseline, JSON.stringify({ version: 1, accept: entries }));
  const entry = { id: "tools.call.structured-matches-schema", reason: "known" };
  accept({ ...entry, subject: "known" });
  await assert.rejects(check(url, { ...options, baseline }), ({ message, report }) => {
    assert.match(message, /✗ tools\.call\.structured-matches-schema {3}MUST, in http\/2025-11-25\n/);
    assert.match(message, /\n {4}price: found .*amount.*\n  → .*"name":"price".*\n  ← .*"sum":1/);
    assert.match(message, /again: rehearse check --http .* --only tools\.call\.structured-matches-schema/);
    assert.doesNotMatch(message, /known: found/);
    return report.verdict === "failed" && report.strict;
  });
  accept(entry);
  assert.equal((await check(url, { ...options, baseline })).totals.accepted, 1);
  accept(entry, { id: "tools.call.structured-present", reason: "none" });
  await assert.rejects(check(url, { ...options, baseline }), /accepted\.yaml: tools\.call\.structured-present no longer matches anything/);
});

test("a server that needs a token, a header and arguments is checked with them", async (t) => {
  const tools = [{ name: "add", annotations: { readOnlyHint: true }, inputSchema: { type: "object" }, reply: "{{ args.a }}" }];
  const mock = await started(t, startMock({ auth: { tokens: [{ token: "of-this-test" }] }, tools }));
  await assert.rejects(check(mock.url), /--token/);
  const session = { token: "of-this-test", headers: { "X-A": "b" }, toolArgs: { add: { a: "of this test" } }, timeout: "5s" };
  assert.equal((await check(mock.url, { only: ["tools.list", "tools.call"], ...session })).verdict, "passed");
  assert.ok((await mock.calls("add")).some(({ a }) => a === "of this test"));
});

test("check throws why nothing could be checked", async () => {
  await assert.rejects(check("/no/such/server"), /rehearse check: cannot-run\n.*no\/such\/server: /);
  await assert.rejects(check("a", { only: "no.such.check" }), /cannot be checked \(exit code 2\):\n.*no\.such\.check/);
});

test("fuzz returns the report, or throws the bugs", async (t) => {
  const tool = (name, keys) => ({ name, annotations: { readOnlyHint: true }, inputSchema: { type: "object" }, ...keys });
  const fine = await started(t, startMock({ tools: [tool("fine", { reply: "x" })] }));
  assert.equal((await fuzz(fine.url, { cases: 5, seed: 2 })).seed, 2);
  const { stdioCommand } = await started(t, startMock({ tools: [tool("ends", { steps: [{ exit: 3 }] })] }));
  const found = /rehearse fuzz: failed\n✗ crash tool ends\n.*\n {2}with \{\}/;
  await assert.rejects(fuzz(stdioCommand, { cases: 5, toolArgs: { ends: { a: 1 } } }), found);
  await assert.rejects(fuzz("/no/such/server"), /cannot be fuzzed \(exit code 3\)/);
});

test("run returns the report, or throws it", async (t) => {
  const path = join(folder(t), "echo.yaml");
  const steps = (text) => `servers: { mock: { mock: basic } }\nsteps: [{ call: { tool: echo, args: { text: a } }, expect: { text: ${text} } }]`;
  writeFileSync(path, steps("a"));
  assert.match(await run(path, { args: ["--filter", "/stdio/"] }), /2 cells: 2 passed/);
  writeFileSync(path, steps("b"));
  await assert.rejects(run([path]), /rehearse run: exit code 1\n[\s\S]*✗ echo[\s\S]*call echo/);
});

test("the functions can be required", () => {
  assert.equal(createRequire(import.meta.url)("mcp-rehearsal").startMock, startMock);
});
