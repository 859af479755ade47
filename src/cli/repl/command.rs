//! The commands of the REPL and their syntax. No IO.

use std::path::PathBuf;

use rehearse_document::nearest;
use rehearse_hub::projection::{Projection, UnknownProjection};
use rehearse_system::program::posix_words;

/// The kinds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandKind {
    Status,
    ListTools,
    Connect,
    Disconnect,
    Reconnect,
    Enable,
    Disable,
    Debug,
    Auth,
    Call,
    Resources,
    Read,
    Prompts,
    Prompt,
    Usage,
    Reload,
    Help,
    Quit,
}

/// The syntax of a command.
#[derive(Debug)]
pub(super) struct Spec {
    pub(super) kind: CommandKind,
    pub(super) name: &'static str,
    /// The names of the command in `rehearse mcp` and in other programs.
    aliases: &'static [&'static str],
    pub(super) arguments: &'static str,
    pub(super) about: &'static str,
}

const fn spec(
    kind: CommandKind,
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: &'static str,
    about: &'static str,
) -> Spec {
    Spec { kind, name, aliases, arguments, about }
}

pub(super) const ALL: [Spec; 18] = [
    spec(CommandKind::Status, "status", &["list", "list-servers", "ls-servers"], "", "the status of all servers"),
    spec(
        CommandKind::ListTools,
        "list-tools",
        &["tools", "ls-tools"],
        "[SERVER]",
        "list all tools, or those of a server with schemas",
    ),
    spec(CommandKind::Connect, "connect", &[], "SERVER", "connect to a server"),
    spec(CommandKind::Disconnect, "disconnect", &[], "SERVER", "disconnect a server"),
    spec(CommandKind::Reconnect, "reconnect", &["restart"], "SERVER", "disconnect and connect again"),
    spec(CommandKind::Enable, "enable", &[], "SERVER", "enable a server"),
    spec(CommandKind::Disable, "disable", &[], "SERVER", "disable a server"),
    spec(CommandKind::Debug, "debug", &["info"], "[SERVER] [on|off]", "show a server, or switch its debug output"),
    spec(CommandKind::Auth, "auth", &[], "SERVER [--logout]", "get or delete the OAuth token of a server"),
    spec(
        CommandKind::Call,
        "call",
        &["call-tool"],
        "TOOL [NAME=VALUE… | JSON] [--server SERVER] [--output FILE | --as FORM]",
        "call a tool",
    ),
    spec(
        CommandKind::Resources,
        "resources",
        &["list-resources"],
        "[SERVER | --server SERVER]",
        "list resources and templates",
    ),
    spec(CommandKind::Read, "read", &["read-resource"], "URI [--server SERVER] [--output FILE]", "read a resource"),
    spec(CommandKind::Prompts, "prompts", &["list-prompts"], "[SERVER | --server SERVER]", "list prompts"),
    spec(
        CommandKind::Prompt,
        "prompt",
        &["get-prompt"],
        "NAME [NAME=VALUE…] [--server SERVER] [--output FILE]",
        "get a prompt",
    ),
    spec(CommandKind::Usage, "usage", &["metrics"], "", "calls of tools, and what the model took"),
    spec(CommandKind::Reload, "reload", &[], "", "reload the config files"),
    spec(CommandKind::Help, "help", &["?"], "", "show this help"),
    spec(CommandKind::Quit, "quit", &["exit"], "", "disconnect and exit"),
];

/// A command with its arguments.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// A message to the model.
    Say(String),
    Status,
    ListTools(Option<String>),
    Connect(String),
    Disconnect(String),
    Reconnect(String),
    Enable(String),
    Disable(String),
    Debug {
        server: Option<String>,
        on: Option<bool>,
    },
    Auth {
        server: String,
        is_logout: bool,
    },
    Call {
        tool: String,
        server: Option<String>,
        arguments: ArgumentInput,
        shown: ResultFormat,
    },
    Resources(Option<String>),
    Read {
        uri: String,
        server: Option<String>,
        output: Option<PathBuf>,
    },
    Prompts(Option<String>),
    Prompt {
        name: String,
        words: Vec<String>,
        server: Option<String>,
        output: Option<PathBuf>,
    },
    Usage,
    Reload,
    Help,
    Quit,
}

/// The arguments of a call as typed.
#[derive(Debug, PartialEq)]
pub(super) enum ArgumentInput {
    Words(Vec<String>),
    Json(String),
}

/// How a result is printed.
#[derive(Debug, PartialEq)]
pub(super) enum ResultFormat {
    /// As text; binary content is saved to the file, if there is one.
    Human(Option<PathBuf>),
    As(Projection),
}

