//! Runs real hosts, such as Claude Code or Codex, with a scripted model and without a person.
//!
//! [`run_host`] makes an empty home and work folder, writes the config of the host, serves the model, starts the host,
//! and ends all of it. Nothing but this machine can be reached. [`judge`] says what the host made of the server, from what
//! the model was asked and from the traffic that a relay between host and server has recorded.

#![warn(missing_docs)]

mod asked;
mod definition;
mod folders;
mod headless_host;
mod judge;
mod logs;
mod prepared_host;
mod proxy;
mod relay;
mod run;
mod view;

pub use asked::Asked;
pub use headless_host::{HeadlessHost, UnknownHost};
pub use judge::{HostEvidence, judge};
pub use prepared_host::{PROMPT, PreparedHost, plain_name};
pub use rehearse_llm::model::scripted::{WalkedTool, walk};
pub use run::{HostEnd, HostError, HostOptions, HostOutcome, run_host, version_of};
pub use view::{HostView, listed_tools, view};
