//! YAML 1.2 (core schema) into a [`Node`] tree.
//!
//! Bounded in depth and in what aliases stand for, so that they cannot blow up. `<<` merges mappings, as every YAML user
//! expects. Words like `yes` and numbers with leading zeros or underscores are texts.

mod text;

use std::{borrow::Cow, collections::HashMap};

use granit_parser::{Event, Parser, ScalarStyle};

use super::{
    Duplicate, Entry, Node, Problem, Problems, Source, Span, Value, json,
    node::{Entries, is_unbounded},
    text::boundary_before,
};

pub use self::text::to_text;

/// The maximum number of nodes that all aliases together expand to.
const MAX_ALIASED: usize = 200_000;
const MAX_DEPTH: usize = 64;

/// Parses the one YAML document (or JSON text) of a source. An empty source is `null`.
///
/// # Errors
/// The syntax error; a duplicate key; a number that JSON cannot have; more than one document; too many nodes or levels.
pub fn parse(source: &Source) -> Result<Node, Problems> {
    let (root, composer) = compose(source)?;
    if let Some(span) = composer.unbounded {
        let text = source.text.get(span.start..span.end).unwrap_or_default();
        return Err(Problem::new(span, format!("{text} is not a JSON number")).hint("put it in quotes").into());
    }
    match composer.duplicates.first() {
        None => Ok(root),
        Some(Duplicate { key, second, .. }) => {
            Err(Problem::new(*second, format!("the key `{key}` occurs twice")).hint("keep one of them").into())
        }
    }
}

/// As [`parse`], but of a key that occurs twice the last value counts, and the others are reported; a number may be any that YAML has.
///
/// # Errors
/// As those of [`parse`].
pub fn read(source: &Source) -> Result<(Node, Vec<Duplicate>), Problems> {
    compose(source).map(|(root, composer)| (root, composer.duplicates))
}

fn compose(source: &Source) -> Result<(Node, Composer), Problems> {
    let composed = compose_text(&source.text);
    // JSON may be indented with tabs.
    if composed.is_err()
        && source.text.contains('\t')
        && source.text.trim_start().starts_with(['{', '['])
        && let Ok(document) = json::parse(source)
        && document.extensions.is_empty()
    {
        return Ok((document.root, Composer { duplicates: document.duplicates, ..Composer::default() }));
    }
    composed
}

fn compose_text(text: &str) -> Result<(Node, Composer), Problems> {
    let mut composer = Composer::default();
    let mut root = None;
    for event in Parser::new_from_str(text) {
        let (event, span) = event
            .map_err(|error| syntax_error(text, error.marker().byte_offset().unwrap_or_default(), &error.info()))?;
        let range = span.byte_range().unwrap_or_default();
        let span = Span { start: range.start, end: range.end };
        if matches!(event, Event::DocumentStart(..)) && root.is_some() {
            return Err(Problem::new(span, "a second document").hint("keep one document in a file").into());
        }
        if let Some(node) = composer.take(event, span)? {
            root = Some(node);
        }
    }
    Ok((root.unwrap_or(Node { span: Span::default(), value: Value::Null }), composer))
}

