//! What may have changed what a server offers, on any connection of a run.

use std::{collections::HashSet, time::Duration};

use rehearse_protocol::Transport;
use serde_json::Value;

use crate::{Call, Connection, Evidence};

/// When something may have changed what a server offers. All connections of a run have one clock.
#[derive(Debug)]
pub(crate) struct Unrest {
    calls: Vec<Span>,
    /// When the server said that the list has changed.
    announced: Vec<Duration>,
    /// Whether each connection has a process of its own.
    has_processes: bool,
}

/// When a call may have changed something, and on which connection of the evidence.
#[derive(Debug)]
struct Span {
    from: Duration,
    to: Duration,
    connection: Option<usize>,
}

/// When something was read, and on which connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) connection: usize,
}

impl Moment {
    /// From a request until the response to another one on the same connection.
    pub(crate) fn of(first: &Call<'_>, last: &Call<'_>) -> Moment {
        let to = last.response.map_or(last.request.time, |response| response.time);
        Moment { from: first.request.time, to, connection: first.request.place.connection }
    }
}

impl Unrest {
    /// The calls of tools on all connections, also in other versions, and the notifications that a list has changed. A call
    /// without an answer, or that has begun a task, goes on. A tool that says that it only reads changes nothing.
    pub(crate) fn of(evidence: &Evidence<'_>, list: &str) -> Unrest {
        let notification = format!("notifications/{}/list_changed", list.split('/').next().unwrap_or_default());
        let others = &evidence.facts.others;
        let others: Vec<_> =
            others.iter().map(|(version, it)| Connection::new(0, it, version.era(), evidence.transport)).collect();
        let own = evidence.connections.iter().enumerate().map(|(number, it)| (Some(number), it));
        let all: Vec<_> = own.chain(others.iter().map(|it| (None, it))).collect();
        let lists = || {
            all.iter().flat_map(|(_, it)| it.calls_of("tools/list")).filter_map(|it| it.result()?["tools"].as_array())
        };
        let is_read_only = |tool: &&Value| tool["annotations"]["readOnlyHint"] == true;
        let readers: HashSet<_> =
            lists().flatten().filter(is_read_only).filter_map(|tool| tool["name"].as_str()).collect();
        let calls = all.iter().flat_map(|(number, it)| it.calls().map(move |call| (*number, call)));
        let listed: HashSet<_> = lists().flatten().filter_map(|tool| tool["name"].as_str()).collect();
        let calls = calls.filter(|(_, call)| may_change(call, &readers, &listed));
        let calls =
            calls.map(|(connection, call)| Span { from: call.request.time, to: end(&call), connection }).collect();
        let said = all.iter().flat_map(|(_, it)| &it.messages).filter(|it| it.is_from_server());
        let announced = said.filter(|it| it.method() == Some(&*notification)).map(|it| it.time).collect();
        Unrest { calls, announced, has_processes: evidence.transport == Transport::Stdio }
    }

    /// Whether something may differ at two moments: something happened meanwhile, or earlier in one of two processes.
    pub(crate) fn is_between(&self, one: Moment, other: Moment) -> bool {
        let (from, to) = (one.from.min(other.from), one.to.max(other.to));
        let is_apart = self.has_processes && one.connection != other.connection;
        let is_own = |it: &Span| is_apart && [one, other].iter().any(|moment| it.connection == Some(moment.connection));
        let is_meanwhile = |call: &Span| call.from <= to && (call.to >= from || is_own(call));
        self.calls.iter().any(is_meanwhile) || self.announced.iter().any(|at| (from..=to).contains(at))
    }

    /// Whether something was called on a connection between two times.
    pub(crate) fn has_call(&self, connection: usize, from: Duration, to: Duration) -> bool {
        let mut own = self.calls.iter().filter(|call| call.connection == Some(connection));
        own.any(|call| call.from <= to && call.to >= from)
    }

    /// Whether nothing was called in the whole run until a time, and no change was ever announced: a notification may come
    /// late.
    pub(crate) fn is_none_until(&self, time: Duration) -> bool {
        self.announced.is_empty() && self.calls.iter().all(|call| call.from > time)
    }
}

/// Whether a call may change what the server has: not that of a tool that only reads, nor one that is refused because there
/// is no such tool or task.
fn may_change(call: &Call<'_>, readers: &HashSet<&str>, listed: &HashSet<&str>) -> bool {
    let is_one_of =
        |names: &HashSet<&str>| call.request.at("/params/name").as_str().is_some_and(|name| names.contains(name));
    match call.method() {
        "tools/call" => !is_one_of(readers) && (is_one_of(listed) || call.error_code().is_none()),
        "tasks/get" | "tasks/list" => false,
        method => method.starts_with("tasks/") && call.error_code().is_none(),
    }
}

/// Until when a call may change something.
fn end(call: &Call<'_>) -> Duration {
    let has_task = |result: &Value| result["resultType"] == "task" || result["task"].is_object();
    match (call.response, call.http) {
        (Some(_), _) if call.result().is_some_and(has_task) => Duration::MAX,
        (Some(response), _) => response.time,
        (None, Some(http)) if http.status.is_some_and(|status| status >= 400) => http.ended_at.unwrap_or(Duration::MAX),
        (None, _) => Duration::MAX,
    }
}