/// The line without the optional prefix `/mcp`.
pub(super) fn without_prefix(line: &str) -> &str {
    let line = line.trim_start();
    match line.strip_prefix("/mcp") {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => line.strip_prefix('/').unwrap_or(line),
    }
}

/// The command with this name or alias.
pub(super) fn spec_by_name(name: &str) -> Option<&'static Spec> {
    ALL.iter().find(|spec| spec.name == name || spec.aliases.contains(&name))
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
        if name.is_empty() {
            return Ok(Some(Command::Help));
        }
        let Some(spec) = spec_by_name(&name.to_lowercase()) else {
            let names: Vec<_> =
                ALL.iter().flat_map(|spec| [spec.name].into_iter().chain(spec.aliases.iter().copied())).collect();
            let near = nearest(&name.to_lowercase(), &names).map(|near| format!("; did you mean '{near}'?"));
            return Err(format!(
                "unknown command {name:?}{}",
                near.unwrap_or_else(|| "; type '/help' for a list".to_owned())
            ));
        };
        spec.command(rest.trim()).map(Some)
    }
}

/// The text after the name of a command.
struct Operands {
    words: Vec<String>,
    output: Option<PathBuf>,
    server: Option<String>,
    is_logout: bool,
    form: Option<Projection>,
}

impl ResultFormat {
    fn new(output: Option<PathBuf>, form: Option<Projection>) -> Result<ResultFormat, String> {
        match (output, form) {
            (Some(_), Some(_)) => Err("--as and --output exclude each other".to_owned()),
            (None, Some(form)) => Ok(ResultFormat::As(form)),
            (output, None) => Ok(ResultFormat::Human(output)),
        }
    }
}

impl Spec {
    pub(super) fn usage(&self) -> String {
        format!("{} {}", self.name, self.arguments).trim_end().to_owned()
    }

    fn command(&self, rest: &str) -> Result<Command, String> {
        if self.kind == CommandKind::Call
            && let Some(command) = self.call_with_json(rest)?
        {
            return Ok(command);
        }
        let Operands { words, output, server, is_logout, form } = self.operands(rest)?;
        let mut words = words.into_iter();
        let mut next = || words.next();
        let wanted = |word: Option<String>| word.ok_or_else(|| format!("usage: {}", self.usage()));
        let command = match self.kind {
            CommandKind::Status => Command::Status,
            CommandKind::ListTools => Command::ListTools(next()),
            CommandKind::Connect => Command::Connect(wanted(next())?),
            CommandKind::Disconnect => Command::Disconnect(wanted(next())?),
            CommandKind::Reconnect => Command::Reconnect(wanted(next())?),
            CommandKind::Enable => Command::Enable(wanted(next())?),
            CommandKind::Disable => Command::Disable(wanted(next())?),
            CommandKind::Debug => match (next(), next()) {
                (Some(word), None) if parse_switch(&word).is_some() => {
                    Command::Debug { server: None, on: parse_switch(&word) }
                }
                (server, None) => Command::Debug { server, on: None },
                (server, Some(word)) => Command::Debug { server, on: Some(required_switch(&word)?) },
            },
            CommandKind::Auth => Command::Auth { server: wanted(next())?, is_logout },
            CommandKind::Call => {
                let (tool, arguments) = (wanted(next())?, ArgumentInput::Words(words.by_ref().collect()));
                Command::Call { tool, server, arguments, shown: ResultFormat::new(output, form)? }
            }
            CommandKind::Resources => Command::Resources(server.or_else(next)),
            CommandKind::Read => Command::Read { uri: wanted(next())?, server, output },
            CommandKind::Prompts => Command::Prompts(server.or_else(next)),
            CommandKind::Prompt => {
                Command::Prompt { name: wanted(next())?, words: words.by_ref().collect(), server, output }
            }
            CommandKind::Usage => Command::Usage,
            CommandKind::Reload => Command::Reload,
            CommandKind::Help => Command::Help,
            CommandKind::Quit => Command::Quit,
        };
        match words.next() {
            Some(word) if self.kind != CommandKind::Help => {
                Err(format!("{word:?} is unexpected; usage: {}", self.usage()))
            }
            _ => Ok(command),
        }
    }

