//! `rehearse init`: the first files of a project.

mod package;
mod server;
mod server_json;

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{
    Exit, Failure,
    mcp::target::{TargetArgs, connection::SessionArgs},
    output,
    tool_permission_args::ToolPermissionArgs,
};

const WORKFLOW: (&str, &str) = (".github/workflows/rehearse.yml", include_str!("workflow.yml"));
const FILES: [(&str, &str); 3] = [
    ("mocks/weather.yaml", include_str!("mock.yaml")),
    ("scenarios/weather.yaml", include_str!("scenario.yaml")),
    WORKFLOW,
];
const EXAMPLES: &str = "\
Examples:
  rehearse init                      an example: a mock and a scenario of it
  rehearse init -- node server.js    a scenario of this server, its snapshots and a mock of it
  rehearse init --http URL --allow-tool 'get_*'
  rehearse init --server-json -- npx -y weather@1.2.3

Tools are called only if they are annotated with readOnlyHint, or named by --allow-tool.";

const NEXT: &str = "
Next:
  rehearse run --update                           save the first snapshots
  rehearse run                                    compare with them
  rehearse mock mocks/weather.yaml --listen 8888  serve the mock
";

const TIMEOUT: &str =
    "Timeout of each request; after six times as long nothing more is called [default: from the config, at most 10s]";

/// Write a first mock, a scenario and a CI workflow
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES, mut_arg("timeout", |it| it.help(TIMEOUT)))]
pub(super) struct InitArgs {
    /// The folder of the project
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    #[command(flatten)]
    tools: ToolPermissionArgs,
    /// Only write a server.json, with which the MCP registry publishes the server
    #[arg(long)]
    server_json: bool,
    /// Overwrite the files of the server
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    session: SessionArgs,
}

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let described = args.target.described_command().map_err(Failure::Usage)?;
    match described.is_some() || args.target.named_file().is_some() {
        true if args.server_json => return server_json::run(args),
        true => return server::run(args),
        false if args.server_json => {
            return Err(Failure::Usage("--server-json needs a server: --stdio, --http or -- COMMAND".to_owned()));
        }
        false => {}
    }
    let mut report = String::new();
    for (name, text) in FILES {
        let is_new = write_new(&args.folder.join(name), text)
            .map_err(|error| Failure::cannot(format!("cannot write {}: {error}", args.folder.join(name).display())))?;
        report.push_str(&format!("{} {name}\n", if is_new { "wrote " } else { "exists" }));
    }
    output::write(format!("{report}{NEXT}").as_bytes())?;
    Ok(Exit::Success)
}

/// Writes a file unless it exists. Returns whether it is new.
fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match File::create_new(path) {
        Ok(file) => output::fill(file, path, text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
