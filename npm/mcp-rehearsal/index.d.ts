/// <reference lib="esnext.disposable" />

/** A JSON object. */
export type Fields = { [key: string]: any };

/** A file, or what would be in it. A mock can also have the name of a built-in script, such as `basic`. */
export type Script = string | object;

export interface Options {
  /** Further arguments for `rehearse`. */
  args?: string[];
}

/** Starts a mock server on a free port. It ends with this process at the latest. */
export function startMock(script: Script, options?: Options): Promise<Mock>;

/** Serves a scripted model on a free port. It ends with this process at the latest. */
export function startModel(script: Script, options?: Options): Promise<Model>;

/**
 * Checks a server against the specification: a command line, a command with its arguments, or a URL. Throws if a rule is
 * violated, or if nothing could be checked.
 */
export function check(target: string | string[], options?: CheckOptions): Promise<CheckReport>;

/**
 * Looks for inputs that break a server: a command line, a command with its arguments, or a URL. Throws if it finds one, or
 * if nothing could be tried.
 */
export function fuzz(target: string | string[], options?: FuzzOptions): Promise<Fields>;

/** Runs scenarios: files or folders, `scenarios` without any. Returns the report, and throws it if one fails. */
export function run(paths?: string | string[], options?: Options): Promise<string>;

export interface Mock extends AsyncDisposable {
  /** The URL for streamable HTTP. It is undefined if the script has no version with this transport; so are the others. */
  readonly url: string;
  readonly sseUrl: string;
  readonly wsUrl: string;
  /** A command and its arguments: a client that starts it speaks to this mock over stdio. */
  readonly stdioCommand: string[];
  /** Every message that the mock has received, and the rule that answered it. */
  journal(): Promise<JournalEntry[]>;
  /** The arguments of each call, of one tool or of all. */
  calls(tool?: string): Promise<Fields[]>;
  /** Throws if an expectation of the script is not met; the message has the closest requests. */
  verify(): Promise<void>;
  /** The rules of the specification that the clients have violated. */
  violations(): Promise<Violation[]>;
  /** Restores the journal, counters, state and rules to their initial values. */
  reset(): Promise<void>;
  state(): Promise<Fields>;
  /** Replaces the state. Returns the new one. */
  setState(state: Fields): Promise<Fields>;
  /** Puts a rule in front of those of an item, such as `{ tool: "forecast" }`. Returns its id. */
  addRule(rule: object, item: { [kind: string]: string }): Promise<string>;
  stop(): Promise<void>;
}

export interface Model extends AsyncDisposable {
  /** The base URL for clients of Anthropic. */
  readonly url: string;
  /** The base URL for clients of OpenAI. */
  readonly openaiUrl: string;
  stop(): Promise<void>;
}

export interface JournalEntry extends Fields {
  number: number;
  transport: "stdio" | "http" | "sse" | "ws";
  method?: string;
  request?: Fields;
  /** The rule that answered; else the closest rule and why it did not match. */
  handling: string;
}

export interface Violation extends Fields {
  rule: string;
  isMust: boolean;
  found: string;
}

/** How a session with a server is opened, and what may be called. */
export interface SessionOptions extends Options {
  /** The protocol version; several for a check. */
  protocol?: string | string[];
  /** Call these tools too, besides those annotated with readOnlyHint; `*` stands for any text. */
  allowTools?: string | string[];
  /** The arguments for a tool, by its name. */
  toolArgs?: { [tool: string]: Fields };
  /** A bearer token that the server accepts. */
  token?: string;
  /** Headers of every HTTP request. */
  headers?: { [name: string]: string };
  /** Environment variables of the command. */
  env?: { [name: string]: string };
  /** How long a request may take, such as `10s`. */
  timeout?: string;
  /** How long a start with its handshake may take. */
  startTimeout?: string;
  /** Also fail on warnings. */
  strict?: boolean;
}

export interface CheckOptions extends SessionOptions {
  /** Run only these checks: an id, its beginning, or a pattern with `*`. */
  only?: string | string[];
  /** Prompts that may get odd values. */
  allowPrompts?: string | string[];
  /** Hosts and APIs in which the server must work, or `all`. */
  profiles?: string | string[];
  /** How long the whole run may take. */
  budget?: string;
  /** A file with accepted failures. */
  baseline?: string;
}

export interface FuzzOptions extends SessionOptions {
  /** How long the run may take, `30s` without it. */
  budget?: string;
  /** How many inputs each tool, prompt and so on gets at most. */
  cases?: number;
  /** Seed of the random inputs. */
  seed?: number;
  /** A folder of inputs that are sent first, and that gets new ones. */
  corpus?: string;
}

/** Its JSON Schema is that of `rehearse schema check`. */
export interface CheckReport extends Fields {
  verdict: "passed" | "failed" | "incomplete" | "cannot-run" | "nothing-tested";
  totals: Record<"failed" | "warnings" | "notTested" | "accepted" | "info" | "passed" | "notApplicable", number>;
  servers: Fields[];
}

/** An error whose message says what failed. */
export class RehearseError extends Error {
  /** The JSON from which the message was made, if there is any. */
  readonly report?: Fields;
}
