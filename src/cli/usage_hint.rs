//! What to write in place of a command line with a usual mistake.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};

use rehearse_client_configs::{Machine, PathKind};
use rehearse_system::program::quoted;

/// What people write for subcommands of other names: after these subcommands this word, and the hint.
const OTHER_WORDS: &[(&[&str], &str, &str)] = &[
    (
        &[""],
        "test",
        "`rehearse run` runs scenarios, `rehearse check` checks a server, and `rehearse check client` a client",
    ),
    (&[""], "eval", EVALS),
    (&[""], "evals", EVALS),
    (&["", "mcp"], "list", "it is `rehearse mcp list-tools`"),
    (&["", "mcp"], "ls", "it is `rehearse mcp list-tools`"),
];

const EVALS: &str = "`rehearse run FILE…` runs evals, which are scenarios in which a model works";

/// What people write for options of other names, and the values that these have.
const OTHER_OPTIONS: &[(&str, &str, &str)] = &[
    ("--url", "http", "URL"),
    ("--junit", "report", "FILE.xml"),
    ("-k", "filter", "REGEX"),
    ("--output", "trace-file", "FILE"),
];

/// The subcommand that is shown for one that has none, but needs it.
const USUAL: &[(&str, &str)] = &[("", "check"), ("bench", "bench discovery"), ("mcp", "mcp list-tools")];

/// The hint for a command line that clap refuses.
pub(super) fn usage_hint(error: &Error, root: &Command, args: &[OsString]) -> Option<String> {
    let words: Vec<&str> = args.iter().skip(1).map(|arg| arg.to_str()).collect::<Option<_>>()?;
    let line = CommandLine::new(root, &words);
    match error.kind() {
        ErrorKind::InvalidSubcommand => line.other_subcommand(root, context(error, ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let wrong = context(error, ContextKind::InvalidArg)?;
            let is_near_option = wrong.starts_with("--") && error.get(ContextKind::SuggestedArg).is_some();
            let other = line.misplaced(wrong).or_else(|| line.other_option(wrong));
            other.or_else(|| {
                if is_near_option { None } else { line.unquoted(wrong).or_else(|| line.tool_argument(wrong)) }
            })
        }
        _ => None,
    }
}

/// Removes the tip to write an option after `--`, where the command of a server is, and not a value.
pub(super) fn remove_wrong_tip(error: &mut Error) {
    if let Some(ContextValue::StyledStrs(tips)) = error.get(ContextKind::Suggested) {
        let right = tips.iter().filter(|tip| !tip.to_string().contains("use '-- ")).cloned().collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(right));
    }
}

/// What is wrong with a command after `--` that is one word because of its quotes.
pub(super) fn quoted_command(words: &[impl AsRef<OsStr>]) -> Option<String> {
    let [word] = words else { return None };
    let line = word.as_ref().to_str()?;
    let is_quoted = line.trim().contains(char::is_whitespace)
        && Machine::here().path_kind(Path::new(line)) == PathKind::Nothing
        && !Machine::here().has_program(line);
    is_quoted.then(|| format!("the command after `--` is one word; write it without quotes: -- {line}"))
}

/// The hint for a name that is no server, but starts one.
pub(super) fn command_hint(name: &str) -> Option<String> {
    let rest = if name.contains(char::is_whitespace) { "" } else { " …" };
    match Machine::here().path_kind(Path::new(name)) {
        PathKind::File => Some(format!("write the command that starts the server after `--`, as in `-- node {name}`")),
        _ if starts_program(name) => {
            Some(format!("write the command that starts the server after `--`, as in `-- {name}{rest}`"))
        }
        _ => None,
    }
}

/// What is wrong with arguments, with a hint if the first that has no name starts a server.
pub(super) fn wrong_arguments(wrong: String, words: &[String]) -> String {
    let unnamed = words.iter().find(|word| !word.contains('='));
    match unnamed.and_then(|word| command_hint(word)) {
        Some(hint) => format!("{wrong}; {hint}"),
        None => wrong,
    }
}

fn context(error: &Error, kind: ContextKind) -> Option<&str> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text),
        _ => None,
    }
}

/// Whether a word names a program, or is a whole command line with one.
fn starts_program(word: &str) -> bool {
    Machine::here().has_program(word.split_whitespace().next().unwrap_or_default())
}

/// The words of a command line.
struct CommandLine<'a> {
    /// The subcommands, such as `mcp list-tools`.
    path: String,
    command: &'a Command,
    rest: &'a [&'a str],
}

