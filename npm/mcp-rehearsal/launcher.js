#!/usr/bin/env node
// Runs `rehearse` as if it were this process: the same streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { binary } = require("./binary.js");

const CANNOT_RUN = 3;

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(CANNOT_RUN);
}

function program() {
  try {
    return binary();
  } catch (error) {
    return fail(error.message);
  }
}

const path = program();
const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.once("error", (error) => fail(`cannot run ${path}: ${error.message}`));

// A terminal sends these to both processes, and a second one would end `rehearse` at once.
const isOnTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
const fromTerminal = isOnTerminal ? ["SIGINT", "SIGQUIT"] : [];
const signals = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"];
for (const signal of signals) {
  process.on(signal, () => fromTerminal.includes(signal) || child.kill(signal));
}

child.once("exit", (code, signal) => {
  if (!signal) process.exit(code);
  signals.forEach((it) => process.removeAllListeners(it));
  process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]); // Node ignores some signals.
});
