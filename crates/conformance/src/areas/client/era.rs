//! How a client of both eras finds out which one a server speaks.

use super::super::Judge;
use super::common::{get_after, modern};
use super::modern::{MODERN_ERRORS, UNSUPPORTED_VERSION, keeps_endpoint, no_fallback};
use crate::{Call, Evidence, Judgement};

/// How often a client may ask a server of an older version for the newer one.
const MOST_PROBES: usize = 2;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-era.stdio.probe-first", |e, j| {
        for connection in e.connections.iter().filter(|it| it.fallback.is_some()) {
            let Some(first) = modern(connection).next() else { continue };
            let method = first.method();
            j.check(method == "server/discover", first.request, || format!("{method} first"));
        }
    }),
    ("client-era.stdio.no-fallback-modern", |e, j| no_fallback(e, j, &[UNSUPPORTED_VERSION])),
    ("client-era.http.inspects-400", |e, j| no_fallback(e, j, &[-32020, UNSUPPORTED_VERSION])),
    ("client-era.http.no-sse-fallback-on-modern-404", keeps_endpoint),
    ("client-era.http.no-fallback-on-401", |e, j| {
        for connection in &e.connections {
            let is_refused = |call: &Call<'_>| matches!(call.status(), Some(401 | 403 | 500..));
            let Some(call) = modern(connection).find(is_refused) else { continue };
            let next = get_after(connection, &call);
            let places = call.places_with(next.map(|http| http.request));
            j.check_at(next.is_none(), None, places, || format!("a GET after {}", call.answer_text()));
        }
    }),
    ("client-era.stdio.fallback-any-error", |e, j| falls_back(e, j, |call| call.has_error())),
    ("client-era.http.fallback-legacy", |e, j| {
        let is_unknown = |call: &Call<'_>| call.error_code() == Some(-32601);
        falls_back(e, j, |call| match call.status() {
            Some(400 | 404 | 405) => !is_modern_error(call),
            status => status == Some(200) && is_unknown(call),
        });
    }),
    ("client-era.stdio.fallback-silence", |e, j| {
        // One that was ended has perhaps only waited.
        if e.facts.exit_code.is_some() {
            falls_back(e, j, |call| !call.is_answered() && call.method() == "server/discover");
        }
    }),
    ("client-era.cache.result", |e, j| {
        for connection in e.connections.iter().filter(|_| e.facts.has_handshake) {
            // A refusal for want of a token, or of a busy server, says nothing of eras.
            let is_about_era = |call: &Call<'_>| !matches!(call.status(), Some(401 | 403 | 429 | 500..));
            let is_refused = |call: &Call<'_>| {
                call.method() == "server/discover" && call.is_answered() && !call.has_result() && is_about_era(call)
            };
            let probes: Vec<_> = modern(connection).filter(is_refused).map(|call| call.request.place).collect();
            let count = probes.len();
            if count > 0 {
                j.check_at(count <= MOST_PROBES, None, probes, || format!("`server/discover` {count} times"));
            }
        }
    }),
];

fn is_modern_error(call: &Call<'_>) -> bool {
    call.error_code().is_some_and(|code| MODERN_ERRORS.contains(&code))
}

/// Checks that a client of both eras tries the handshake after a server of older versions does not know the newer one.
fn falls_back(e: &Evidence<'_>, j: &mut Judgement, is_refused: impl Fn(&Call<'_>) -> bool) {
    let is_act = e.facts.acts.iter().any(|act| act.starts_with("legacy-"));
    let mut calls = e.connections.iter().flat_map(modern);
    if let Some(call) = calls.find(|call| is_refused(call)).filter(|_| is_act && e.facts.has_both_eras) {
        let falls_back = e.facts.has_handshake;
        j.check_at(falls_back, None, call.places(), || format!("no `initialize` after {}", call.answer_text()));
    }
    j.untested("the client speaks one era, or met no server of older versions");
}
