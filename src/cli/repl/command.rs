//! The commands of the REPL and their syntax. No IO.

use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum, error::ErrorKind};

use crate::cli::mcp::{
    call::call_tool_args::ToolCallArgs,
    content::{get_prompt::PromptArgs, read_resource::ResourceArgs},
};
use rehearse_document::nearest;
use rehearse_system::program::posix_words;

#[derive(Parser)]
#[command(multicall = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// A command with its arguments. Its aliases are the names in `rehearse mcp` and in other programs.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// A message to the model.
    #[command(skip)]
    Say(String),
    /// The help for a command.
    #[command(skip)]
    Explain(String),
    /// Show the status of all servers
    #[command(aliases = ["list", "list-servers", "ls-servers"])]
    Status,
    /// List all tools, or those of a server with schemas
    #[command(aliases = ["tools", "ls-tools"])]
    ListTools { server: Option<String> },
    /// Connect to a server
    Connect { server: String },
    /// Disconnect a server
    Disconnect { server: String },
    /// Disconnect and connect again
    #[command(alias = "restart")]
    Reconnect { server: String },
    /// Enable a server
    Enable { server: String },
    /// Disable a server
    Disable { server: String },
    /// Show a server, or switch its debug output
    #[command(alias = "info", override_usage = "debug [SERVER] [on|off]")]
    Debug {
        #[arg(value_name = "SERVER | on | off")]
        server: Option<String>,
        #[arg(value_enum)]
        switch: Option<Switch>,
    },
    /// Get or delete the OAuth token of a server
    #[command(override_usage = "auth SERVER [--logout]")]
    Auth {
        server: String,
        /// Delete the token
        #[arg(long)]
        logout: bool,
    },
    /// Call a tool
    #[command(
        alias = "call-tool",
        override_usage = "call TOOL [NAME=VALUE… | JSON] [--server NAME] [--output FILE | --as FORM]"
    )]
    Call(ToolCallArgs),
    /// List resources and templates
    #[command(alias = "list-resources", override_usage = "resources [SERVER | --server NAME]")]
    Resources(ServerArgs),
    /// Read a resource
    #[command(alias = "read-resource", override_usage = "read URI [--server NAME] [--output FILE]")]
    Read(ResourceArgs),
    /// List prompts
    #[command(alias = "list-prompts", override_usage = "prompts [SERVER | --server NAME]")]
    Prompts(ServerArgs),
    /// Get a prompt
    #[command(
        alias = "get-prompt",
        override_usage = "prompt NAME [NAME=VALUE… | JSON] [--server NAME] [--output FILE]"
    )]
    Prompt(PromptArgs),
    /// Show the calls of tools, and what the model took
    #[command(alias = "metrics")]
    Usage,
    /// Reload the config files
    Reload,
    /// Show this help, or that of a command
    #[command(alias = "?", override_usage = "help [COMMAND]")]
    Help { command: Option<String> },
    /// Disconnect and exit
    #[command(alias = "exit")]
    Quit,
}

/// A server, before or behind its option.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    server: Option<String>,
    /// The same
    #[arg(id = "named", long = "server", value_name = "NAME", conflicts_with = "server")]
    named: Option<String>,
}

impl ServerArgs {
    pub(super) fn name(&self) -> Option<&str> {
        self.server.as_deref().or(self.named.as_deref())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// The definitions of all commands.
pub(super) static COMMANDS: LazyLock<clap::Command> = LazyLock::new(|| {
    let mut line = Line::command();
    line.build();
    line
});

/// The line without the optional prefix `/mcp`.
pub(super) fn without_prefix(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("/mcp") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line.strip_prefix('/').unwrap_or(line),
    }
}

/// The command with this name or alias, in any case.
pub(super) fn definition(name: &str) -> Option<&'static clap::Command> {
    COMMANDS.find_subcommand(name.to_lowercase())
}

/// The usage of a command.
pub(super) fn usage(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage:").trim().replace(['<', '>'], "")
}

impl Command {
    /// A whole text as a message; `None` if it is empty.
    ///
    /// # Errors
    /// None.
    pub(super) fn message(text: &str) -> Result<Option<Command>, String> {
        let text = text.trim();
        Ok((!text.is_empty()).then(|| Command::Say(text.to_owned())))
    }

