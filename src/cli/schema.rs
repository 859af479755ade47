//! `rehearse schema`: JSON Schemas, for editors and for programs that read reports.

use super::{
    Exit, Failure, output,
    sources::dialect_name::{DIALECTS, dialect},
};
use rehearse_client_configs::dialect::{Dialect, all};
use rehearse_mock::script;
use rehearse_report::{
    Judged,
    bench::BenchResult,
    check::CheckResult,
    diff::DiffResult,
    fuzz::FuzzResult,
    host::HostResult,
    schema::{of_file, of_result},
};

const EXAMPLES: &str = "\
Examples:
  rehearse schema scenario > scenario.schema.json
  rehearse schema config --dialect cursor > mcp.schema.json

In a YAML file, for an editor with the YAML language server (in VS Code, the extension `redhat.vscode-yaml`):
  # yaml-language-server: $schema=./scenario.schema.json

For a JSON file, in the settings of VS Code:
  \"json.schemas\": [{ \"fileMatch\": [\".cursor/mcp.json\"], \"url\": \"./mcp.schema.json\" }]";

/// Print the JSON Schema of a kind of file or report
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nDialects:\n{DIALECTS}"))]
pub(super) struct SchemaArgs {
    /// What the schema describes
    kind: Kind,
    /// The client of the config (`--help` lists them)
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    dialect: Option<&'static Dialect>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// A mock script
    Script,
    /// A scenario
    Scenario,
    /// A script of `rehearse model`
    Model,
    /// A config file of an MCP client
    Config,
    /// The accepted failures of `rehearse check`
    Baseline,
    /// The report of `rehearse run --format json`
    Run,
    /// The report of `rehearse check --format json`
    Check,
    /// The report of `rehearse bench … --format json`
    Bench,
    /// The report of `rehearse diff --format json`
    Diff,
    /// The report of `rehearse fuzz --format json`
    Fuzz,
    /// The report of `rehearse host run --format json`
    Hosts,
    /// A file of `rehearse surface`
    Surface,
    /// A profile of `rehearse check --profile FILE`
    Profile,
    /// What this program knows of a host: its config formats and its profile
    Host,
    /// A line of `rehearse mock --journal FILE`, or an entry of `GET /journal`
    Journal,
    /// A line of `--trace-file FILE`
    Trace,
}

pub(super) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    if args.dialect.is_some() && !matches!(args.kind, Kind::Config) {
        return Err(Failure::Usage("`--dialect` is for `rehearse schema config`".into()));
    }
    let schema = match (args.kind, args.dialect) {
        (Kind::Script, _) => script::schema(),
        (Kind::Scenario, _) => rehearse_scenario::schema(),
        (Kind::Model, _) => rehearse_llm::model::scripted::schema(),
        (Kind::Config, Some(dialect)) => dialect.schema(),
        (Kind::Config, None) => {
            let names: Vec<_> = all().map(|dialect| dialect.name).collect();
            let message = format!("each client has its own schema: add --dialect with one of {}", names.join(", "));
            return Err(Failure::Usage(message));
        }
        (Kind::Baseline, _) => of_file("baseline", "Accepted failures of `rehearse check --baseline`"),
        (Kind::Run, _) => of_result::<Judged<'_>>("run"),
        (Kind::Check, _) => of_result::<CheckResult>("check"),
        (Kind::Bench, _) => of_result::<BenchResult>("bench …"),
        (Kind::Diff, _) => of_result::<DiffResult>("diff"),
        (Kind::Fuzz, _) => of_result::<FuzzResult>("fuzz"),
        (Kind::Hosts, _) => of_result::<HostResult>("host"),
        (Kind::Surface, _) => of_file("surface", "A surface file, as `rehearse surface` writes it"),
        (Kind::Profile, _) => rehearse_profile::schema(),
        (Kind::Host, _) => rehearse_profile::host_schema(),
        (Kind::Journal, _) => {
            of_file("journal", "A line of `rehearse mock --journal FILE`, or an entry of `GET /journal`")
        }
        (Kind::Trace, _) => of_file("trace", "A line of a trace file of `rehearse`"),
    };
    output::write(format!("{schema:#}\n").as_bytes())?;
    Ok(Exit::Success)
}