/// The first syntax error, without anything from the text; before it, the bracket on an earlier line that is not closed.
fn syntax_error(text: &str, at: usize, what: &str) -> Problems {
    let at = boundary_before(text, at);
    let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let indent = text[line..].len() - text[line..].trim_start_matches([' ', '\t']).len();
    if let Some(tab) = text[line..line + indent].find('\t') {
        return tab_problem(line + tab).into();
    }
    let mut start = line;
    for later in text[line..].split_inclusive('\n').filter(|_| what.contains("tab")) {
        let indent = later.len() - later.trim_start_matches([' ', '\t']).len();
        if let Some(tab) = later[..indent].find('\t') {
            return tab_problem(start + tab).into();
        }
        start += later.len();
    }
    if let Some(colon) = unspaced_colon(text, line).filter(|_| what.contains("mapping values") || what.contains("':'"))
    {
        let problem = Problem::new(Span { start: colon, end: colon + 1 }, "not valid YAML: a colon without a space");
        return problem.hint("write a space after it").into();
    }
    let quote = unclosed_quote(text, at);
    let start = quote.unwrap_or(at);
    let problem = Problem::new(Span { start, end: start }, format!("not valid YAML: {what}"));
    match unclosed_bracket(&text[..line]).filter(|_| quote.is_none()) {
        Some(open) => {
            let opened = Problem::new(Span { start: open, end: open + 1 }, "this bracket is not closed on its line");
            Problems(vec![opened.hint("add the missing `]` or `}`"), problem])
        }
        None => problem.into(),
    }
}

/// The colon behind a key that a space should follow, on the line that begins here or on the one before it.
fn unspaced_colon(text: &str, line: usize) -> Option<usize> {
    let before = text[..line].trim_end().rfind('\n').map_or(0, |newline| newline + 1);
    [before, line].into_iter().find_map(|start| {
        let written = text[start..].lines().next().unwrap_or_default();
        let key = written.trim_start_matches([' ', '-']);
        let colon = key.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
        let value = key[colon..].strip_prefix(':')?;
        let is_key = key.starts_with(|c: char| c.is_ascii_alphabetic()) && !value.is_empty();
        let is_unspaced = is_key && !value.starts_with([' ', '/', ':']);
        is_unspaced.then_some(start + written.len() - key.len() + colon)
    })
}

/// The last bracket outside of quotes and comments that is still open at the end of these lines.
fn unclosed_bracket(lines: &str) -> Option<usize> {
    let (mut open, mut quote, mut before) = (Vec::new(), None, ' ');
    for (at, character) in lines.char_indices() {
        let begins = before.is_whitespace() || matches!(before, '[' | '{' | ',');
        match character {
            '\n' => quote = None,
            _ if quote.is_some() => quote = quote.filter(|quote| *quote != character),
            '"' | '\'' if begins => quote = Some(character),
            '#' if before.is_whitespace() => quote = Some('\n'),
            '[' | '{' if begins => open.push(at),
            ']' | '}' => drop(open.pop()),
            _ => {}
        }
        before = character;
    }
    open.pop()
}

fn tab_problem(start: usize) -> Problem {
    let problem = Problem::new(Span { start, end: start + 1 }, "not valid YAML: a tab in the indentation");
    problem.hint("indent with spaces")
}

/// The quote that begins a value on an earlier line and that its line does not close: the parser reads on to the next
/// quote, often lines below.
fn unclosed_quote(text: &str, at: usize) -> Option<usize> {
    let mut lines = text[..at].split_inclusive('\n').collect::<Vec<_>>();
    lines.pop();
    let mut end = lines.iter().map(|line| line.len()).sum::<usize>();
    while let Some(line) = lines.pop() {
        end -= line.len();
        for quote in ['"', '\''] {
            let opened = [": ", "- ", "[", ", "]
                .iter()
                .filter_map(|before| line.find(&format!("{before}{quote}")).map(|at| at + before.len()));
            if let Some(open) = opened.min().filter(|_| line.matches(quote).count() % 2 == 1) {
                return Some(end + open);
            }
        }
    }
    None
}

#[derive(Default)]
struct Composer {
    open: Vec<Open>,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    aliased: usize,
    duplicates: Vec<Duplicate>,
    /// The first number that JSON cannot have.
    unbounded: Option<Span>,
}

/// A collection whose end has not come yet.
struct Open {
    start: usize,
    anchor: usize,
    nodes_before: usize,
    items: Items,
}

enum Items {
    Sequence(Vec<Node>),
    Mapping { entries: Entries, merged: Vec<Entry>, key: Option<(String, Span)> },
}

