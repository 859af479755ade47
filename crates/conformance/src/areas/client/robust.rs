//! What no sentence of the specification says, and every good client does.

use super::{super::Judge, CALL, completes, ends, goes_on, if_sent};
use crate::Kind;

/// The act in which the server answers `initialize` with an error.
const FAILS: &str = "initialize-error";
/// So many attempts are endless.
const MOST: usize = 10;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-robust.error.tools-list-fails", |e, j| ends(e, j, "list-error")),
    ("client-robust.error.initialize-fails", |e, j| {
        ends(e, j, FAILS);
        let is_attempt = |it: &&crate::Message<'_>| it.kind == Kind::Request && it.method() == Some("initialize");
        let attempts: Vec<_> = e.sent().filter(is_attempt).collect();
        if let Some(last) = attempts.last().filter(|_| attempts.len() > MOST && e.facts.is_in(FAILS)) {
            j.check(false, last, || format!("{} attempts", attempts.len()));
        }
    }),
    ("client-robust.slow.initialize", |e, j| completes(e, j, "initialize-slow")),
    ("client-robust.slow.call", |e, j| if_sent(e, j, CALL, goes_on, "slow-call")),
    ("client-robust.text.huge-description", |e, j| completes(e, j, "huge-description")),
];
