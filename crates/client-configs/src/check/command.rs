//! Commands and their arguments.

use std::path::Path;

use super::CheckedConfig;
use crate::{
    At, ConfiguredServer, Machine, PathKind, codes,
    dialect::{BatchFiles, Field, is_from_home, variable_of_windows},
    machine::{has_root, is_of_windows},
    placeholder::placeholder,
    read::BRIDGE,
};
use rehearse_document::references;
use rehearse_protocol::Transport;
use rehearse_report::findings::Finding;

/// Programs that give a string to a shell, or are one.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "fish", "dash", "cmd", "powershell", "pwsh", "wsl", "ssh", "env", "nix"];

/// Programs that start others.
const LAUNCHERS: &[&str] = &[
    "node", "npx", "npm", "pnpm", "yarn", "tsx", "python", "python3", "uv", "uvx", "pipx", "poetry", "docker",
    "podman", "nerdctl", "deno", "bun", "bunx", "java", "go", "cargo", "dotnet", "ruby", "php", "perl",
];

/// Launchers whose first word is the name of a package.
const OF_PACKAGES: &[&str] = &["npx", "uvx", "bunx"];

/// Words after which a launcher takes the name of what it launches.
const SUBCOMMANDS: &[&str] = &["run", "exec", "dlx", "tool", "x", "start", "compose"];

/// Options without a value, after which is what is launched.
const FLAGS: &[&str] = &["-y", "--yes", "-i", "--interactive", "--rm", "-u", "-q", "--quiet"];

/// Words of a shell that separate commands.
const OPERATORS: &[&str] = &["&&", "||", "|", ";", ">", ">>", "<", "2>&1", "&"];

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    if let Some(command) = &server.command {
        if command.value.trim().is_empty() {
            let finding = codes::MISSING.at(command.span, "the command is empty").hint("name the program to start");
            findings.extend(server.is_enabled().then_some(finding));
            return;
        }
        if is_url(checked, command, findings) {
            return;
        }
        let is_line = is_command_line(checked, command);
        if is_line {
            let message = "`command` must be a single program, without its arguments";
            let hint = "put the first word into `command` and the others into `args`";
            findings.push(codes::COMMAND_LINE.at(command.span, message).hint(hint));
        }
        if let Some(machine) = checked.machine_for(server).filter(|_| !is_line) {
            check_exists(checked, machine, server, command, findings);
        }
    }
    check_shell_words(server, findings);
    check_joined(server, findings);
    check_directory(checked, server, findings);
}

/// The last part of a path, without the ending that Windows has.
pub(super) fn program(command: &str) -> &str {
    let name = command.rsplit(['/', '\\']).next().unwrap_or(command);
    [".exe", ".cmd", ".bat"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name)
}

/// Whether a shell reads the arguments of this server, directly or in a container.
pub(super) fn has_shell(server: &ConfiguredServer) -> bool {
    let words = server.command.iter().chain(&server.args);
    words.into_iter().any(|word| SHELLS.contains(&program(&word.value)))
}

/// Reports a command that is a URL: whether it is one.
fn is_url(checked: &CheckedConfig<'_>, command: &At<String>, findings: &mut Vec<Finding>) -> bool {
    let text = command.value.trim();
    let is_url = ["http://", "https://"].iter().any(|scheme| text.starts_with(scheme));
    let is_one = is_url && !text.contains(char::is_whitespace);
    if is_one {
        let dialect = checked.dialect();
        let key = |wanted: fn(Field) -> bool| dialect.keys.iter().find(|key| wanted(key.field)).map(|key| key.name);
        let word = dialect.transports.iter().find(|(_, transport)| *transport == Transport::Http).map(|it| it.0);
        let url = key(|field| matches!(field, Field::Url(None | Some(Transport::Http))));
        let hint = match (url, key(|field| field == Field::Transport).zip(word)) {
            (Some(url), Some((kind, word))) => format!("write it as `{url}`, with \"{kind}\": \"{word}\""),
            (Some(url), None) => format!("write it as `{url}`"),
            (None, _) => BRIDGE.to_owned(),
        };
        findings.push(codes::TRANSPORT.at(command.span, "the command is a URL, not a program").hint(hint));
    }
    is_one
}

/// Whether a command has its arguments in it.
pub(super) fn is_command_line(checked: &CheckedConfig<'_>, command: &At<String>) -> bool {
    let text = command.value.trim();
    // A space within a reference separates no words.
    let replaced = checked.dialect().rule(Field::Command).replaced_in(text);
    let is_outside = |(at, _): &(usize, &str)| replaced.iter().all(|range| !range.contains(at));
    let Some((space, between)) = text.match_indices(char::is_whitespace).find(is_outside) else { return false };
    let (first, rest) = (&text[..space], &text[space + between.len()..]);
    let is_launched = LAUNCHERS.contains(&program(first)) || SHELLS.contains(&program(first));
    let is_path = (first.contains(['/', '\\']) || first.ends_with(':'))
        && !rest.trim_start().starts_with('-')
        && !rest.contains(" -");
    let exists = checked.machine.is_some_and(|machine| machine.path_kind(Path::new(text)) != PathKind::Nothing);
    !exists && (is_launched || !is_path)
}

