//! The text of a config, in JSON, YAML or TOML, and what its program has against the syntax.

use std::path::Path;

use super::{codes, dialect::Dialect, dialect::Syntax, dialect::without_ending};
use rehearse_document::{
    Duplicate, Node, Problems, Source, Span,
    json::{self, SyntaxExtension, SyntaxExtensionKind as Kind},
    toml, yaml,
};
use rehearse_report::findings::{Code, Finding};

/// A config that could be parsed, whatever its program makes of it.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    format: Format,
    extensions: Vec<SyntaxExtension>,
    duplicates: Vec<Duplicate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    Toml,
}

/// Parses a text in the format that its name says, or else in that of its program, or else in the one that it looks
/// like.
///
/// # Errors
/// The first syntax error.
pub(super) fn read(source: &Source, path: Option<&Path>, syntax: Option<Syntax>) -> Result<Document, Problems> {
    let format = format(&source.text, path, syntax);
    let (root, extensions, duplicates) = match format {
        Format::Json => {
            let json::Document { root, extensions, duplicates } = json::parse(source)?;
            (root, extensions, duplicates)
        }
        Format::Yaml => {
            let hint = "look at the indentation and the quotes here and in the line before";
            let (root, duplicates) = yaml::read(source).map_err(|problems| problems.or_hint(hint))?;
            (root, Vec::new(), duplicates)
        }
        Format::Toml => (toml::parse(source)?, Vec::new(), Vec::new()),
    };
    Ok(Document { root, format, extensions, duplicates })
}

fn format(text: &str, path: Option<&Path>, syntax: Option<Syntax>) -> Format {
    let path = path.map(without_ending);
    let extension = path.as_deref().and_then(Path::extension).and_then(|it| it.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" | "code-workspace" => Format::Json,
        "yaml" | "yml" => Format::Yaml,
        "toml" => Format::Toml,
        _ if syntax == Some(Syntax::Toml) => Format::Toml,
        _ if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '/']) => Format::Json,
        _ => Format::Yaml,
    }
}

impl Document {
    pub(super) fn is_yaml(&self) -> bool {
        self.format == Format::Yaml
    }

    pub(super) fn is_toml(&self) -> bool {
        self.format == Format::Toml
    }

    /// Writes keys in hints as the file has them; hints are written in JSON.
    pub(super) fn rewrite_hints(&self, findings: &mut [Finding]) {
        let after = match self.format {
            Format::Json => return,
            Format::Yaml => ": ",
            Format::Toml => " = ",
        };
        for hint in findings.iter_mut().filter_map(|finding| finding.problem.hint.as_mut()) {
            if hint.contains("\": ") {
                *hint = with_bare_keys(hint, after).into();
            }
        }
    }

    /// Whether there is no value at all.
    pub(super) fn is_empty(&self) -> bool {
        self.extensions.iter().any(|extension| extension.kind == Kind::Empty)
    }

    /// What the program rejects in the syntax, and the keys that occur twice.
    pub(super) fn check_syntax(&self, root: &Node, source: &Source, dialect: &Dialect, findings: &mut Vec<Finding>) {
        let (allowed, name): (&[Kind], _) = match dialect.syntax {
            Syntax::Json(allowed) => (allowed, "JSON"),
            Syntax::JsonOrYaml => (&[], "JSON or YAML"),
            Syntax::Yaml => (&[], "YAML"),
            Syntax::Toml => (&[], "TOML"),
        };
        let is_right = match (self.format, dialect.syntax) {
            (Format::Json, Syntax::Toml) | (Format::Yaml, Syntax::Json(_) | Syntax::Toml) => false,
            (Format::Toml, syntax) => syntax == Syntax::Toml,
            _ => true,
        };
        if !is_right {
            let begin = Span { start: self.root.span.start, end: self.root.span.start };
            let message = format!("{} reads {name}, and this is something else", dialect.program);
            let hint = format!("`rehearse config convert --to {}` writes it as {name}", dialect.name);
            findings.push(codes::SYNTAX.at(begin, message).hint(hint));
            return;
        }
        let mut has_comment = false;
        for SyntaxExtension { kind, span } in &self.extensions {
            // One comment is enough to report.
            let is_repeated = *kind == Kind::Comment && std::mem::replace(&mut has_comment, true);
            if is_repeated || allowed.contains(kind) && !dialect.undocumented_syntax.contains(kind) {
                continue;
            }
            let (code, what, hint) = describe(*kind);
            findings.push(if dialect.undocumented_syntax.contains(kind) {
                let message = format!("{what}: the documentation of {} does not allow it", dialect.program);
                codes::JSON_UNDOCUMENTED.at(*span, message).hint(hint)
            } else {
                code.at(*span, format!("{what}: {} does not read it", dialect.program)).hint(hint)
            });
        }
        self.check_duplicates(root, source, dialect, findings);
    }

