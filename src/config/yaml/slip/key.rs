//! Keys and items whose colon or dash is not as it should be.

use super::{Problem, Scene, line::Line, wrong};

/// A dash with no blank after it, or before a key that is no item.
pub(super) fn dash(scene: &Scene<'_>) -> Option<Problem> {
    let glued = |line: Line<'_>| {
        let rest = line.bare().strip_prefix('-')?;
        let long = rest.strip_prefix("--").filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()));
        let is_glued =
            rest.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '"' | '\'' | '@')) || long.is_some();
        let hint = match line.key() {
            _ if long.is_some() => "put a blank after the first dash",
            _ if rest.starts_with(['"', '\'']) => "put a blank after the dash",
            Some(_) => "put a blank after the dash",
            None => "put a blank after the dash, or `- ` before it if it is a part of the value",
        };
        let problem = wrong(line.begin()..line.begin() + 1, "this dash begins no item of a list: no blank is after it");
        is_glued.then(|| problem.hint(hint))
    };
    let is_item = scene.says("expected ':'") || scene.says("expected '-'") || scene.says("expected key");
    if let Some(problem) = glued(scene.line).filter(|_| is_item) {
        return Some(problem);
    }
    let before = scene.before?;
    let is_surplus = scene.line.bare().starts_with("- ") && before.key().is_some_and(|(_, value)| !value.is_empty());
    if is_surplus && before.inner_indent() == scene.line.indent() && scene.says("expected key") {
        let begin = scene.line.begin();
        let problem = wrong(begin..begin + 1, "an item of a list among the keys of an object");
        return Some(problem.hint("remove the dash and the blank after it"));
    }
    glued(before).filter(|_| scene.is_colon() || scene.says("expected key"))
}

/// A list that begins in the line of its key.
pub(super) fn list(scene: &Scene<'_>) -> Option<Problem> {
    let is_list = scene.says("block sequence entries are not allowed") && scene.rest().starts_with('-');
    let problem = wrong(scene.at..scene.at + 1, "a list does not begin in the line of its key");
    is_list.then(|| problem.hint("begin it in the next line, or put the whole value into quotes if it is a text"))
}

/// A colon that is missing, or has no blank after it.
pub(super) fn colon(scene: &Scene<'_>) -> Option<Problem> {
    if scene.says("expected ':'") || scene.says("expected '-'") {
        return of_line(scene.line);
    }
    if scene.says("may not precede any of") {
        return Some(glued_at(scene.at));
    }
    if !scene.is_colon() {
        return None;
    }
    let mut lines = scene.line.before(scene.text);
    let outer = lines.find(|line| line.indent() <= scene.line.indent());
    scene.before.and_then(glued).or_else(|| without(scene, outer?))
}

/// An item without its dash: what is like the items beside it in everything else.
pub(super) fn item(scene: &Scene<'_>) -> Option<Problem> {
    let is_told = scene.says("expected ':'") || scene.says("expected '-'") || scene.says("expected key");
    let line = scene.line;
    let other = line.before(scene.text).find(|before| before.indent() <= line.indent()).filter(|_| is_told)?;
    let (lost, item) = if line.is_item() { (other, line) } else { (line, other) };
    let is_beside = item.is_item() && !lost.is_item() && item.indent() == lost.indent();
    let is_alike = item.key().map(|(key, _)| key) == lost.key().map(|(key, _)| key);
    let problem = wrong(lost.begin()..lost.start + lost.text.len(), "an item of a list without its dash");
    (is_beside && is_alike).then(|| problem.hint("put `- ` before it"))
}

/// What is wrong with a line that should be a key with its value.
pub(super) fn of_line(line: Line<'_>) -> Option<Problem> {
    glued(line).or_else(|| if line.key().is_none() { missing(line) } else { None })
}

/// A key with its value and no blank between them.
fn glued(line: Line<'_>) -> Option<Problem> {
    let (_, key) = line.word()?;
    let rest = &line.text[key.end - line.start..];
    let value = rest.strip_prefix(':').filter(|value| !value.is_empty() && !value.starts_with([' ', '/']))?;
    Some(match value.starts_with([',', ']', '}']) && value.len() == 1 {
        true => wrong(key.end + 1..key.end + 2, &format!("this `{value}` belongs to nothing")).hint("remove it"),
        false => glued_at(key.end),
    })
}

fn glued_at(colon: usize) -> Problem {
    wrong(colon..colon + 1, "there is no blank after the `:`").hint("put a blank after the `:`")
}

/// A key without its colon: with an equals sign, or with nothing.
fn missing(line: Line<'_>) -> Option<Problem> {
    let (word, key) = line.word()?;
    let rest = &line.text[key.end - line.start..];
    let after = rest.trim_start();
    let at = key.end + rest.len() - after.len();
    if let Some(value) = after.strip_prefix('=') {
        let hint = if value.starts_with(' ') { "write a colon instead" } else { "write a colon and a blank instead" };
        return Some(wrong(at..at + 1, "an equals sign between a key and its value").hint(hint));
    }
    let is_key = rest.is_empty() || rest.starts_with(' ');
    let problem = wrong(key.end..key.end, &format!("there is no colon behind `{word}`"));
    is_key.then(|| problem.hint(format!("put a colon behind `{word}`")))
}

/// The key without its colon in a line before one that is below it.
fn without(scene: &Scene<'_>, line: Line<'_>) -> Option<Problem> {
    let (_, key) = line.word()?;
    let below = scene.line.indent();
    let is_only = line.text.len() == key.end - line.start;
    let is_above = if line.is_item() { !is_only && below == line.inner_indent() } else { below >= line.indent() };
    // What follows a value further in is more of it.
    let above = line.before(scene.text).next().and_then(|above| Some((above.key()?.1, above.inner_indent())));
    let is_more = above.is_some_and(|(value, indent)| !value.is_empty() && indent < line.indent());
    if line.key().is_some() || !is_above || is_more { None } else { missing(line) }
}
