//! Checks the pages of `docs/` and the README: links, tables, and the commands that they name.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use regex::Regex;

use crate::rehearse::Rehearse;

/// The README and the pages, by their paths.
fn pages() -> BTreeMap<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::fs::read_dir(root.join("docs")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let pages = folder.filter(|path| path.extension().is_some_and(|it| it == "md")).chain([root.join("README.md")]);
    pages.map(|path| (path.clone(), std::fs::read_to_string(path).expect("a text"))).collect()
}

/// The lines that are not between fences.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// The places of a page that a link can name, as GitHub and mdBook make them of headings.
pub(crate) fn anchors(page: &str) -> BTreeSet<String> {
    let link = Regex::new(r"\[([^\]]*)\]\([^)]*\)").expect("a pattern");
    let headings =
        prose(page).filter_map(|line| line.strip_prefix('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let anchor = |text: &str| text.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
    headings.map(|heading| anchor(&link.replace_all(heading, "$1"))).collect()
}

#[test]
fn every_link_leads_to_a_place() {
    let (pages, code) = (pages(), Regex::new("`[^`]*`").expect("a pattern"));
    let link = Regex::new(r"\]\(([^)\s:#]*)(?:#([^)\s]*))?\)").expect("a pattern");
    let mut links = 0;
    for (path, page) in &pages {
        for line in prose(page) {
            for found in link.captures_iter(&code.replace_all(line, "")) {
                let target = match &found[1] {
                    "" => path.clone(),
                    name => path.with_file_name(name).canonicalize().unwrap_or_default(),
                };
                assert!(target.exists(), "{}: {}", path.display(), &found[0]);
                let place = found.get(2).map(|it| it.as_str()).zip(pages.get(&target));
                let is_there = place.is_none_or(|(anchor, page)| anchors(page).contains(anchor));
                assert!(is_there, "{}: {}", path.display(), &found[0]);
                links += 1;
            }
        }
    }
    assert!(links > 500, "{links}");
}

#[test]
fn every_table_is_whole() {
    for (path, page) in pages() {
        let lines: Vec<_> = std::iter::once("").chain(prose(&page)).chain([""]).collect();
        for window in lines.windows(3).filter(|window| !window[0].starts_with('|') && window[1].starts_with('|')) {
            assert!(window[2].starts_with("| -"), "{}: a table has no head: {}", path.display(), window[1]);
        }
    }
}

#[test]
fn the_picture_of_the_architecture_and_its_table_have_every_crate() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("ARCHITECTURE.md")).expect("a text");
    let picture = text.split("```").nth(1).expect("a picture");
    let drawn: BTreeSet<_> = picture.split(|c: char| !c.is_alphanumeric() && c != '-').collect();
    for entry in std::fs::read_dir(root.join("crates")).expect("a folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        assert!(drawn.contains(&*name), "{name} is not in the picture");
        assert!(text.contains(&format!("| `rehearse-{name}` |")), "{name} is not in the table");
    }
}

/// The commands that have commands below them.
const GROUPS: [&str; 4] = ["bench", "config", "conversation", "mcp"];

#[test]
fn every_command_of_a_page_exists() {
    let pages = pages();
    let named = Regex::new(r"(?m)(?:^|[`']|\$ )rehearse ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?").expect("a pattern");
    let mut commands = BTreeMap::new();
    for (path, page) in &pages {
        for found in named.captures_iter(page) {
            let below = found.get(2).filter(|_| GROUPS.contains(&&found[1]));
            commands.insert((found[1].to_owned(), below.map(|it| it.as_str())), path);
        }
    }
    assert!(commands.len() > 30, "{commands:?}");
    for ((command, below), path) in commands {
        let run = Rehearse::new().args(["help", &command]).args(below).run();
        assert!(run.stdout_text().contains("Usage: "), "{}: rehearse {command} {below:?}", path.display());
    }
}

/// The command lines in the blocks for a shell, up to what is no argument of `rehearse`.
fn command_lines(page: &str) -> Vec<Vec<String>> {
    let blocks = page.split("\n```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let shell = blocks.filter(|(language, _)| ["sh", "console"].contains(language));
    let typed = shell.flat_map(|(language, text)| {
        let text = text.replace("\\\n", " ");
        let prompt = if language == "sh" { "rehearse " } else { "$ rehearse " };
        text.lines().filter_map(|line| Some(arguments(line.strip_prefix(prompt)?))).collect::<Vec<_>>()
    });
    typed.collect()
}

/// The words of a line up to a redirection, a comment, another command, or the command of a server.
fn arguments(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in line.chars().chain([' ']) {
        match (quote, letter) {
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), _) if letter == open => quote = None,
            (None, ' ') => words.extend(word.take()),
            (None, '|' | '>' | '<' | ';' | '&' | '#') if word.is_none() => break,
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.into_iter().take_while(|word| word != "--").collect()
}

#[test]
fn every_option_of_a_page_is_one_of_its_command() {
    let mut lines = 0;
    for (path, page) in pages() {
        for line in command_lines(&page) {
            // The arguments before it are read first.
            let run = Rehearse::new().args(&line).args(["--help"]).run();
            // The times of examples are over.
            let is_read = run.stdout_text().contains("Usage: ") || run.stderr().contains("it passed");
            assert!(is_read, "{}: {line:?}\n{}", path.display(), run.stderr());
            lines += 1;
        }
    }
    assert!(lines > 100, "{lines}");
}

/// What users type into the search of the book. It weighs headings most.
const SEARCHED: &[&str] = &[
    "timeout",
    "slow",
    "hangs",
    "CORS",
    "401",
    "403",
    "OAuth",
    "npx",
    "Docker",
    "stdout",
    "port is in use",
    "exit codes",
    "whitelist",
    "blacklist",
    "MCP server mode",
    "mock",
    "flaky",
    "crash",
];

#[test]
fn a_heading_has_each_word_that_users_search_for() {
    let pages = pages();
    let headings: Vec<_> = pages.values().flat_map(|page| prose(page).filter(|line| line.starts_with('#'))).collect();
    for word in SEARCHED {
        let has = |line: &&str| line.to_lowercase().contains(&word.to_lowercase());
        assert!(headings.iter().any(has), "no heading has {word:?}");
    }
}