    /// `TOOL {…}`: the JSON is used verbatim, and options may stand before and after it.
    fn call_with_json(&self, rest: &str) -> Result<Option<Command>, String> {
        let Some((before, _)) = rest.split_once('{').filter(|(before, _)| before.ends_with(char::is_whitespace)) else {
            return Ok(None);
        };
        let (json, behind) = rest[before.len()..].split_at(json_length(&rest[before.len()..]));
        let Operands { words, output, server, form, .. } = self.operands(&format!("{before} {behind}"))?;
        let tool = match &words[..] {
            [tool] => tool,
            [_, word, ..] if self.operands(before)?.words.len() == 1 => {
                return Err(format!("{word:?} is unexpected; usage: {}", self.usage()));
            }
            _ => return Ok(None),
        };
        let arguments = ArgumentInput::Json(json.to_owned());
        Ok(Some(Command::Call { tool: tool.clone(), server, arguments, shown: ResultFormat::new(output, form)? }))
    }

    /// Splits the text into words and the options of the command.
    fn operands(&self, text: &str) -> Result<Operands, String> {
        let mut rest = Operands { words: Vec::new(), output: None, server: None, is_logout: false, form: None };
        let mut words = posix_words(text).map_err(|error| error.replace("the command", "the line"))?.into_iter();
        while let Some(word) = words.next() {
            let has = |option: &str| self.arguments.contains(option);
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value.to_owned())),
                _ => (&*word, None),
            };
            let mut value = || value.clone().or_else(|| words.next()).ok_or_else(|| format!("{option} needs a value"));
            match option {
                "--output" | "-o" if has("--output") => rest.output = Some(value()?.into()),
                "--as" if has("--as") => {
                    rest.form = Some(value()?.parse().map_err(|error: UnknownProjection| error.to_string())?);
                }
                "--server" if has("--server") => rest.server = Some(value()?),
                "--logout" if has("--logout") => rest.is_logout = true,
                option if option.starts_with("--") => {
                    return Err(format!("unknown option {option}; usage: {}", self.usage()));
                }
                _ => rest.words.push(word),
            }
        }
        Ok(rest)
    }
}

/// The length of the JSON value at the start of a text; the whole text if there is none.
fn json_length(text: &str) -> usize {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<serde::de::IgnoredAny>();
    match values.next() {
        Some(Ok(_)) => values.byte_offset(),
        _ => text.len(),
    }
}

