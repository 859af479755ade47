//! Brackets that are not closed, or closed by others, and what is missing between them.

use super::{super::flow::Flow, Problem, Scene, wrong};

/// A bracket that is never closed.
pub(super) fn unclosed(scene: &Scene<'_>) -> Option<Problem> {
    let bracket = scene.rest().chars().next().filter(|_| scene.says("unclosed bracket"));
    let known = bracket.map(|bracket| (scene.at, closing(bracket)));
    let (bracket, close) = known.or_else(|| left_open(scene))?;
    let what = format!("this `{}` is never closed", &scene.text[bracket..=bracket]);
    Some(wrong(bracket..bracket + 1, &what).hint(format!("add the missing `{close}`")))
}

fn closing(bracket: char) -> char {
    if bracket == '{' { '}' } else { ']' }
}

/// A bracket that no line closes before one that is not indented more than that of the bracket, and what closes it.
fn left_open(scene: &Scene<'_>) -> Option<(usize, char)> {
    let mut least = scene.line.indent();
    for line in scene.line.before(scene.text) {
        match brackets(line.text) {
            Brackets::Open(bracket, close) => return (least <= line.indent()).then_some((line.start + bracket, close)),
            Brackets::Close => return None,
            Brackets::Even => least = least.min(line.indent()),
        }
    }
    None
}

/// A bracket that closes one of the other kind.
pub(super) fn wrong_one(scene: &Scene<'_>) -> Option<Problem> {
    let (mut quote, mut open, mut before) = (None, Vec::new(), ' ');
    let mut characters = scene.rest().char_indices().filter(|_| scene.says("mismatched bracket"));
    let (at, wrong_one, right) = characters.find_map(|(at, character)| {
        let begins = matches!(before, ' ' | '[' | '{' | ',');
        before = character;
        match (quote, character) {
            (Some(quoted), _) if quoted == character => quote = None,
            (None, '"' | '\'') if begins => quote = Some(character),
            (None, '[' | '{') => open.push(closing(character)),
            (None, ']' | '}') => return open.pop().filter(|close| *close != character).map(|it| (at, character, it)),
            _ => {}
        }
        None
    })?;
    let start = scene.at + at;
    Some(wrong(start..start + 1, &format!("this `{wrong_one}` closes nothing")).hint(format!("write `{right}`")))
}

/// Two values within brackets with no comma between them.
pub(super) fn comma(scene: &Scene<'_>) -> Option<Problem> {
    let is_apart = scene.says("expected ',' or") || scene.is_colon() || scene.says("expected ':'");
    let is_open = || Flow::default().up_to(scene.text, scene.at).is_open();
    if !is_apart || !is_open() {
        return None;
    }
    let before = &scene.text[scene.line.start..scene.at];
    let is_of_key = |c: char| !c.is_whitespace() && !matches!(c, ',' | '{' | '[');
    let key = scene.line.start
        + if scene.rest().starts_with(':') { before.trim_end_matches(is_of_key).len() } else { before.len() };
    match scene.text[..key].trim_end() {
        first if first.ends_with([',', '{', '[', ':']) => None,
        first if first.ends_with('$') && scene.text[key..].starts_with('{') => {
            let start = first.trim_end_matches(is_of_key).len();
            let end = key + scene.text[key..].find([',', '\n']).unwrap_or(1);
            let what = "within brackets, a brace begins a mapping and ends the text before it";
            Some(wrong(start..end, what).hint("put the whole value into quotes"))
        }
        _ if key > scene.line.begin() => {
            let length = scene.text[key..].find(|c| !is_of_key(c) || c == ':').unwrap_or(1).max(1);
            Some(wrong(key..key + length, "no comma before this").hint("add a comma"))
        }
        _ => {
            let line = scene.before?;
            let end = line.start + line.text.find(" #").map_or(line.text, |it| &line.text[..it]).trim_end().len();
            Some(wrong(end..end, "no comma behind this").hint("add a comma"))
        }
    }
}

/// What the brackets of a line do.
pub(super) enum Brackets {
    /// This one is left open, and this closes it.
    Open(usize, char),
    /// One that an earlier line opens is closed.
    Close,
    Even,
}

/// What the brackets of a line do. One that opens within a plain text is none.
pub(super) fn brackets(line: &str) -> Brackets {
    scan(line).0
}

/// What the brackets of a line do, and where a quote is that it does not close.
pub(super) fn scan(line: &str) -> (Brackets, Option<usize>) {
    let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
    for (at, character) in line.char_indices() {
        let begins = |open: &[(usize, char)]| {
            let is_after = line[..at].trim_end().ends_with([':', '-', ',', '[', '{']) && before == ' ';
            is_after || matches!(before, '[' | '{') && !open.is_empty()
        };
        match (quote, character) {
            (Some((_, quoted)), _) if quoted == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') if begins(&open) => quote = Some((at, character)),
            (None, '#') if before == ' ' => break,
            (None, '[') if begins(&open) => open.push((at, ']')),
            (None, '{') if begins(&open) => open.push((at, '}')),
            (None, ']' | '}') if open.pop().is_none() => return (Brackets::Close, None),
            _ => {}
        }
        before = character;
    }
    let brackets = open.first().map_or(Brackets::Even, |(at, close)| Brackets::Open(*at, *close));
    (brackets, quote.map(|(at, _)| at))
}
