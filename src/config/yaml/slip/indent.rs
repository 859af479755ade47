//! Lines that are too far in, or not far enough.

use super::{Problem, Scene, line::Line, wrong};

/// A tab in the indentation of the line or of the next one, where the parser complains about something else.
pub(super) fn tab(scene: &Scene<'_>) -> Option<Problem> {
    let of_line = |line: Line<'_>| {
        let bare = line.text.trim_start_matches([' ', '\t']);
        let tab = line.text[..line.text.len() - bare.len()].find('\t')? + line.start;
        Some(wrong(tab..tab + 1, "a tab in the indentation").hint("indent with spaces"))
    };
    of_line(scene.line).or_else(|| scene.line.after(scene.text).and_then(of_line))
}

/// The first key of several that is not as far in as those that follow it.
pub(super) fn first(scene: &Scene<'_>) -> Option<Problem> {
    let (line, first) = (scene.line, scene.before?);
    let next = line.after(scene.text)?;
    let is_told = scene.is_colon() || scene.says("expected key") || scene.says("expected '-'");
    let is_first = || match first.before(scene.text).next() {
        Some(above) => first.is_item() || above.inner_indent() < line.indent().min(first.indent()),
        None => false,
    };
    let (key, value) = line.key().zip(first.key()).map(|((key, _), (_, value))| (key, value))?;
    let is_alone = next.indent() == line.indent() && !next.is_item() && line.indent() != first.inner_indent();
    if !is_told || !is_alone || value.is_empty() || line.is_item() || !is_first() {
        return None;
    }
    let problem = aligned(first, key, "below", "this is not as far in as what follows it");
    Some(match first.is_item() || line.indent() != first.indent() + 2 {
        true => problem,
        false => {
            let hint =
                format!("put `- ` before it if a list has it, and else {}", problem.hint.clone().unwrap_or_default());
            problem.hint(hint)
        }
    })
}

/// A key that is further in than the one before it, which has its value already.
pub(super) fn deep(scene: &Scene<'_>) -> Option<Problem> {
    let (line, before) = (scene.line, scene.before?);
    line.key()?;
    let is_told = scene.is_colon() || scene.says("expected key") || scene.says("trailing content");
    let (key, value, indent) = match before.key() {
        Some((key, value)) => (key, value, before.inner_indent()),
        // An item of a list.
        None => before.bare().strip_prefix("- ").and_then(|value| Some((of_list(scene)?, value, before.indent())))?,
    };
    let is_deeper = line.indent() > indent;
    let has_value = !value.is_empty() && !value.starts_with(['|', '>', '#', '&', '!']);
    (is_told && is_deeper && has_value)
        .then(|| aligned(line, key, "above", "this is further in than what it belongs beside"))
}

/// The key of the list that the line before is an item of.
fn of_list<'t>(scene: &Scene<'t>) -> Option<&'t str> {
    let item = scene.before?;
    let mut lines = item.before(scene.text).filter(|line| !line.is_item());
    lines.next().filter(|line| line.indent() <= item.indent())?.key().map(|(key, _)| key)
}

/// A line that is as far in as nothing above it.
pub(super) fn stray(scene: &Scene<'_>) -> Option<Problem> {
    let line = scene.line;
    let is_told = scene.says("expected key") || scene.says("expected '-'");
    if !is_told || scene.at != line.begin() {
        return None;
    }
    if line.is_item() && line.before(scene.text).any(Line::is_item) {
        let problem = wrong(scene.at..scene.at + 1, "this item is as far in as nothing above it");
        return Some(problem.hint("indent it as far as the item above"));
    }
    let (_, value) = line.key()?;
    let (mut deeper, mut least) = (None, usize::MAX);
    for above in line.before(scene.text) {
        for indent in [above.inner_indent(), above.indent()] {
            let Some((key, _)) = above.key().filter(|_| indent < least) else { continue };
            least = indent;
            if indent > line.indent() {
                deeper = Some((indent, key));
                continue;
            }
            // Whether the next line belongs below this one tells what this one is.
            let next = line.after(scene.text).map_or(0, Line::indent);
            let is_outer = |(far, _): &(usize, &str)| {
                let (up, down) = (line.indent() - indent, far - line.indent());
                up < down || up == down && value.is_empty() && next >= *far
            };
            let key = deeper.filter(|it| !is_outer(it)).map_or(key, |(_, key)| key);
            return Some(aligned(line, key, "above", "this is as far in as nothing above it"));
        }
    }
    deeper.map(|(_, key)| aligned(line, key, "above", "this is as far in as nothing above it"))
}

/// Says with which key a line is to begin, which is above or below.
fn aligned(line: Line<'_>, key: &str, side: &str, what: &str) -> Problem {
    let begin = line.begin();
    let own = line.key().map_or("", |(key, _)| key);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@');
    let are_names = key.chars().chain(own.chars()).all(is_name);
    let length = if line.is_item() { 1 } else { own.len() };
    wrong(begin..begin + length, what).hint(match line.is_item() {
        true if are_names => format!("indent it so that `{own}` begins as far in as `{key}` {side}"),
        false if are_names => format!("indent it as far as `{key}` {side}"),
        _ => "indent it as far as what it belongs beside".to_owned(),
    })
}
