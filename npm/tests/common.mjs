import { execFileSync, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createReadStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

const require = createRequire(import.meta.url);

/** The program in the package for this platform. */
export const PROGRAM = require.resolve(`@mcp-rehearsal/${process.platform}-${process.arch}/rehearse`);

/** A folder for the time of a test. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "rehearse-test-"));
  t.after(() => rmSync(path, { recursive: true }));
  return path;
}

/** An executable file. */
export function script(path, text) {
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}

/** A `rehearse` that shows when it and all that it started have ended, because only then a pipe has no writer. */
export function watched(t) {
  const path = folder(t);
  const [pipe, pid] = [join(path, "pipe"), join(path, "pid")];
  execFileSync("mkfifo", [pipe]);
  const program = script(join(path, "rehearse"), `echo $$ >'${pid}'; exec 9>'${pipe}'; exec '${PROGRAM}' "$@"`);
  const stream = createReadStream(pipe).resume();
  return { program, begun: once(stream, "open"), ended: once(stream, "end"), pid: () => Number(readFileSync(pid, "utf8")) };
}

/** Calls a tool of a server. Returns the text of the result. */
export function call(url, tool, args) {
  const words = ["mcp", "call-tool", tool, "--args", JSON.stringify(args), "--http", url];
  return spawnSync(PROGRAM, words, { encoding: "utf8" }).stdout.trim();
}