impl Composer {
    /// Takes the next event; gives the root once it is complete.
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<Option<Node>, Problems> {
        let node = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let is_text = tag.as_ref().is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
                let value = match style {
                    ScalarStyle::Plain if !is_text => {
                        if is_unbounded(&text) {
                            self.unbounded = self.unbounded.or(Some(span));
                        }
                        resolve(text)
                    }
                    _ => Value::String(text.into_owned()),
                };
                self.nodes += 1;
                let node = Node { span, value };
                if anchor != 0 {
                    self.anchors.insert(anchor, (node.clone(), 1));
                }
                node
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    return Err(Problem::new(span, "an alias inside of what it refers to").into());
                };
                self.nodes += size;
                self.aliased += size;
                if self.aliased > MAX_ALIASED {
                    return Err(
                        Problem::new(span, format!("aliases that expand to more than {MAX_ALIASED} values")).into()
                    );
                }
                node
            }
            Event::SequenceStart(_, anchor, _) => {
                return self.open(span, anchor, Items::Sequence(Vec::new()));
            }
            Event::MappingStart(_, anchor, _) => {
                let items = Items::Mapping { entries: Entries::default(), merged: Vec::new(), key: None };
                return self.open(span, anchor, items);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(None) };
                let value = match open.items {
                    Items::Sequence(items) => Value::Sequence(items),
                    Items::Mapping { mut entries, merged, .. } => {
                        merged.into_iter().for_each(|entry| entries.add_if_new(entry));
                        entries.into_value()
                    }
                };
                let node = Node { span: Span { start: open.start, end: span.end.max(open.start) }, value };
                if open.anchor != 0 {
                    self.anchors.insert(open.anchor, (node.clone(), self.nodes - open.nodes_before));
                }
                node
            }
            _ => return Ok(None),
        };
        self.place(node)
    }

    fn open(&mut self, span: Span, anchor: usize, items: Items) -> Result<Option<Node>, Problems> {
        let nodes_before = self.nodes;
        self.nodes += 1;
        self.open.push(Open { start: span.start, anchor, nodes_before, items });
        if self.open.len() > MAX_DEPTH {
            return Err(Problem::new(span, format!("nested deeper than {MAX_DEPTH} levels")).into());
        }
        Ok(None)
    }

    fn place(&mut self, node: Node) -> Result<Option<Node>, Problems> {
        let Some(open) = self.open.last_mut() else { return Ok(Some(node)) };
        match &mut open.items {
            Items::Sequence(items) => items.push(node),
            Items::Mapping { entries, merged, key } => match key.take() {
                None => {
                    let span = node.span;
                    *key = Some((key_text(node, open.start)?, span));
                }
                Some((name, _)) if name == "<<" => merged.extend(merged_by(node)?),
                Some((name, key_span)) => {
                    self.duplicates.extend(entries.add(Entry { key: name, key_span, node }));
                }
            },
        }
        Ok(None)
    }
}

/// The entries that `<<` takes from a mapping, or from several of which the first counts.
fn merged_by(node: Node) -> Result<Vec<Entry>, Problems> {
    let wrong = |span| Problem::new(span, "`<<` merges an object, or an array of objects").hint("write `<<: *name`");
    let of_mapping = |node: Node| match node.value {
        Value::Mapping(entries) => Ok(entries),
        _ => Err(wrong(node.span)),
    };
    match node.value {
        Value::Sequence(items) => {
            let each: Vec<_> = items.into_iter().map(of_mapping).collect::<Result<_, _>>()?;
            Ok(each.into_iter().flatten().collect())
        }
        _ => Ok(of_mapping(node)?),
    }
}

/// The text of a key of the mapping that begins at `mapping`.
fn key_text(node: Node, mapping: usize) -> Result<String, Problems> {
    match node.value {
        Value::String(text) | Value::Number(text) => Ok(text),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Null => Ok("null".into()),
        _ => {
            let is_template = mapping + 1 == node.span.start;
            let start = if is_template { mapping } else { node.span.start };
            let problem = Problem::new(Span { start, end: node.span.end }, "a key must be a string");
            Err(problem
                .hint(if is_template { "put the whole value into quotes" } else { "put the key into quotes" })
                .into())
        }
    }
}

