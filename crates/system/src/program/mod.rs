//! Programs: where they are, and how a shell reads a command.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::{
    ffi::OsStr,
    io,
    iter::Peekable,
    path::Path,
    process::{Command, Stdio},
};

pub use system::{can_be_run, command, quoted, required_variables, shell, write_launcher};

/// The endings of programs on Windows.
const ENDINGS: [&str; 3] = ["exe", "cmd", "bat"];

/// Opens a URL in the user's browser, which outlives this process: the program in `BROWSER`, or that of the desktop.
///
/// # Errors
/// There is no program that opens URLs.
pub fn open_url(url: &str) -> io::Result<()> {
    // It may also be a list, or have arguments, which the program of the desktop knows.
    let chosen = std::env::var_os("BROWSER").filter(|program| Path::new(program).is_file());
    let command = match chosen {
        Some(program) => {
            let mut command = command(&program, None);
            command.arg(url);
            command
        }
        None => system::desktop_browser(url),
    };
    release(command)
}

/// Opens a URL with a command line, which gets it as the last argument, and which outlives this process.
///
/// # Errors
/// The command line cannot be split, or its program cannot be started.
pub fn open_url_with(line: &str, url: &str) -> io::Result<()> {
    let words = words(line).map_err(io::Error::other)?;
    let (program, arguments) = words.split_first().ok_or_else(|| io::Error::other("the command is empty"))?;
    let mut command = command(OsStr::new(program), None);
    command.args(arguments).arg(url);
    release(command)
}

fn release(mut command: Command) -> io::Result<()> {
    system::release(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

/// The name of a program without its folder, and without an ending of Windows.
pub fn name(path: &str) -> &str {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let stem = name.rsplit_once('.').filter(|(_, ending)| ENDINGS.iter().any(|it| ending.eq_ignore_ascii_case(it)));
    stem.map_or(name, |(stem, _)| stem)
}

/// Splits a command as the shell of the system does, with quotes but without expansions. On Unix, a backslash keeps the
/// next character as it is; on Windows it belongs to a path, and only `\"` is special.
///
/// # Errors
/// A quote is not closed.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    split(line, system::BACKSLASH_ESCAPES)
}

/// Splits a line as a POSIX shell does, on every system.
///
/// # Errors
/// A quote is not closed.
pub fn posix_words(line: &str) -> Result<Vec<String>, String> {
    split(line, true)
}

fn split(line: &str, backslash_escapes: bool) -> Result<Vec<String>, String> {
    let (mut words, mut word) = (Vec::new(), None::<String>);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            space if space.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => read_quoted(&mut characters, character, backslash_escapes, word.get_or_insert_default())?,
            '\\' if backslash_escapes => word.get_or_insert_default().extend(characters.next()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the closing quote; a backslash escapes only special characters within double quotes.
fn read_quoted(
    characters: &mut Peekable<impl Iterator<Item = char>>,
    quote: char,
    backslash_escapes: bool,
    word: &mut String,
) -> Result<(), String> {
    let special: &[char] = if backslash_escapes { &['"', '\\', '$', '`'] } else { &['"'] };
    while let Some(character) = characters.next() {
        if character == quote {
            return Ok(());
        }
        let escaped =
            (quote == '"' && character == '\\').then(|| characters.next_if(|next| special.contains(next))).flatten();
        word.push(escaped.unwrap_or(character));
    }
    Err(format!("the command has an unclosed {quote}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_by_a_shell() {
        for (line, words) in [
            ("npx -y  mcp-files ", &["npx", "-y", "mcp-files"][..]),
            (r#"sh -c 'a "b" \c' "d 'e' \"f\" \g""#, &["sh", "-c", r#"a "b" \c"#, r#"d 'e' "f" \g"#]),
            (r"a\ b '' x''y", &["a b", "", "xy"]),
            ("", &[]),
        ] {
            assert_eq!(split(line, true).expect(line), words, "{line}");
        }
        assert_eq!(split("a 'b", true).expect_err("open"), "the command has an unclosed '");
    }

    #[test]
    fn a_program_has_the_same_name_everywhere() {
        for (path, expected) in [
            ("/usr/bin/node", "node"),
            (r"C:\tools\NODE.EXE", "NODE"),
            ("npx.cmd", "npx"),
            ("server.py", "server.py"),
            ("/", ""),
        ] {
            assert_eq!(name(path), expected);
        }
    }

    #[test]
    fn a_backslash_of_windows_belongs_to_a_path() {
        for (line, words) in [
            (r"C:\tools\server.exe --root D:\", &[r"C:\tools\server.exe", "--root", r"D:\"][..]),
            (r#""C:\Program Files\node.exe" "say \"hi\"""#, &[r"C:\Program Files\node.exe", r#"say "hi""#]),
        ] {
            assert_eq!(split(line, false).expect(line), words, "{line}");
        }
    }

    #[test]
    fn a_quoted_word_is_split_as_one() {
        for word in ["", "node server.js", "it's", "say \"hi\"", "a&b|c<d>e^f", "100 %", r"C:\a b\c", "$HOME `x`"] {
            assert_eq!(
                words(&format!("x {} y", quoted(word))).as_deref(),
                Ok(&["x".into(), word.into(), "y".into()][..])
            );
        }
    }
}
