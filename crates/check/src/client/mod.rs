//! The check of a client: it meets a mock in each of several acts, and the traces are judged.
//!
//! An act is a mock script: a way in which a server may behave. The client does its normal work in each. What it does in
//! the act `clean` is its [`Flow`](rehearse_conformance::Flow); where an act must not disturb it, it does the same there.

mod act;
mod judge;

pub use act::{ACTS, Act};
pub use judge::{ActRun, doubtful_acts, judge_client};
