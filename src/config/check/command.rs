//! Commands, their arguments, and where they run.

use std::{cell::LazyCell, path::Path};

use super::Subject;
use crate::{
    config::{
        Found, Machine,
        command_line::{assignment, words_for_hint},
        dialect::{Dialect, Field, Place, Syntax, is_from_home},
        finding::{Finding, codes},
        placeholder::placeholder,
        read::BRIDGE,
        references,
        server::{At, ServerConfig, Text},
    },
    transport::Transport,
};

/// Programs that give a text to a shell, or are one.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "fish", "dash", "cmd", "powershell", "pwsh", "wsl", "ssh", "env", "nix"];

/// Programs that start others, or run what is written for them.
const LAUNCHERS: &[&str] =
    &["node", "npx", "python", "python3", "uv", "uvx", "docker", "podman", "deno", "bun", "bunx"];

/// Words between a launcher and its options.
const SUBCOMMANDS: &[&str] = &["run", "exec", "compose", "container", "tool"];

/// Options of launchers that have no value after them.
const FLAGS: &[&str] = &["-y", "--yes", "-i", "-t", "-it", "-d", "--rm", "--init", "-q", "--quiet"];

/// What separates the words of a shell.
const OPERATORS: &[&str] = &["&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&"];

/// No key for a command is longer, with its indentation.
const LONGEST_KEY: usize = 100;

pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    if let Some(command) = &server.command {
        if command.value.trim().is_empty() {
            if !server.is_enabled() {
                return;
            }
            findings.push(codes::MISSING.at(command.span, "the command is empty").hint("name the program to start"));
            return;
        }
        if address(subject, command, findings) {
            return;
        }
        let in_words = command_line(subject, server, command, findings);
        prompt(server, command, findings);
        if let Some(machine) = subject.machine_for(server).filter(|_| !in_words) {
            not_found(subject, machine, server, command, findings);
        }
    }
    shell_words(server, findings);
    joined(server, findings);
    paths(subject, server, findings);
    directory(subject, server, findings);
}

