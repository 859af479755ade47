//! Reads the JSON of earlier runs, and merges those of one kind.

use serde::{Deserialize, de::DeserializeOwned};

use crate::{
    MergedShards, RunResult, ScenarioResult, Totals,
    bench::BenchResult,
    check::{ActDuration, CheckResult, CheckVerdict, CheckedServer, JudgedCheck},
    summary::Results,
};

/// Why a file is not a result.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not JSON, or JSON of another shape.
    #[error("{0}")]
    Invalid(#[from] serde_json::Error),
    /// It is JSON of something else.
    #[error("it is not a result of `rehearse run`, `check`, `diff`, `fuzz`, `host` or `bench` with --format json")]
    Unknown,
    /// Its cells cannot be repeated with the seed of the others.
    #[error("its seed is {0}, and that of the other results is {1}; report them apart")]
    OtherSeed(u64, u64),
    /// It does not belong to the load of which the others are parts.
    #[error("{0}; report them apart")]
    OtherLoad(String),
    /// There is one of this command already.
    #[error("it is a second result of `rehearse {0}`; report them apart")]
    Second(&'static str),
    /// A newer program has written it.
    #[error("its format is {0}, and this version of rehearse reads format 1; use a newer version")]
    Newer(u32),
}

/// What the kinds of results have in common.
#[derive(Deserialize)]
struct Header {
    format: Option<u32>,
    scenarios: Option<serde::de::IgnoredAny>,
    servers: Option<serde::de::IgnoredAny>,
    targets: Option<serde::de::IgnoredAny>,
    changes: Option<serde::de::IgnoredAny>,
    bugs: Option<serde::de::IgnoredAny>,
    hosts: Option<serde::de::IgnoredAny>,
}

impl Results {
    /// Adds the result of a run from its JSON. Results of one kind become one: the cells of a scenario, the parts of a load
    /// that several machines have sent.
    ///
    /// # Errors
    /// The bytes are not the JSON of a result.
    pub fn read(&mut self, json: &[u8]) -> Result<(), ReadError> {
        let header: Header = serde_json::from_slice(json)?;
        match header.format {
            Some(1) => {}
            Some(newer) => return Err(ReadError::Newer(newer)),
            None => return Err(ReadError::Unknown),
        }
        match header {
            Header { scenarios: Some(_), .. } => {
                let mut run: RunResult = read(json)?;
                // The others may follow.
                run.shards.extend(run.shard.take().map(MergedShards::from));
                if let Some(known) = self.run.as_ref().filter(|known| known.seed != run.seed) {
                    return Err(ReadError::OtherSeed(run.seed, known.seed));
                }
                merge(&mut self.run, run, RunResult::merge);
            }
            Header { servers: Some(_), .. } => {
                let mut check: CheckResult = read(json)?;
                if let Some(shard) = check.shard.take() {
                    check.shards.push(shard.into());
                    check.decide(false);
                }
                merge(&mut self.check, check, CheckResult::merge);
            }
            // It has targets, too.
            Header { bugs: Some(_), .. } if self.fuzz.is_some() => return Err(ReadError::Second("fuzz")),
            Header { bugs: Some(_), .. } => self.fuzz = Some(read(json)?),
            Header { hosts: Some(_), .. } if self.host.is_some() => return Err(ReadError::Second("host")),
            Header { hosts: Some(_), .. } => self.host = Some(read(json)?),
            Header { targets: Some(_), .. } => {
                let mut bench: BenchResult = read(json)?;
                bench.shards.extend(bench.shard.take());
                if let Some(why) = self.bench.as_ref().and_then(|known| known.difference(&bench)) {
                    return Err(ReadError::OtherLoad(why));
                }
                merge(&mut self.bench, bench, BenchResult::merge);
                self.bench.iter_mut().for_each(BenchResult::conclude);
            }
            // Two comparisons have nothing in common.
            Header { changes: Some(_), .. } if self.diff.is_some() => return Err(ReadError::Second("diff")),
            Header { changes: Some(_), .. } => self.diff = Some(read(json)?),
            _ => return Err(ReadError::Unknown),
        }
        Ok(())
    }
}

impl Results {
    /// Whether no part of `--shard` is missing.
    pub fn are_whole(&self) -> bool {
        let run = self.run.as_ref().is_none_or(|run| run.missing_shards().is_empty());
        let check = self.check.as_ref().is_none_or(|check| check.missing_shards().is_empty());
        run && check && self.bench.as_ref().is_none_or(|bench| bench.missing_shards().is_none())
    }

    /// Makes them results of their own, which need no other part.
    pub fn forget_shards(&mut self) {
        self.run.iter_mut().for_each(|run| run.shards.clear());
        if let Some(check) = self.check.as_mut().filter(|check| !check.shards.is_empty()) {
            check.shards.clear();
            check.decide(false);
        }
        if let Some(bench) = &mut self.bench {
            bench.shards.clear();
            bench.conclude();
        }
    }
}

fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T, ReadError> {
    Ok(serde_json::from_slice(json)?)
}

fn merge<T>(slot: &mut Option<T>, other: T, merge: impl Fn(&mut T, T)) {
    match slot {
        Some(known) => merge(known, other),
        None => *slot = Some(other),
    }
}

/// The larger of two, by what a function says of each.
fn max_by_key<T, K: Ord>(one: T, other: T, key: impl Fn(&T) -> K) -> T {
    if key(&other) > key(&one) { other } else { one }
}

/// The earlier of two times of RFC 3339 in UTC; an empty one is unknown.
fn earlier(one: &mut String, other: String) {
    if one.is_empty() || (!other.is_empty() && other < *one) {
        *one = other;
    }
}

impl RunResult {
    /// Adds the cells of another run. A cell that both have run keeps the worse result.
    fn merge(&mut self, other: RunResult) {
        earlier(&mut self.started_at, other.started_at);
        self.duration = self.duration.max(other.duration);
        for scenario in other.scenarios {
            match self.scenarios.iter_mut().find(|known| known.path == scenario.path && known.name == scenario.name) {
                Some(known) => known.merge(scenario),
                None => self.scenarios.push(scenario),
            }
        }
        self.scenarios.sort_by(|one, two| one.path.cmp(&two.path));
        self.interrupted |= other.interrupted;
        other.shards.into_iter().for_each(|shards| MergedShards::merge(&mut self.shards, shards));
        self.totals = Totals::count(&self.scenarios);
        if let Some(coverage) = other.coverage {
            self.coverage.get_or_insert_default().merge(coverage);
        }
        if let Some(comparison) = other.comparison {
            self.comparison.get_or_insert_default().merge(comparison);
        }
        if let Some(other) = other.spending {
            let spending = self.spending.get_or_insert_default();
            spending.requests += other.requests;
            spending.tokens += other.tokens;
            spending.cost += other.cost;
        }
    }
}

impl ScenarioResult {
    fn merge(&mut self, other: ScenarioResult) {
        self.source = self.source.take().or(other.source);
        for cell in other.cells {
            match self.cells.iter_mut().find(|known| known.cell == cell.cell) {
                Some(known) if known.status.rank() < cell.status.rank() => *known = cell,
                Some(_) => {}
                None => self.cells.push(cell),
            }
        }
        self.cells.sort_by_key(|cell| (cell.cell.transport, cell.cell.protocol.to_string()));
        self.accepted.extend(other.accepted);
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }
}

impl CheckResult {
    /// Adds the servers of another check, or what its part of the acts has shown of the same client.
    fn merge(&mut self, other: CheckResult) {
        let are_shards = !self.shards.is_empty() && !other.shards.is_empty();
        earlier(&mut self.started_at, other.started_at);
        self.duration = self.duration.max(other.duration);
        for server in other.servers {
            let is_same = |known: &&mut CheckedServer| {
                (&known.target, known.transport) == (&server.target, server.transport)
                    && known.command == server.command
            };
            match self.servers.iter_mut().find(is_same) {
                Some(known) => known.merge(server, are_shards),
                None => self.servers.push(server),
            }
        }
        let is_known = |runs: &[ActDuration], run: &ActDuration| runs.iter().any(|known| known.acts == run.acts);
        let acts = other.acts.into_iter().filter(|run| !is_known(&self.acts, run)).collect::<Vec<_>>();
        self.acts.extend(acts);
        other.shards.into_iter().for_each(|shards| MergedShards::merge(&mut self.shards, shards));
        self.strict |= other.strict;
        match (&mut self.baseline, other.baseline) {
            (Some(known), Some(other)) => {
                known.stale.extend(other.stale);
                known.expired.extend(other.expired);
                known.unknown.extend(other.unknown);
            }
            (known @ None, other) => *known = other,
            (Some(_), None) => {}
        }
        match are_shards {
            true => self.decide(false),
            false => {
                self.verdict = max_by_key(self.verdict, other.verdict, |verdict| *verdict);
                self.recount();
            }
        }
    }
}

impl CheckedServer {
    /// Adds what another run has checked of this server; of a check that both have, the worse verdict counts, or what
    /// either has seen if they are parts of one run.
    fn merge(&mut self, other: CheckedServer, are_shards: bool) {
        self.error = self.error.take().or(other.error);
        for profile in other.profiles {
            if self.profiles.iter().all(|known| known.profile != profile.profile) {
                self.profiles.push(profile);
            }
        }
        for version in other.versions {
            let Some(known) = self.versions.iter_mut().find(|known| known.version == version.version) else {
                self.versions.push(version);
                continue;
            };
            for check in version.checks {
                match known.checks.iter_mut().find(|known| known.id == check.id) {
                    Some(known) if are_shards => known.join(check),
                    Some(known) if check.verdict < known.verdict => *known = check,
                    Some(_) => {}
                    None => known.checks.push(check),
                }
            }
        }
    }
}

impl JudgedCheck {
    /// Adds what other acts have shown: what was tested in one of them is tested.
    fn join(&mut self, other: JudgedCheck) {
        use CheckVerdict::{Accepted, Fail, Info, NotApplicable, NotTested, Pass, Warn};
        let weight =
            |verdict| [NotApplicable, NotTested, Info, Pass, Accepted, Warn, Fail].iter().position(|it| *it == verdict);
        self.exercised += other.exercised;
        self.violation_count += other.violation_count;
        for violation in other.violations {
            // Every part has the act `clean`.
            match self.violations.iter().any(|it| (&it.subject, &it.found) == (&violation.subject, &violation.found)) {
                true => self.violation_count -= 1,
                false => self.violations.push(violation),
            }
        }
        if weight(other.verdict) > weight(self.verdict) {
            (self.verdict, self.reason, self.cause, self.again) =
                (other.verdict, other.reason, other.cause, other.again);
        }
    }
}

impl BenchResult {
    /// Adds another benchmark: other parts of the same load, or other targets.
    fn merge(&mut self, mut other: BenchResult) {
        earlier(&mut self.started_at, std::mem::take(&mut other.started_at));
        self.thresholds.append(&mut other.thresholds);
        self.comparisons.append(&mut other.comparisons);
        self.warnings.append(&mut other.warnings);
        self.interrupted |= other.interrupted;
        match self.shards.is_empty() {
            true => self.targets.append(&mut other.targets),
            false => self.join(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::Direction;
    use serde_json::json;

    use super::*;
    use crate::{Format, Layout, TraceLine, Verdict, WireKind, WireLine, last_lines};

    fn run(cells: &[(&str, &str)]) -> Vec<u8> {
        let cell =
            |(cell, status): &(&str, &str)| json!({ "cell": cell, "status": status, "durationMs": 1, "steps": [] });
        let cells: Vec<_> = cells.iter().map(cell).collect();
        let totals = json!({ "passed": 0, "failed": 0, "errors": 0, "notApplicable": 0, "notRun": 0 });
        let scenario = json!({ "name": "echo", "path": "scenarios/echo.yaml", "cells": cells });
        let result = json!({ "format": 1, "seed": 1, "durationMs": 5, "totals": totals, "scenarios": [scenario] });
        result.to_string().into_bytes()
    }

    #[test]
    fn the_cells_of_shards_become_one_run() {
        let mut results = Results::default();
        results.read(&run(&[("http/2025-11-25", "passed"), ("stdio/auto", "passed")])).expect("a result");
        results.read(&run(&[("ws/2025-11-25", "failed"), ("stdio/auto", "failed")])).expect("a result");
        let summary = results.summary();
        assert_eq!(summary.verdict, Verdict::Failed);
        let run = results.run.expect("a run");
        assert_eq!((run.totals.passed, run.totals.failed), (1, 2));
        let cells: Vec<_> = run.scenarios[0].cells.iter().map(|cell| cell.cell.to_string()).collect();
        assert_eq!(cells, ["stdio/auto", "http/2025-11-25", "ws/2025-11-25"]);
    }

    #[test]
    fn a_part_that_is_missing_makes_every_format_incomplete() {
        let part = |index: usize| {
            let shard = format!("\"format\":1,\"shard\":{{\"index\":{index},\"count\":3}}");
            String::from_utf8(run(&[("stdio/auto", "passed")])).expect("JSON").replace("\"format\":1", &shard)
        };
        let merged = |parts: &[usize]| {
            let mut results = Results::default();
            parts.iter().for_each(|index| results.read(part(*index).as_bytes()).expect("a result"));
            results
        };
        assert_eq!(merged(&[1, 2, 1, 3, 2]).summary().verdict, Verdict::Passed);
        assert_eq!(merged(&[2]).run.expect("a run").missing_shards(), ["parts 1, 3 of 3 are missing"]);
        let results = merged(&[3, 1]);
        for (format, text) in [
            (Format::Human, "part 2 of 3 is missing"),
            (Format::Html, "part 2 of 3 is missing"),
            (Format::Markdown, "# rehearse: incomplete"),
            (Format::Markdown, "part 2 of 3 is missing"),
            (Format::Junit, "<error message=\"part 2 of 3 is missing\""),
            (Format::Sarif, "\"executionSuccessful\": false"),
            (Format::Json, "\"verdict\": \"incomplete\""),
            (Format::Github, "part 2 of 3 is missing"),
            (Format::GithubOutput, "verdict=incomplete"),
            (Format::Badge, ">incomplete</text>"),
            (Format::Shields, "\"message\":\"incomplete\""),
        ] {
            let written = String::from_utf8(results.render(format, &Layout::default())).expect("UTF-8");
            assert!(written.contains(text), "{format:?}: {written}");
        }
        // What was merged can be merged again.
        let mut again = Results::default();
        again.read(&results.render(Format::Json, &Layout::default())).expect("a result");
        assert_eq!(again.summary().verdict, Verdict::Incomplete);
        again.read(part(2).as_bytes()).expect("a result");
        assert_eq!(again.summary().verdict, Verdict::Passed);
    }

    #[test]
    fn the_acts_of_shards_become_one_check_of_a_client() {
        let part = |index: usize, checks: &[(&str, &str, &[&str])]| {
            let checks = checks.iter().map(|(id, verdict, found)| {
                let found = found.iter().map(|it| json!({ "verdict": "fail", "found": it, "evidence": [] }));
                let violations: Vec<_> = found.collect();
                json!({ "id": id, "level": "MUST", "verdict": verdict, "rule": "", "spec": "", "exercised": 1,
                    "violationCount": violations.len(), "violations": violations })
            });
            let checks: Vec<_> = checks.collect();
            let totals = json!({ "failed": 0, "warnings": 0, "notTested": 0, "accepted": 0, "info": 0, "passed": 0,
                "notApplicable": 0 });
            let server = json!({ "target": "client", "transport": "http", "startedInMs": 0, "again": "", "command": "client",
                "versions": [{ "version": "2026-07-28", "checks": checks }] });
            let acts =
                json!([{ "acts": ["clean"], "durationMs": 1 }, { "acts": [format!("act-{index}")], "durationMs": 2 }]);
            json!({ "format": 1, "verdict": "passed", "startedAt": "", "durationMs": 1, "seed": 1, "strict": false,
                "shard": { "index": index, "count": 2 }, "acts": acts, "totals": totals, "servers": [server] })
        };
        let merged = |parts: &[serde_json::Value]| {
            let mut results = Results::default();
            parts.iter().for_each(|part| results.read(part.to_string().as_bytes()).expect("a result"));
            results
        };
        let one = part(1, &[("a", "pass", &[]), ("b", "not-tested", &[]), ("c", "fail", &["in clean", "in act-1"])]);
        let two = part(2, &[("a", "not-tested", &[]), ("b", "pass", &[]), ("c", "fail", &["in clean", "in act-2"])]);
        let whole = merged(&[one.clone(), two.clone()]).check.expect("a check");
        let checks: Vec<_> = whole.checks().map(|it| (it.verdict, it.exercised, it.violation_count)).collect();
        let pass = (CheckVerdict::Pass, 2, 0);
        assert_eq!(checks, [pass, pass, (CheckVerdict::Fail, 2, 3)]);
        assert_eq!((whole.verdict, whole.missing_shards().len()), (Verdict::Failed, 0));
        let durations: Vec<_> = whole.durations().expect("durations").into_keys().collect();
        assert_eq!(durations, ["act-1", "act-2", "clean"]);
        let good = |index| part(index, &[("a", "pass", &[])]);
        let half = merged(&[good(1)]);
        for (format, text) in [
            (Format::Human, "part 2 of 2 is missing"),
            (Format::Markdown, "part 2 of 2 is missing; run them again"),
            (Format::Junit, "<error message=\"part 2 of 2 is missing\""),
            (Format::Json, "\"verdict\": \"incomplete\""),
        ] {
            let written =
                String::from_utf8(half.render(format, &Layout { width: 200, ..Layout::default() })).expect("UTF-8");
            assert!(written.contains(text), "{format:?}: {written}");
        }
        let again = serde_json::from_slice(&half.render(Format::Json, &Layout::default())).expect("JSON");
        assert_eq!(merged(&[again, good(2)]).summary().verdict, Verdict::Passed);
    }

    #[test]
    fn standard_error_leaves_messages_in_a_trace() {
        let line = |kind| TraceLine {
            server: "s".into(),
            line: WireLine { kind, ..WireLine::new(Direction::ServerToClient, Duration::ZERO, b"x", &[]) },
        };
        let noise = std::iter::repeat_n(WireKind::Stderr, 80);
        let kinds = [WireKind::Frame].into_iter().chain(noise).chain([WireKind::HttpHead]);
        let lines: Vec<_> = kinds.map(line).collect();
        let kept: Vec<_> = last_lines(&lines, 20).map(|line| line.line.kind).collect();
        assert_eq!((kept.len(), kept[0], kept[6]), (7, WireKind::Frame, WireKind::HttpHead));
    }

    #[test]
    fn results_that_do_not_belong_together_stay_apart() {
        let mut results = Results::default();
        results.read(&run(&[("stdio/auto", "passed")])).expect("a result");
        let other = String::from_utf8(run(&[("ws/auto", "passed")])).expect("JSON").replace("\"seed\":1", "\"seed\":9");
        assert!(results.read(other.as_bytes()).expect_err("another seed").to_string().starts_with("its seed is 9"));
        let check = |verdict| CheckResult { verdict, ..CheckResult::new(String::new(), 1, false) };
        let mut checks = check(Verdict::Passed);
        checks.merge(check(Verdict::NothingTested));
        assert_eq!(checks.verdict, Verdict::NothingTested, "a server that was not tested is no pass");
        checks.merge(check(Verdict::Failed));
        assert_eq!(checks.verdict, Verdict::Failed);
    }

    #[test]
    fn what_is_no_result_says_so() {
        let read = |json: &str| Results::default().read(json.as_bytes()).expect_err("an error").to_string();
        assert!(read("{").starts_with("EOF"), "{}", read("{"));
        assert!(read("{}").starts_with("it is not a result"));
        assert!(read(r#"{"format":1,"rules":[]}"#).starts_with("it is not a result"));
        assert!(read(r#"{"format":2,"scenarios":[]}"#).starts_with("its format is 2"));
    }
}
