//! Whether one result is slower than another, or only noise: by resampling the slices of both.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rand::{RngExt, SeedableRng, rngs::StdRng};
use rehearse_report::bench::{BenchResult, Change, Comparison, Measure, Slice};

/// How often both are resampled.
const RESAMPLES: usize = 1_000;
/// The least number of slices from which anything can be said.
const LEAST_SLICES: usize = 5;
/// A smaller difference is none, however sure it is.
const LEAST_DIFFERENCE: f64 = 0.02;

/// Reads a figure.
type Figure = fn(&Sample<'_>) -> f64;

/// Compares with an earlier result and its name, or else with the first target.
pub fn compare(result: &mut BenchResult, base: Option<(&str, &BenchResult)>) {
    let (mut comparisons, mut warnings) = (Vec::new(), Vec::new());
    for (target, measure) in result.targets.iter().flat_map(|target| target.measures.iter().map(move |it| (target, it)))
    {
        let (against, name) = match (base, result.targets.first().filter(|first| first.name != target.name)) {
            (Some((name, base)), _) => (measure_of(base, &target.name, &measure.name), name),
            (None, Some(first)) => (measure_of(result, &first.name, &measure.name), &*first.name),
            (None, None) => continue,
        };
        let compared = against.map(|against| compare_measures(&target.name, name, against, measure));
        match compared {
            Some(mut compared) if !compared.is_empty() => {
                compared.iter_mut().for_each(|it| it.is_gate = base.is_some());
                comparisons.extend(compared);
            }
            Some(_) if base.is_some() => warnings
                .push(format!("{}, {}: too few requests for a comparison with {name}", target.name, measure.name)),
            None if base.is_some() => {
                warnings.push(format!("{name} has no measure {:?} of {:?}", measure.name, target.name));
            }
            _ => {}
        }
    }
    result.comparisons = comparisons;
    result.warnings.extend(warnings);
}

/// The measure of this name of a target.
pub(crate) fn measure_of<'r>(result: &'r BenchResult, target: &str, name: &str) -> Option<&'r Measure> {
    let target = result.targets.iter().find(|it| it.name == target)?;
    target.measures.iter().find(|it| it.name == name)
}

/// Compares the figures p50, p99 and rate of the same measure. Nothing if one of them has too few slices.
fn compare_measures(target: &str, base_name: &str, base: &Measure, measure: &Measure) -> Vec<Comparison> {
    let usable = |measure: &Measure| -> Vec<Slice> {
        measure.slices.iter().filter(|slice| slice.latency.count() > 0).cloned().collect()
    };
    let (old, new) = (usable(base), usable(measure));
    if old.len().min(new.len()) < LEAST_SLICES {
        return Vec::new();
    }
    let (old, new) = (Slices::new(&old), Slices::new(&new));
    let figures: [(&str, Figure); 3] =
        [("p50", |it| it.percentile(0.5)), ("p99", |it| it.percentile(0.99)), ("rate", |it| it.rate())];
    // The same seed for every comparison, so that a result can be repeated.
    let mut random = StdRng::seed_from_u64(1);
    let mut ratios = vec![Vec::with_capacity(RESAMPLES); figures.len()];
    for _ in 0..RESAMPLES {
        let (old, new) = (old.resampled(&mut random), new.resampled(&mut random));
        for ((_, figure), ratios) in figures.iter().zip(&mut ratios) {
            ratios.push(figure(&new) / figure(&old));
        }
    }
    let (old, new) = (old.all(), new.all());
    let compared = figures.iter().zip(ratios).map(|((name, figure), mut ratios)| {
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[((RESAMPLES - 1) as f64 * share).round() as usize];
        let interval = (at(0.025), at(0.975));
        Comparison {
            target: target.to_owned(),
            measure: measure.name.clone(),
            base: base_name.to_owned(),
            figure: (*name).to_owned(),
            ratio: figure(&new) / figure(&old),
            interval,
            change: change(interval, *name == "rate"),
            is_gate: false,
        }
    });
    compared.collect()
}

/// The slices of a measure as counts of the same latencies, which are quickly added.
struct Slices {
    /// In seconds, from the smallest to the largest.
    latencies: Vec<f64>,
    /// How many requests of each slice had each latency, and how long the slice was.
    slices: Vec<(Vec<u64>, f64)>,
}

