//! Which part of a run this process does.

use std::path::{Path, PathBuf};

use clap::Args;

use super::Failure;
use rehearse_document::text::utf8;
use rehearse_report::{Shard, summary::Results};

/// The options of what can be divided by durations.
#[derive(Debug, Default, Args)]
pub(super) struct ShardArgs {
    /// Run only one of N parts; `auto` asks the CI system
    #[arg(long, value_name = "I/N", value_parser = parse)]
    pub(super) shard: Option<Shard>,
    /// Make the parts equally long by the durations in this JSON of an earlier run
    #[arg(long, value_name = "FILE", requires = "shard", hide_short_help = true)]
    durations: Option<PathBuf>,
}

impl ShardArgs {
    /// The durations in the earlier result, which a function reads; none if there is no earlier result.
    ///
    /// # Errors
    /// The file cannot be read, or is not of the same command: another part may have read one, and cells would be lost.
    pub(super) fn durations<T: Default>(
        &self,
        command: &str,
        of: impl Fn(&Results) -> Option<T>,
    ) -> Result<T, Failure> {
        let Some(path) = &self.durations else { return Ok(T::default()) };
        let wrong = |why: String| Failure::Usage(format!("--durations {}: {why}", path.display()));
        let results = read(path).map_err(wrong)?;
        of(&results).ok_or_else(|| wrong(format!("it has no durations of `rehearse {command}`")))
    }
}

/// Reads the JSON of an earlier run.
///
/// # Errors
/// The file cannot be read, or is none of ours.
pub(super) fn read(path: &Path) -> Result<Results, String> {
    let mut results = Results::default();
    let json = std::fs::read(path).and_then(utf8).map_err(|error| error.to_string())?;
    results.read(json.as_bytes()).map_err(|error| error.to_string())?;
    Ok(results)
}

/// A system that starts one job for each part: the variable of the index, that of the number of parts, and the first
/// index.
struct System {
    name: &'static str,
    index: &'static str,
    count: &'static str,
    first: usize,
}

const SYSTEMS: [System; 6] = [
    // The number is that of `spec.completions`, which the job has to repeat.
    System { name: "Kubernetes Indexed Job", index: "JOB_COMPLETION_INDEX", count: "REHEARSE_SHARDS", first: 0 },
    System { name: "GitLab", index: "CI_NODE_INDEX", count: "CI_NODE_TOTAL", first: 1 },
    System { name: "CircleCI", index: "CIRCLE_NODE_INDEX", count: "CIRCLE_NODE_TOTAL", first: 0 },
    System { name: "Buildkite", index: "BUILDKITE_PARALLEL_JOB", count: "BUILDKITE_PARALLEL_JOB_COUNT", first: 0 },
    System { name: "Bitbucket", index: "BITBUCKET_PARALLEL_STEP", count: "BITBUCKET_PARALLEL_STEP_COUNT", first: 0 },
    System { name: "Semaphore", index: "SEMAPHORE_JOB_INDEX", count: "SEMAPHORE_JOB_COUNT", first: 1 },
];

/// Parses `I/N`, or finds both numbers for `auto` in the variables of this process.
///
/// # Errors
/// The text is neither, or the variables are missing or no shard.
pub(super) fn parse(text: &str) -> Result<Shard, String> {
    match text {
        "auto" => find(|name| std::env::var(name).ok().filter(|value| !value.is_empty())),
        _ => text.parse().map_err(|error| format!("{error}; or auto")),
    }
}

fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Shard, String> {
    for System { name, index, count, first } in SYSTEMS {
        let (at, of) = match (variable(index), variable(count)) {
            (Some(at), Some(of)) => (at, of),
            (Some(_), None) if count == "REHEARSE_SHARDS" => {
                return Err(format!("{index} is set, and {count} is not; set it to `spec.completions` of the job"));
            }
            // GitLab sets the number alone in a job without parts.
            _ => continue,
        };
        let shard = at.parse::<usize>().ok().zip(of.parse::<usize>().ok());
        let shard = shard.and_then(|(at, of)| Shard::new((at + 1).checked_sub(first)?, of));
        return shard.ok_or_else(|| {
            format!(
                "{index}={at} and {count}={of} are not a shard of {name}, which counts from {first}; write I/N instead"
            )
        });
    }
    let names: Vec<_> = SYSTEMS.iter().map(|system| system.name).collect();
    Err(format!("auto reads the variables of {}, and none of them are set; write I/N instead", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<(usize, usize), String> {
        let find =
            find(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()));
        find.map(|Shard { index, count }| (index, count))
    }

    #[test]
    fn each_system_counts_from_its_own_number() {
        assert_eq!(found(&[("JOB_COMPLETION_INDEX", "0"), ("REHEARSE_SHARDS", "3")]), Ok((1, 3)));
        assert_eq!(found(&[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")]), Ok((3, 3)));
        assert_eq!(
            found(&[("CI_NODE_TOTAL", "1"), ("CIRCLE_NODE_INDEX", "1"), ("CIRCLE_NODE_TOTAL", "2")]),
            Ok((2, 2))
        );
    }

    #[test]
    fn a_shard_that_is_not_sure_is_refused() {
        let error = |variables: &[(&str, &str)]| found(variables).expect_err("an error");
        assert!(error(&[]).contains("none of them are set"));
        assert!(error(&[("JOB_COMPLETION_INDEX", "0")]).contains("REHEARSE_SHARDS"));
        assert!(error(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "3")]).contains("counts from 1"));
        assert!(error(&[("CIRCLE_NODE_INDEX", "2"), ("CIRCLE_NODE_TOTAL", "2")]).contains("counts from 0"));
        assert!(error(&[("CIRCLE_NODE_INDEX", "x"), ("CIRCLE_NODE_TOTAL", "2")]).contains("not a shard"));
    }
}
