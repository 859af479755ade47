//! Characters and lines that are no YAML at all.

use super::{Problem, Scene, line::Line, wrong};

const MERGE: &str = "<<<<<<<";

/// What a program for versions has left where two of them differ.
pub(super) fn merge(scene: &Scene<'_>) -> Option<Problem> {
    let is_begin = |at: usize| at == 0 || scene.text[..at].ends_with('\n');
    let (start, mark) = scene.text.match_indices(MERGE).find(|(at, _)| is_begin(*at))?;
    let problem = wrong(start..start + mark.len(), "two versions that were not merged");
    Some(problem.hint("resolve the merge: keep one side and remove the lines with <<<<<<<, ======= and >>>>>>>"))
}

/// A character that looks like a blank before a key or a value.
pub(super) fn blank(scene: &Scene<'_>) -> Option<Problem> {
    let is_odd = |c: char| c.is_whitespace() && !c.is_ascii();
    let of_line = |line: Line<'_>| {
        let text = line.text;
        let (at, odd) = text.char_indices().find(|(at, c)| {
            let before = || text[..*at].trim();
            is_odd(*c) && (before().is_empty() || before().ends_with([':', '-']))
        })?;
        let start = line.start + at;
        let what = format!("a character that looks like a blank (U+{:04X})", u32::from(odd));
        Some(wrong(start..start + odd.len_utf8(), &what).hint("type an ordinary blank in its place"))
    };
    [Some(scene.line), scene.before].into_iter().flatten().find_map(of_line)
}

/// A comment as other languages have it.
pub(super) fn comment(scene: &Scene<'_>) -> Option<Problem> {
    let lines = [Some(scene.line), scene.before].into_iter().flatten();
    let line = lines.into_iter().find(|line| line.bare().starts_with("//"))?;
    let start = line.begin();
    Some(wrong(start..start + 2, "a comment of another language").hint("write `#` instead of `//`"))
}
