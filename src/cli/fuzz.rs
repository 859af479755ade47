//! `rehearse fuzz`: inputs that break a server.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use clap::Args;
use tokio::sync::mpsc::unbounded_channel;
use tokio_util::sync::CancellationToken;

use super::{
    Exit, Failure, fuzz_corpus,
    job::Job,
    mcp::target::{
        Server, TargetArgs,
        connection::{SessionArgs, duration},
    },
    output,
    process_guard::block_on_guarded,
    report::OutputArgs,
    repository,
    scenario_server::scenario_server,
    secrets::Secrets,
    style,
    tool_permission_args::ToolPermissionArgs,
};
use rehearse_check::target_text;
use rehearse_fuzz::{FuzzError, FuzzEvent, FuzzOptions, FuzzRun, Target, fuzz, inputs, plan, scenario};
use rehearse_protocol::Protocol;
use rehearse_report::{
    Format, Layout,
    fuzz::{FuzzBug, FuzzInput, FuzzResult, TargetKind},
    summary::Results,
};
use rehearse_system::program::quoted;

const EXAMPLES: &str = "\
Examples:
  rehearse fuzz -- node server.js
  rehearse fuzz --allow-tool 'divide' --budget 1m -- node server.js   also call this tool
  rehearse fuzz --tool divide --max-time 10s -- node server.js        only this tool, for 10 seconds
  rehearse fuzz --dry-run -- node server.js                           what would be sent
  rehearse fuzz --write scenarios/fuzz -- node server.js              a scenario of each bug

Tools are called only if they are annotated with readOnlyHint, or named by --allow-tool. Prompts, resources, \
completions and lists are only read, and always tried. Use a server of a test: inputs may be stored.

Exit codes:
  0  no bug, or only warnings      1  a bug was found
  2  wrong usage                   3  the server cannot be reached or started; interrupted
  4  no tool was tested";

const TIMEOUT: &str = "After how long a request counts as a hang [default: by the usual time of the tool, at least 2s]";

/// How many inputs of a target `--dry-run` prints, without `--cases`.
const SHOWN: usize = 20;

/// Find inputs that break a server: its tools, prompts, resources and lists
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_arg("protocol", |it| it.hide_short_help(true)), mut_arg("timeout", |it| it.help(TIMEOUT).hide_short_help(true)))]
pub(super) struct FuzzArgs {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    tools: ToolPermissionArgs,
    /// Try only this tool; `*` stands for any text (repeatable)
    #[arg(long = "tool", value_name = "NAME")]
    only: Vec<String>,
    /// How long the run may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    budget: Duration,
    /// How long each tool, prompt and so on may take
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    max_time: Option<Duration>,
    /// How many inputs each tool, prompt and so on gets at most
    #[arg(long, value_name = "N", hide_short_help = true)]
    cases: Option<usize>,
    /// Seed of the random inputs
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    seed: u64,
    /// Send no texts that programs often mishandle, such as paths
    #[arg(long, hide_short_help = true)]
    no_hostile: bool,
    /// Print what would be sent, and exit
    #[arg(long)]
    dry_run: bool,
    /// Write a scenario of each bug, which fails until it is mended
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Send its inputs first, and add those that found something
    #[arg(long, value_name = "FOLDER", hide_short_help = true)]
    corpus: Option<PathBuf>,
    /// Also fail on warnings
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    session: SessionArgs,
}

pub(super) fn run(args: &FuzzArgs) -> Result<Exit, Failure> {
    args.output.check()?;
    let mut server = args.target.one("--stdio or --http")?;
    let timeouts = &mut server.resolved.config.timeouts;
    timeouts.connect = args.session.start_timeout.unwrap_or(timeouts.connect);
    if args.dry_run {
        return dry_run(args, &server);
    }
    if args.output.format == Format::Sarif {
        repository::check_places(std::slice::from_ref(&server))?;
    }
    let corpus = args.corpus.as_deref().map(fuzz_corpus::read).transpose()?.unwrap_or_default();
    let stop = CancellationToken::new();
    let ran = block_on_guarded(args.fuzz(&server, corpus, &stop))?;
    let Some(ran) = ran else { return Ok(Exit::CannotRun) };
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return Err(Failure::cannot(server.resolved.secrets.hidden(&error.to_string()))),
    };
    let FuzzRun { mut result, planned, interesting } = ran;
    result.target = target_text(&server.resolved.config.target);
    result.again = args.again(&server);
    (result.strict, result.place) = (args.strict, repository::place(&server));
    result.decide(stop.is_cancelled());
    if let Some(folder) = &args.corpus {
        fuzz_corpus::write(folder, &interesting)?;
    }
    args.write_scenarios(&server, &result, &planned)?;
    let verdict = result.verdict;
    let results = Results { fuzz: Some(result), ..Results::default() };
    let layout = Layout { width: style::width(), is_verbose: true, ..Layout::default() };
    args.output.write(results, &layout)?;
    Ok(verdict.into())
}

