"use strict";

const { realpathSync } = require("node:fs");
const { optionalDependencies = {} } = require("./package.json");

/** The path of the program: `REHEARSE`, or that in the package for this platform. */
exports.binary = function binary() {
  const { REHEARSE } = process.env;
  if (REHEARSE && !isLauncher(REHEARSE)) return REHEARSE;
  const name = `@mcp-rehearsal/${process.platform}-${process.arch}`;
  try {
    return require.resolve(`${name}/rehearse${process.platform === "win32" ? ".exe" : ""}`);
  } catch {
    throw new Error(`the program is missing: ${name} is not installed\n${hint(name)}`);
  }
};

// The launcher of this package would start itself again and again.
function isLauncher(path) {
  try {
    return realpathSync(path) === require.resolve("./launcher.js");
  } catch {
    return false; // a name that is looked up on the PATH
  }
}

function hint(name) {
  const known = Object.keys(optionalDependencies);
  if (!known.includes(name)) {
    return `hint: there are ${known.join(", ")}; for another platform build \`rehearse\`, and set REHEARSE to its path`;
  }
  return (
    "hint: it is an optional dependency. Install again without --omit=optional or --no-optional, on the system that runs it;\n" +
    "      or set REHEARSE to the path of a `rehearse` that you have"
  );
}