    fn check_duplicates(&self, root: &Node, source: &Source, dialect: &Dialect, findings: &mut Vec<Finding>) {
        let servers = dialect.servers(root);
        let is_in = |outer: Span, inner: Span| outer.start <= inner.start && inner.end <= outer.end;
        for Duplicate { key, first, second } in &self.duplicates {
            let (line, column) = source.position(first.start);
            let is_server = servers.is_some_and(|servers| {
                let mut each = servers.as_entries().unwrap_or_default().iter();
                is_in(servers.span, *first) && !each.any(|entry| is_in(entry.node.span, *second))
            });
            let code = match (self.is_yaml(), is_server) {
                (true, _) => &codes::DUPLICATE,
                (false, true) => &codes::DUPLICATE_SERVER,
                (false, false) => &codes::DUPLICATE_KEY,
            };
            let what = if is_server { "a server" } else { "a key" };
            let fate = if self.is_yaml() { "the file is rejected" } else { "only this one is used" };
            let message = format!("`{key}` is {what} already at {line}:{column}: {fate}");
            findings.push(code.at(*second, message).hint("keep one of them, or rename it"));
        }
    }
}

/// A text with keys in JSON, with what is `after` a key in another format.
fn with_bare_keys(text: &str, after: &str) -> String {
    let is_bare = |key: &str| key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c));
    let parts = text.split("\": ").collect::<Vec<_>>();
    let Some((last, keyed)) = parts.split_last() else { return String::new() };
    let keyed = keyed.iter().map(|part| match part.rsplit_once('"').filter(|(_, key)| is_bare(key)) {
        Some((before, key)) => format!("{before}{key}{after}"),
        None => format!("{part}\": "),
    });
    keyed.chain([(*last).to_owned()]).collect()
}

/// The warning about an extension that a program does not have.
fn describe(kind: Kind) -> (&'static Code, &'static str, &'static str) {
    match kind {
        Kind::ByteOrderMark => {
            (&codes::BYTE_ORDER_MARK, "an invisible byte order mark (U+FEFF)", "save the file as UTF-8 without it")
        }
        Kind::Comment => (&codes::JSON_COMMENT, "a comment", "remove it, or put it under a key such as \"_comment\""),
        Kind::TrailingComma => (&codes::JSON_COMMA, "a comma after the last value", "remove the comma"),
        Kind::SingleQuotes => (&codes::JSON_FORM, "single quotes", "use double quotes"),
        Kind::BareKey => (&codes::JSON_FORM, "a key without quotes", "put it in double quotes"),
        Kind::Space => (&codes::JSON_FORM, "a space that JSON does not have", "replace it with an ordinary space"),
        Kind::ControlCharacter => {
            (&codes::JSON_FORM, "a control character in a string", "write it as \\t, \\n or \\u001b")
        }
        Kind::Empty => (&codes::SYNTAX, "the file is empty", "an object with nothing in it is {}"),
    }
}