/// Some of the slices as one.
struct Sample<'s> {
    latencies: &'s [f64],
    counts: Vec<u64>,
    seconds: f64,
}

impl Slices {
    fn new(slices: &[Slice]) -> Slices {
        let all: BTreeSet<_> = slices.iter().flat_map(|slice| slice.latency.counts().map(|(it, _)| it)).collect();
        let counts = |slice: &Slice| {
            let own: BTreeMap<_, _> = slice.latency.counts().collect();
            all.iter().map(|latency| own.get(latency).copied().unwrap_or_default()).collect()
        };
        let slices = slices.iter().map(|slice| (counts(slice), slice.seconds)).collect();
        Slices { latencies: all.iter().map(Duration::as_secs_f64).collect(), slices }
    }

    fn sample<'s>(&'s self, chosen: impl Iterator<Item = &'s (Vec<u64>, f64)>) -> Sample<'s> {
        let mut sample = Sample { latencies: &self.latencies, counts: vec![0; self.latencies.len()], seconds: 0.0 };
        for (counts, seconds) in chosen {
            sample.seconds += seconds;
            sample.counts.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sample
    }

    /// As many slices, each drawn from all.
    fn resampled(&self, random: &mut StdRng) -> Sample<'_> {
        let count = self.slices.len();
        self.sample((0..count).map(|_| &self.slices[random.random_range(0..count)]))
    }

    fn all(&self) -> Sample<'_> {
        self.sample(self.slices.iter())
    }
}

impl Sample<'_> {
    fn percentile(&self, share: f64) -> f64 {
        let rank = (self.count() as f64 * share).ceil() as u64;
        let mut below = 0;
        let place = self.counts.iter().position(|count| {
            below += count;
            below >= rank
        });
        place.and_then(|place| self.latencies.get(place)).copied().unwrap_or_default()
    }

    fn rate(&self) -> f64 {
        self.count() as f64 / self.seconds
    }

    fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

fn change((low, high): (f64, f64), more_is_better: bool) -> Change {
    match (low > 1.0 + LEAST_DIFFERENCE, high < 1.0 - LEAST_DIFFERENCE) {
        (true, _) if more_is_better => Change::Faster,
        (true, _) => Change::Slower,
        (_, true) if more_is_better => Change::Slower,
        (_, true) => Change::Faster,
        _ => Change::NoDifference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten slices of latencies around a mean, with noise between slices and within them.
    fn measure(mean_micros: f64, seed: u64) -> Measure {
        let mut random = StdRng::seed_from_u64(seed);
        let mut measure = Measure::named("call echo");
        for _ in 0..10 {
            let drift = random.random_range(0.95..1.05);
            let mut slice = Slice { seconds: 1.0, ..Slice::default() };
            for _ in 0..200 {
                let uniform: f64 = random.random_range(0.0..1.0);
                let micros = mean_micros * drift * (0.5 - 0.5 * (1.0 - uniform).ln());
                slice.latency.record(Duration::from_secs_f64(micros / 1e6));
            }
            measure.slices.push(slice);
        }
        measure
    }

    fn p50(base: &Measure, measure: &Measure) -> Change {
        compare_measures("a", "b", base, measure).iter().find(|it| it.figure == "p50").expect("compared").change
    }

    /// Of pairs from the same distribution, a few in a hundred may look different; a difference of 25 % is found.
    #[test]
    fn noise_is_no_difference_and_a_slower_server_is_slower() {
        let mut wrong = 0;
        for seed in 0..8 {
            let base = measure(1000.0, 2 * seed);
            wrong += usize::from(p50(&base, &measure(1000.0, 2 * seed + 1)) != Change::NoDifference);
            if seed < 2 {
                assert_eq!(p50(&base, &measure(1250.0, 2 * seed + 1)), Change::Slower);
                assert_eq!(p50(&base, &measure(800.0, 2 * seed + 1)), Change::Faster);
            }
        }
        assert!(wrong <= 1, "{wrong} of 8 pairs without a difference");
    }

    #[test]
    fn too_few_slices_say_nothing() {
        let mut few = measure(1000.0, 1);
        few.slices.truncate(LEAST_SLICES - 1);
        assert!(compare_measures("a", "b", &measure(1000.0, 2), &few).is_empty());
    }
}
