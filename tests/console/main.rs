//! Runs the console pages beside this file: what is typed, what is shown, and with which files. One trial for each heading.
//!
//! A section is run in an empty folder. A block with a language and a name is a file; those before the first `##` are there
//! for each section. In a block `console`, `$ ` begins a command for `sh`, and `> ` continues it. Below it is what it prints:
//! first standard output, then standard error behind `! `, then `? CODE` unless it is 0. `[..]` is any text in a line, `...`
//! and `! ...` any lines. A line of standard output that begins like one of these has a `\` before it, and `[no newline]`
//! ends a text that does not end its line. `[FOLDER]` is the folder, `[VERSION]` that of the program; `rehearse` is found, and
//! `HOME` is empty.
//!
//! `UPDATE_CONSOLE=1 cargo test --test console` rewrites what differs. Wildcards that still match stay.

mod lines;
mod page;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use assert_cmd::Command;
use libtest_mimic::{Arguments, Failed, Trial};
use page::{Block, Page};

/// Longer than any command takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(3 * 60);

fn main() {
    let mut arguments = Arguments::from_args();
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console");
    let entries = fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.sort();
    let mut trials = vec![Trial::test("mistakes_are_found", mistakes_are_found)];
    trials.extend(pages.into_iter().flat_map(trials_of));
    libtest_mimic::run(&arguments, trials).exit();
}

fn trials_of(path: PathBuf) -> Vec<Trial> {
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let page = match Page::parse(&text) {
        Ok(page) => Arc::new(page),
        Err(problem) => return vec![Trial::test(name, move || Err(problem.into()))],
    };
    let file = Arc::new((path, Mutex::new(())));
    let trial = |index: usize| {
        let (page, file) = (page.clone(), file.clone());
        let title = page.sections[index].heading.replace(' ', "_");
        Trial::test(format!("{name}::{title}"), move || {
            let played = play(&page, index)?;
            match (played.differences.is_empty(), std::env::var_os("UPDATE_CONSOLE")) {
                (true, _) => Ok(()),
                (false, None) => Err(played.differences.into()),
                (false, Some(_)) => {
                    let _one = file.1.lock();
                    let text = fs::read_to_string(&file.0)?;
                    Ok(fs::write(&file.0, Page::parse(&text)?.with(index, &played.shown))?)
                }
            }
        })
    };
    (1..page.sections.len()).map(trial).collect()
}

/// What the commands of a section show.
struct Played {
    /// The lines below each command, as the page should have them.
    shown: Vec<Vec<String>>,
    /// What the page says otherwise, for people.
    differences: String,
}

