#!/usr/bin/env node
// Runs `rehearse` as if it were this process: the same streams, signals and exit code.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { isatty } = require("node:tty");
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
const isWindows = process.platform === "win32";

// Node 22.15 can become the program. It aborts if it cannot, so only the program of a package is run like that.
if (process.execve && !isWindows && !process.env.REHEARSE) process.execve(path, [path, ...process.argv.slice(2)], process.env);

const child = spawn(path, process.argv.slice(2), { stdio: "inherit" });
child.once("error", (error) => fail(`cannot run ${path}: ${error.message}`));

// A terminal sends SIGINT and SIGQUIT to both processes, and a second one would end `rehearse` at once. A console of
// Windows does so with all its events, and there `kill` would end `rehearse` whatever the signal.
const isOnTerminal = [0, 1, 2].some((file) => isatty(file));
const signals = isWindows ? ["SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"];
const received = isWindows ? signals : isOnTerminal ? ["SIGINT", "SIGQUIT"] : [];
for (const signal of signals) {
  process.on(signal, () => received.includes(signal) || child.kill(signal));
}

child.once("exit", (code, signal) => {
  if (!signal) process.exit(code);
  signals.forEach((it) => process.removeAllListeners(it));
  process.kill(process.pid, signal);
  process.exit(128 + constants.signals[signal]); // Node ignores some signals.
});
