//! Every check is seen to fail: one change of a conformant server's trace, and the check reports it.
//!
//! The traces are real: the prober runs against the mock `everything`. A mutant changes what the server answered to one
//! message, as a faulty server would have.

use std::collections::{BTreeMap, BTreeSet};

use rehearse_check::probes_of;
use rehearse_conformance::{CheckVerdict, Evidence, Level, Role, checks, checks_of, judge_all};
use rehearse_protocol::{Trace, Transport, Version};

use crate::process::process;

mod bases;
mod mutant;

pub(crate) use bases::{Base, all_bases, bases_of, evidence, recorded};
pub(crate) use mutant::{Mutant, mutants, mutate, targets};

/// Checks that no change of one answer of this server can violate.
const NOT_MUTATED: &[&str] = &[
    // They are about time.
    "log.msg.rate",
    "ping.result.prompt",
    "progress.rate.limited",
    // They are, too; the tests beside their judges have the traces.
    "cancel.http.no-leak",
    "cancel.inflight.no-response",
    "cancel.inflight.silence-modern",
    "tasks.create.prompt",
    // It needs a page of a mebibyte, which the test beside its judge has.
    "apps.html.size",
];

/// The ids of the checks that fail or warn.
pub(crate) fn violated(evidence: &Evidence<'_>) -> BTreeSet<String> {
    let judged = judge_all(evidence)
        .into_iter()
        .filter(|(_, outcome)| matches!(outcome.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
    let found = judged.map(|(check, _)| check.id.clone());
    // How long this machine takes is not what is tested.
    found.filter(|id| !NOT_MUTATED.contains(&id.as_str())).collect()
}

/// While you work on some checks: `MUTANTS=tools.list,res` walks only the mutants of checks whose ids begin so.
pub(crate) fn is_wanted(id: &str) -> bool {
    std::env::var("MUTANTS").map_or(true, |wanted| wanted.split(',').any(|wanted| id.starts_with(wanted)))
}

#[tokio::test]
async fn every_check_reports_its_mutant_and_none_reports_the_conformant_server() {
    let bases = all_bases().await;
    let bases = judged(bases);
    let accused = bases.iter().filter_map(|(base, evidence)| {
        let found = violated(evidence);
        (!found.is_empty()).then(|| format!("{} {}: without a mutant {found:?}", base.transport, base.run.version))
    });
    let (mut wrong, mut seen) = (accused.collect::<Vec<_>>(), BTreeSet::new());
    let mut mutants = mutants();
    mutants.retain(|mutant| is_wanted(&mutant.check));
    seen.extend(mutants.iter().filter(|mutant| !mutant.allowed).map(|mutant| mutant.check.clone()));
    let half = mutants.len() / 2;
    let judged = std::thread::scope(|scope| {
        let other = scope.spawn(|| walk(&mutants[..half], &bases));
        let mut wrong = walk(&mutants[half..], &bases);
        wrong.extend(other.join().expect("no panic"));
        wrong
    });
    wrong.extend(judged);
    let ids = checks_of(Role::Server).map(|check| check.id.as_str()).filter(|id| is_wanted(id));
    let without: Vec<_> = ids.filter(|id| !seen.contains(*id)).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let unseen: Vec<_> = without.iter().filter(|id| !NOT_MUTATED.contains(*id)).collect();
    assert!(unseen.is_empty(), "{} without a mutant: {unseen:?}", unseen.len());
}

/// With the evidence of each.
fn judged(bases: &[Base]) -> Vec<(&Base, Evidence<'_>)> {
    bases.iter().map(|base| (base, evidence(&base.run.traces.iter().collect::<Vec<_>>(), base))).collect()
}

/// How many groups of checks are run alone, unless `ALONE` says another number.
const ALONE: usize = 2;

/// `--only` sends less and sees the same. Checks for which the same is sent are run together.
#[tokio::test]
async fn a_check_that_is_run_alone_reports_its_mutants_and_passes_where_it_passes_among_others() {
    let mut groups: BTreeMap<BTreeSet<&str>, Vec<String>> = BTreeMap::new();
    for check in checks_of(Role::Server).filter(|check| is_wanted(&check.id)) {
        groups.entry(probes_of(check)).or_default().push(check.id.clone());
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // Those for which little is sent are run first.
    groups.sort_by_key(|(probes, ids)| (probes.len(), std::cmp::Reverse(ids.len())));
    groups.truncate(std::env::var("ALONE").ok().and_then(|number| number.parse().ok()).unwrap_or(ALONE));
    let all = all_bases().await;
    let all = judged(all);
    let mut wrong = Vec::new();
    for (probes, ids) in &groups {
        let alone = bases_of(ids).await;
        let alone = judged(&alone);
        let own = mutants().into_iter().filter(|mutant| ids.contains(&mutant.check));
        for mutant in own {
            let verdict = reported(&mutant, &alone).map(|(found, ..)| found.is_some());
            if verdict != Some(!mutant.allowed) {
                wrong.push(format!("{probes:?} {}: {verdict:?} for its mutant", mutant.check));
            }
        }
        for (base, among) in &all {
            let is_same = |other: &&(&Base, Evidence<'_>)| {
                (other.0.script, other.0.transport, other.0.run.version)
                    == (base.script, base.transport, base.run.version)
            };
            let own = checks_of(Role::Server).filter(|check| ids.contains(&check.id));
            for check in own.filter(|check| !NOT_MUTATED.contains(&check.id.as_str())) {
                let verdict = check.judge(among).verdict;
                let found = alone.iter().find(is_same).map(|(_, evidence)| check.judge(evidence).verdict);
                // Alone there is more time.
                let is_tested = !matches!(verdict, CheckVerdict::NotApplicable | CheckVerdict::NotTested);
                if is_tested && found != Some(verdict) {
                    let place = (base.script, base.transport, base.run.version);
                    wrong.push(format!("{probes:?} {}: {found:?}, not {verdict:?} {place:?}", check.id));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether a violation of a check is more than information.
fn is_counted(id: &str, version: Version) -> bool {
    checks().iter().any(|check| check.id == id && check.levels.get(&version) != Some(&Level::Info))
}

/// The traces of a base with a mutant, and which of them it is in; `None` if it changes nothing.
pub(crate) fn faulty(mutant: &Mutant, base: &Base, conformant: &Evidence<'_>) -> Option<(Vec<Trace>, Vec<bool>)> {
    let traces = &base.run.traces;
    let targets = targets(mutant, conformant);
    let mutated: Vec<_> = match &mutant.process {
        Some(_) if base.transport != Transport::Stdio => return None,
        Some(fault) => traces.iter().map(|trace| process(trace, fault)).collect(),
        None if targets.is_empty() => return None,
        None => mutate(mutant, traces, &targets),
    };
    let is_changed =
        |number: usize| mutant.process.is_some() || targets.iter().any(|(request, ..)| request.connection == number);
    let own = (0..mutated.len()).map(is_changed).collect();
    Some((mutated, own))
}

/// All checks that report a mutant, the transport and the version.
type Report = (BTreeSet<String>, Transport, Version);

/// What reports a mutant, and how often the mutant was applied.
/// `None` if there is no such check.
fn reported(mutant: &Mutant, bases: &[(&Base, Evidence<'_>)]) -> Option<(Option<Report>, usize)> {
    let check = checks().iter().find(|check| check.id == mutant.check)?;
    let fits = |(base, _): &&(&Base, Evidence<'_>)| mutant.fits(check, base);
    let mut applied = 0;
    let found = bases.iter().filter(fits).find_map(|(base, conformant)| {
        let (mutated, own) = faulty(mutant, base, conformant)?;
        applied += 1;
        let changed: Vec<&Trace> = mutated.iter().zip(own).filter(|(_, own)| *own).map(|(trace, _)| trace).collect();
        // Most checks look at one connection at a time.
        [changed, mutated.iter().collect()].iter().find_map(|traces| {
            let evidence = evidence(traces, base);
            let outcome = check.judge(&evidence);
            let is_meant = mutant.verdict.is_none_or(|verdict| verdict == outcome.verdict);
            let is_reported = !outcome.judgement.violations.is_empty() && is_meant;
            is_reported.then(|| (violated(&evidence), base.transport, base.run.version))
        })
    });
    Some((found, applied))
}

/// Says which mutants are not reported by their checks, or also by other checks.
fn walk(mutants: &[Mutant], bases: &[(&Base, Evidence<'_>)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for mutant in mutants {
        let Some((found, applied)) = reported(mutant, bases) else {
            wrong.push(format!("{}: there is no such check", mutant.check));
            continue;
        };
        if mutant.allowed {
            if applied == 0 || found.is_some() {
                wrong.push(format!("{}: allowed, but reported (applied {applied} times)", mutant.check));
            }
            continue;
        }
        let Some((found, transport, version)) = found else {
            wrong.push(format!("{}: not reported (applied {applied} times)", mutant.check));
            continue;
        };
        let is_other = |id: &&String| **id != mutant.check && !mutant.also.contains(id) && is_counted(id, version);
        let others: Vec<_> = found.iter().filter(is_other).collect();
        if !others.is_empty() {
            wrong.push(format!("{}: also {others:?} ({transport} {version})", mutant.check));
        }
    }
    wrong
}
