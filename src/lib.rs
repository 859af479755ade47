//! Rehearse an MCP client or server before it meets the real world.
//!
//! ```text
//! mock script ─ parse ─> Script ──┐
//! scenario ─── parse ─> Scenario ─┴─> run ──(Events)──> live display
//!                                      │
//!                              Trace + RunResult ──> report::{human,json,junit} ──> exit code
//!
//! Session(rmcp) ─ transport ─[recorder]─ ··· wire ··· ─ serve ─ Engine(Script)
//!                                    └ or any real client / server of the world
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`wire`] | frames, JSON-RPC messages, versions and eras, the SSE codec |
//! | [`transport`] | bytes ⇄ frames: stdio, HTTP, HTTP+SSE, WebSocket, memory; the recorder |
//! | [`config`] | files with a position for everything; diagnostics |
//! | [`json_schema`] | compiled JSON Schemas, and what they find wrong with a value |
//! | [`mirrored`] | parameters of tools that are repeated in HTTP headers |
//! | [`client`] | a session with one server, and what came of a call; [`client::hub`]: all servers of a config as one set of tools |
//! | [`llm`] | how a language model is told of tools, and how it asks for them |
//! | [`mock`] | scripts, the engine that plays them, serving, the journal, the admin API |
//! | [`final_answer`] | the answer of a subagent out of its dialog, held against a JSON Schema |
//! | [`scenario`] | scenario files, the cells of their matrix, expectations, snapshots |
//! | [`report`] | reports, made from a run's result |
//! | [`builtin_scripts`] | the mock scripts that the command line serves by name |
//! | [`cli`] | the command line: arguments, colour, printing, exit codes |
//!
//! Imports point one way: `wire ← transport ← {client, mock} ← final_answer ← scenario ← report ← cli`; `config` needs
//! only the names of transports, `mirrored` and `json_schema` only `config`, and `llm` only
//! `json_schema` and `config`'s way of finding the nearest name.
//!
//! # Invariants
//!
//! 1. [`wire`], [`mock::engine`], matchers, parsers and [`report`] do no IO and know no tokio.
//! 2. A server or client that misbehaves is never an `Err` of a run: it is data in a [`report::RunResult`]. `Err` means
//!    that *we* could not run.
//! 3. All randomness of a mock comes from one seed, which is in every report; the same seed repeats the run, in every
//!    release. Only what strangers must not guess (sessions, tokens; keys unless a seed was given) is the system's.
//! 4. Every task and child process has an owner that stops and awaits it. No run leaves a process behind,
//!    not even one that is killed: see [`transport::client::ReaperProcess`].
//! 5. Only [`cli`] prints. A mock on stdio writes protocol frames to stdout and nothing else.
//! 6. JSON from the other side is passed on as the bytes that came, never re-serialised through a type that drops members.
//! 7. Every error about a file has its position, says what is wrong, and hints at what to do.

pub mod builtin_scripts;
pub mod cli;
pub mod client;
pub mod config;
pub mod final_answer;
pub mod json_schema;
pub mod llm;
pub mod mirrored;
pub mod mock;
pub mod report;
pub mod scenario;
pub mod transport;
pub mod wire;
