//! The results of several machines that have loaded one server together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BenchResult, Measure, TargetResult};
use crate::{MergedShards, Shard};

/// Which part of its length all parts of a load must have in common; with less, the figures are not those of the whole.
const COMMON: f64 = 0.9;

/// One of several machines, and when it measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BenchShard {
    /// Its part.
    #[serde(flatten)]
    pub shard: Shard,
    /// When it began to measure, in milliseconds since 1970; absent if it has measured nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at_ms: Option<u64>,
    /// How long it measured.
    pub seconds: f64,
}

impl BenchShard {
    /// When it began and when it ended, in seconds since 1970.
    fn window(self) -> Option<(f64, f64)> {
        let begin = self.began_at_ms? as f64 / 1e3;
        Some((begin, begin + self.seconds))
    }
}

impl BenchResult {
    /// Which parts of a merged result are missing, as a sentence.
    pub fn missing_shards(&self) -> Option<String> {
        let count = self.shards.first()?.shard.count;
        let has = |index: &usize| self.shards.iter().any(|known| known.shard.index == *index);
        MergedShards { count, missing: (1..=count).filter(|index| !has(index)).collect() }.sentence()
    }

    /// Why the figures are not those of the whole load, if its parts did not measure at the same time.
    pub fn distance(&self) -> Option<String> {
        let windows = self.shards.iter().filter_map(|it| Some((it.shard.index, it.window()?)));
        let windows: Vec<_> = windows.map(|(index, (begin, end))| (index, begin, end)).collect();
        let first = windows.iter().map(|(_, begin, _)| *begin).min_by(f64::total_cmp)?;
        let (last, begin, _) = windows.iter().max_by(|one, two| one.1.total_cmp(&two.1))?;
        let (soonest, _, end) = windows.iter().min_by(|one, two| one.2.total_cmp(&two.2))?;
        let whole = self.seconds()?;
        let common = (end - begin).max(0.0);
        (common < whole * COMMON).then(|| {
            format!(
                "the parts sent together for only {common:.1} of {whole:.1} s: part {last} began last, {:.1} s after the \
                 first one, and part {soonest} ended first, {:.1} s before the last one",
                begin - first,
                first + whole - end
            )
        })
    }

    /// From the begin of the first part to the end of the last one.
    fn seconds(&self) -> Option<f64> {
        let windows: Vec<_> = self.shards.iter().filter_map(|shard| shard.window()).collect();
        let begin = windows.iter().map(|(begin, _)| *begin).min_by(f64::total_cmp)?;
        let end = windows.iter().map(|(_, end)| *end).max_by(f64::total_cmp)?;
        Some(end - begin)
    }

    /// Why another result is not of other parts of the same load; `None` if it is.
    pub(crate) fn difference(&self, other: &BenchResult) -> Option<String> {
        let (Some(own), Some(others)) = (self.shards.first(), other.shards.first()) else {
            let which = if self.shards.is_empty() {
                "it is a part of --shard, and the others are not"
            } else {
                "it is no part of --shard, and the others are"
            };
            return (self.shards.len() != other.shards.len()).then(|| which.to_owned());
        };
        let differ = |what: &str, own: String, other: String| {
            (own != other).then(|| format!("its {what} is {other}, and that of the other results is {own}"))
        };
        let twice = other.shards.iter().find(|it| self.shards.iter().any(|known| known.shard.index == it.shard.index));
        let counts = differ("number of parts", own.shard.count.to_string(), others.shard.count.to_string());
        let [load, others_load] = [self, other].map(|it| it.load.phrase());
        let [server, others_server] =
            [self, other].map(|it| texts(it, |target| format!("{} over {}", target.target, target.transport)));
        // A server that could not be reached has none of these.
        let requests = |it: &BenchResult| {
            texts(it, |target| target.measures.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", "))
        };
        let version =
            |it: &BenchResult| texts(it, |target| target.version.map(|it| it.to_string()).unwrap_or_default());
        let measured = |of: &dyn Fn(&BenchResult) -> String, what: &str| match (of(self), of(other)) {
            (own, other) if own.is_empty() || other.is_empty() => None,
            (own, other) => differ(what, own, other),
        };
        counts
            .or_else(|| twice.map(|it| format!("{} is there twice", it.shard)))
            .or_else(|| differ("load", load, others_load))
            .or_else(|| differ("server", server, others_server))
            .or_else(|| measured(&version, "version"))
            .or_else(|| measured(&requests, "list of requests"))
    }

    /// Adds what other parts of the same load have measured.
    pub(crate) fn join(&mut self, other: BenchResult) {
        self.shards.extend(other.shards);
        self.shards.sort_by_key(|shard| shard.shard.index);
        for (target, other) in self.targets.iter_mut().zip(other.targets) {
            target.join(other);
        }
        let seconds = self.seconds().unwrap_or_default();
        let measures = self.targets.iter_mut().flat_map(|target| &mut target.measures);
        measures.for_each(|measure| measure.seconds = seconds);
    }
}

