//! Lists of built-in scripts, faults and checked scripts.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use crate::cli::{Exit, Failure, Format, output, style};
use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use rehearse_document::Source;
use rehearse_mock::{
    faults::{ALL, FaultInfo},
    script::{BuiltinScript, ItemKind, Script, ScriptError},
};
use rehearse_protocol::{Transport, Version};

/// Prints the built-in scripts.
pub(super) fn list(format: Format) -> Exit {
    let described = |BuiltinScript { name, text }: &BuiltinScript| {
        let script = Script::parse(&Source::new(*name, *text)).ok()?;
        Some((*name, description(&script), script))
    };
    let scripts = BUILTIN_SCRIPTS.iter().filter_map(described);
    match format {
        Format::Human => {
            let strong = style::STRONG;
            let lines = scripts.map(|(name, about, _)| format!("{strong}{name:<17}{strong:#} {about}\n"));
            let _ = output::write_columns(&lines.collect::<String>());
        }
        Format::Json => {
            let scripts = scripts.map(|(name, about, script)| {
                let mut entry = json!({ "name": name, "description": about });
                extend(&mut entry, &script);
                entry
            });
            write(&format!("{:#}\n", scripts.collect::<Json>()));
        }
    }
    Exit::Success
}

/// Prints the faults that a script can inject.
pub(super) fn faults(format: Format) -> Exit {
    let everywhere = |fault: &FaultInfo| fault.transports.len() == Transport::ALL.len();
    match format {
        Format::Human => {
            let (strong, dim) = (style::STRONG, style::DIM);
            let mut text = String::new();
            for fault in ALL {
                let names: Vec<_> = fault.transports.iter().map(|transport| transport.as_str()).collect();
                let only = if everywhere(fault) { String::new() } else { format!(" ({})", names.join(", ")) };
                let (name, summary, example) = (fault.name, fault.summary, fault.example);
                text.push_str(&format!("{strong}{name}{strong:#}  {summary}{only}\n"));
                text.push_str(&format!("    {dim}faults: [{{ on: {{ tool: echo }}, do: {{ {example} }} }}]{dim:#}\n"));
                let width = fault.options.iter().map(|(option, _)| option.len()).max().unwrap_or_default();
                for (option, meaning) in fault.options {
                    text.push_str(&format!("    {option:<width$}  {meaning}\n"));
                }
                text.push('\n');
            }
            write(&text);
        }
        Format::Json => {
            let entry = |fault: &FaultInfo| {
                let options = fault.options.iter().map(|(name, meaning)| ((*name).to_owned(), json!(meaning)));
                json!({
                    "name": fault.name,
                    "summary": fault.summary,
                    "options": options.collect::<Map<_, _>>(),
                    "example": fault.example,
                    "transports": fault.transports,
                })
            };
            write(&format!("{:#}\n", ALL.iter().map(entry).collect::<Json>()));
        }
    }
    Exit::Success
}

/// Prints what each script offers, or all its mistakes.
pub(super) fn validate(paths: &[PathBuf], format: Format) -> Exit {
    let mut entries = Vec::new();
    let mut exit = Exit::Success;
    for path in paths {
        let outcome = Script::load(path, BUILTIN_SCRIPTS);
        let name = path.display().to_string();
        if outcome.is_err() {
            exit = Exit::Usage;
        }
        match (format, outcome) {
            (Format::Human, Ok(script)) => {
                let (good, strong, name) = (style::GOOD, style::STRONG, style::printable(&name));
                write(&format!("{good}✓{good:#} {strong}{name}{strong:#}: {}\n", offer(&script)));
            }
            (Format::Human, Err(error)) => style::print(&Failure::from(error).text()),
            (Format::Json, outcome) => entries.push(entry(path, outcome)),
        }
    }
    if format == Format::Json {
        write(&format!("{:#}\n", Json::from(entries)));
    }
    exit
}

