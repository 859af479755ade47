//! Latencies as the bars of a histogram.

use std::time::Duration;

use super::{Latencies, readable};

/// Bars from the smallest latency to the largest; each is as wide, by ratio, as the one before.
pub(crate) struct Bars {
    /// Where bars begin, and where the last one ends.
    pub(crate) bounds: Vec<Duration>,
    /// How many latencies each bar has.
    pub(crate) counts: Vec<u64>,
}

impl Bars {
    pub(crate) fn new(latency: &Latencies, bars: usize) -> Bars {
        let bounds = bounds(latency, bars);
        let mut counts = vec![0; bars];
        for (latency, count) in latency.counts() {
            let bar = bounds.partition_point(|bound| *bound <= latency);
            counts[bar.saturating_sub(1).min(bars - 1)] += count;
        }
        Bars { bounds, counts }
    }

    /// Each bar: where it begins, and how many latencies it has.
    pub(crate) fn labelled(&self) -> Vec<(String, u64)> {
        self.bounds.iter().map(|bound| readable(*bound)).zip(self.counts.iter().copied()).collect()
    }
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
    }
}
