//! The frontmatter of a `SKILL.md`: read from the script, and written as JSON for the entry and as YAML for the file.

use super::super::keys::KEYS;
use rehearse_document::{Entry, Fields, Node, Problem, Problems, Value};
use rehearse_protocol::names::PREFIX;

/// Whether this is a field of the Agent Skills specification, which is a key of a skill in a script.
pub(super) fn is_field(key: &str) -> bool {
    KEYS.keys("frontmatter").contains(&key)
}

#[derive(Debug)]
pub(super) struct Frontmatter {
    pub(super) name: String,
    pub(super) description: String,
    /// The JSON object of an entry.
    pub(super) json: String,
    yaml: String,
}

impl Frontmatter {
    /// Reads it from the fields of a skill.
    ///
    /// # Errors
    /// An invalid name, or another field that the Agent Skills specification does not allow.
    pub(super) fn read(fields: &Fields<'_>) -> Result<Frontmatter, Problems> {
        let ok = |result: Result<Option<()>, Problems>| result.map(Option::unwrap_or_default);
        let texts = ok(fields.read("license", |node| node.str().map(drop)))
            .and_then(|()| ok(fields.read("compatibility", |node| check_length(node, "compatibility", 500))));
        let maps =
            ok(fields.read("metadata", check_metadata)).and_then(|()| ok(fields.read("frontmatter", check_more)));
        let name = fields.required("name").and_then(|node| check_name(node).map(|()| node));
        let description =
            fields.required("description").and_then(|node| check_length(node, "description", 1024).map(|()| node));
        let (name, description, (), ()) = Problems::all4(name, description, texts, maps)?;
        let own = fields.node().entries()?.iter().filter(|entry| is_field(&entry.key));
        let more = fields.get("frontmatter").and_then(|node| node.as_entries()).unwrap_or_default();
        let entries: Vec<_> = own.chain(more).collect();
        let mut yaml = String::new();
        for entry in &entries {
            write_entry(entry, 0, &mut yaml);
        }
        let members =
            entries.iter().map(|entry| format!("{}:{}", super::resource::quote(&entry.key), entry.node.to_json_text()));
        Ok(Frontmatter {
            name: name.str()?.to_owned(),
            description: description.str()?.to_owned(),
            json: format!("{{{}}}", members.collect::<Vec<_>>().join(",")),
            yaml,
        })
    }

    /// The text of the `SKILL.md` with this body.
    pub(super) fn document(&self, body: &str) -> String {
        let gap = if body.is_empty() { "" } else { "\n" };
        format!("---\n{}---\n{gap}{body}", self.yaml)
    }
}

/// Agent Skills specification, `name` field.
fn check_name(node: &Node) -> Result<(), Problems> {
    let name = node.str()?;
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let words = || name.split('-').filter(|word| !word.is_empty());
    if name.len() <= 64 && name.bytes().all(allowed) && words().count() == name.split('-').count() {
        return Ok(());
    }
    let message = "a skill's name has 1 to 64 small letters, digits and single hyphens between them";
    let mut proposal = String::new();
    for character in name.chars() {
        match character.to_ascii_lowercase() {
            lower if lower.is_ascii_alphanumeric() => proposal.push(lower),
            _ if proposal.is_empty() || proposal.ends_with('-') || character == '\'' => {}
            _ => proposal.push('-'),
        }
    }
    let proposal = proposal.trim_end_matches('-');
    let problem = node.problem(message);
    Err(match proposal.len() {
        1..=64 if proposal != name => problem.hint(format!("such as `{proposal}`")),
        _ => problem.hint("such as `pdf-processing`"),
    }
    .into())
}

fn check_length(node: &Node, what: &str, most: usize) -> Result<(), Problems> {
    let text = node.str()?;
    match text.chars().count() {
        _ if text.trim().is_empty() => Err(node
            .problem(format!("the `{what}` of a skill must not be empty"))
            .hint("say what it is for, and when")
            .into()),
        length if length > most => {
            let problem =
                node.problem(format!("the `{what}` of a skill has {length} characters, and may have at most {most}"));
            Err(problem.hint("the rest belongs into the `body`").into())
        }
        _ => Ok(()),
    }
}

fn check_metadata(node: &Node) -> Result<(), Problems> {
    let check = |entry: &Entry| {
        if entry.key.starts_with(PREFIX) {
            let problem = Problem::new(entry.key_span, format!("keys with `{PREFIX}` belong to MCP's extensions"));
            return Err(problem.hint("use the name of a domain of your own").into());
        }
        entry.node.str().map(drop)
    };
    Problems::collect(node.entries()?.iter().map(check)).map(drop)
}

fn check_more(node: &Node) -> Result<(), Problems> {
    match node.entries()?.iter().find(|entry| is_field(&entry.key)) {
        Some(entry) => {
            let problem = Problem::new(entry.key_span, format!("`{}` is outside of `frontmatter`", entry.key));
            Err(problem.hint("move it one level up").into())
        }
        None => Ok(()),
    }
}

/// Writes objects as blocks, and strings as plain scalars where they are unambiguous, because simple readers need that.
/// Writes everything else as JSON, which is valid YAML 1.2.
fn write_entry(entry: &Entry, depth: usize, yaml: &mut String) {
    yaml.push_str(&"  ".repeat(depth));
    yaml.push_str(&scalar(&entry.key));
    match &entry.node.value {
        Value::Mapping(entries) if !entries.is_empty() => {
            yaml.push_str(":\n");
            for entry in entries {
                write_entry(entry, depth + 1, yaml);
            }
        }
        Value::String(text) => yaml.push_str(&format!(": {}\n", scalar(text))),
        _ => yaml.push_str(&format!(": {}\n", printable(&entry.node.to_json_text()))),
    }
}

fn scalar(text: &str) -> String {
    const WORDS: &[&str] = &["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let plain = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_./,;()".contains(c))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if plain { text.to_owned() } else { printable(&super::resource::quote(text)) }
}

/// JSON text whose strings have none of the characters that YAML forbids or takes for ends of lines (YAML 1.2.2, 5.1;
/// YAML 1.1, 4.2).
fn printable(json: &str) -> String {
    let forbidden =
        |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    let escape = |c: char| if forbidden(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escape).collect()
}
