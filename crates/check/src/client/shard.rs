//! The acts of one of several machines that check a client together.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rehearse_protocol::Era;
use rehearse_report::Shard;

use super::{ActScript, composite::composite_of};

/// The acts of a part. Every part has the first act and those with which its own are compared. What shares a run stays
/// together if `are_merged`, and so do the acts of older versions: a client may show only in one of them that it speaks
/// these. `durations` are those of earlier runs, by the first act of each.
pub fn acts_of_shard(
    mut acts: Vec<ActScript>,
    shard: Shard,
    durations: &BTreeMap<String, Duration>,
    are_merged: bool,
) -> Vec<ActScript> {
    let composites: Vec<_> = acts.iter().map(|act| composite_of(&act.name)).collect();
    let older: Vec<_> = acts.iter().map(is_older).collect();
    let shared: BTreeSet<_> = composites.iter().zip(&older).filter(|it| *it.1).filter_map(|it| *it.0).collect();
    // The first unit is that of older versions; then come composite acts, then single ones.
    let mut units: BTreeMap<(u8, usize), Vec<usize>> = BTreeMap::new();
    for (at, (composite, is_older)) in composites.iter().zip(older).enumerate().skip(1) {
        let unit = match composite {
            composite if is_older || composite.is_some_and(|it| shared.contains(&it)) => (0, 0),
            Some(composite) if are_merged => (1, *composite),
            _ => (2, at),
        };
        units.entry(unit).or_default().push(at);
    }
    let sum = |unit: &Vec<usize>| {
        let known: Vec<_> = unit.iter().filter_map(|at| durations.get(&acts[*at].name)).collect();
        (!known.is_empty()).then(|| known.into_iter().sum())
    };
    let selected = shard.selects(&units.values().map(sum).collect::<Vec<_>>());
    let own = units.into_values().zip(selected).filter(|(_, is_own)| *is_own).flat_map(|(unit, _)| unit);
    let own: BTreeSet<_> = own.collect();
    let usual: BTreeSet<_> = own.iter().filter_map(|at| acts[*at].script.act.like.clone()).collect();
    let mut numbers = 0..;
    acts.retain(|act| numbers.next().is_some_and(|at| at == 0 || own.contains(&at)) || usual.contains(&act.name));
    acts
}

/// Whether the server of an act speaks versions of the legacy era only, and a client must know them.
fn is_older(act: &ActScript) -> bool {
    let versions = &act.script.versions;
    act.script.act.era == Some(Era::Legacy) && versions.iter().all(|version| version.era() == Era::Legacy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(index: usize, count: usize, durations: &BTreeMap<String, Duration>) -> Vec<String> {
        let acts = ActScript::select(&[]).expect("the acts");
        let shard = Shard::new(index, count).expect("a shard");
        acts_of_shard(acts, shard, durations, true).into_iter().map(|act| act.name).collect()
    }

    #[test]
    fn each_act_is_in_one_part_with_those_that_share_its_run() {
        let parts: Vec<_> = (1..=4).map(|index| part(index, 4, &BTreeMap::new())).collect();
        let all: Vec<_> = ActScript::select(&[]).expect("the acts").into_iter().map(|act| act.name).collect();
        let places = |act: &str| parts.iter().filter(|part| part.iter().any(|it| it == act)).count();
        assert_eq!(places("clean"), 4);
        for act in all.iter().filter(|act| *act != "clean" && *act != "auth") {
            assert_eq!(places(act), 1, "{act}");
        }
        let together = |acts: &[&str]| parts.iter().any(|part| acts.iter().all(|act| part.iter().any(|it| it == act)));
        assert!(together(&["pages", "json", "late-answers"]));
        assert!(together(&["legacy-1", "version-2024-11-05", "version-unknown", "initialize-error"]));
        assert!(
            parts
                .iter()
                .filter(|part| part.iter().any(|act| act.starts_with("auth-")))
                .all(|part| part.contains(&"auth".to_owned()))
        );
    }

    #[test]
    fn an_act_that_takes_long_has_a_part_of_its_own() {
        let all = ActScript::select(&[]).expect("the acts").into_iter().map(|act| act.name);
        let mut durations: BTreeMap<_, _> = all.map(|act| (act, Duration::from_millis(1))).collect();
        durations.insert("crash".to_owned(), Duration::from_secs(60));
        assert_eq!(part(1, 2, &durations), ["clean", "crash"]);
    }
}