fn check_exists(
    checked: &CheckedConfig<'_>,
    machine: &Machine,
    server: &ConfiguredServer,
    command: &At<String>,
    findings: &mut Vec<Finding>,
) {
    let text = command.value.trim();
    let has_own_path = server.env.iter().any(|pair| pair.name.value.eq_ignore_ascii_case("PATH"));
    if !is_literal(checked, Field::Command, text) || has_own_path {
        return;
    }
    if let Some(found) = machine.program(text) {
        check_batch_file(checked, &found, command, findings);
    } else if !text.contains(['/', '\\']) {
        let (message, hint) = match program(text).eq_ignore_ascii_case("cmd") && !machine.system.is_windows() {
            true => {
                ("`cmd` is the shell of Windows, and this machine has another system".to_owned(), own_program(server))
            }
            false => {
                let hint = "install it, or give its full path".to_owned();
                (format!("there is no program `{text}` on the PATH of this machine"), hint)
            }
        };
        findings.push(codes::COMMAND_NOT_FOUND.at(command.span, message).hint(hint));
    } else if has_root(text) {
        let message = match machine.path_kind(Path::new(text)) {
            PathKind::Nothing => format!("there is no {text} on this machine"),
            PathKind::Directory => format!("{text} is a folder"),
            PathKind::File | PathKind::Program => format!("{text} is not executable"),
        };
        let hint = match is_of_windows(text) && !machine.system.is_windows() {
            true => "this is a path of Windows: write one of this system",
            false => "check the path",
        };
        findings.push(codes::COMMAND_NOT_FOUND.at(command.span, message).hint(hint));
    }
}

/// How to start without `cmd /c` what it starts.
fn own_program(server: &ConfiguredServer) -> String {
    match &server.args[..] {
        [flag, first, rest @ ..] if flag.value.eq_ignore_ascii_case("/c") && !first.value.contains(' ') => {
            let rest = if rest.is_empty() { "[]" } else { "[…]" };
            format!("start the program itself: \"command\": \"{}\", \"args\": {rest}", first.value)
        }
        _ => "start the program itself, without a shell".to_owned(),
    }
}

/// Advises a shell for a batch file that the program may not start by itself.
fn check_batch_file(checked: &CheckedConfig<'_>, found: &Path, command: &At<String>, findings: &mut Vec<Finding>) {
    let ending = found.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_batch_file = ["cmd", "bat"].iter().any(|batch| ending.eq_ignore_ascii_case(batch));
    let dialect = checked.dialect();
    if is_batch_file && dialect.batch_files == BatchFiles::Unreliable {
        let (name, program) = (command.value.trim(), dialect.program);
        let message = format!("`{name}` is a batch file, which not every version of {program} starts on Windows");
        let hint = "let the shell start it: \"command\": \"cmd\", \"args\": [\"/c\", \"npx\", …]";
        findings.push(codes::BATCH_FILE.at(command.span, message).hint(hint.replace("npx", name)));
    }
}

/// Whether a value is used as it is written.
fn is_literal(checked: &CheckedConfig<'_>, field: Field, text: &str) -> bool {
    let is_replaced = checked.dialect().rule(field).is_replaced_in(text);
    let is_odd = text.contains(|c: char| !c.is_ascii());
    !(is_replaced || is_odd || is_from_home(text) || text.starts_with('~'))
        && references(text).next().is_none()
        && variable_of_windows(text).is_none()
        && placeholder(text).is_none()
}

/// Words that only a shell understands, where there is none.
fn check_shell_words(server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    if has_shell(server) {
        return;
    }
    for word in server.command.iter().chain(&server.args).filter(|word| is_quoted(&word.value)) {
        let message = "the inner quotes are part of the value: no shell removes them";
        findings.push(codes::COMMAND_LINE.at(word.span, message).hint("remove the inner quotes"));
    }
    for word in &server.args {
        if OPERATORS.contains(&word.value.as_str()) || word.value.contains("$(") {
            let message = "only a shell understands this, and the command runs without one";
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

/// An option of a launcher together with its value, or with the next word, in one argument.
fn check_joined(server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let launcher = server.command.as_ref().map(|command| program(&command.value));
    let Some(launcher) = launcher.filter(|launcher| LAUNCHERS.contains(launcher) && !has_shell(server)) else { return };
    // What follows the first word that is not an option is for the program that is launched.
    let is_own = |word: &&At<String>| word.value.starts_with('-') || SUBCOMMANDS.contains(&&*word.value);
    let (own, others) = server.args.split_at(server.args.iter().take_while(is_own).count());
    let is_value = own.last().is_some_and(|word| word.value.starts_with('-') && !FLAGS.contains(&&*word.value));
    if let Some(word) = others.first().filter(|_| !is_value)
        && has_more_words(launcher, word.value.trim())
    {
        let message = "this argument is a whole command line";
        findings.push(codes::COMMAND_LINE.at(word.span, message).hint("make each word a string of its own"));
    }
    for word in own {
        let Some((option, rest)) = word.value.split_once(' ') else { continue };
        let name = option.trim_start_matches('-');
        let is_option = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
        if is_option && !rest.trim().is_empty() {
            let message = format!("`{option}` and what follows it are one argument");
            findings.push(codes::COMMAND_LINE.at(word.span, message).hint("make each word a string of its own"));
        }
    }
}

/// Whether what is launched has its own arguments after it. A path may have a space in it, the name of a package may not.
fn has_more_words(launcher: &str, word: &str) -> bool {
    let Some((first, rest)) = word.split_once(char::is_whitespace) else { return false };
    let has_option = rest.split_whitespace().any(|word| word.starts_with('-'));
    let is_name = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    OF_PACKAGES.contains(&launcher) && first.chars().all(is_name) || SUBCOMMANDS.contains(&first) || has_option
}

fn check_directory(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let (Some(cwd), Some(machine)) = (&server.cwd, checked.machine_for(server)) else { return };
    let text = cwd.value.as_str();
    let in_folder = checked.in_folder(text);
    if is_literal(checked, Field::Cwd, text)
        && [Path::new(text), &in_folder].iter().all(|path| machine.path_kind(path) != PathKind::Directory)
    {
        let message = format!("there is no folder {text} on this machine");
        findings.push(codes::DIRECTORY.at(cwd.span, message).hint("create it, or check the path"));
    }
}
