//! Latencies as a histogram of high dynamic range: a fixed size, and three significant digits for any value.

use std::{fmt, time::Duration};

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

use crate::milliseconds::Milliseconds;

/// The largest latency in nanoseconds: an hour. What is longer counts as this.
const LONGEST: u64 = 3_600_000_000_000;
/// The smallest difference in nanoseconds.
const FINEST: u64 = 128;

/// Latencies, of which each percentile can be asked. Merging those of several machines or slices loses nothing.
///
/// As JSON it is an object with the usual percentiles in milliseconds, and the whole histogram as pairs of a latency in
/// nanoseconds and a count; only the histogram is read.
///
/// ```
/// use std::time::Duration;
///
/// use rehearse_report::bench::Latencies;
///
/// let mut latencies = Latencies::default();
/// (1..=100).for_each(|ms| latencies.record(Duration::from_millis(ms)));
/// assert_eq!(latencies.count(), 100);
/// assert_eq!(latencies.percentile(50.0).as_millis(), 50);
/// let read: Latencies = serde_json::from_str(&serde_json::to_string(&latencies)?)?;
/// assert_eq!(read, latencies);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Written", from = "Read")]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        let histogram = Histogram::new_with_bounds(FINEST, LONGEST, 3);
        Latencies(histogram.expect("bounds that are far apart, and three digits"))
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies").field("count", &self.count()).field("p50", &self.percentile(50.0)).finish()
    }
}

impl Latencies {
    /// Adds one.
    pub fn record(&mut self, latency: Duration) {
        self.0.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(LONGEST));
    }

    /// Adds all of another histogram.
    pub fn merge(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("the same bounds");
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The latency that so many percent do not exceed; zero if there are none.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_percentile(percent).min(self.0.max()))
    }

    /// The arithmetic mean.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.0.mean() / 1e9)
    }

    /// The standard deviation.
    pub fn deviation(&self) -> Duration {
        Duration::from_secs_f64(self.0.stdev() / 1e9)
    }

    /// The smallest.
    pub fn min(&self) -> Duration {
        Duration::from_nanos(self.0.min())
    }

    /// The largest.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// Each latency that there is, as finely as it is kept, with how many have it; from the smallest to the largest.
    pub fn counts(&self) -> impl Iterator<Item = (Duration, u64)> {
        let recorded = self.0.iter_recorded();
        recorded.map(|it| (Duration::from_nanos(it.value_iterated_to()), it.count_at_value()))
    }
}

/// What is written of latencies.
#[derive(Serialize, JsonSchema)]
#[serde(rename = "Latencies", rename_all = "camelCase")]
struct Written {
    count: u64,
    mean_ms: f64,
    /// The standard deviation.
    deviation_ms: f64,
    min_ms: f64,
    p50_ms: f64,
    p90_ms: f64,
    p99_ms: f64,
    /// 99.9 percent are not above it.
    p999_ms: f64,
    max_ms: f64,
    /// All latencies: pairs of nanoseconds, with three significant digits, and how many requests took so long.
    #[schemars(with = "Vec<(u64, u64)>")]
    histogram: Box<RawValue>,
}

/// What is read of them.
#[derive(Deserialize, JsonSchema)]
struct Read {
    histogram: Vec<(u64, u64)>,
}

impl From<Latencies> for Written {
    fn from(all: Latencies) -> Written {
        let pairs: Vec<_> = all.0.iter_recorded().map(|it| (it.value_iterated_to(), it.count_at_value())).collect();
        Written {
            count: all.count(),
            mean_ms: Milliseconds::of(all.mean()),
            deviation_ms: Milliseconds::of(all.deviation()),
            min_ms: Milliseconds::of(all.min()),
            p50_ms: Milliseconds::of(all.percentile(50.0)),
            p90_ms: Milliseconds::of(all.percentile(90.0)),
            p99_ms: Milliseconds::of(all.percentile(99.0)),
            p999_ms: Milliseconds::of(all.percentile(99.9)),
            max_ms: Milliseconds::of(all.max()),
            histogram: to_raw_value(&pairs).unwrap_or_default(),
        }
    }
}

impl From<Read> for Latencies {
    fn from(Read { histogram }: Read) -> Latencies {
        let mut latencies = Latencies::default();
        histogram.iter().for_each(|(nanoseconds, count)| latencies.0.saturating_record_n(*nanoseconds, *count));
        latencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles of a distribution that is known: exponential, by the inverse of its distribution function.
    #[test]
    fn percentiles_of_a_known_distribution_are_right_to_three_digits() {
        let mut latencies = Latencies::default();
        let (mean, count) = (0.010, 100_000);
        for number in 0..count {
            let uniform = (f64::from(number) + 0.5) / f64::from(count);
            latencies.record(Duration::from_secs_f64(-mean * (1.0 - uniform).ln()));
        }
        for percent in [50.0, 90.0, 99.0, 99.9] {
            let expected = -mean * (1.0 - percent / 100.0_f64).ln();
            let found = latencies.percentile(percent).as_secs_f64();
            assert!((found / expected - 1.0).abs() < 0.002, "p{percent}: {found} instead of {expected}");
        }
        assert!((latencies.mean().as_secs_f64() / mean - 1.0).abs() < 0.002);
        assert!((latencies.deviation().as_secs_f64() / mean - 1.0).abs() < 0.01);
    }

    #[test]
    fn nothing_is_lost_when_histograms_are_written_and_merged() {
        let of = |values: &[u64]| {
            let mut latencies = Latencies::default();
            values.iter().for_each(|micros| latencies.record(Duration::from_micros(*micros)));
            latencies
        };
        let mut merged = of(&[10, 20, 5_000_000]);
        let json = serde_json::to_string(&of(&[15, 7_200_000_000])).expect("JSON");
        merged.merge(&serde_json::from_str(&json).expect("a histogram"));
        assert_eq!(merged, of(&[10, 15, 20, 5_000_000, 7_200_000_000]));
        assert_eq!(merged.counts().map(|(_, count)| count).collect::<Vec<_>>(), [1, 1, 1, 1, 1]);
        assert!(serde_json::from_str::<Latencies>(r#"{"histogram":"AAAA"}"#).is_err());
    }

    #[test]
    fn an_empty_histogram_has_no_latencies() {
        let empty = Latencies::default();
        assert_eq!((empty.count(), empty.percentile(99.0), empty.max()), (0, Duration::ZERO, Duration::ZERO));
    }
}
