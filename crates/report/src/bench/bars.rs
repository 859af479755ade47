//! Latencies as the bars of a histogram.

use std::time::Duration;

use super::{Latencies, readable};

/// A bar of a histogram as a report shows it.
#[derive(Debug)]
pub struct Bar {
    /// Where it begins.
    pub from: String,
    /// How many requests it has.
    pub count: u64,
    /// The percentiles that it has.
    pub marks: Vec<&'static str>,
}

/// Bars from the smallest latency to the largest; each is as wide, by ratio, as the one before.
pub(crate) struct Bars {
    /// Where bars begin, and where the last one ends.
    pub(crate) bounds: Vec<Duration>,
    /// How many latencies each bar has.
    pub(crate) counts: Vec<u64>,
}

impl Bars {
    pub(crate) fn new(latency: &Latencies, bars: usize) -> Bars {
        let mut all = Bars { bounds: bounds(latency, bars), counts: vec![0; bars] };
        for (latency, count) in latency.counts() {
            let bar = all.of(latency);
            all.counts[bar] += count;
        }
        all
    }

    /// Which bar has a latency.
    fn of(&self, latency: Duration) -> usize {
        self.bounds.partition_point(|bound| *bound <= latency).saturating_sub(1).min(self.counts.len() - 1)
    }
}

/// The bars of a histogram, with marks at p50 and p99.
pub(crate) fn labelled(latency: &Latencies, bars: usize) -> Vec<Bar> {
    let all = Bars::new(latency, bars);
    let bar = |from: Duration, count: u64| Bar { from: readable(from), count, marks: Vec::new() };
    let mut labelled: Vec<_> = all.bounds.iter().zip(&all.counts).map(|(from, count)| bar(*from, *count)).collect();
    for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
        labelled[all.of(latency.percentile(percent))].marks.push(name);
    }
    labelled
}

fn bounds(latency: &Latencies, bars: usize) -> Vec<Duration> {
    let least = latency.min().as_secs_f64().max(1e-7);
    let most = latency.max().as_secs_f64().max(least * 1.1);
    let ratio = (most / least).powf(1.0 / bars as f64);
    let mut bounds: Vec<_> = (0..bars).map(|at| Duration::from_secs_f64(least * ratio.powf(at as f64))).collect();
    bounds[0] = latency.min();
    // The last bar includes the largest.
    bounds.push(latency.max() + Duration::from_nanos(1));
    bounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bars_of_a_histogram_have_all_latencies() {
        let mut latency = Latencies::default();
        for micros in [1, 7, 7, 90, 1_000, 60_000_000] {
            latency.record(Duration::from_micros(micros));
        }
        let Bars { bounds, counts } = Bars::new(&latency, 10);
        assert_eq!(counts, [1, 2, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert!(bounds.is_sorted());
        let marked = labelled(&latency, 10).into_iter().map(|bar| (bar.count, bar.marks.join(" ")));
        let marked: Vec<_> = marked.filter(|(_, marks)| !marks.is_empty()).collect();
        assert_eq!(marked, [(2, "p50".to_owned()), (1, "p99".to_owned())]);
    }
}
