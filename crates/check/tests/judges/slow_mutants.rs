//! Faulty servers that are slow: what a check reports of a fast one is not passed by a slow one.

use std::{fs, path::Path};

use rehearse_conformance::{Check, CheckVerdict, Evidence, checks};

use crate::{
    delay::{Slowness, seeds},
    mutants::{Base, Mutant, evidence, faulty, is_wanted, mutants, recorded},
};

fn judged(base: &Base) -> Evidence<'_> {
    evidence(&base.run.traces.iter().collect::<Vec<_>>(), base)
}

/// The verdicts on a mutant by its own connections, and by all; none if it changes nothing.
fn verdicts(mutant: &Mutant, check: &Check, base: &Base, conformant: &Evidence<'_>) -> Vec<CheckVerdict> {
    let faulty = faulty(mutant, base, conformant).into_iter();
    let views = faulty.flat_map(|(traces, own)| {
        let own = traces.iter().zip(own).filter(|(_, own)| *own).map(|(trace, _)| trace.clone()).collect();
        [own, traces]
    });
    let views: Vec<Vec<_>> = views.collect();
    views.iter().map(|traces| check.judge(&evidence(&traces.iter().collect::<Vec<_>>(), base)).verdict).collect()
}

/// Lets the checks judge the mutants of a slow server which they report of a fast one. Returns what passes, and how
/// often a mutant was reported.
fn passed(mutants: &[Mutant], fast: &[Base], slow: &[Base], name: &str) -> (Vec<String>, usize) {
    let (mut wrong, mut reported) = (Vec::new(), 0);
    for (fast, slow) in fast.iter().flat_map(|fast| slow.iter().map(move |slow| (fast, slow))) {
        if fast.run.version != slow.run.version {
            continue;
        }
        let (conformant, late) = (judged(fast), judged(slow));
        let is_bad = |verdict: &CheckVerdict| *verdict <= CheckVerdict::Warn;
        for mutant in mutants.iter().filter(|mutant| !mutant.allowed) {
            let check = checks().iter().find(|check| check.id == mutant.check).expect("a check");
            if !mutant.fits(check, fast) || !verdicts(mutant, check, fast, &conformant).iter().any(is_bad) {
                continue;
            }
            let found = verdicts(mutant, check, slow, &late);
            reported += usize::from(found.iter().any(is_bad));
            if found.last() == Some(&CheckVerdict::Pass) && !found.iter().any(is_bad) {
                wrong.push(format!("{} {}, {name}: {}", fast.transport, fast.run.version, mutant.check));
            }
        }
    }
    (wrong, reported)
}

#[test]
fn a_slow_server_with_a_fault_never_passes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-servers/everything.yaml");
    let script = fs::read_to_string(path).expect("the script");
    let mut mutants = mutants();
    mutants.retain(|mutant| is_wanted(&mutant.check));
    let fast = recorded(0, &script, &[], None);
    let (mut wrong, mut all) = (Vec::new(), 0);
    for seed in 0..seeds(1) {
        let slowness = Slowness::ALL[seed as usize % 3];
        let slow = recorded(0, &script, &[], Some((slowness, seed)));
        let (passed, reported) = passed(&mutants, &fast, &slow, &format!("{slowness:?} {seed}"));
        wrong.extend(passed);
        all += reported;
    }
    assert!(wrong.is_empty(), "{} wrong, {all} reported:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all > 0, "no mutant is reported");
}
