//! Probes an MCP server, or lets a client meet mocks, and judges what they do by the specification.
//!
//! A probe sends and records; it never judges. The judges of [`rehearse_conformance`] read the traces of all
//! connections with the server in one version, and say which checks hold. [`check`] probes a server, [`check_issuer`] an
//! authorization server, [`client`] checks clients, [`gateway`] what is in between.

#![warn(missing_docs)]

pub mod client;
mod connection;
mod detection;
mod effects;
pub mod gateway;
mod issuer;
mod lists;
mod options;
mod prober;
mod probes;
mod replies;
mod report;
mod run;
mod server;
mod survey;
mod traffic;

pub use issuer::{IssuerOptions, IssuerRun, Login, check_issuer};
pub use options::{CheckEvent, CheckOptions, RecordSink, Sink, Tokens, selects};
pub use probes::probes_of;
pub use report::target_text;
pub use run::{CheckRun, VersionTraces, check};
pub use traffic::{JudgedTraffic, RecordedServer, check_trace, judge_traffic};