fn play(page: &Page, index: usize) -> Result<Played, Failed> {
    let temporary = tempfile::tempdir()?;
    let [folder, home, other] = ["page", "home", "tmp"].map(|name| temporary.path().join(name));
    for folder in [&folder, &home, &other] {
        fs::create_dir(folder)?;
    }
    let (folder, home) = (folder.canonicalize()?, home.canonicalize()?);
    let programs = Path::new(env!("CARGO_BIN_EXE_rehearse")).parent().ok_or("no folder")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs.to_owned()].into_iter().chain(std::env::split_paths(&path)))?;
    let mut played = Played { shown: Vec::new(), differences: String::new() };
    for block in page.sections[0].blocks.iter().chain(&page.sections[index].blocks) {
        let exchanges = match block {
            Block::File(name, text) => {
                let file = folder.join(name);
                fs::create_dir_all(file.parent().ok_or("no folder")?)?;
                fs::write(file, text)?;
                continue;
            }
            Block::Console(exchanges) => exchanges,
        };
        for exchange in exchanges {
            let mut command = Command::new("sh");
            command.args(["-c", &exchange.command]).current_dir(&folder).env_clear();
            command.env("PATH", &path).env("HOME", &home).env("TMPDIR", &other).timeout(TIMEOUT).write_stdin("");
            let output = command.output()?;
            let text = |bytes| {
                let text = String::from_utf8_lossy(bytes).replace(&*folder.to_string_lossy(), "[FOLDER]");
                text.replace(concat!(r#""version":""#, env!("CARGO_PKG_VERSION")), r#""version":"[VERSION]"#)
            };
            let shown = lines::shown(&text(&output.stdout), &text(&output.stderr), output.status.code());
            let compared = lines::compare(page.lines(exchange), &shown);
            if let Some(difference) = compared.difference {
                let place = format!("line {}: $ {}", exchange.line, exchange.command);
                played.differences.push_str(&format!("\n{place}\n{difference}"));
            }
            played.shown.push(compared.lines);
        }
    }
    match played.shown.iter().all(Vec::is_empty) {
        true => Err("the section shows nothing".into()),
        false => Ok(played),
    }
}

/// A page that can hold no mistake is none, and what a page says otherwise is found.
fn mistakes_are_found() -> Result<(), Failed> {
    let first = |text: &str| match Page::parse(text) {
        Ok(page) => match play(&page, 1) {
            Ok(played) => played.differences,
            Err(failed) => failed.message().unwrap_or_default().to_owned(),
        },
        Err(problem) => problem,
    };
    let console = |lines: &str| format!("# A\n\n## B\n\n```console\n{lines}\n```\n");
    for (text, expected) in [
        (console("$ echo a\na\n$ echo b >&2; exit 3\n! b\n? 3"), ""),
        (console("$ echo 'a b 12 c'; echo x; echo y; echo '$ z'\na [..] c\n...\n\\$ z"), ""),
        (console("$ pwd; printf x\n[FOLDER]\nx[no newline]"), ""),
        (console("$ cat <<END\n> a\n> END\na"), ""),
        (console("$ echo a\nb"), "\nline 6: $ echo a\n- b\n+ a\n"),
        (console("$ echo ab\n[..]c"), "\nline 6: $ echo ab\n- [..]c\n+ ab\n"),
        (console("$ echo a >&2\n..."), "\nline 6: $ echo a >&2\n  ...\n+ ! a\n"),
        (console("$ echo a; exit 2\na"), "\nline 6: $ echo a; exit 2\n  a\n+ ? 2\n"),
        (console("$ echo a; exit 2\n...\n? 1"), "\nline 6: $ echo a; exit 2\n  ...\n- ? 1\n+ ? 2\n"),
        (console("$ echo a\na\n$ echo"), "\nline 8: $ echo\n+ \n"),
        (console("$ true"), "the section shows nothing"),
        (console("a"), "line 6: a text without a command"),
        ("# A\n\n## B\n\nText.\n".into(), "line 3: the section has no command"),
        ("# A\n\nText.\n".into(), "the page has no section"),
        ("# A\n\n```console\n$ echo a\na\n```\n".into(), "line 3: a command before the first section"),
        (
            "# A\n\n## B\n\n```json\n{}\n```\n".into(),
            "line 5: a block is `console`, or has a language and the name of a file",
        ),
        ("# A\n\n## B\n\n```console\n$ echo a\na\n".into(), "line 5: the block is not closed"),
        (
            console("$ echo a\na") + "\n## B\n\n```console\n$ echo a\na\n```\n",
            "line 10: another section has this heading",
        ),
    ] {
        let found = first(&text);
        if found != expected {
            return Err(format!("{text}\nexpected: {expected:?}\n   found: {found:?}").into());
        }
    }
    let page = Page::parse("# A\n\n## B\n\n```console\n$ printf '1 a\\n2 b\\n3 c\\n'\n[..] a\n2 c\n...\n```\n")?;
    let shown = play(&page, 1)?.shown;
    let rewritten = page.with(1, &shown);
    let expected = "# A\n\n## B\n\n```console\n$ printf '1 a\\n2 b\\n3 c\\n'\n[..] a\n...\n```\n";
    match rewritten == expected {
        true => Ok(()),
        false => Err(format!("rewritten as {rewritten}").into()),
    }
}
