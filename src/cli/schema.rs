//! `rehearse schema`: JSON Schemas, for editors and for programs that read reports.

use super::{
    Exit, Failure,
    config::{dialect, dialects},
    output,
};
use rehearse_client_configs::dialect::{ALL, Dialect};
use rehearse_mock::script;
use rehearse_report::schema::{BASELINE, CHECK_REPORT, RUN_REPORT};

const EXAMPLES: &str = "\
Examples:
  rehearse schema script > mock-script.schema.json
  rehearse schema config --dialect cursor > mcp.schema.json

In a YAML file, for an editor with the YAML language server (in VS Code, the extension `redhat.vscode-yaml`):
  # yaml-language-server: $schema=./mock-script.schema.json

For a JSON file, in the settings of VS Code:
  \"json.schemas\": [{ \"fileMatch\": [\".cursor/mcp.json\"], \"url\": \"./mcp.schema.json\" }]";

/// Print the JSON Schema of mock scripts, config files, baselines or reports
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\nDialects:\n{}", dialects()))]
pub(super) struct SchemaArgs {
    /// The kind of file: script, config, baseline, check-report or run-report
    #[arg(hide_possible_values = true)]
    kind: Kind,
    /// The client of the config (`--help` lists them)
    #[arg(long, value_name = "DIALECT", value_parser = dialect)]
    dialect: Option<&'static Dialect>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    /// A mock script
    Script,
    /// A config file of an MCP client
    Config,
    /// The accepted failures of `rehearse check`
    Baseline,
    /// The report of `rehearse check --format json`
    CheckReport,
    /// The report of `rehearse run --format json`
    RunReport,
    /// Not supported
    #[value(hide = true)]
    Scenario,
}

pub(super) fn run(args: &SchemaArgs) -> Result<Exit, Failure> {
    if args.dialect.is_some() && !matches!(args.kind, Kind::Config) {
        return Err(Failure::Usage("`--dialect` is for `rehearse schema config`".into()));
    }
    let schema = match (args.kind, args.dialect) {
        (Kind::Script, _) => format!("{:#}\n", script::schema()),
        (Kind::Config, Some(dialect)) => format!("{:#}\n", dialect.schema()),
        (Kind::Baseline, _) => BASELINE.to_owned(),
        (Kind::CheckReport, _) => CHECK_REPORT.to_owned(),
        (Kind::RunReport, _) => RUN_REPORT.to_owned(),
        (Kind::Scenario, _) => {
            let message =
                "scenarios have no JSON Schema yet; `rehearse run --list FILE` reports mistakes in a scenario";
            return Err(Failure::Usage(message.into()));
        }
        (Kind::Config, None) => {
            let names: Vec<_> = ALL.iter().map(|dialect| dialect.name).collect();
            let message = format!("each client has its own schema: add --dialect with one of {}", names.join(", "));
            return Err(Failure::Usage(message));
        }
    };
    output::write(schema.as_bytes())?;
    Ok(Exit::Success)
}