    /// A line of a conversation: a message, unless it begins with `/` or is the name of a command that every prompt has.
    ///
    /// # Errors
    /// As [`Command::parse`].
    pub(super) fn parse_in_chat(line: &str) -> Result<Option<Command>, String> {
        match line.trim() {
            command if command.starts_with('/') => Command::parse(command),
            command @ ("help" | "quit" | "exit") => Command::parse(command),
            message => Command::message(message),
        }
    }

    /// Parses a line; `None` for an empty line or a comment.
    ///
    /// # Errors
    /// The command is unknown, or its arguments are wrong.
    pub(super) fn parse(line: &str) -> Result<Option<Command>, String> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        let line = without_prefix(line);
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Some(definition) = definition(if name.is_empty() { "help" } else { name }) else {
            let names =
                COMMANDS.get_subcommands().flat_map(|it| [it.get_name()].into_iter().chain(it.get_all_aliases()));
            let names: Vec<_> = names.collect();
            let near = nearest(&name.to_lowercase(), &names).map(|near| format!("; did you mean '{near}'?"));
            let near = near.unwrap_or_else(|| "; type '/help' for a list".to_owned());
            return Err(format!("unknown command {name:?}{near}"));
        };
        let mut words = words(rest)?;
        words.insert(0, definition.get_name().to_owned());
        let parsed = COMMANDS.clone().try_get_matches_from(words).and_then(|it| Line::from_arg_matches(&it));
        match parsed {
            Ok(Line { command: Command::Help { command: Some(name) } }) => Command::parse(&format!("{name} --help")),
            Ok(line) => Ok(Some(line.command)),
            Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(Some(Command::Explain(error.to_string()))),
            Err(error) => Err(short(&error)),
        }
    }

    /// The server that a command names.
    pub(super) fn server(&self) -> Option<&str> {
        match self {
            Command::Connect { server }
            | Command::Disconnect { server }
            | Command::Reconnect { server }
            | Command::Enable { server }
            | Command::Disable { server }
            | Command::Auth { server, .. } => Some(server),
            Command::ListTools { server } => server.as_deref(),
            Command::Debug { server, .. } => server.as_deref().filter(|it| Switch::from_str(it, false).is_err()),
            Command::Resources(args) | Command::Prompts(args) => args.name(),
            Command::Call(args) => args.server(),
            Command::Read(args) => args.server(),
            Command::Prompt(args) => args.server(),
            _ => None,
        }
    }
}

/// The words of a line, as a shell has them. A JSON object that begins a word is one word as it is.
///
/// # Errors
/// A quote is not closed.
fn words(text: &str) -> Result<Vec<String>, String> {
    let is_begin = |at: &usize| *at == 0 || text[..*at].ends_with(char::is_whitespace);
    for (begin, _) in text.match_indices('{').filter(|(at, _)| is_begin(at)) {
        // Else it is within quotes.
        let Ok(mut words) = posix_words(&text[..begin]) else { continue };
        let (json, behind) = text[begin..].split_at(json_length(&text[begin..]));
        words.push(json.to_owned());
        words.extend(self::words(behind)?);
        return Ok(words);
    }
    posix_words(text).map_err(|error| format!("the line has {error}"))
}

/// The length of the JSON value at the start of a text; the whole text if there is none.
fn json_length(text: &str) -> usize {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        _ => text.len(),
    }
}

