"use strict";

const { spawn } = require("node:child_process");
const { mkdtemp, rm, writeFile } = require("node:fs/promises");
const { tmpdir } = require("node:os");
const { join } = require("node:path");
const { binary } = require("./binary.js");

const STOP_TIMEOUT_MS = 10_000;
const LAST_OUTPUT_TIMEOUT_MS = 1_000;
const KEPT_OUTPUT = 64 * 1024;
const SHOWN = { violations: 3, evidence: 4, characters: 300 };

// The command of `--exec`. It ends when its input does, thus also when the test process is killed, and so ends the server.
const COMMAND = "console.log(JSON.stringify(process.env)); process.stdin.resume()";

class RehearseError extends Error {
  constructor(message, report) {
    super(message);
    this.name = "RehearseError";
    this.report = report;
  }
}

/** A process of `rehearse` that serves a script. */
class Server {
  #process;
  #closed;
  #output;

  static async start(command, script, args = []) {
    const folder = typeof script === "string" ? undefined : await mkdtemp(join(tmpdir(), "rehearse-"));
    try {
      const file = folder ? join(folder, `${command}.yaml`) : script;
      if (folder) await writeFile(file, JSON.stringify(script));
      const server = new this([command, file, "--listen", "127.0.0.1:0", ...args]);
      server.found(await server.#variables(command));
      return server;
    } finally {
      // The server has read it.
      if (folder) await rm(folder, { recursive: true });
    }
  }

  constructor(args) {
    // Variables of another mock, and options of this process, are not for the command.
    const env = Object.entries(process.env).filter(([name]) => !/^(REHEARSE_|NODE_OPTIONS$)/.test(name));
    const all = [...args, "--exec", "--", process.execPath, "-e", COMMAND];
    this.#process = spawn(binary(), all, { env: Object.fromEntries(env), windowsHide: true });
    this.#closed = ended(this.#process);
    this.#output = collect(this.#process.stderr, KEPT_OUTPUT);
    this.#process.stdin.on("error", () => {}); // The process has ended.
  }

  /** Waits for the environment of the command. From then on, the process does not keep this one alive. */
  async #variables(command) {
    const { stdout } = this.#process;
    const read = collect(stdout);
    const line = new Promise((resolve) => stdout.on("data", () => read().includes("\n") && resolve(read())));
    const failure = this.#closed.then((how) => {
      throw new RehearseError(`rehearse ${command} did not start (${how})\n${this.output()}`);
    });
    const variables = JSON.parse(await Promise.race([line, failure]));
    for (const handle of [this.#process, ...this.#process.stdio]) handle.unref();
    return variables;
  }

  /** What the process has written to standard error. */
  output() {
    return this.#output();
  }

  /** Waits for the last output of a process that has ended. */
  async settled() {
    let timer;
    const timeout = new Promise((resolve) => (timer = setTimeout(resolve, LAST_OUTPUT_TIMEOUT_MS)));
    await Promise.race([this.#closed, timeout]);
    clearTimeout(timer);
  }

  async stop() {
    this.#process.ref();
    this.#process.stdin.end();
    const timer = setTimeout(() => this.#process.kill("SIGKILL"), STOP_TIMEOUT_MS);
    await this.#closed;
    clearTimeout(timer);
  }

  [Symbol.asyncDispose]() {
    return this.stop();
  }
}

class Mock extends Server {
  #admin;

  found(variables) {
    this.#admin = { url: variables.REHEARSE_ADMIN_URL, token: variables.REHEARSE_ADMIN_TOKEN };
    this.url = variables.REHEARSE_URL;
    this.sseUrl = variables.REHEARSE_SSE_URL;
    this.wsUrl = variables.REHEARSE_WS_URL;
    this.stdioCommand = words(variables.REHEARSE_STDIO);
  }

  async journal() {
    return (await this.#request("GET", "/journal")).entries;
  }

  async calls(tool) {
    const entries = (await this.journal()).filter(({ method }) => method === "tools/call");
    const calls = entries.map(({ request }) => request.params).filter(({ name }) => !tool || name === tool);
    return calls.map((params) => params.arguments ?? {});
  }

  async verify() {
    const verified = await this.#request("GET", "/verify");
    if (!verified.holds) throw new RehearseError(`the mock's expectations failed:\n${verified.report}`, verified);
  }

  async violations() {
    return (await this.#request("GET", "/violations")).violations;
  }

  async reset() {
    await this.#request("POST", "/reset");
  }

  state() {
    return this.#request("GET", "/state");
  }

  setState(state) {
    return this.#request("PUT", "/state", state);
  }

  async addRule(rule, item) {
    return (await this.#request("POST", "/rules", { ...item, rule })).id;
  }

  async #request(method, path, body) {
    const headers = { Authorization: `Bearer ${this.#admin.token}` };
    const sent = fetch(this.#admin.url + path, { method, headers, body: body && JSON.stringify(body) });
    const response = await sent.catch(async (error) => {
      await this.settled();
      const why = error.cause?.code ?? error.message;
      throw new RehearseError(`the mock has ended, or does not answer (${why})\n${this.output()}`);
    });
    const answer = JSON.parse((await response.text()) || "null");
    if (response.ok) return answer;
    const lines = answer.problems.map(({ message, hint }) => `\n  ${message}${hint ? `\n  hint: ${hint}` : ""}`);
    throw new RehearseError(answer.error + lines.join(""), answer);
  }
}

class Model extends Server {
  found(variables) {
    this.url = variables.ANTHROPIC_BASE_URL;
    this.openaiUrl = variables.OPENAI_BASE_URL;
  }
}

exports.RehearseError = RehearseError;

exports.startMock = function startMock(script, { args = [] } = {}) {
  return Mock.start("mock", script, ["--admin", "--check", ...args]);
};

exports.startModel = function startModel(script, { args } = {}) {
  return Model.start("model", script, args);
};

/** The options of a session with a server, and others of the command. */
function options(target, { protocol, allowTools, toolArgs, token, headers, env, timeout, startTimeout, strict, args = [] }, own) {
  const pairs = (values = {}, between, write = String) =>
    Object.entries(values).map(([name, value]) => name + between + write(value));
  const all = {
    protocol,
    "allow-tool": allowTools,
    "tool-args": pairs(toolArgs, "=", JSON.stringify),
    token,
    header: pairs(headers, ": "),
    env: pairs(env, "="),
    timeout,
    "start-timeout": startTimeout,
    ...own,
  };
  const flags = Object.entries(all).flatMap(([name, values = []]) => [values].flat().map((it) => `--${name}=${it}`));
  return [...server(target), ...flags, ...(strict ? ["--strict"] : []), ...args, "--format", "json"];
}

exports.check = async function check(target, given = {}) {
  const { only, allowPrompts, profiles, budget, baseline } = given;
  const own = { only, "allow-prompt": allowPrompts, profile: profiles, budget, baseline };
  const all = ["check", ...options(target, given, own)];
  const { how, output, errors } = await finish(all);
  if (!output) throw new RehearseError(`the server cannot be checked (${how}):\n${errors}`);
  const report = JSON.parse(output);
  if (report.verdict !== "passed") throw new RehearseError(text(report), report);
  return report;
};

exports.fuzz = async function fuzz(target, given = {}) {
  const { budget, cases, seed, corpus } = given;
  const all = ["fuzz", ...options(target, given, { budget, cases, seed, corpus })];
  const { how, output, errors } = await finish(all);
  if (!output) throw new RehearseError(`the server cannot be fuzzed (${how}):\n${errors}`);
  const report = JSON.parse(output);
  if (report.verdict !== "passed") throw new RehearseError(bugs(report), report);
  return report;
};

exports.run = async function run(paths = [], { args = [] } = {}) {
  const { how, output, errors } = await finish(["run", ...[paths].flat(), ...args]);
  if (how !== "exit code 0") throw new RehearseError(`rehearse run: ${how}\n${output}${errors}`);
  return output;
};

/** Runs a command of `rehearse`. It ends with this process. */
async function finish(args) {
  const child = spawn(binary(), args, { stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
  const [output, errors] = [collect(child.stdout), collect(child.stderr)];
  const kill = () => child.kill();
  process.once("exit", kill);
  const how = await ended(child);
  process.off("exit", kill);
  return { how, output: output(), errors: errors() };
}

/** How the process ended. */
function ended(child) {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(signal ?? `exit code ${code}`));
  });
}

/** Reads a stream of text. The function returns what came, or the end of it. */
function collect(stream, length = Infinity) {
  let text = "";
  stream.setEncoding("utf8").on("data", (data) => (text = (text + data).slice(-length)));
  return () => text;
}

/** The words of a command line in which only single quotes are special. */
function words(line) {
  const found = [...line.matchAll(/'((?:'\\''|[^'])*)'|[^\s']+/g)];
  return found.map(([word, quoted]) => quoted?.replaceAll("'\\''", "'") ?? word);
}

/** The option that names the server. As in scenarios, a URL that ends in `/sse` is one for HTTP+SSE. */
function server(target) {
  if (Array.isArray(target)) return ["--stdio", target.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ")];
  if (/^wss?:/.test(target)) return ["--ws", target];
  if (/^https?:/.test(target)) return [target.endsWith("/sse") ? "--sse" : "--http", target];
  return ["--stdio", target];
}

function bugs({ verdict, error, targets, bugs }) {
  const lines = [`rehearse fuzz: ${verdict}`, ...(error ? [error] : [])];
  for (const { oracle, kind, name, message, arguments: input } of bugs) {
    lines.push(`✗ ${oracle} ${kind} ${name}`, `  ${message}`, `  with ${JSON.stringify(input).slice(0, SHOWN.characters)}`);
  }
  lines.push(...targets.flatMap(({ kind, name, reason }) => (reason ? [`${kind} ${name}: ${reason}`] : [])));
  return lines.join("\n");
}

function text({ verdict, strict, servers, baseline }) {
  const lines = [`rehearse check: ${verdict}`];
  const failures = new Map();
  for (const { target, error, transport, versions } of servers) {
    if (error) lines.push(`${target}: ${error}`);
    for (const { version, checks } of versions) {
      for (const check of checks.filter((it) => it.verdict === "fail" || (strict && it.verdict === "warn"))) {
        const places = failures.get(check.id)?.places ?? [];
        failures.set(check.id, { check, places: [...places, `${transport}/${version}`] });
      }
    }
  }
  for (const { check, places } of failures.values()) {
    lines.push(`✗ ${check.id}   ${check.level}, in ${places.join(", ")}`, `  ${check.rule}`);
    const violations = check.violations.filter(({ accepted }) => !accepted);
    const found = violations.map(({ subject, found }) => `    ${subject ? `${subject}: ` : ""}found ${found}`);
    lines.push(...[...new Set(found)].slice(0, SHOWN.violations));
    for (const { direction, text } of violations[0]?.evidence.slice(0, SHOWN.evidence) ?? []) {
      lines.push(`  ${direction === "client-to-server" ? "→" : "←"} ${text.trimEnd().slice(0, SHOWN.characters)}`);
    }
    lines.push(`  again: ${check.again}`);
  }
  if (verdict === "incomplete" || verdict === "nothing-tested") {
    const all = servers.flatMap(({ versions }) => versions.flatMap(({ checks }) => checks));
    const reasons = all.filter((it) => it.verdict === "not-tested" && it.reason).map(({ reason }) => reason);
    lines.push(...[...new Set(reasons)].slice(0, SHOWN.violations));
  }
  lines.push(...(baseline?.stale ?? []).map((id) => `${baseline.file}: ${id} no longer matches anything`));
  return lines.join("\n");
}
