//! Windows looks only for `.exe` files by itself, and in the current folder first. So a program is looked up before it is
//! started, in the folders of `PATH` with the endings of `PATHEXT`; a name such as `npx` finds `npx.cmd`.
//!
//! A file `.cmd` or `.bat` is run by `cmd.exe`, which the standard library of Rust (1.77.2 or newer) starts. It quotes each
//! argument so that `cmd.exe` reads it as one word, and fails for an argument that cannot be quoted, rather than let `&` or
//! `%` of it do something.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Write},
    os::windows::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

/// Whether a backslash keeps the next character as it is.
pub(super) const BACKSLASH_ESCAPES: bool = false;
/// `CREATE_NEW_PROCESS_GROUP`: Ctrl-C does not reach it.
const NEW_GROUP: u32 = 0x0000_0200;
/// `CREATE_NO_WINDOW`.
const NO_WINDOW: u32 = 0x0800_0000;

/// Whether a file can be run: its name says it, not its permissions.
pub fn can_be_run(_: &Metadata) -> bool {
    true
}

/// A command by the name or the path of its program. `path` is the variable `PATH` of the command, if it has its own.
pub fn command(program: impl AsRef<OsStr>, path: Option<&OsStr>) -> Command {
    let program = program.as_ref();
    let path = path.map(OsString::from).or_else(|| std::env::var_os("PATH"));
    let found = which::which_in_global(program, path).ok().and_then(|mut found| found.next());
    found.map_or_else(|| Command::new(program), Command::new)
}

/// The variables without which programs do not start, such as those that use the network.
pub fn required_variables() -> impl Iterator<Item = (&'static str, OsString)> {
    ["SYSTEMDRIVE", "SYSTEMROOT"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?)))
}

/// A command that a shell reads.
pub fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd.exe");
    // With `/s`, just the outer quotes are removed.
    command.raw_arg(format!("/d /s /c \"{line}\""));
    command
}

/// A word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || r"-_./\:=@,+".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("\"{}\"", word.replace('"', "\\\"")),
    }
}

/// Writes a program that starts another with this argument and its own first one, and does not wait for it. Returns
/// its path.
///
/// # Errors
/// There is a file, or it cannot be written.
pub fn write_launcher(path: &Path, program: &Path, argument: &str) -> io::Result<PathBuf> {
    let path = path.with_extension("cmd");
    let mut file = File::create_new(&path)?;
    write!(file, "@start \"\" /b \"{}\" {argument} %1 <nul >nul 2>nul\r\n", program.display())?;
    Ok(path)
}

/// The program of the desktop that opens URLs. No shell reads the URL.
pub(super) fn desktop_browser(url: &str) -> Command {
    let mut command = Command::new("rundll32.exe");
    command.arg("url.dll,FileProtocolHandler").arg(url);
    command
}

/// Lets a process go on when this one is interrupted.
pub(super) fn release(command: &mut Command) {
    command.creation_flags(NEW_GROUP | NO_WINDOW);
}
