//! Texts that are no config: something else, or a config with something else around it.

use crate::config::{Problem, Problems, Source, Span};

/// What to say of a text that cannot be read because it is something else.
pub(super) fn of_others(source: &Source) -> Option<Problems> {
    of_conflict(source).or_else(|| of_markdown(source)).or_else(|| of_toml(source)).or_else(|| of_page(source))
}

/// What to say of a text that cannot be read because Git left the lines of both sides in it.
fn of_conflict(source: &Source) -> Option<Problems> {
    let is_mark = |line: &&str| line.starts_with("<<<<<<<") || line.starts_with(">>>>>>>");
    let line = source.text.lines().find(is_mark)?;
    let problem = Problem::new(span_of(line, source), "a merge that has not been resolved");
    Some(problem.hint("resolve the merge: keep one side and remove the lines with <<<<<<<, ======= and >>>>>>>").into())
}

/// What to say of a text that cannot be read because it is HTML or XML, or was taken out of such a page.
fn of_page(source: &Source) -> Option<Problems> {
    if source.text.trim_start_matches('\u{feff}').trim_start().starts_with('<') {
        let line = source.text.lines().find(|line| line.trim_start().starts_with('<'))?;
        let problem = Problem::new(span_of(line.trim_start(), source), "this is HTML or XML, and not a config");
        return Some(problem.hint("write the config itself into the file, as JSON or YAML").into());
    }
    let start = source.text.find("&quot;").filter(|_| !source.text.contains('"'))?;
    let problem = Problem::new(Span { start, end: start + "&quot;".len() }, "quotes as they are written in HTML");
    Some(problem.hint("write \" for each &quot;").into())
}

/// What to say of JSON that cannot be read because something else stands at its beginning.
pub(super) fn of_beginning(source: &Source) -> Option<Problems> {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    let line = text.lines().find(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))?.trim();
    if line.starts_with(['{', '[', '"', '\'', '/']) {
        return None;
    }
    let span = span_of(line, source);
    let is_key = line
        .split_once(':')
        .is_some_and(|(key, rest)| !key.contains(char::is_whitespace) && (rest.is_empty() || rest.starts_with(' ')));
    if is_key || line == "---" {
        let problem = Problem::new(span, "this looks like YAML, and the file should be JSON");
        return Some(problem.hint("write it as JSON, or name the file *.yaml if its program reads that").into());
    }
    let brace = source.text[span.start..].find('{').map(|at| span.start + at);
    let begins = brace.filter(|brace| {
        let before = source.text[..*brace].trim_end_matches([' ', '\t']);
        before.ends_with(['\n', '=', '(']) || before.ends_with("export default")
    });
    let (line, column) = source.position(begins?);
    let problem = Problem::new(span, "something before the config that is no JSON");
    Some(
        problem
            .hint(format!("remove what stands before the `{{` at {line}:{column}, and what belongs to it at the end"))
            .into(),
    )
}

/// Where this part of the text stands.
fn span_of(part: &str, source: &Source) -> Span {
    let start = part.as_ptr() as usize - source.text.as_ptr() as usize;
    Span { start, end: start + part.trim_end().len() }
}

/// What to say of a text that cannot be read because it was taken out of a page with the fence around it.
fn of_markdown(source: &Source) -> Option<Problems> {
    let text = source.text.trim_start_matches('\u{feff}').trim_start();
    let fence = text.lines().next().filter(|line| line.starts_with("```"))?;
    let problem = Problem::new(span_of(fence, source), "this line is Markdown, around what the program should read");
    Some(problem.hint("remove the lines with ```").into())
}

/// What to say of a text that cannot be read because it is TOML: it has the header of a table in a line of its own.
pub(super) fn of_toml(source: &Source) -> Option<Problems> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '"');
    let is_header = |line: &str| {
        let inner = line.strip_prefix('[').and_then(|line| line.strip_suffix(']'));
        inner.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_name))
    };
    let line = source.text.lines().find(|line| is_header(line.trim()))?;
    let problem = Problem::new(span_of(line, source), "this is TOML, and no program that is known here reads it");
    Some(problem.hint("write it as JSON or YAML").into())
}
