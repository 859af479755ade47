//! TOML 1.1 into a [`Node`] tree with byte spans.

use toml_edit::{Document, InlineTable, Item, Table};

use super::{
    Entry, Node, Problem, Problems, Source, Span, Value,
    node::Entries,
    text::{boundary_after, boundary_before},
};

/// Reads a TOML text. Dates are strings; integers and floats keep their text where JSON has it too.
///
/// # Errors
/// The syntax error, or a key that occurs twice.
pub fn parse(source: &Source) -> Result<Node, Problems> {
    let document = Document::parse(source.text.as_str()).map_err(|error| {
        let range = error.span().unwrap_or_default();
        let start = boundary_before(&source.text, range.start);
        let span = Span { start, end: boundary_after(&source.text, range.end).max(start) };
        // Only its first line: what follows quotes the text.
        let message = error.message().lines().next().unwrap_or_default();
        let (message, hint) = match message {
            it if it.contains("escape") || it.contains("unicode") => (it, "write each backslash twice, or use '…'"),
            it if it.contains("`nan`") || it.contains("`inf`") => ("string values must be quoted", "write \"…\""),
            it if it.starts_with("string values") => (it, "write \"…\" with straight quotes"),
            it if it.starts_with("duplicate") => (it, "keep one of them"),
            it => (it, "check the quotes and brackets of this line"),
        };
        Problem::new(span, format!("not valid TOML: {message}")).hint(hint)
    })?;
    Ok(Node { span: Span { start: 0, end: source.text.len() }, value: table(document.as_table()) })
}

fn span(range: Option<std::ops::Range<usize>>) -> Span {
    range.map_or_else(Span::default, |range| Span { start: range.start, end: range.end })
}

fn table(table: &Table) -> Value {
    let mut entries = Entries::default();
    for (name, item) in table {
        let key_span = span(table.key(name).and_then(toml_edit::Key::span));
        let node = match item {
            Item::None => continue,
            Item::Value(value) => value_node(value),
            Item::Table(inner) => Node { span: spanned(inner.span(), key_span), value: self::table(inner) },
            Item::ArrayOfTables(tables) => {
                let item = |inner: &Table| Node { span: spanned(inner.span(), key_span), value: self::table(inner) };
                Node {
                    span: spanned(tables.span(), key_span),
                    value: Value::Sequence(tables.iter().map(item).collect()),
                }
            }
        };
        entries.add(Entry { key: name.to_owned(), key_span, node });
    }
    entries.into_value()
}

/// A table of which only a part of the header is written has no span of its own.
fn spanned(range: Option<std::ops::Range<usize>>, key: Span) -> Span {
    range.map_or(key, |range| Span { start: range.start, end: range.end })
}

fn value_node(value: &toml_edit::Value) -> Node {
    let read = match value {
        toml_edit::Value::String(text) => Value::String(text.value().clone()),
        toml_edit::Value::Integer(number) => Value::Number(number.value().to_string()),
        toml_edit::Value::Float(number) if number.value().is_finite() => Value::Number(number.value().to_string()),
        toml_edit::Value::Float(number) => Value::String(number.value().to_string()),
        toml_edit::Value::Boolean(flag) => Value::Bool(*flag.value()),
        toml_edit::Value::Datetime(date) => Value::String(date.value().to_string()),
        toml_edit::Value::Array(items) => Value::Sequence(items.iter().map(value_node).collect()),
        toml_edit::Value::InlineTable(table) => inline(table),
    };
    Node { span: span(value.span()), value: read }
}

fn inline(table: &InlineTable) -> Value {
    let mut entries = Entries::default();
    for (name, value) in table {
        let key_span = span(table.key(name).and_then(toml_edit::Key::span));
        entries.add(Entry { key: name.to_owned(), key_span, node: value_node(value) });
    }
    entries.into_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_have_their_spans() {
        let text =
            "model = \"é\"\n[mcp_servers.a]\ncommand = 'npx' # c\nargs = [\"-y\"]\nenv = { A = \"b\" }\nn = 1.5\n";
        let source = Source::new("t.toml", text);
        let root = parse(&source).expect("valid");
        assert_eq!(
            root.to_json_text(),
            r#"{"model":"é","mcp_servers":{"a":{"command":"npx","args":["-y"],"env":{"A":"b"},"n":1.5}}}"#
        );
        let server = root.get("mcp_servers").and_then(|servers| servers.as_entries()).expect("servers");
        assert_eq!(&text[server[0].key_span.start..server[0].key_span.end], "a");
        let command = server[0].node.get("command").expect("a command").span;
        assert_eq!(&text[command.start..command.end], "'npx'");
        let windows = Source::new("t.toml", "\u{feff}[a]\r\nb = 'c'\r\n");
        let value = parse(&windows).expect("valid").get_path(&["a", "b"]).expect("a value").span;
        assert_eq!((&windows.text[value.start..value.end], windows.position(value.start)), ("'c'", (2, 5)));
        let broken = Source::new("t.toml", "a = 1\nb = \"c\n");
        let problem = parse(&broken).expect_err("broken").in_source(&broken).to_string();
        assert!(problem.starts_with("t.toml:2:") && !problem.contains('c'.to_ascii_uppercase()), "{problem}");
    }

    #[test]
    fn errors_say_what_to_do() {
        for (text, expected) in [
            ("a = npx", "t.toml:1:5: not valid TOML: string values must be quoted"),
            ("a = inspect", "t.toml:1:5: not valid TOML: string values must be quoted"),
            ("a = “npx”", "(write \"…\" with straight quotes)"),
            ("a = \"C:\\Users\"", "(write each backslash twice, or use '…')"),
            ("a = \"C:\\srv\"", "(write each backslash twice, or use '…')"),
            ("a = 1\na = 2", "t.toml:2:1: not valid TOML: duplicate key (keep one of them)"),
            ("a: 1", "(check the quotes and brackets of this line)"),
        ] {
            let source = Source::new("t.toml", text);
            let problem = parse(&source).expect_err(text).in_source(&source).to_string();
            assert!(problem.contains(expected), "{text}: {problem}");
        }
    }
}