fn texts(result: &BenchResult, text: impl Fn(&TargetResult) -> String) -> String {
    result.targets.iter().map(text).collect::<Vec<_>>().join("; ")
}

impl TargetResult {
    fn join(&mut self, other: TargetResult) {
        self.error = self.error.take().or(other.error);
        self.version = self.version.or(other.version);
        for measure in other.measures {
            match self.measures.iter_mut().find(|known| known.name == measure.name) {
                Some(known) => known.join(measure),
                None => self.measures.push(measure),
            }
        }
    }
}

impl Measure {
    /// Adds what another machine has measured at the same time: its slices are the same parts of the time.
    fn join(&mut self, mut other: Measure) {
        let (mut slices, mut others) = (std::mem::take(&mut self.slices), std::mem::take(&mut other.slices));
        self.merge(&other);
        if slices.len() < others.len() {
            std::mem::swap(&mut slices, &mut others);
        }
        for (slice, other) in slices.iter_mut().zip(&others) {
            slice.latency.merge(&other.latency);
            slice.seconds = slice.seconds.max(other.seconds);
        }
        self.slices = slices;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{
        Format, Layout, Verdict,
        bench::{Latencies, Slice},
        summary::Results,
    };

    fn latencies(micros: &[u64]) -> Latencies {
        let mut latencies = Latencies::default();
        micros.iter().for_each(|micros| latencies.record(Duration::from_micros(*micros)));
        latencies
    }

    /// The result of one of three parts that measured for ten seconds.
    fn part(index: usize, began_at_ms: u64, micros: &[u64]) -> Json {
        let latency = latencies(micros);
        let slices = vec![Slice { seconds: 10.0, latency: latency.clone() }];
        let measure = Measure { seconds: 10.0, latency, slices, ..Measure::named("call echo") };
        json!({
            "format": 1, "startedAt": "", "rehearse": "", "verdict": "passed",
            "machine": { "system": "", "processor": "", "processors": 1 },
            "load": { "model": "open", "connections": 3, "inFlight": 1, "rate": 90.0 },
            "shard": { "index": index, "count": 3, "beganAtMs": began_at_ms, "seconds": 10.0 },
            "targets": [{
                "name": "a", "target": "http://a/mcp", "transport": "http", "version": "2026-07-28", "measures": [measure],
            }],
        })
    }

    fn merged(parts: &[Json]) -> Result<BenchResult, String> {
        let mut results = Results::default();
        for part in parts {
            results.read(part.to_string().as_bytes()).map_err(|error| error.to_string())?;
        }
        results.bench.ok_or_else(String::new)
    }

    #[test]
    fn the_histograms_of_all_parts_are_one() {
        let parts = [part(1, 0, &[15, 7_200_000_000]), part(2, 90, &[10]), part(3, 40, &[20, 5_000_000])];
        for order in [[0, 1, 2], [2, 0, 1]] {
            let whole = merged(&order.map(|at| parts[at].clone())).expect("one load");
            let measure = &whole.targets[0].measures[0];
            let all = latencies(&[10, 15, 20, 5_000_000, 7_200_000_000]);
            assert_eq!((&measure.latency, &measure.slices[0].latency, measure.slices.len()), (&all, &all, 1));
            assert!((measure.seconds - 10.09).abs() < 1e-6 && (measure.slices[0].seconds - 10.0).abs() < 1e-9);
            assert_eq!((whole.distance(), whole.missing_shards(), whole.verdict), (None, None, Verdict::Passed));
        }
    }

    #[test]
    fn a_part_that_is_missing_is_named_and_can_follow() {
        let mut results = Results::default();
        for part in [part(3, 0, &[1]), part(1, 0, &[1])] {
            results.read(part.to_string().as_bytes()).expect("a part");
        }
        for (format, text) in [
            (Format::Human, "part 2 of 3 is missing"),
            (Format::Markdown, "part 2 of 3 is missing; run them again"),
            (Format::Junit, "<error message=\"part 2 of 3 is missing\""),
            (Format::Json, "\"verdict\": \"cannotRun\""),
        ] {
            let written =
                String::from_utf8(results.render(format, &Layout { width: 200, ..Layout::default() })).expect("UTF-8");
            assert!(written.contains(text), "{format:?}: {written}");
        }
        let again = serde_json::from_slice(&results.render(Format::Json, &Layout { width: 200, ..Layout::default() }))
            .expect("JSON");
        assert_eq!(merged(&[again, part(2, 0, &[1])]).map(|whole| whole.verdict), Ok(Verdict::Passed));
        let mut interrupted = part(2, 0, &[1]);
        interrupted["interrupted"] = true.into();
        let whole = merged(&[part(1, 0, &[1]), part(3, 0, &[1]), interrupted]);
        assert_eq!(whole.map(|whole| whole.verdict), Ok(Verdict::CannotRun));
    }

    #[test]
    fn parts_that_do_not_measure_at_the_same_time_are_named() {
        let whole = merged(&[part(1, 0, &[1]), part(2, 8_000, &[1]), part(3, 500, &[1])]).expect("one load");
        let distance = "the parts sent together for only 2.0 of 18.0 s: part 2 began last, 8.0 s after the first one, \
                        and part 1 ended first, 8.0 s before the last one";
        assert_eq!(whole.distance().as_deref(), Some(distance));
        let results = Results { bench: Some(whole), ..Results::default() };
        for format in [Format::Human, Format::Markdown] {
            let written =
                String::from_utf8(results.render(format, &Layout { width: 200, ..Layout::default() })).expect("UTF-8");
            assert!(written.contains(distance), "{written}");
        }
    }

    #[test]
    fn what_is_no_other_part_of_the_load_is_refused() {
        let changed = |pointer: &str, value: Json| {
            let mut part = part(2, 0, &[1]);
            *part.pointer_mut(pointer).expect("a member") = value;
            merged(&[self::part(1, 0, &[1]), part]).expect_err("an error")
        };
        assert_eq!(changed("/shard/index", json!(1)), "part 1 of 3 is there twice; report them apart");
        for (pointer, value, error) in [
            ("/shard/count", json!(4), "its number of parts is 4, and that of the other results is 3"),
            ("/shard", Json::Null, "it is no part of --shard, and the others are"),
            ("/load/rate", json!(9), "its load is 9 requests per second"),
            ("/targets/0/target", json!("http://b/mcp"), "its server is http://b/mcp over http"),
            ("/targets/0/version", json!("2025-11-25"), "its version is 2025-11-25"),
            ("/targets/0/measures/0/name", json!("ping"), "its list of requests is ping"),
        ] {
            assert!(changed(pointer, value).starts_with(error), "{pointer}");
        }
        let mut alone = part(1, 0, &[1]);
        alone["shard"] = Json::Null;
        let error = merged(&[alone.clone(), part(1, 0, &[1])]).expect_err("an error");
        assert!(error.starts_with("it is a part of --shard, and the others are not"), "{error}");
        assert_eq!(merged(&[alone.clone(), alone]).map(|both| both.targets.len()), Ok(2));
    }
}
