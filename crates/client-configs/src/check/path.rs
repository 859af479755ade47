//! Paths in commands and arguments.

use super::{
    CheckedConfig,
    command::{has_shell, is_command_line, program},
};
use crate::{
    At, ConfiguredServer, codes,
    dialect::{Field, FileLocation, is_from_home},
    placeholder::placeholder,
    server::Text,
};
use rehearse_document::references;
use rehearse_report::findings::Finding;

/// How the names of scripts end that a program runs.
const SCRIPTS: &[&str] = &[".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".rb", ".php", ".jar"];

/// Options that say where a launcher works.
const FOLDERS: &[&str] = &["--directory", "--project", "--cwd", "--prefix", "-C", "--root"];

/// What a home folder is called in configs.
const HOMES: &[&str] =
    &["~", "$HOME", "${HOME}", "${env:HOME}", "${userHome}", "%USERPROFILE%", "${USERPROFILE}", "${env:USERPROFILE}"];

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let is_path = |text: &Text<'_>| matches!(text.field, Field::Command | Field::Args | Field::Cwd | Field::EnvFile);
    let is_shared = checked.dialect().files.iter().any(|place| matches!(place, FileLocation::Project(_)));
    let mut is_reported = false;
    for text in server.texts().filter(is_path) {
        let value = text.at.value.as_str();
        if !checked.dialect().expands_home_in.contains(&text.field) && is_from_home(value) && !has_shell(server) {
            let message = format!("{} does not expand `~`, and no shell does", checked.dialect().program);
            findings.push(codes::HOME.at(text.at.span, message).hint("write the whole path"));
        }
        if is_shared && is_personal(value) && placeholder(value).is_none() && !is_reported {
            is_reported = true;
            let finding = codes::MACHINE_PATH.at(text.at.span, "this path exists on one machine only");
            findings.push(finding.hint("other people need a path of their own"));
        }
    }
    check_access(server, findings);
    if checked.dialect().is_desktop {
        check_script(checked, server, findings);
    }
}

/// Whether a path leads into a home folder.
fn is_personal(value: &str) -> bool {
    let plain = value.replace('\\', "/").to_ascii_lowercase();
    let on_drive = || plain.split_once(":/users/").filter(|(drive, _)| drive.len() == 1).map(|(_, user)| user);
    let is_of_windows = on_drive().is_some_and(|user| !user.starts_with("public/"));
    (value.starts_with("/Users/") && !value.starts_with("/Users/Shared/"))
        || value.starts_with("/home/")
        || is_of_windows
}

/// A filesystem server that may access a whole home folder or disk.
fn check_access(server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let is_filesystem = |word: &str| word.contains("server-filesystem") || word.contains("mcp-filesystem");
    let words = server.command.iter().chain(&server.args).skip_while(|word| !is_filesystem(&word.value));
    for word in words.skip(1).filter(|word| is_wide(&word.value) && placeholder(&word.value).is_none()) {
        let message = "the server may read and write everything in this folder";
        findings.push(codes::WIDE_ACCESS.at(word.span, message).hint("name only the folders that it needs"));
    }
}

/// Whether this is a disk or a whole home folder.
fn is_wide(path: &str) -> bool {
    let plain = path.trim_end_matches(['/', '\\']);
    let parts: Vec<_> = plain.split(['/', '\\']).collect();
    let is_drive = |part: &str| part.len() == 2 && part.ends_with(':') && part.starts_with(|c: char| c.is_alphabetic());
    let is_root = plain.is_empty() && !path.is_empty() || is_drive(plain);
    let is_home = matches!(parts[..], ["", "home" | "Users" | "root"] | ["", "home" | "Users", _])
        || matches!(parts[..], [drive, "Users"] | [drive, "Users", _] if is_drive(drive));
    is_root || is_home || HOMES.contains(&plain)
}

/// A relative path of a script: a desktop program is started in no project.
fn check_script(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let has_folder = server.args.iter().any(|word| FOLDERS.iter().any(|option| word.value.starts_with(option)));
    if server.cwd.is_some() || has_folder || has_shell(server) {
        return;
    }
    let is_script = |word: &str| SCRIPTS.iter().any(|ending| word.ends_with(ending));
    let is_relative = |word: &str| {
        !word.starts_with(['/', '~', '-', '\\', '@', '%'])
            && !word.contains([':', '$'])
            && references(word).next().is_none()
            && placeholder(word).is_none()
    };
    let is_path = |command: &At<String>| command.value.contains(['/', '\\']) && !is_command_line(checked, command);
    let command = server.command.iter().filter(|command| is_path(command) && is_relative(&command.value));
    let runs_scripts = |command: &str| {
        let name = program(command);
        ["node", "python", "deno", "bun", "tsx", "ts-node", "uv", "java", "ruby", "php"]
            .iter()
            .any(|it| name.starts_with(it))
    };
    let is_run = server.command.as_ref().is_some_and(|command| runs_scripts(&command.value));
    let script =
        server.args.iter().find(|word| is_script(&word.value)).filter(|word| is_run && is_relative(&word.value));
    for word in command.chain(script).take(1) {
        let message =
            format!("{} starts servers in no project folder: a relative path fails", checked.dialect().program);
        findings.push(codes::RELATIVE_PATH.at(word.span, message).hint("write the whole path"));
    }
}
