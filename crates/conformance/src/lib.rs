//! Checks of MCP traffic against the specification.
//!
//! A [`Check`] is one rule of the specification: its text, level by version and links stand in `checks/AREA.jsonl`, its
//! judge in `areas/AREA.rs`. A judge is a pure function over [`Evidence`]: the traces of all connections with one server
//! in one version over one transport. It sends nothing, so the same judges serve a probe, a scenario, a recorded trace
//! and a mock.
//!
//! ```
//! use rehearse_conformance::{Evidence, Facts, CheckVerdict, judge_all};
//! use rehearse_protocol::{Direction, Trace, Transport, Version};
//!
//! let mut trace = Trace::default();
//! let answer = bytes::Bytes::from_static(br#"{"id":1,"result":{}}"#);
//! trace.push_frame(std::time::Duration::ZERO, Direction::ServerToClient, answer);
//! let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
//! let failed: Vec<_> = judge_all(&evidence).into_iter().filter(|(_, outcome)| outcome.verdict == CheckVerdict::Fail).collect();
//! assert_eq!(failed[0].0.id, "rpc.envelope.version-field");
//! ```

mod areas;
mod call;
mod case;
mod cause;
mod check;
mod citation;
mod connection;
#[cfg(test)]
mod docs;
mod evidence;
mod facts;
mod flow;
mod formats;
#[cfg(test)]
mod growth;
mod html;
mod judgement;
mod message;
mod method;
mod migration;
mod recorded;
mod sdk;
mod shapes;
mod silence;
mod unrest;

pub use areas::{cases, is_named};
pub use call::{Ask, Call};
pub use case::{Case, CaseBody, CaseGroup, ISSUER, LARGEST_LIST, Material, MirroredCall, MirroredParameter};
pub use check::{Check, Confirmation, Level, Role, checks, checks_of, judge_all, judge_selected};
pub use connection::{Connection, HttpExchange, is_header, without_mark};
pub use evidence::Evidence;
pub use facts::{Facts, Fetched, MoreTools};
pub use flow::Flow;
pub use judgement::{CheckOutcome, Judgement, Violation};
pub use message::{EventRef, Kind, Message};
pub use migration::migration;
pub use recorded::{Judged, JudgedVersion, Recorded, judge_recorded};
pub use rehearse_report::check::CheckVerdict;
pub use sdk::{attribute, sdks};
