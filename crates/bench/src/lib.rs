//! Measures how long MCP servers take to be discovered and to answer.
//!
//! Requests are prepared before, and sent on connections that record nothing. Each answer is checked: a rate of errors is
//! no rate. In an open loop a latency begins when its request was due, so a server that stalls cannot hide it (coordinated
//! omission). Targets take turns in slices, by which two results are compared.
//!
//! ```text
//! survey     a session: the version, the tools
//! operation  what is sent, and what a valid answer is
//! connection the handshake and the exchanges, over each transport
//! pacer      when requests of an open loop are due
//! load       workers that send for a slice
//! run        slices of several targets in turn
//! ```

#![warn(missing_docs)]

mod comparison;
mod connection;
mod discovery;
mod load;
mod max_rate;
mod operation;
mod options;
mod pacer;
mod request;
mod run;
mod sink;
mod survey;
#[cfg(test)]
mod tests;
mod threshold;
mod usage;

pub use comparison::compare;
pub use discovery::bench_discovery;
pub use options::{BenchCall, BenchOptions, BenchProgress, BenchTarget, Extent, ShareError};
pub use run::{bench_calls, find_max_rate};
pub use sink::BenchSink;
pub use threshold::{Threshold, ThresholdError, judge};
