// Evaluates to a function that makes the tools and the globals of a program, and returns how to run it.
(send, print, tools) => {
  // A program may change the globals.
  const { parse, stringify: encode } = JSON;
  // Half of a surrogate pair is no text: in JSON it is an escape that other parsers refuse.
  const half = /\\\\|\\ud[89a-f][0-9a-f]{2}/g;
  const stringify = (value) => encode(value)?.replace(half, (found) => (found === "\\\\" ? found : "\ufffd"));
  const [now, later] = [Date.now, Promise.prototype.then];
  const calls = new Map();
  const timers = new Map();
  const rejected = new Map();
  let count = 0;
  let end;
  let isAnswered = false;

  // The lines of the program in a stack. Its first line has `(async () => {` before it.
  const column = (_, column) => `program.js:1:${column - 14}`;
  const inProgram = (line) => "\n" + line.replace(/program\.js:1:(\d+)/, column);
  const lines = (error) =>
    String(error.stack ?? "").split("\n").filter((line) => line.includes("program.js")).map(inProgram).join("");
  const describe = (error) => {
    if (error instanceof Error) return `${error.name}: ${error.message}${lines(error)}`;
    // Without memory for an error, the engine throws this.
    return error === null ? "thrown: null, or the program ran out of memory" : `thrown: ${inspect(error)}`;
  };
  const inspect = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return describe(value);
    if (value instanceof Map || value instanceof Set) return `${value.constructor.name} ${inspect([...value])}`;
    try {
      return stringify(value) ?? String(value);
    } catch {
      return String(value);
    }
  };

  const call = (name, tool) => (input) =>
    new Promise((resolve, reject) => {
      // Here the stack has the line of the call.
      const error = new Error();
      const text = stringify(input ?? {});
      if (!text?.startsWith("{")) throw new TypeError(`${name} takes an object, not ${text ?? typeof input}`);
      if (!send(`{"call":${++count},"tool":${stringify(tool)},"arguments":${text}}`)) {
        throw new RangeError(`the arguments of ${name} are nested too deeply`);
      }
      calls.set(count, { resolve, reject, error });
    });
  for (const [name, tool] of tools) globalThis[name] = call(name, tool);
  globalThis.setTimeout = (run, delay = 0, ...args) => {
    timers.set(++count, { at: now() + Math.max(0, Number(delay) || 0), run: () => run(...args) });
    return count;
  };
  globalThis.clearTimeout = (id) => void timers.delete(id);
  const log = (...values) => print(values.map(inspect).join(" ").toWellFormed() + "\n");
  globalThis.console = {};
  for (const name of ["debug", "dir", "error", "info", "log", "table", "trace", "warn"]) globalThis.console[name] = log;

  const isText = (...values) => values.every((value) => typeof value === "string");
  const isBlock = (value) => {
    switch (value?.type) {
      case "text":
        return isText(value.text);
      case "image":
      case "audio":
        return isText(value.data, value.mimeType);
      case "resource_link":
        return isText(value.uri, value.name);
      case "resource":
        return isText(value.resource?.uri);
    }
    return false;
  };
  const content = (value) => {
    if (value === undefined) return [];
    if (isBlock(value)) return [value];
    if (Array.isArray(value) && value.length > 0 && value.every(isBlock)) return value;
    return [{ type: "text", text: typeof value === "string" ? value : stringify(value) ?? String(value) }];
  };

  return {
    start(main) {
      const done = (value) => {
        try {
          end = stringify({ end: "success", content: content(value) });
          isAnswered = value !== undefined;
        } catch (error) {
          failed(error);
        }
      };
      const failed = (error) => (end = stringify({ end: "exception", message: describe(error) }));
      later.call(main(), done, failed);
    },
    // The milliseconds until the next timer: infinite without one, negative if nothing can happen any more, or if what
    // can happen is after the result.
    pause() {
      const next = Math.min(...[...timers.values()].map((timer) => timer.at));
      const isOver = calls.size === 0 && (timers.size === 0 || isAnswered);
      return isOver ? -1 : Math.max(0, next - now());
    },
    settle(line) {
      const { id, result, error } = parse(line);
      const call = calls.get(id);
      calls.delete(id);
      if (error === undefined) return call.resolve(result);
      // The stack is from the call.
      call.error.message = error;
      call.reject(call.error);
    },
    // One timer: what it queues comes before the next one.
    fire() {
      let first;
      for (const [id, timer] of timers) if (first === undefined || timer.at < timers.get(first).at) first = id;
      const { at, run } = timers.get(first) ?? { at: Infinity };
      if (at > now()) return;
      timers.delete(first);
      run();
    },
    reject(promise, reason, isHandled) {
      isHandled ? rejected.delete(promise) : rejected.set(promise, reason);
    },
    // What the program was, once nothing can happen any more.
    end() {
      for (const [, reason] of rejected) return stringify({ end: "exception", message: describe(reason) });
      return end ?? stringify({ end: "exception", message: "the program waits for a promise that nothing settles" });
    },
    describe: (error) => describe(error).toWellFormed(),
  };
};
