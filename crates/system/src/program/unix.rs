use std::{
    env::consts,
    ffi::{OsStr, OsString},
    fs::{Metadata, OpenOptions},
    io::{self, Write},
    os::unix::{
        fs::{OpenOptionsExt, PermissionsExt},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::Command,
};

/// Whether a backslash keeps the next character as it is.
pub(super) const BACKSLASH_ESCAPES: bool = true;

/// Whether a file can be run.
pub fn can_be_run(metadata: &Metadata) -> bool {
    metadata.permissions().mode() & 0o111 != 0
}

/// A command by the name or the path of its program. The system looks in the `PATH` that the command has then.
pub fn command(program: impl AsRef<OsStr>, _path: Option<&OsStr>) -> Command {
    Command::new(program)
}

/// The variables without which no program starts: none.
pub fn required_variables() -> impl Iterator<Item = (&'static str, OsString)> {
    std::iter::empty()
}

/// A command that a shell reads.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]);
    command
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_./:=@,+%".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Writes a program that starts another with this argument and its own first one, and does not wait for it. Returns
/// its path.
///
/// # Errors
/// There is a file, or it cannot be written.
pub fn write_launcher(path: &Path, program: &Path, argument: &str) -> io::Result<PathBuf> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o700).open(path)?;
    let program = quoted(&program.display().to_string());
    writeln!(file, "#!/bin/sh\n{program} {argument} \"$1\" </dev/null >/dev/null 2>&1 &")?;
    Ok(path.to_owned())
}

/// The program of the desktop that opens URLs.
pub(super) fn desktop_browser(url: &str) -> Command {
    let mut command = Command::new(if consts::OS == "macos" { "open" } else { "xdg-open" });
    command.arg(url);
    command
}

/// Lets a process go on when this one is interrupted.
pub(super) fn release(command: &mut Command) {
    command.process_group(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_plain_is_not_quoted() {
        assert_eq!(quoted("https://host:8080/mcp"), "https://host:8080/mcp");
        assert_eq!(quoted("node server.js"), "'node server.js'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
