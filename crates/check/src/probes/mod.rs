//! What is sent, one file for each probe. A probe sends on connections of its own, records, and judges nothing.

use futures_util::future::BoxFuture;
use rehearse_protocol::Trace;

use crate::prober::Prober;

mod asking;
mod auth;
mod calls;
mod case_lanes;
mod completions;
mod era;
mod handshake;
mod input;
mod listen;
mod main_lane;
mod session;
mod skills;
mod sse_ws;
mod streams;
mod subscriptions;
mod tasks;

pub(crate) use auth::auth;
pub(crate) use main_lane::main_lane;

/// Sends what a probe has to send to this server, and returns the traces of its connections.
type Probe = for<'a> fn(&'a Prober<'a>) -> BoxFuture<'a, Vec<Trace>>;

/// Every probe with connections of its own. They run at the same time.
pub(crate) const ALL: &[Probe] = &[
    |prober| Box::pin(case_lanes::negative(prober)),
    |prober| Box::pin(case_lanes::malformed(prober)),
    |prober| Box::pin(case_lanes::fresh(prober)),
    |prober| Box::pin(handshake::handshake(prober)),
    |prober| Box::pin(skills::skills(prober)),
    |prober| Box::pin(tasks::tasks(prober)),
    |prober| Box::pin(session::session(prober)),
    |prober| Box::pin(asking::asking(prober)),
    |prober| Box::pin(input::input(prober)),
    |prober| Box::pin(streams::streams(prober)),
    |prober| Box::pin(calls::calls(prober)),
    |prober| Box::pin(subscriptions::subscriptions(prober)),
    |prober| Box::pin(listen::listen(prober)),
    |prober| Box::pin(sse_ws::sse(prober)),
    |prober| Box::pin(sse_ws::ws(prober)),
    |prober| Box::pin(auth::auth(prober)),
    |prober| Box::pin(era::era(prober)),
];