/// The error without what only a shell needs.
fn short(error: &clap::Error) -> String {
    let text = error.to_string().replace("error: ", "");
    let lines = text.lines().take_while(|line| !line.starts_with("For more information"));
    lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

/// The list of all commands, at the prompt of a conversation or another one. No line is longer than 80 columns.
pub(super) fn help(is_chat: bool) -> String {
    let prefix = if is_chat { "/" } else { "" };
    let all: Vec<_> = COMMANDS.get_subcommands().map(|it| (format!("{prefix}{}", usage(it)), it.get_about())).collect();
    let width = all.iter().map(|(usage, _)| usage.chars().count()).filter(|width| *width < 26).max();
    let width = width.unwrap_or_default();
    let line = |(usage, about): &(String, Option<&clap::builder::StyledStr>)| {
        let about = about.map(ToString::to_string).unwrap_or_default();
        match usage.chars().count() > width {
            true => format!("  {usage}\n  {:width$}  {about}\n", ""),
            false => format!("  {usage:width$}  {about}\n"),
        }
    };
    let commands: String = all.iter().map(line).collect();
    let head = match is_chat {
        true => {
            "A line is a message to the model. Alt-Enter begins another line of the message;\n\
             a pasted text is one message. Lines that begin with / are commands:"
        }
        false => "Commands (the prefix /mcp is optional):",
    };
    format!(
        "{head}\n{commands}\n\
         Arguments: NAME=VALUE is converted to the type in the schema, NAME:=JSON is\n\
         JSON, NAME=@FILE and @FILE are files.\n\
         Tab completes, Ctrl-C cancels, Ctrl-C twice or Ctrl-D exits.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> String {
        let parsed = Command::parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        format!("{:?}", parsed.expect(line))
    }

    #[test]
    fn a_command_may_have_the_prefix_or_another_name() {
        for line in ["status", "/mcp status", "/mcp   status ", "/status", "STATUS", "list", "/mcp list-servers"] {
            assert_eq!(parse(line), "Status", "{line}");
        }
        assert_eq!([parse("/mcp"), parse("/mcp help"), parse("?")], ["Help { command: None }"; 3]);
        for line in ["", "  ", "# a note"] {
            assert!(matches!(Command::parse(line), Ok(None)), "{line}");
        }
        assert!(parse("help call").contains("--log-level"), "{}", parse("help call"));
    }

    #[test]
    fn a_wrong_line_is_refused_in_few_words() {
        for (line, error) in [
            ("statsu", "unknown command \"statsu\"; did you mean 'status'?"),
            ("/mcp lst-tools", "unknown command \"lst-tools\"; did you mean 'list-tools'?"),
            ("/mcpx", "unknown command \"mcpx\"; type '/help' for a list"),
            ("connect", "the following required arguments were not provided:\n  <SERVER>\nUsage: connect <SERVER>"),
            ("status now", "unexpected argument 'now' found\nUsage: status"),
            ("connect 'a", "the line has an unclosed '"),
        ] {
            assert_eq!(Command::parse(line).map(|_| ()), Err(error.to_owned()), "{line}");
        }
        for line in [
            "debug a maybe",
            "call t --logout",
            "call t --as cpe --output f",
            "read x --output",
            "resources s --server s",
        ] {
            assert!(Command::parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_line_of_a_conversation_is_a_message_or_a_command() {
        let debug = |parsed: Result<Option<Command>, String>| format!("{:?}", parsed.expect("a line"));
        assert_eq!(debug(Command::parse_in_chat(" status of it? \n")), r#"Some(Say("status of it?"))"#);
        assert_eq!(debug(Command::parse_in_chat("exit")), "Some(Quit)");
        assert_eq!(debug(Command::parse_in_chat("/status")), "Some(Status)");
        assert_eq!(debug(Command::message("/etc\nhelp\n")), r#"Some(Say("/etc\nhelp"))"#);
        assert_eq!([debug(Command::message("\n")), debug(Command::parse_in_chat(" "))], ["None", "None"]);
    }

    #[test]
    fn json_is_one_word_as_it_is() {
        for (line, expected) in [
            (r#"t a=1 'b=x y' c:={"d":1}"#, &["t", "a=1", "b=x y", "c:={d:1}"][..]),
            (r#"t {"a": "it's"}"#, &["t", r#"{"a": "it's"}"#]),
            (
                r#"t --server s {"a": "} --as {"} --as cpe"#,
                &["t", "--server", "s", r#"{"a": "} --as {"}"#, "--as", "cpe"],
            ),
            (r#"t {"a": 1} b=2"#, &["t", r#"{"a": 1}"#, "b=2"]),
            (r#"t {"a": 1"#, &["t", r#"{"a": 1"#]),
            (r#"t 'a= {"b' c"#, &["t", r#"a= {"b"#, "c"]),
        ] {
            assert_eq!(words(line).expect(line), expected, "{line}");
        }
    }

    #[test]
    fn a_server_is_named_in_several_ways() {
        for line in [
            "resources s",
            "resources --server s",
            "list-resources --server=s",
            "prompt p a=1 --server s",
            "info s off",
        ] {
            let command = Command::parse(line).expect(line).expect(line);
            assert_eq!(command.server(), Some("s"), "{line}");
        }
    }

    #[test]
    fn the_help_has_every_command() {
        COMMANDS.clone().debug_assert();
        for (is_chat, prefix) in [(false, "  "), (true, "  /")] {
            let help = help(is_chat);
            let has = |it: &clap::Command| help.contains(&format!("{prefix}{}", usage(it)));
            assert!(COMMANDS.get_subcommands().all(has), "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        }
    }
}
