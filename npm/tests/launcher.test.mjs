import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

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

/** Starts a launcher with some code before and after it. */
const load = (launcher, args, before, after = "", env = {}) =>
  start(process.execPath, ["-e", `${before}; require('${launcher}'); ${after}`, "launcher", ...args], env);

test("the launcher becomes the program of a package where Node can", () => {
  const before = "process.execve = (path, words) => { console.log([path, ...words]); process.exit(); }";
  const { stdout } = load(`./${LAUNCHER}`, ["a b"], before);
  assert.equal(stdout, `${inspect([PROGRAM, PROGRAM, "a b"])}\n`);
  assert.match(load(`./${LAUNCHER}`, ["--version"], before, "", { REHEARSE: PROGRAM }).stdout, /^rehearse /);
});

test("on Windows, the launcher starts rehearse.exe and leaves the events of the console to it", (t) => {
  const path = folder(t);
  const program = join(path, "node_modules/@mcp-rehearsal/win32-x64/rehearse.exe");
  cpSync("node_modules/mcp-rehearsal", path, { recursive: true });
  mkdirSync(dirname(program), { recursive: true });
  const pipe = join(path, "pipe");
  execFileSync("mkfifo", [pipe]);
  script(program, `read -r line <'${pipe}'; echo "$1 $line"; exit 7`);
  const windows = "for (const [name, value] of [['platform', 'win32'], ['arch', 'x64'], ['execve', 'none']])";
  const before = `${windows} Object.defineProperty(process, name, { value })`;
  const events = "['SIGINT', 'SIGBREAK', 'SIGHUP'].map((it) => process.emit(it))";
  const after = `fs.writeFileSync('${pipe}', ${events} + '\\n')`;
  const { status, stdout } = load(join(path, "launcher.js"), ["saw"], before, after);
  assert.deepEqual([status, stdout], [7, "saw true,true,true\n"]);
});