/// The last part of a path, without the ending that Windows has.
pub(super) fn program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    [".exe", ".cmd", ".bat"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Whether a shell reads the arguments of this server, directly or in a container.
pub(super) fn has_shell(server: &ServerConfig) -> bool {
    let words = server.command.iter().chain(&server.args);
    words.into_iter().any(|word| SHELLS.contains(&program(&word.value)))
}

/// A command that is a URL: whether that is so.
fn address(subject: &Subject<'_>, command: &At<String>, findings: &mut Vec<Finding>) -> bool {
    let is_url = ["http://", "https://"].iter().any(|scheme| command.value.trim_start().starts_with(scheme));
    let is_one = is_url && !command.value.trim().contains(char::is_whitespace);
    if is_one {
        let dialect = subject.dialect();
        let key = |wanted: fn(Field) -> bool| dialect.keys.iter().find(|key| wanted(key.field)).map(|key| key.name);
        let word = dialect.transports.iter().find(|(_, transport)| *transport == Transport::Http).map(|it| it.0);
        let url = key(|field| matches!(field, Field::Url(None | Some(Transport::Http))));
        let hint = match (url, key(|field| field == Field::Transport).zip(word)) {
            (Some(url), Some((kind, word))) => format!("write it as `{url}`, with \"{kind}\": \"{word}\""),
            (Some(url), None) => format!("write it as `{url}`"),
            (None, _) => BRIDGE.to_owned(),
        };
        let message = "the command is a URL, and no program that can be started";
        findings.push(codes::TRANSPORT.at(command.span, message).hint(hint));
    }
    is_one
}

/// A command with blanks in it, which is no path: whether that is so.
fn command_line(
    subject: &Subject<'_>,
    server: &ServerConfig,
    command: &At<String>,
    findings: &mut Vec<Finding>,
) -> bool {
    let text = command.value.trim();
    // A blank within something that is replaced separates no words.
    let replaced = subject.dialect().rule(Field::Command).replaced_in(text);
    let is_outside = |(at, _): &(usize, &str)| replaced.iter().all(|range| !range.contains(at));
    let Some((blank, between)) = text.match_indices(char::is_whitespace).find(is_outside) else { return false };
    let (first, rest) = (&text[..blank], &text[blank + between.len()..]);
    let exists = |machine: &Machine| machine.at(Path::new(text)) != Found::Nothing;
    let is_path = first.contains(['/', '\\']) && !rest.trim_start().starts_with('-') && !rest.contains(" -");
    let is_launched = LAUNCHERS.contains(&program(first)) || SHELLS.contains(&program(first));
    if subject.machine.is_some_and(exists) || (is_path && !is_launched) {
        return false;
    }
    let message = "the command has its arguments in it, and is taken for the name of one program";
    let line = if replaced.is_empty() { words_for_hint(text) } else { None };
    let layout = Layout { is_in_block: is_in_block(subject, command), has_args: !server.args.is_empty() };
    let hint = split(subject.dialect(), text, line.as_deref(), layout);
    findings.push(codes::COMMAND_LINE.at(command.span, message).hint(hint));
    true
}

/// Whether nothing but a key without quotes stands before this in its line, as in YAML.
fn is_in_block(subject: &Subject<'_>, command: &At<String>) -> bool {
    let text = &subject.source.text;
    let before = &text[text.floor_char_boundary(command.span.start.saturating_sub(LONGEST_KEY))..command.span.start];
    let line = before.rsplit('\n').next().unwrap_or_default().trim();
    let key = line.strip_suffix(':').map(|key| key.trim_start_matches("- "));
    !matches!(subject.dialect().syntax, Syntax::Json(_))
        && key.is_some_and(|key| key.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// What stands around a command.
#[derive(Clone, Copy)]
struct Layout {
    /// It is YAML, in a line of its own.
    is_in_block: bool,
    /// There are arguments beside it.
    has_args: bool,
}

/// How to write a command line as a program with its arguments, given its words if they may be shown.
fn split(dialect: &Dialect, text: &str, words: Option<&[String]>, layout: Layout) -> String {
    let Layout { is_in_block, has_args } = layout;
    let pair =
        |key: &str, value: String| if is_in_block { format!("{key}: {value}") } else { format!("\"{key}\": {value}") };
    let and = if is_in_block { " and below it " } else { ", " };
    let key = |wanted: Field| dialect.keys.iter().find(|key| key.field == wanted).map(|key| key.name);
    let (command, args) = (key(Field::Command).unwrap_or("command"), key(Field::Args).unwrap_or("args"));
    let env = key(Field::Env).unwrap_or("env");
    let started = |words: &[String]| match (key(Field::CommandLine), words) {
        (None, [first, rest @ ..]) if has_args => {
            let rest = format!("{rest:?}");
            let rest = rest.trim_matches(['[', ']']);
            format!("write {}, and put {rest} before what is in `{args}`", pair(command, format!("{first:?}")))
        }
        (None, [first, rest @ ..]) => {
            format!("write {}{and}{}", pair(command, format!("{first:?}")), pair(args, format!("{rest:?}")))
        }
        (line, words) => format!("write {}", pair(line.unwrap_or(command), format!("{words:?}"))),
    };
    let variables: Vec<_> = text.split_whitespace().map_while(assignment).collect();
    if text.split_whitespace().any(|word| OPERATORS.contains(&word.trim_end_matches(';')) || word.ends_with(';')) {
        return match words {
            Some(_) => started(&["sh", "-c", text].map(str::to_owned)),
            None => {
                let shell = (pair(command, "\"sh\"".into()), pair(args, "[\"-c\", \"…\"]".into()));
                format!("start a shell: {}{and}{}", shell.0, shell.1)
            }
        };
    }
    match (words.map(|words| words.split_at(words.iter().map_while(|it| assignment(it)).count())), &variables[..]) {
        (Some((_, [])), _) | (None, []) => match key(Field::CommandLine) {
            Some(line) => format!("make each word of it a text of its own in `{line}`"),
            None => format!("put only the first word into `{command}`, and the others into `{args}`"),
        },
        (Some(([], words)), _) => started(words),
        (Some((variables, words)), _) => {
            let pairs = variables.iter().filter_map(|word| assignment(word));
            let pairs: Vec<_> = pairs.map(|(name, value)| format!("{name:?}: {value:?}")).collect();
            format!("{}{and}{}", started(words), pair(env, format!("{{{}}}", pairs.join(", "))))
        }
        (None, variables) => {
            let names: Vec<_> = variables.iter().map(|(name, _)| format!("`{name}`")).collect();
            let names = names.join(" and ");
            match key(Field::CommandLine) {
                Some(line) => {
                    format!("put {names} into `{env}`, and make each other word a text of its own in `{line}`")
                }
                None => {
                    format!("put {names} into `{env}`, the next word into `{command}`, and the others into `{args}`")
                }
            }
        }
    }
}

/// `npx` asks before it installs a package, unless its input is no terminal (libnpmexec, `noTTY`).
fn prompt(server: &ServerConfig, command: &At<String>, findings: &mut Vec<Finding>) {
    let mut words = std::iter::once(command).chain(&server.args).skip_while(|word| program(&word.value) != "npx");
    let Some(npx) = words.next() else { return };
    if !std::ptr::eq(npx, command) && !has_shell(server) {
        return;
    }
    while let Some(word) = words.next() {
        match word.value.as_str() {
            "--yes" | "--no-install" | "--no" | "-yes" => return,
            "-p" | "--package" | "--prefix" | "-c" | "--call" | "-w" | "--workspace" | "--registry" | "--cache"
            | "--userconfig" | "--loglevel" => drop(words.next()),
            // Short options may stand together.
            option if !option.starts_with("--") && option.starts_with('-') && option.contains('y') => return,
            option if option.starts_with('-') => {}
            _ => {
                let message = "where it has a terminal, npx asks before it installs a package";
                let finding = codes::PACKAGE_PROMPT.at(word.span, message);
                findings.push(finding.hint("put \"-y\" before the package"));
                return;
            }
        }
    }
}

fn not_found(
    subject: &Subject<'_>,
    machine: &Machine,
    server: &ServerConfig,
    command: &At<String>,
    findings: &mut Vec<Finding>,
) {
    let text = command.value.trim();
    let is_odd = text.contains(|c: char| !c.is_ascii());
    let has_own_path = server.env.iter().any(|pair| pair.name.value.eq_ignore_ascii_case("PATH"));
    let is_known = references(text).next().is_none() && placeholder(text).is_none() && !text.starts_with('~');
    let is_replaced = subject.dialect().rule(Field::Command).is_replaced_in(text);
    if !is_known || is_replaced || is_odd || has_own_path {
        return;
    }
    let path = Path::new(text);
    if !text.contains(['/', '\\']) {
        if !subject.has_program(machine, text) {
            let message = format!("there is no program `{text}` on the PATH of this machine");
            findings.push(codes::COMMAND_NOT_FOUND.at(command.span, message).hint("install it, or give its full path"));
        }
    } else if path.is_absolute() && machine.at(path) != Found::Program {
        let message = match machine.at(path) {
            Found::Nothing => format!("there is no {text} on this machine"),
            Found::Directory => format!("{text} is a folder"),
            Found::File | Found::Program => format!("{text} cannot be run"),
        };
        findings.push(codes::COMMAND_NOT_FOUND.at(command.span, message).hint("look at the path"));
    }
}

/// Words that only a shell understands, where there is none.
fn shell_words(server: &ServerConfig, findings: &mut Vec<Finding>) {
    let has_shell = LazyCell::new(|| has_shell(server));
    for word in server.command.iter().chain(&server.args) {
        if is_quoted(&word.value) && !*has_shell {
            let message = "the quotes are a part of it, as no shell takes them away";
            findings.push(codes::COMMAND_LINE.at(word.span, message).hint("remove the inner quotes"));
        }
    }
    for word in &server.args {
        let is_operator = OPERATORS.contains(&word.value.as_str());
        if (is_operator || word.value.contains("$(")) && !*has_shell {
            let what = if is_operator { format!("`{}`", word.value) } else { "`$(…)`".into() };
            let message = format!("only a shell understands {what}, and the command is started without one");
            let hint = "start a shell: \"command\": \"sh\", \"args\": [\"-c\", \"…\"]";
            findings.push(codes::COMMAND_LINE.at(word.span, message).hint(hint));
        }
    }
}

/// Whether this is one word or path in quotes of its own.
fn is_quoted(word: &str) -> bool {
    let is_plain = |inner: &str| !inner.is_empty() && !inner.contains(['"', '\'', '{', '[', '(']);
    ['"', '\''].into_iter().any(|quote| {
        let inner = word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inner.is_some_and(|inner| is_plain(inner) && inner.contains(['.', '/', '\\', '@']))
    })
}

/// Several words of a command line in one argument, which a launcher takes for one word.
fn joined(server: &ServerConfig, findings: &mut Vec<Finding>) {
    let is_launched = |command: &At<String>| LAUNCHERS.contains(&program(&command.value));
    if !server.command.as_ref().is_some_and(is_launched) || has_shell(server) {
        return;
    }
    let is_option = |word: &str| {
        let name = word.trim_start_matches('-');
        word.starts_with('-') && !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let is_path = |word: &str| word.starts_with(['/', '.', '~']) || word.contains('\\');
    let (mut is_own, mut is_after_option) = (true, false);
    for word in &server.args {
        let text = &*word.value;
        if let Some((first, rest)) = text.split_once(' ') {
            let is_line = || rest.split_whitespace().any(is_option) && !is_path(text) && !is_after_option;
            let is_pair = || first.starts_with("--") && !rest.contains(char::is_whitespace) && !is_after_option;
            let is_joined = is_option(first) && !rest.is_empty() && (is_own || is_pair());
            if is_joined || is_own && is_line() {
                let what = if is_option(first) { format!("`{first}`") } else { "a word".to_owned() };
                let message = format!("{what} and what follows it are one argument");
                findings.push(codes::COMMAND_LINE.at(word.span, message).hint("make each word a text of its own"));
            }
        }
        // Whatever comes after the first word that is no option, and no value of one, is for the program that is launched:
        // of that, only an option with its value is surely several words.
        is_own &= text.starts_with('-') || is_after_option || SUBCOMMANDS.contains(&text);
        is_after_option = is_option(text) && !FLAGS.contains(&text);
    }
}

/// Paths that only one machine, or only a shell, makes something of.
fn paths(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    let is_path = |text: &Text<'_>| matches!(text.field, Field::Command | Field::Args | Field::Cwd | Field::EnvFile);
    let is_shared = subject.dialect().files.iter().any(|place| matches!(place, Place::Project(_)));
    let mut is_told = false;
    for text in server.texts().filter(is_path) {
        let value = text.at.value.as_str();
        if !subject.dialect().home.contains(&text.field) && is_from_home(value) && !has_shell(server) {
            let message = format!("{} does not replace `~`, and there is no shell to do it", subject.dialect().program);
            findings.push(codes::HOME.at(text.at.span, message).hint("write the whole path"));
        }
        if is_shared
            && is_of_one_machine(value)
            && placeholder(value).is_none()
            && !std::mem::replace(&mut is_told, true)
        {
            let message = "this path exists on one machine only";
            findings.push(codes::MACHINE_PATH.at(text.at.span, message).hint("others need one of their own"));
        }
    }
}

/// Whether a path leads into somebody's home folder.
fn is_of_one_machine(value: &str) -> bool {
    let windows = value.get(1..).is_some_and(|rest| rest.starts_with(":\\Users\\") || rest.starts_with(":/Users/"));
    (value.starts_with("/Users/") && !value.starts_with("/Users/Shared/")) || value.starts_with("/home/") || windows
}

fn directory(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    let (Some(cwd), Some(machine)) = (&server.cwd, subject.machine_for(server)) else { return };
    let text = cwd.value.as_str();
    let is_replaced = subject.dialect().rule(Field::Cwd).is_replaced_in(text);
    if is_replaced || text.starts_with('~') || references(text).next().is_some() || placeholder(text).is_some() {
        return;
    }
    let beside = subject.beside(text);
    if [Path::new(text), &beside].iter().all(|path| machine.at(path) != Found::Directory) {
        let message = format!("there is no folder {text} on this machine");
        findings.push(codes::DIRECTORY.at(cwd.span, message).hint("the server could not be started in it"));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Source, examine, finding::codes};

    /// The arguments that should have been several.
    fn joined(command: &str, args: &str) -> Vec<String> {
        let text = format!(r#"{{"mcpServers": {{"s": {{"command": "{command}", "args": {args}}}}}}}"#);
        let examined = examine(&Source::new(".mcp.json", text.clone()), Some(Path::new(".mcp.json")), None, None);
        let found = examined.findings.iter().filter(|it| it.code == &codes::COMMAND_LINE);
        found.map(|it| text[it.problem.span.start..it.problem.span.end].replace('"', "")).collect()
    }

    #[test]
    fn a_command_that_is_a_url_is_told_with_the_key_for_it() {
        for (path, hint) in [
            (".mcp.json", "write it as `url`, with \"type\": \"http\""),
            ("claude_desktop_config.json", crate::config::read::BRIDGE),
        ] {
            let text = r#"{"mcpServers": {"s": {"command": "https://a.example/mcp"}}}"#;
            let examined = examine(&Source::new(path, text), Some(Path::new(path)), None, None);
            let told: Vec<_> = examined.findings.iter().map(|it| (it.code, it.problem.hint.as_deref())).collect();
            assert_eq!(told, [(&codes::TRANSPORT, Some(hint))], "{path}");
        }
    }

    #[test]
    fn quotes_and_dashes_that_no_shell_sees_are_told_where_they_stand() {
        for (server, expected) in [
            (r#""command": "\"C:\\a b\\c.exe\"""#, vec!["W-COMMAND-LINE"]),
            (r#""command": "node", "args": ["'server.js'"]"#, vec!["W-COMMAND-LINE"]),
            (r#""command": "node", "args": ["–y", "—header", "− 1"]"#, vec!["W-INVISIBLE", "W-INVISIBLE"]),
            (r#""command": "sh", "args": ["-c", "'/bin/x'"]"#, vec![]),
            (r#""command": "node", "args": ["'x'", "\"{}\"", "a – b"]"#, vec![]),
        ] {
            let text = format!(r#"{{"mcpServers": {{"s": {{{server}}}}}}}"#);
            let examined = examine(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
            let told: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
            assert_eq!(told, expected, "{server}");
        }
    }

    #[test]
    fn a_command_line_of_yaml_is_split_in_yaml() {
        let hint = |file: &str, text: &str| {
            let examined = examine(&Source::new(file, text), Some(Path::new(file)), None, None);
            let found = examined.findings.into_iter().find(|it| it.code == &codes::COMMAND_LINE);
            found.and_then(|it| it.problem.hint).unwrap_or_default().into_owned()
        };
        let block = "mcpServers:\n  s:\n    type: stdio\n    command: npx -y foo\n";
        assert_eq!(hint("cpe.yaml", block), r#"write command: "npx" and below it args: ["-y", "foo"]"#);
        let flow = "mcpServers:\n  s: {type: stdio, command: npx -y foo}\n";
        assert_eq!(hint("cpe.yaml", flow), r#"write "command": "npx", "args": ["-y", "foo"]"#);
        let variable = block.replace("npx", "A=b npx");
        let expected = r#"write command: "npx" and below it args: ["-y", "foo"] and below it env: {"A": "b"}"#;
        assert_eq!(hint("cpe.yaml", &variable), expected);
    }

    #[test]
    fn words_that_are_one_argument_are_told_as_far_as_they_are_the_launchers() {
        assert_eq!(joined("docker", r#"["run", "-i x"]"#), ["-i x"]);
        assert_eq!(joined("docker", r#"["run -i", "x"]"#), ["run -i"]);
        assert_eq!(joined("docker", r#"["run", "-i", "-v", "a:b", "-e A", "x", "-c d"]"#), ["-e A"]);
        assert_eq!(joined("uv", r#"["--directory", "/x y -z", "run", "--with mcp", "a.py"]"#), ["--with mcp"]);
        assert_eq!(joined("npx", r#"["-y", "pkg --port 3000"]"#), ["pkg --port 3000"]);
        assert_eq!(joined("npx", r#"["-y", "pkg", "--port 3000"]"#), ["--port 3000"]);
        for (command, args) in [
            ("docker", r#"["run", "--rm", "image", "--prompt", "fix -x", "-c d"]"#),
            ("npx", r#"["-y", "pkg", "-a b"]"#),
            ("npx", r#"["-y", "pkg", "--note", "--port 3000", "--say it is so"]"#),
            ("node", r#"["/my app -old/server.js", "-e f"]"#),
            ("python", r#"["-c", "print(1) -x"]"#),
            ("docker", r#"["run", "--name", "a -b", "x y"]"#),
            ("serve", r#"["-e f"]"#),
        ] {
            assert_eq!(joined(command, args), [""; 0], "{command} {args}");
        }
    }
}