impl<'a> CommandLine<'a> {
    fn new(root: &'a Command, words: &'a [&'a str]) -> CommandLine<'a> {
        let mut line = CommandLine { path: String::new(), command: root, rest: words };
        while let Some((word, rest)) = line.rest.split_first()
            && let Some(command) = line.command.find_subcommand(word)
        {
            let path = format!("{} {}", line.path, command.get_name()).trim().to_owned();
            line = CommandLine { path, command, rest };
        }
        line
    }

    /// A subcommand that is elsewhere or has another name; or the command of a server in its place.
    fn other_subcommand(&self, root: &Command, wrong: &str) -> Option<String> {
        let is_here = |paths: &[&str]| paths.contains(&&*self.path);
        if let Some((.., hint)) = OTHER_WORDS.iter().find(|(paths, word, _)| is_here(paths) && *word == wrong) {
            return Some((*hint).to_owned());
        }
        // Most of what people want to do without its group is of `mcp`. A namesake in a third group is something else.
        let of_mcp = root.find_subcommand("mcp").and_then(|mcp| Some(format!("mcp {}", named(mcp, wrong)?.get_name())));
        let of_root = || named(root, wrong).map(|it| it.get_name().to_owned());
        let below = || {
            let mut groups = root.get_subcommands().filter(|it| self.path.is_empty() && !it.is_hide_set());
            groups.find_map(|group| Some(format!("{} {}", group.get_name(), named(group, wrong)?.get_name())))
        };
        if let Some(path) = of_mcp.or_else(of_root).or_else(below) {
            return Some(format!("it is `rehearse {path}`"));
        }
        let words = if self.rest.first() == Some(&"--") { &self.rest[1..] } else { self.rest };
        let is_command = words.len() > 1 || wrong.contains(char::is_whitespace);
        (is_command && words.first() == Some(&wrong) && starts_program(wrong))
            .then(|| self.after_dashes(&[], words, &[]))
    }

    /// An option of a subcommand that is not there.
    fn misplaced(&self, wrong: &str) -> Option<String> {
        let name = wrong.strip_prefix("--")?;
        let (_, usual) = USUAL.iter().find(|(path, _)| *path == self.path)?;
        let at = self.rest.iter().position(|word| *word == wrong)?;
        let subcommand = usual.rsplit(' ').next().and_then(|usual| self.command.find_subcommand(usual))?;
        if !has_option(subcommand, name) {
            return None;
        }
        match name {
            "stdio" => Some(self.moved(at, at + 1)),
            _ => Some(format!("{wrong} belongs after a subcommand, as in `rehearse {usual} {wrong}`")),
        }
    }

    /// An option that has another name here.
    fn other_option(&self, wrong: &str) -> Option<String> {
        let mut known = OTHER_OPTIONS.iter().filter(|(word, name, _)| *word == wrong && has_option(self.command, name));
        let (_, name, usual) = known.next()?;
        let ending = Path::new(usual).extension();
        let value = self.value_of(wrong).filter(|value| ending.is_none() || Path::new(value).extension() == ending);
        Some(format!("it is `--{name} {}`", value.map_or_else(|| (*usual).to_owned(), quoted)))
    }

    /// An argument of a tool that is written as an option.
    fn tool_argument(&self, wrong: &str) -> Option<String> {
        let name = wrong.strip_prefix("--").filter(|_| self.path == "mcp call-tool")?;
        let argument = format!("{name}={}", self.value_of(wrong).unwrap_or("true"));
        Some(format!("an argument of the tool is written without dashes: {}", quoted(&argument)))
    }

    /// What follows an option.
    fn value_of(&self, option: &str) -> Option<&str> {
        let joined = |word: &&'a str| word.strip_prefix(option)?.strip_prefix('=');
        let at = self.rest.iter().position(|word| *word == option);
        let next = at.and_then(|at| self.rest.get(at + 1)).filter(|word| !word.starts_with('-'));
        next.copied().or_else(|| self.rest.iter().find_map(joined))
    }

    /// The command of a server whose words are not one argument.
    fn unquoted(&self, wrong: &str) -> Option<String> {
        let at = self.rest.iter().position(|word| *word == wrong)?;
        if let Some(stdio) = self.rest[..at].iter().position(|word| *word == "--stdio") {
            let is_one = self.rest.get(stdio + 1).is_none_or(|word| word.contains(char::is_whitespace));
            return (!is_one).then(|| format!("--stdio takes one argument; {}", self.moved(stdio, stdio + 1)));
        }
        let begins = |at: &usize| starts_program(self.rest[*at]);
        let first = at.checked_sub(1).filter(begins).or(Some(at).filter(begins))?;
        let is_taken = self.command.get_positionals().any(|arg| arg.is_last_set());
        // The command of --exec is not that of a server.
        (is_taken && !has_option(self.command, "exec")).then(|| self.moved(first, first))
    }

    /// The line with the command from `start` up to our next option after `--`, without what is between `end` and `start`.
    fn moved(&self, end: usize, start: usize) -> String {
        let words = &self.rest[start.min(self.rest.len())..];
        let is_ours = |word: &&str| word.strip_prefix("--").is_some_and(|name| has_option(self.command, name));
        let (command, after) = words.split_at(words.iter().position(is_ours).unwrap_or(words.len()));
        self.after_dashes(&self.rest[..end], command, after)
    }

    /// The line with a command after `--`, and before it the words around the command.
    fn after_dashes(&self, before: &[&str], command: &[&str], after: &[&str]) -> String {
        let path = USUAL.iter().find(|(path, _)| *path == self.path).map_or(&*self.path, |(_, usual)| usual);
        let command = match command {
            [line, ..] if line.contains(char::is_whitespace) => (*line).to_owned(),
            words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
        };
        let kept: String = before.iter().chain(after).map(|word| format!(" {}", quoted(word))).collect();
        let role = if self.path == "check client" { "client" } else { "server" };
        format!("write the command that starts the {role} after `--`: rehearse {path}{kept} -- {command}")
    }
}

fn has_option(command: &Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name))
}

/// The subcommand with this name or alias.
fn named<'c>(command: &'c Command, name: &str) -> Option<&'c Command> {
    command.find_subcommand(name).filter(|it| !it.is_hide_set())
}
