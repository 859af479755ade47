//! The command line that repeats a check.

use std::fmt::Write;

use super::CheckArgs;
use crate::cli::mcp::target::Server;
use rehearse_client::Target;
use rehearse_system::program::quoted;

/// What a repeated check has in common with this one.
#[derive(Debug)]
pub(super) struct Again {
    headers: Vec<String>,
    env: Vec<String>,
    /// The options that decide what is sent.
    options: Vec<String>,
}

impl Again {
    pub(super) fn new(args: &CheckArgs) -> Again {
        let pairs = |flag: &str, values: &mut dyn Iterator<Item = String>| -> Vec<String> {
            values.flat_map(|value| [flag.to_owned(), value]).collect()
        };
        let mut options = Vec::new();
        options.extend(pairs("--protocol", &mut args.versions.iter().map(ToString::to_string)));
        options.extend(args.tools.pairs().flat_map(|(flag, value)| [flag.to_owned(), value]));
        options.extend(pairs("--allow-prompt", &mut args.varied_prompts.iter().cloned()));
        if args.target.token().is_some() {
            options.extend(["--token", "TOKEN"].map(ToOwned::to_owned));
        }
        if args.migrate {
            options.push("--migrate".to_owned());
        }
        if args.sdk {
            options.push("--sdk".to_owned());
        }
        options.extend(["--seed".to_owned(), args.report.seed.to_string()]);
        let (headers, env) = args.target.pairs();
        Again {
            headers: pairs("--header", &mut headers.iter().cloned()),
            env: pairs("--env", &mut env.iter().cloned()),
            options,
        }
    }

    /// The command line that checks one server; `--only` may follow.
    pub(super) fn command(&self, server: &Server) -> String {
        let mut words = server.options();
        if server.is_from_command_line() {
            let is_process = matches!(server.resolved.config.target, Target::Stdio(_));
            words.extend(if is_process { self.env.clone() } else { self.headers.clone() });
        } else {
            words.insert(0, server.name().to_owned());
        }
        let words = words.iter().chain(&self.options);
        words.fold("rehearse check".to_owned(), |mut line, word| {
            let _ = write!(line, " {}", quoted(word));
            line
        })
    }
}
