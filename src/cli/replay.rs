//! `rehearse run --from-trace`: replays recordings against a server.

use std::{
    path::{Path, PathBuf},
    time::{Instant, SystemTime},
};

use super::{
    Failure,
    mcp::target::TargetArgs,
    scenario_server::{scenario_server, variables, without_variables},
    style, trace_file,
};
use rehearse_client::Target;
use rehearse_report::{RunResult, Totals};
use rehearse_scenario::{RecordedScenario, ReplayTarget, RunOptions, replay};
use rehearse_system::program::quoted;
use tokio_util::sync::CancellationToken;

/// The arguments of a replay.
#[derive(Debug, clap::Args)]
pub(super) struct ReplayArgs {
    /// Replay the requests of a trace file against a server, and compare the answers
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    #[arg(conflicts_with_all = ["paths", "filters", "list", "update", "repeat", "fail_fast", "keep_going", "shard", "jobs", "coverage"])]
    from_trace: Option<PathBuf>,
    /// Write the recording as a scenario with snapshots to this folder
    #[arg(long, value_name = "FOLDER", requires = "from_trace", hide_short_help = true)]
    write: Option<PathBuf>,
    #[command(flatten)]
    target: TargetArgs,
}

/// A server and what is replayed against it.
pub(super) struct PreparedReplay {
    pub(super) server: super::mcp::target::Server,
    recorded: Vec<RecordedScenario>,
    /// The trace, by its name.
    trace: PathBuf,
    folder: Option<PathBuf>,
}

impl ReplayArgs {
    /// What to replay, if a trace is named.
    ///
    /// # Errors
    /// The trace cannot be read or has no request; there is no server or several; or there is a server and no trace.
    pub(super) fn prepare(&self) -> Result<Option<PreparedReplay>, Failure> {
        let Some(trace) = &self.from_trace else {
            return match self.target.described_command().map_err(Failure::Usage)? {
                Some(program) => Err(Failure::Usage(format!(
                    "a server belongs to `--from-trace`; a scenario names the command of its server itself, and \
                     `rehearse check -- {} …` checks one",
                    quoted(&program)
                ))),
                None => Ok(None),
            };
        };
        let server = self.target.one("--stdio or --http")?;
        let recorded = RecordedScenario::all(&trace_file::read(trace)?);
        if recorded.is_empty() {
            return Err(Failure::Usage(format!("{} has no answered request in a known version", trace.display())));
        }
        for what in recorded.iter().flat_map(|scenario| &scenario.lost) {
            style::warn(&format!("not replayed: {what}"));
        }
        let (trace, folder) = (trace.clone(), self.write.clone());
        Ok(Some(PreparedReplay { server, recorded, trace, folder }))
    }
}

impl PreparedReplay {
    /// The file of a scenario; it exists only if it is written.
    fn path(&self, number: usize) -> PathBuf {
        let stem = self.trace.file_stem().unwrap_or_default().to_string_lossy();
        let name = if self.recorded.len() == 1 { stem.into_owned() } else { format!("{stem}-{}", number + 1) };
        self.folder.as_deref().unwrap_or(Path::new("")).join(format!("{name}.yaml"))
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        (0..self.recorded.len()).map(|number| self.path(number))
    }

    /// Replays everything, one connection after the other, and writes what is to be written.
    ///
    /// # Errors
    /// A file cannot be written, or a recording has a step that no scenario can have.
    pub(super) async fn run(self, options: RunOptions, cancel: CancellationToken) -> Result<RunResult, Failure> {
        let started = Instant::now();
        let paths: Vec<_> = self.paths().collect();
        let folder = self.folder.clone().unwrap_or_default();
        let target = &self.server.resolved.config.target;
        let (server, today) =
            (scenario_server(target, &folder), humantime::format_rfc3339(SystemTime::now()).to_string());
        let mut scenarios = Vec::new();
        for (recorded, path) in self.recorded.into_iter().zip(&paths) {
            let (neutral, timeouts) = (without_variables(&server), self.server.resolved.config.timeouts);
            let at = ReplayTarget { target, server: &neutral, timeouts, path, today: &today[..10] };
            let replay = replay(recorded, at, &options, &cancel).await.map_err(Failure::Invalid)?;
            for note in &replay.notes {
                style::warn(note);
            }
            if self.folder.is_some() {
                let cannot = |error| Failure::cannot(format!("cannot write {}: {error}", path.display()));
                replay.write(&server).map_err(cannot)?;
                style::print(&format!("wrote {}\n", path.display()));
            }
            let mut result = replay.result;
            if self.folder.is_none() {
                result.again = Some(again(&self.trace, target));
            }
            scenarios.push(result);
        }
        if self.folder.is_some() && !variables(&server).is_empty() {
            style::warn(&format!("the scenario needs these variables: {}", variables(&server).join(", ")));
        }
        Ok(RunResult {
            duration: started.elapsed(),
            totals: Totals::count(&scenarios),
            scenarios,
            ..RunResult::new(options.seed)
        })
    }
}

/// The command line of a replay, without headers and variables, which may be secret.
fn again(trace: &Path, target: &Target) -> String {
    let server = match target {
        Target::Stdio(command) => {
            let words = [&command.program].into_iter().chain(&command.args).map(|word| quoted(word));
            format!("-- {}", words.collect::<Vec<_>>().join(" "))
        }
        target => format!("--{} {}", target.transport(), quoted(target.endpoint().map_or("URL", |at| &at.url))),
    };
    format!("rehearse run --from-trace {} --trace {server}", quoted(&trace.display().to_string()))
}