/// A plain scalar's value by the core schema (YAML 1.2.2, 10.3.2), numbers written as JSON writes them.
fn resolve(text: Cow<'_, str>) -> Value {
    // Few texts begin as a word or a number does.
    match (text.as_bytes().first(), &*text) {
        (None, _) | (_, "~" | "null" | "Null" | "NULL") => Value::Null,
        (Some(b't' | b'T'), "true" | "True" | "TRUE") => Value::Bool(true),
        (Some(b'f' | b'F'), "false" | "False" | "FALSE") => Value::Bool(false),
        (Some(b'+' | b'-' | b'.' | b'0'..=b'9'), _) => match number(&text) {
            _ if is_unbounded(&text) => Value::Number(text.into_owned()),
            Some(number) => Value::Number(number),
            None => Value::String(text.into_owned()),
        },
        _ => Value::String(text.into_owned()),
    }
}

fn number(text: &str) -> Option<String> {
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(|number| number.to_string());
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let candidate = text.strip_prefix('+').unwrap_or(text);
    if !candidate.starts_with(|c: char| c == '-' || c == '.' || c.is_ascii_digit()) {
        return None;
    }
    if serde_json::from_str::<serde_json::Number>(candidate).is_ok() {
        return Some(candidate.into());
    }
    let (sign, digits) = candidate.strip_prefix('-').map_or(("", candidate), |digits| ("-", digits));
    let padded = match digits.split_once('.') {
        Some(("", fraction)) => format!("{sign}0.{fraction}"),
        Some((whole, "")) => format!("{sign}{whole}.0"),
        _ => return None,
    };
    serde_json::from_str::<serde_json::Number>(&padded).is_ok().then_some(padded)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json(text: &str) -> String {
        parse(&Source::new("test", text)).expect(text).to_json_text()
    }

    fn problem(text: &str) -> String {
        let source = Source::new("t.yaml", text);
        parse(&source).expect_err(text).in_source(&source).to_string()
    }

    #[test]
    fn scalars_follow_the_core_schema_and_numbers_keep_their_text() {
        assert_eq!(
            json(
                "[no, yes, true, ~, 0777, 1_000, 0o17, 0x1F, 1e3, 1.0, +3, .5, 2026-07-28, '1', !!str 2, 12345678901234567890123]"
            ),
            r#"["no","yes",true,null,"0777","1_000",15,31,1e3,1.0,3,0.5,"2026-07-28","1","2",12345678901234567890123]"#
        );
    }

    #[test]
    fn lines_may_end_as_on_windows_behind_a_byte_order_mark() {
        let text = "\u{feff}# é\r\na: |\r\n  x\r\n  y\r\nb:\r\n  - 'c'\r\n";
        assert_eq!(json(text), r#"{"a":"x\ny\n","b":["c"]}"#);
        let source = Source::new("t", text);
        let span = parse(&source).expect(text).get("b").and_then(|b| b.as_items()).expect("an array")[0].span;
        assert_eq!((&text[span.start..span.end], source.position(span.start)), ("'c'", (6, 5)));
    }

    #[test]
    fn json_text_is_valid_input() {
        let text = "{\"a\": [1, \"\\u00e9\\n\", {\"b\":null}],\n\t\"c\": \"\\ud83d\\ude00\"}";
        assert_eq!(json(text), r#"{"a":[1,"é\n",{"b":null}],"c":"😀"}"#);
    }

    #[test]
    fn anchors_aliases_and_merges_are_expanded() {
        assert_eq!(
            json("a: &x {k: 1, l: 2}\nb: *x\nc: {<<: *x, k: 3}"),
            r#"{"a":{"k":1,"l":2},"b":{"k":1,"l":2},"c":{"k":3,"l":2}}"#
        );
        assert_eq!(
            json("a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc: {<<: [*x, *y], m: 3}"),
            r#"{"a":{"k":1},"b":{"k":2,"l":2},"c":{"m":3,"k":1,"l":2}}"#
        );
        assert_eq!(
            problem("a: &x {k: 1}\nc: {<<: [*x, 3]}"),
            "t.yaml:2:14: `<<` merges an object, or an array of objects (write `<<: *name`)"
        );
    }

    #[test]
    fn errors_have_a_position_and_say_what_to_do() {
        assert_eq!(problem("a: 1\nb: 2\na: 3\n"), "t.yaml:3:1: the key `a` occurs twice (keep one of them)");
        assert_eq!(problem("a: .inf"), "t.yaml:1:4: .inf is not a JSON number (put it in quotes)");
        assert_eq!(problem("a: [x, -.Inf]\na: 1"), "t.yaml:1:8: -.Inf is not a JSON number (put it in quotes)");
        assert_eq!(
            problem("a:\n  - b: 1\n\tc: 2\n"),
            "t.yaml:3:1: not valid YAML: a tab in the indentation (indent with spaces)"
        );
        assert!(problem("a:\n  b: [x\n  c: 1\n").starts_with("t.yaml:2:6: this bracket is not closed on its line"));
        assert!(problem("a:\n  b: \"x\n  c: \"y\"\n").starts_with("t.yaml:2:6: not valid YAML"));
        for text in ["a:\n  b:x\n  c: 1\n", "a:\n  - b:x\n    c: 1\n", "a:\n\n  b:x\n\n  c: 1\n"] {
            let problem = problem(text);
            assert!(problem.ends_with("a colon without a space (write a space after it)"), "{text}: {problem}");
        }
        assert!(problem("a:\n  c: 1\n  b:x\nd: 1\n").starts_with("t.yaml:3:4: not valid YAML: a colon without"));
        assert!(problem("a:\n  http://b\n  c: 1\n").starts_with("t.yaml:3:"));
        assert!(problem("a: 1\n---\nb: 2").contains("a second document"));
        assert!(problem(&("[".repeat(100) + &"]".repeat(100))).contains("nested deeper than 64 levels"));
    }

    #[test]
    fn comments_may_be_as_long_as_they_like() {
        let comment = "    # one line of it\n".repeat(500);
        assert_eq!(
            json(&format!("{comment}a:\n{comment}  - 1\n{comment}  - b:\n{comment}{comment}")),
            r#"{"a":[1,{"b":null}]}"#
        );
    }

    #[test]
    fn aliases_cannot_blow_up() {
        let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..12 {
            let row = vec![format!("*a{}", level - 1); 9].join(",");
            text += &format!("a{level}: &a{level} [{row}]\n");
        }
        assert!(problem(&text).contains("aliases that expand to more than 200000 values"));
    }

    #[test]
    fn spans_point_at_keys_and_values() {
        let source = Source::new("t", "é: x\nsteps:\n  - call: echo\n");
        let root = parse(&source).expect("valid");
        let call = root.get("steps").and_then(|steps| steps.as_items()?[0].get("call")).expect("a call");
        assert_eq!(&source.text[call.span.start..call.span.end], "echo");
        assert_eq!(source.position(call.span.start), (3, 11));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "[-a-z0-9:{}\\[\\],&*!|>'\"#%@`~<\n\t ]{0,60}") {
            let _ = parse(&Source::new("p", text));
        }

        #[test]
        fn any_json_reads_back(value in "\\PC*", number in any::<i64>()) {
            let json = serde_json::json!({ "a": value, "n": [number, null, true] });
            let node = parse(&Source::new("p", json.to_string()));
            prop_assert_eq!(node.map(|node| node.to_json()), Ok(json));
        }
    }
}
