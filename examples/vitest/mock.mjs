// A mock server for a file of tests; every test begins with it as new, and is held to what it
// expects and to the MCP specification.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, beforeEach, expect } from "vitest";

class Mock {
  async start(script) {
    const args = ["mock", script, "--listen", ":0", "--admin", "--check", "--format", "json"];
    this.process = spawn(process.env.REHEARSE ?? "rehearse", args, { stdio: ["ignore", "pipe", "ignore"] });
    const failed = new Promise((_, reject) => this.process.once("error", reject));
    const first = createInterface(this.process.stdout)[Symbol.asyncIterator]().next();
    const line = await Promise.race([first, failed]);
    const started = JSON.parse(line.value);
    this.url = started.http;
    this.adminApi = started.admin;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill();
    await ended;
  }

  async admin(method, path, body) {
    const headers = { Authorization: `Bearer ${this.adminApi.token}` };
    const response = await fetch(this.adminApi.url + path, { method, headers, body: body && JSON.stringify(body) });
    const answer = JSON.parse((await response.text()) || "null");
    if (!response.ok) throw new Error(JSON.stringify(answer));
    return answer;
  }

  // Puts a rule in front of a tool's own: mock.rule("forecast", { when: …, reply: … }).
  async rule(tool, rule) {
    return (await this.admin("POST", "/rules", { tool, rule })).id;
  }

  // The arguments of each call of a tool, in the order in which they came.
  async calls() {
    const { entries } = await this.admin("GET", "/journal");
    return entries.filter(({ method }) => method === "tools/call").map(({ request }) => request.params.arguments);
  }
}

export function mock(script) {
  const server = new Mock();
  beforeAll(() => server.start(script));
  afterAll(() => server.stop());
  beforeEach(() => server.admin("POST", "/reset"));
  afterEach(async () => {
    const verified = await server.admin("GET", "/verify");
    expect(verified.holds, verified.report).toBe(true);
    const { violations } = await server.admin("GET", "/violations");
    expect(violations.map(({ rule, found }) => `${rule}: ${found}`)).toEqual([]);
  });
  return server;
}
