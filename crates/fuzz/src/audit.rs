//! Judges the traffic of odd inputs by the checks that hold for any traffic.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::{server::Server, survey, target::Target};
use rehearse_conformance::{CheckVerdict, Facts, Recorded, judge_recorded};
use rehearse_protocol::{Protocol, Trace};
use rehearse_report::fuzz::{FuzzBug, InputKind, Oracle};

/// How many violations are looked into.
const MOST: usize = 10;
/// How many usual inputs and how many odd ones are sent.
const INPUTS: usize = 500;

/// An input whose answer was of a new kind.
pub(crate) struct Odd<'t> {
    pub(crate) target: &'t Target,
    pub(crate) input_kind: InputKind,
    pub(crate) input: Json,
    /// Whether the server declares that the input is right.
    pub(crate) is_valid: Option<bool>,
}

/// The violations of a MUST that odd inputs make and usual ones do not, each with one input. `rehearse check` finds those of
/// usual traffic.
pub(crate) async fn violations(
    server: &mut Server<'_>,
    usual: &[(&Target, &Json)],
    odd: &[Odd<'_>],
) -> Option<Vec<FuzzBug>> {
    let (usual, odd) = (&usual[..usual.len().min(INPUTS)], &odd[..odd.len().min(INPUTS)]);
    let known = violated(server, usual).await?;
    let found = violated(server, &inputs(odd)).await?;
    let mut bugs = Vec::new();
    for id in found.keys().filter(|id| !known.contains_key(*id)).take(MOST) {
        bugs.extend(violation(server, odd, id).await);
    }
    Some(bugs)
}

/// The first of the inputs that makes this violation. `None` if it does not happen again, or there is no time.
async fn violation(server: &mut Server<'_>, odd: &[Odd<'_>], id: &str) -> Option<FuzzBug> {
    let mut left = odd;
    while left.len() > 1 {
        let (first, second) = left.split_at(left.len() / 2);
        left = if violated(server, &inputs(first)).await?.contains_key(id) { first } else { second };
    }
    // What does not happen again on a new connection is no bug that anyone could find.
    let message = violated(server, &inputs(left)).await?.remove(id)?;
    let odd = left.first()?;
    Some(FuzzBug {
        oracle: Oracle::Violation,
        target: odd.target.id.clone(),
        before: None,
        arguments: odd.input.clone(),
        message,
        is_valid: odd.is_valid,
        input_kind: odd.input_kind,
    })
}

fn inputs<'o>(odd: &'o [Odd<'_>]) -> Vec<(&'o Target, &'o Json)> {
    odd.iter().map(|it| (it.target, &it.input)).collect()
}

/// The violated checks on a new connection with the lists of the server and these inputs, with a sentence of each. `None` if
/// there is no time or no connection.
async fn violated(server: &mut Server<'_>, inputs: &[(&Target, &Json)]) -> Option<BTreeMap<&'static str, String>> {
    if server.grace().is_zero() {
        return None;
    }
    server.open_recorded().await.ok()?;
    survey::targets(server.session()?, server.options).await.ok()?;
    for (target, input) in inputs {
        let left = server.grace();
        server.send(target, input, left).await.filter(|_| !left.is_zero())?.ok();
    }
    let trace = server.session()?.recorder().trace();
    Some(judged(&trace, server))
}

fn judged(trace: &Trace, server: &Server<'_>) -> BTreeMap<&'static str, String> {
    let asked = match server.options.protocol {
        Protocol::Exact(version) => Some(version),
        Protocol::Auto => None,
    };
    let judged = judge_recorded([Recorded { trace, asked }], server.transport(), &Facts::default());
    let outcomes = judged.versions.iter().flat_map(|version| &version.outcomes);
    let failed = outcomes.filter(|(_, outcome)| outcome.verdict == CheckVerdict::Fail && outcome.cause.is_none());
    let own = failed.filter_map(|(check, outcome)| {
        let is_must = |level: Option<rehearse_conformance::Level>| {
            level.is_none_or(|level| level.violated() == CheckVerdict::Fail)
        };
        let mut violations = outcome.judgement.violations.iter();
        let violation = violations.find(|it| it.sdk.is_none() && is_must(it.level))?;
        Some((check.id.as_str(), format!("{} ({}) Found {}.", check.rule, check.id, violation.found)))
    });
    own.collect()
}
