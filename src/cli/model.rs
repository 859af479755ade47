//! `rehearse model`: a scripted model behind the APIs of Anthropic, OpenAI and Gemini.

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Exit, Failure,
    mock::{
        console::Console,
        exec::{exit_of, wait_for_command},
        parse_address,
    },
    process_guard::block_on_guarded,
    signals::{Signals, limit_shutdown},
    style,
    usage_hint::quoted_command,
};
use rehearse_llm::{
    endpoint::{EndpointOptions, ModelEndpoint},
    model::{ScriptedModel, scripted::LoadError},
};
use rehearse_net::reachable;
use rehearse_system::{process::ProcessGroup, program};

const EXAMPLES: &str = "\
Examples:
  rehearse model review.yaml --listen 8889             # for any agent, without a key
  rehearse model review.yaml --exec -- npm test        # run tests against the model

  ANTHROPIC_BASE_URL=http://127.0.0.1:8889 ANTHROPIC_API_KEY=sk-0 claude -p 'Review it'
  OPENAI_BASE_URL=http://127.0.0.1:8889/v1 OPENAI_API_KEY=sk-0 node agent.js
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8889 GEMINI_API_KEY=sk-0 gemini -p 'Review it'

A script:
  rules:
    - when: { prompt: { contains: diff } }
      turns:
        - calls: [{ tool: read_file, args: { path: change.diff } }]
        - \"The diff says: {{ result }}\"
    - reply: Hello.

`tool` is the name of the tool on its MCP server, whatever name the agent gives it.

With --exec the command gets ANTHROPIC_BASE_URL, OPENAI_BASE_URL and
GOOGLE_GEMINI_BASE_URL, and a key for each API where you have set none. The exit
code is that of the command.";

/// How long answers in progress may take after a signal, and the end of the process.
const GRACE: Duration = Duration::from_secs(1);
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);
/// The variables that the SDKs require.
const KEYS: [&str; 3] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"];

/// Serve a scripted model over the APIs of Anthropic, OpenAI and Gemini
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ModelArgs {
    /// The script of the model
    #[arg(value_name = "SCRIPT")]
    script: PathBuf,
    /// Listen on this address or port [default: a free port]
    #[arg(long, alias = "port", value_name = "ADDR", value_parser = parse_address, default_value = ":0", hide_default_value = true)]
    listen: SocketAddr,
    /// Also accept requests for this host name (repeatable)
    #[arg(long = "allow-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// Print a line for each request on stderr
    #[arg(short, long)]
    verbose: bool,
    /// Run the command after `--` with the URLs in its environment
    #[arg(long, requires = "command")]
    exec: bool,
    /// The command of --exec with its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "exec", value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Serves until a signal arrives or the command ends.
///
/// # Errors
/// The script has mistakes, the address is in use, or the command cannot be run.
pub(super) fn run(args: ModelArgs) -> Result<Exit, Failure> {
    if let Some(wrong) = quoted_command(&args.command) {
        return Err(Failure::Usage(wrong));
    }
    let model = load(&args.script)?;
    Ok(Console::run(|console| block_on_guarded(serve(args, model, console))))
}

/// # Errors
/// The script cannot be read, or has mistakes.
pub(super) fn load(script: &Path) -> Result<ScriptedModel, Failure> {
    ScriptedModel::load(script).map_err(|error| match error {
        LoadError::Invalid(diagnostics) => Failure::Invalid(diagnostics),
        unreadable => Failure::Usage(unreadable.to_string()),
    })
}

async fn serve(args: ModelArgs, model: ScriptedModel, console: &Console) -> Result<Exit, Failure> {
    let mut signals = Signals::install()?;
    let name = model.name().to_owned();
    let printer = args.verbose.then(|| console.clone());
    let log = move |line: String| {
        if let Some(console) = &printer {
            console.print(format!("{}\n", style::printable(&line)));
        }
    };
    let options = EndpointOptions {
        address: args.listen,
        allowed_hosts: args.allowed_hosts,
        log: Box::new(log),
        ..EndpointOptions::default()
    };
    let endpoint = ModelEndpoint::start(model, options).await;
    let endpoint = endpoint.map_err(|error| Failure::listen(args.listen, "--listen :0", &error))?;
    let url = format!("http://{}", reachable(endpoint.address()));
    let variables = [
        ("ANTHROPIC_BASE_URL", url.clone()),
        ("OPENAI_BASE_URL", format!("{url}/v1")),
        ("GOOGLE_GEMINI_BASE_URL", url),
    ];
    let ended = if let Some((name, words)) = args.command.split_first() {
        let mut command = program::command(name, None);
        command.args(words).envs(variables);
        command.envs(KEYS.into_iter().filter(|key| std::env::var_os(key).is_none()).map(|key| (key, "sk-0")));
        let job = ProcessGroup::start_interactive(command.into());
        let job = job.map_err(|error| Failure::cannot(format!("cannot run {}: {error}", name.display())))?;
        wait_for_command(job, &mut signals, std::future::pending()).await.map(exit_of)
    } else {
        let (strong, dim) = (style::STRONG, style::DIM);
        let mut text = format!("{strong}{}{strong:#} listens on {}\n\n", style::printable(&name), endpoint.address());
        variables.iter().for_each(|(name, value)| text.push_str(&format!("  {name}={strong}{value}{strong:#}\n")));
        text.push_str(&format!("\n{dim}Any key is accepted. Ctrl-C ends it.{dim:#}\n\n"));
        if !endpoint.address().ip().is_loopback() {
            let doubtful = style::DOUBTFUL;
            text.push_str(&format!(
                "{doubtful}warning: everyone who can reach this machine can use the model{doubtful:#}\n\n"
            ));
        }
        console.print(text);
        signals.next().await;
        limit_shutdown(SHUTDOWN_LIMIT);
        console.leave_line();
        Ok(Exit::Success)
    };
    tokio::select! {
        () = endpoint.stop(GRACE) => {}
        _ = signals.next() => {}
    }
    ended
}
