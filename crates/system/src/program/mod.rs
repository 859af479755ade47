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
    fmt, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub use system::{can_be_run, command, quoted, required_variables, shell, write_launcher};

/// The endings of programs on Windows.
const ENDINGS: [&str; 3] = ["exe", "cmd", "bat"];

/// The program of this name in `PATH`, by its whole path.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names: Vec<String> = match cfg!(windows) {
        true => ENDINGS.iter().map(|ending| format!("{name}.{ending}")).collect(),
        false => vec![name.to_owned()],
    };
    let all = std::env::split_paths(&path)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>());
    let is_program = |path: &PathBuf| path.metadata().is_ok_and(|metadata| metadata.is_file() && can_be_run(&metadata));
    all.into_iter().find(is_program).and_then(|path| std::path::absolute(path).ok())
}

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

/// A quote that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnclosedQuote(char);

impl fmt::Display for UnclosedQuote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an unclosed {}", self.0)
    }
}

impl std::error::Error for UnclosedQuote {}

/// Splits a command as the shell of the system does, with quotes but without expansions. On Unix, a backslash keeps the
/// next character as it is; on Windows it belongs to a path, and only `\"` is special.
///
/// # Errors
/// A quote is not closed.
pub fn words(line: &str) -> Result<Vec<String>, UnclosedQuote> {
    split(line, system::BACKSLASH_ESCAPES)
}

/// Splits a line as a POSIX shell does, on every system.
///
/// # Errors
/// A quote is not closed.
pub fn posix_words(line: &str) -> Result<Vec<String>, UnclosedQuote> {
    split(line, true)
}

fn split(line: &str, backslash_escapes: bool) -> Result<Vec<String>, UnclosedQuote> {
    let LineStart { mut words, word, quote, .. } = LineStart::read(line, backslash_escapes);
    words.extend(word);
    quote.map_or(Ok(words), |quote| Err(UnclosedQuote(quote)))
}

/// The start of a line, whose last word may still be written.
#[derive(Debug, Default)]
pub struct LineStart {
    /// The finished words.
    pub words: Vec<String>,
    /// The last word without its quotes; `None` behind a space.
    pub word: Option<String>,
    /// Where the last word begins.
    pub begin: usize,
    /// The quote that is not closed.
    quote: Option<char>,
}

impl LineStart {
    /// Reads it as a POSIX shell does, on every system.
    pub fn posix(line: &str) -> LineStart {
        LineStart::read(line, true)
    }

    fn read(line: &str, backslash_escapes: bool) -> LineStart {
        let (mut it, mut characters) = (LineStart::default(), line.char_indices().peekable());
        // Within double quotes, a backslash escapes only these.
        let special: &[char] = if backslash_escapes { &['"', '\\', '$', '`'] } else { &['"'] };
        while let Some((at, character)) = characters.next() {
            let word = it.word.get_or_insert_default();
            match (it.quote, character) {
                (Some(quote), _) if quote == character => it.quote = None,
                (Some('"'), '\\') => {
                    let escaped = characters.next_if(|(_, next)| special.contains(next));
                    word.push(escaped.map_or(character, |(_, escaped)| escaped));
                }
                (Some(_), _) => word.push(character),
                (None, space) if space.is_whitespace() => {
                    it.words.extend(it.word.take().filter(|_| it.begin < at));
                    it.begin = at + space.len_utf8();
                }
                (None, '\'' | '"') => it.quote = Some(character),
                (None, '\\') if backslash_escapes => word.extend(characters.next().map(|(_, escaped)| escaped)),
                (None, _) => word.push(character),
            }
        }
        it
    }
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
        assert_eq!(split("a 'b", true).expect_err("open").to_string(), "an unclosed '");
        let LineStart { words, word, begin, .. } = LineStart::posix("'a b'  c\\ d 'e f");
        assert_eq!((words, word.as_deref(), begin), (vec!["a b".to_owned(), "c d".to_owned()], Some("e f"), 12));
        assert_eq!((LineStart::posix("a ").word, LineStart::posix("a ").begin), (None, 2));
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
