import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { PROGRAM, folder, script } from "./common.mjs";

const LAUNCHER = "node_modules/.bin/rehearse";
const TARGET = `${process.platform}-${process.arch}`;
const VERSION = `rehearse ${JSON.parse(readFileSync("node_modules/mcp-rehearsal/package.json")).version}\n`;

const start = (command, args, env = {}) =>
  spawnSync(command, args, { encoding: "utf8", env: { ...process.env, ...env }, timeout: 30_000 });

test("npx starts the program in the package for this platform", () => {
  const { stdout, stderr } = start("npx", ["--offline", "mcp-rehearsal", "--version"]);
  assert.equal(stdout, VERSION, stderr);
});

test("the exit code is that of the program", (t) => {
  const path = join(folder(t), "wrong.yaml");
  writeFileSync(path, "servers: { mock: { mock: basic } }\nsteps: [{ call: { tool: fail }, expect: { text: no } }]\n");
  const { status, stdout } = start(LAUNCHER, ["run", path]);
  assert.equal(status, 1, stdout);
  assert.equal(start(LAUNCHER, ["no-such-command"]).status, 2);
});

test("a signal is passed on", async () => {
  const launcher = spawn(LAUNCHER, ["mock", "basic", "--listen", ":0", "--format", "json"]);
  await once(launcher.stdout, "data");
  launcher.kill("SIGTERM");
  assert.deepEqual(await once(launcher, "exit"), [0, null]); // The mock ends in order.
});

test("REHEARSE names another program, whose signal is that of the launcher", (t) => {
  const REHEARSE = script(join(folder(t), "other"), "kill -KILL $$");
  assert.equal(start(LAUNCHER, [], { REHEARSE }).signal, "SIGKILL");
  const { status, stderr } = start(LAUNCHER, [], { REHEARSE: "/no/such/program" });
  assert.equal(status, 3);
  assert.match(stderr, /^error: cannot run \/no\/such\/program: .*ENOENT/);
});

test("a launcher that REHEARSE names does not start itself", () => {
  assert.equal(start(LAUNCHER, ["--version"], { REHEARSE: LAUNCHER }).stdout, VERSION);
});

test("a missing package is named, and how it is left out", (t) => {
  const path = folder(t);
  cpSync("node_modules/mcp-rehearsal", path, { recursive: true });
  const { status, stderr } = start(join(path, "launcher.js"), ["--version"]);
  assert.equal(status, 3);
  assert.match(stderr, new RegExp(`^error: .*@mcp-rehearsal/${TARGET} is not installed\nhint: .*--omit=optional`));
  const platform = "Object.defineProperty(process, 'platform', { value: 'plan9' })";
  const other = start(process.execPath, ["-e", `${platform}; require('${path}/launcher.js')`]);
  assert.match(other.stderr, /hint: there are @mcp-rehearsal\/linux-x64, .*set REHEARSE/);
});

test("a program for another target is not packed", () => {
  const target = TARGET === "linux-arm64" ? "linux-x64" : "linux-arm64";
  const { status, stderr } = start(process.env.PACK, ["--binary", PROGRAM, "--target", target, "--out", "wrong"]);
  assert.equal(status, 2);
  assert.match(stderr, new RegExp(`is no program for ${target}`));
});