fn parse_switch(word: &str) -> Option<bool> {
    match word {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

fn required_switch(word: &str) -> Result<bool, String> {
    parse_switch(word).ok_or_else(|| format!("{word:?} is not on or off"))
}

/// The list of all commands, at the prompt of a conversation or another one. No line is longer than 80 columns.
pub(super) fn help(is_chat: bool) -> String {
    let usage = |spec: &Spec| format!("{}{}", if is_chat { "/" } else { "" }, spec.usage());
    let width = ALL.iter().map(|spec| usage(spec).chars().count()).filter(|width| *width < 26).max();
    let width = width.unwrap_or_default();
    let line = |spec: &Spec| {
        let usage = usage(spec);
        match usage.chars().count() > width {
            true => format!("  {usage}\n  {:width$}  {}\n", "", spec.about),
            false => format!("  {usage:width$}  {}\n", spec.about),
        }
    };
    let commands: String = ALL.iter().map(line).collect();
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

    fn parse(line: &str) -> Command {
        Command::parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).expect(line)
    }

    fn words(words: &[&str]) -> ArgumentInput {
        ArgumentInput::Words(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn a_command_may_have_the_prefix_or_another_name() {
        for line in ["status", "/mcp status", "/mcp   status ", "/status", "STATUS", "list", "/mcp list-servers"] {
            assert_eq!(parse(line), Command::Status, "{line}");
        }
        assert_eq!((parse("/mcp"), parse("/mcp help"), parse("?")), (Command::Help, Command::Help, Command::Help));
        for line in ["", "  ", "# a note"] {
            assert_eq!(Command::parse(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn an_unknown_command_suggests_the_nearest() {
        for (line, error) in [
            ("statsu", "unknown command \"statsu\"; did you mean 'status'?"),
            ("/mcp lst-tools", "unknown command \"lst-tools\"; did you mean 'list-tools'?"),
            ("/mcpx", "unknown command \"mcpx\"; type '/help' for a list"),
            ("connect", "usage: connect SERVER"),
            ("connect a b", "\"b\" is unexpected; usage: connect SERVER"),
            ("status now", "\"now\" is unexpected; usage: status"),
            ("debug a maybe", "\"maybe\" is not on or off"),
            (
                "call t --logout",
                "unknown option --logout; usage: call TOOL [NAME=VALUE… | JSON] [--server SERVER] [--output FILE | --as FORM]",
            ),
            ("call t --as gai", "unknown form \"gai\": use canonical, cpe, code_agent, mcpilot, engine"),
            ("call t --as cpe --output f", "--as and --output exclude each other"),
            ("read x --output", "--output needs a value"),
            ("connect 'a", "the line has an unclosed '"),
        ] {
            assert_eq!(Command::parse(line), Err(error.to_owned()), "{line}");
        }
    }

    #[test]
    fn a_line_of_a_conversation_is_a_message_or_a_command() {
        let say = |text: &str| Ok(Some(Command::Say(text.to_owned())));
        assert_eq!(Command::parse_in_chat(" status of it? \n"), say("status of it?"));
        assert_eq!(Command::parse_in_chat("exit"), Ok(Some(Command::Quit)));
        assert_eq!(Command::parse_in_chat("/status"), Ok(Some(Command::Status)));
        assert_eq!(Command::message("/etc\nhelp\n"), say("/etc\nhelp"));
        assert_eq!((Command::message("\n"), Command::parse_in_chat(" ")), (Ok(None), Ok(None)));
    }

    #[test]
    fn the_server_of_a_command_is_optional() {
        assert_eq!(parse("list-tools"), Command::ListTools(None));
        assert_eq!(parse("tools 'my server'"), Command::ListTools(Some("my server".into())));
        assert_eq!(parse("debug"), Command::Debug { server: None, on: None });
        assert_eq!(parse("debug on"), Command::Debug { server: None, on: Some(true) });
        assert_eq!(parse("debug s"), Command::Debug { server: Some("s".into()), on: None });
        assert_eq!(parse("info s off"), Command::Debug { server: Some("s".into()), on: Some(false) });
        assert_eq!(parse("auth s --logout"), Command::Auth { server: "s".into(), is_logout: true });
    }

    #[test]
    fn a_call_has_words_or_json() {
        let call = |arguments, output: Option<&str>| Command::Call {
            tool: "t".into(),
            server: None,
            arguments,
            shown: ResultFormat::Human(output.map(Into::into)),
        };
        assert_eq!(parse("call t"), call(words(&[]), None));
        assert_eq!(parse("call t a=1 'b=x y' c:={\"d\":1}"), call(words(&["a=1", "b=x y", "c:={d:1}"]), None));
        assert_eq!(parse("call t --output=f a={}"), call(words(&["a={}"]), Some("f")));
        let json = |text: &str| ArgumentInput::Json(text.to_owned());
        assert_eq!(parse(r#"call t {"a": "it's"}"#), call(json(r#"{"a": "it's"}"#), None));
        assert_eq!(parse(r#"call t -o f {"a": 1}"#), call(json(r#"{"a": 1}"#), Some("f")));
        let formed = |arguments| Command::Call {
            tool: "t".into(),
            server: Some("s".into()),
            arguments,
            shown: ResultFormat::As(Projection::Cpe),
        };
        assert_eq!(parse("call t a=1 --server s --as cpe"), formed(words(&["a=1"])));
        assert_eq!(parse(r#"call t --as=cpe {"a": 1} --server=s"#), formed(json(r#"{"a": 1}"#)));
        assert_eq!(parse(r#"call t --server s {"a": "} --as {"} --as cpe"#), formed(json(r#"{"a": "} --as {"}"#)));
        assert_eq!(parse(r#"call t {"a": 1} -o f"#), call(json(r#"{"a": 1}"#), Some("f")));
        assert_eq!(parse(r#"call t {"a": 1"#), call(json(r#"{"a": 1"#), None));
        assert!(
            Command::parse(r#"call t {"a": 1} b=2"#).is_err_and(|error| error.starts_with("\"b=2\" is unexpected"))
        );
    }

    #[test]
    fn resources_and_prompts_may_name_their_server() {
        for line in ["resources s", "resources --server s", "list-resources --server=s"] {
            assert_eq!(parse(line), Command::Resources(Some("s".into())), "{line}");
        }
        assert_eq!(parse("prompts --server s"), Command::Prompts(Some("s".into())));
        let twice = Command::parse("resources s --server s").expect_err("too much");
        assert_eq!(twice, "\"s\" is unexpected; usage: resources [SERVER | --server SERVER]");
        assert_eq!(
            parse("read a://b --server s -o f"),
            Command::Read { uri: "a://b".into(), server: Some("s".into()), output: Some("f".into()) }
        );
        assert_eq!(
            parse("prompt p a=1 --server s"),
            Command::Prompt { name: "p".into(), words: vec!["a=1".into()], server: Some("s".into()), output: None }
        );
    }

    #[test]
    fn the_help_has_every_command() {
        for (is_chat, prefix) in [(false, "  "), (true, "  /")] {
            let help = help(is_chat);
            let has = |spec: &Spec| help.contains(&format!("{prefix}{}", spec.usage())) && help.contains(spec.about);
            assert!(ALL.iter().all(has), "{help}");
            assert!(help.lines().all(|line| line.chars().count() <= 80), "{help}");
        }
    }
}