impl FuzzArgs {
    fn options(&self) -> FuzzOptions {
        FuzzOptions {
            tools: self.tools.permission(),
            seed: self.seed,
            only: self.only.clone(),
            budget: self.budget,
            max_time: self.max_time,
            cases: self.cases,
            is_hostile: !self.no_hostile,
            protocol: self.session.protocol.unwrap_or(Protocol::Auto),
            timeout: self.session.timeout,
            ..FuzzOptions::default()
        }
    }

    /// The command line that sends the same inputs again; `--tool` may follow.
    fn again(&self, server: &Server) -> String {
        let mut words = server.options();
        let pairs = self.target.pairs().chain(self.tools.pairs());
        words.extend(pairs.flat_map(|(option, value)| [option.to_owned(), value]));
        let protocol = self.session.protocol.map(|protocol| protocol.to_string());
        let corpus = self.corpus.as_ref().map(|folder| folder.display().to_string());
        let given = [("--protocol", protocol), ("--corpus", corpus)].into_iter();
        words.extend(given.filter_map(|(option, value)| Some([option.to_owned(), value?])).flatten());
        words.extend(self.no_hostile.then(|| "--no-hostile".to_owned()));
        words.extend(self.cases.into_iter().flat_map(|cases| ["--cases".to_owned(), cases.to_string()]));
        words.extend(["--seed".to_owned(), self.seed.to_string()]);
        words.iter().fold("rehearse fuzz".to_owned(), |line, word| format!("{line} {}", quoted(word)))
    }

    /// Fuzzes the server; `None` if it was interrupted twice.
    ///
    /// # Errors
    /// Signals cannot be handled.
    async fn fuzz(
        &self,
        server: &Server,
        corpus: Vec<FuzzInput>,
        stop: &CancellationToken,
    ) -> Result<Option<Result<FuzzRun, FuzzError>>, Failure> {
        let mut job = Job::start(stop.clone(), "interrupted: reporting what was found so far\n")?;
        let (sender, mut events) = unbounded_channel();
        let options = FuzzOptions { corpus, events: Some(sender), stop: stop.clone(), ..self.options() };
        let progress = style::progress("{spinner} {wide_msg} {elapsed}", None);
        let shown = async {
            let mut bugs = 0;
            let begun = Instant::now();
            while let Some(event) = events.recv().await {
                match event {
                    FuzzEvent::Sent(cases) => {
                        let rate = cases as f64 / begun.elapsed().as_secs_f64().max(0.001);
                        progress.set_message(format!("{cases} inputs, {rate:.0} a second, {bugs} bugs"));
                    }
                    FuzzEvent::Found(..) => bugs += 1,
                }
            }
        };
        Ok(job.run_with(Box::pin(fuzz(&server.resolved.config, &options)), shown).await)
    }

    /// # Errors
    /// A file cannot be written.
    fn write_scenarios(&self, server: &Server, result: &FuzzResult, targets: &[Target]) -> Result<(), Failure> {
        let Some(folder) = self.write.as_deref().filter(|_| !result.bugs.is_empty()) else { return Ok(()) };
        let cannot = |error: std::io::Error| Failure::cannot(format!("cannot write {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(cannot)?;
        let at = scenario_server(&server.resolved.config.target, folder);
        let mut names = std::collections::HashMap::new();
        let planned = |bug: &FuzzBug| targets.iter().find(|target| target.id == bug.target);
        for (bug, target) in result.bugs.iter().filter_map(|bug| Some((bug, planned(bug)?))) {
            let Some(text) = scenario(bug, target, &at, &result.protocol) else { continue };
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let kind = if target.id.kind == TargetKind::Tool { "" } else { target.id.kind.as_str() };
            let name: String = format!("{}-{}", target.id.name, bug.oracle).chars().map(plain).collect();
            let name = format!("{kind}-{name}").trim_start_matches('-').to_owned();
            let count: &mut usize = names.entry(name.clone()).or_default();
            *count += 1;
            let number = if *count == 1 { String::new() } else { format!("-{count}") };
            let path = folder.join(format!("{name}{number}.yaml"));
            output::write_file(&path, Secrets::masked(&text).as_bytes())?;
            style::print(&format!("wrote {}\n", path.display()));
        }
        Ok(())
    }
}

/// Prints what would be sent: a line for each input.
fn dry_run(args: &FuzzArgs, server: &Server) -> Result<Exit, Failure> {
    let options = args.options();
    let planned = block_on_guarded(async { Ok(plan(&server.resolved.config, &options).await) })?;
    let planned = planned.map_err(|error| Failure::cannot(server.resolved.secrets.hidden(&error.to_string())))?;
    let mut text = String::new();
    for target in &planned {
        let id = style::printable(&target.id.to_string()).into_owned();
        if let Some(reason) = target.reason {
            text.push_str(&format!("{id}: not called: {reason}\n"));
            continue;
        }
        for (kind, input) in inputs(target, args.seed, !args.no_hostile).take(args.cases.unwrap_or(SHOWN)) {
            text.push_str(&format!("{id} {} {input}\n", kind.as_str()));
        }
    }
    output::write(text.as_bytes())?;
    let is_empty = planned.iter().all(|target| target.reason.is_some());
    Ok(if is_empty { Exit::NothingSelected } else { Exit::Success })
}