fn entry(path: &Path, outcome: Result<Script, ScriptError>) -> Json {
    let (valid, problems) = match &outcome {
        Ok(_) => (true, json!([])),
        Err(ScriptError::Invalid(diagnostics)) => (false, json!(diagnostics)),
        Err(error) => (false, json!([{ "message": error.to_string() }])),
    };
    let mut entry = json!({ "file": path.display().to_string(), "valid": valid, "problems": problems });
    if let Ok(script) = &outcome {
        extend(&mut entry, script);
    }
    entry
}

/// Adds what a script offers.
fn extend(entry: &mut Json, script: &Script) {
    entry["server"] = serde_json::from_str(&script.server_info).unwrap_or_default();
    entry["protocol"] = json!(script.versions);
    let names = ItemKind::ALL.map(|kind| (kind.list_key().to_owned(), json!(script.names(kind).collect::<Vec<_>>())));
    entry["offers"] = Json::Object(Map::from_iter(names));
}

/// What a script offers, in one line.
pub(super) fn offer(script: &Script) -> String {
    let counted = |kind: ItemKind| match script.declared(kind) {
        0 => None,
        1 => Some(format!("1 {}", kind.noun())),
        count => Some(format!("{count} {}s", kind.noun())),
    };
    let mut offers: Vec<_> = ItemKind::ALL.into_iter().filter_map(counted).collect();
    match script.completions.len() {
        0 => {}
        1 => offers.push("1 completion".into()),
        count => offers.push(format!("{count} completions")),
    }
    if offers.is_empty() {
        offers.push("nothing".into());
    }
    let versions: Vec<_> = script.versions.iter().map(|version| version.as_str()).collect();
    let versions = match &versions[..] {
        all if all.len() == Version::ALL.len() => "every version".to_owned(),
        some => some.join(", "),
    };
    format!("{} offers {}, in {versions}", style::printable(&script.name), offers.join(", "))
}

/// The first sentence of the comment at the start of the script, else the description of the server.
fn description(script: &Script) -> String {
    let comment = script.source.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    // The schema line for editors.
    let comment: Vec<_> = comment.skip_while(|line| line.starts_with("yaml-language-server:")).collect();
    let comment = comment.join(" ");
    if comment.is_empty() {
        let server: Json = serde_json::from_str(&script.server_info).unwrap_or_default();
        return server["description"].as_str().unwrap_or_default().to_owned();
    }
    comment.find(". ").map_or(&*comment, |end| &comment[..=end]).to_owned()
}

/// Writes to standard output; a failure is reported when the command ends.
fn write(text: &str) {
    let _ = output::write_styled(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn script(text: &str) -> Script {
        Script::parse(&Source::new("m", text)).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_a_script_offers_is_counted_without_its_replacements() {
        let text = "
server: { name: s }
tools:
  - { name: a, steps: [{ replace: { tool: { name: a, reply: other } } }, { reply: x }] }
  - { name: b, reply: x }
resourceTemplates: [{ uriTemplate: 'x://{y}', text: z }]";
        assert_eq!(offer(&script(text)), "s offers 2 tools, 1 resource template, in every version");
        let text = "protocol: [2025-11-25, 2025-06-18]";
        assert_eq!(offer(&script(text)), "mock offers nothing, in 2025-06-18, 2025-11-25");
    }

    #[test]
    fn a_script_is_described_by_the_first_sentence_of_its_comment_or_by_its_server() {
        let described = |text: &str| description(&script(text));
        assert_eq!(described("# What it is for.\nserver: { name: s, description: Else. }"), "What it is for.");
        let long =
            "# yaml-language-server: $schema=a.json\n# What it\n# is for. And more.\n\n# no\nserver: { name: s }";
        assert_eq!(described(long), "What it is for.");
        assert_eq!(described("server: { name: s, description: A server. }\n# no"), "A server.");
        assert_eq!(described("server: { name: s }"), "");
    }
}
