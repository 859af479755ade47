//! The check of a client: it meets a mock in each of several acts, and the traces are judged.
//!
//! An act is a mock script: a way in which a server may behave. The client does its normal work in each. What it does in
//! the act `clean` is its [`Flow`](rehearse_conformance::Flow); where an act must not disturb it, it does the same there.
//! [`run_client`] starts a command in all acts; an [`ActServer`] serves one act to a client in the same process.
//!
//! Acts that do not disturb each other are merged into composite acts, so that a client that behaves is started less often.
//! If it does not behave in one, it is started in parts of it, down to single acts: a finding is always that of
//! a single act, and a composite act in which the client does less than in `clean` is no pass.

mod act;
mod act_run;
mod act_script;
mod act_server;
mod composite;
mod division;
mod environment;
mod error;
mod judge;
mod merge;
mod options;
mod process_end;
mod relay;
mod run;
mod shard;
mod trigger;

pub use act::{ACTS, Act};
pub use act_script::ActScript;
pub use act_server::ActServer;
pub use environment::ClientEnvironment;
pub use error::ClientError;
pub use judge::{ActRun, judge_client, note_crashes, note_migration};
pub use options::{ClientEvent, ClientOptions, ClientStarter, Starter};
pub use relay::serve_relays;
pub use run::run_client;
pub use shard::acts_of_shard;
pub use trigger::{NoCommand, Trigger};

pub(crate) use judge::unconfirmed_acts;
