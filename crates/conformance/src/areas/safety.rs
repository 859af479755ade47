//! Harm that can be proven: hidden characters, names and hints that deceive, parameters for secrets.

use rehearse_document::{
    characters::{Hidden, HiddenKind, hidden, look_alike, tagged},
    json_schema::subschemas,
    text::quoted,
};
use rehearse_protocol::List;
use serde_json::Value;

use super::Judge;
use super::common::items;
use super::query::{Calls, Query, elements};
use super::tool_schema::is_secret_name;
use crate::{Call, Evidence, Judgement, Level};

mod effect;
mod instruction;
mod verb;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("safety.text.tags", |e, j| characters(e, j, HiddenKind::Tag)),
    ("safety.text.order", |e, j| characters(e, j, HiddenKind::Order)),
    ("safety.text.no-width", |e, j| characters(e, j, HiddenKind::NoWidth)),
    ("safety.text.control", |e, j| characters(e, j, HiddenKind::Control)),
    ("safety.text.instruction", |e, j| {
        for text in texts(e).into_iter().filter(|it| it.is_own) {
            let found = instruction::of(text.text);
            judge(j, &text, found.map(|it| format!("{} in {}", quoted(it, 80), text.place)));
        }
    }),
    ("safety.name.alphabets", |e, j| {
        for text in texts(e).into_iter().filter(|it| it.is_name) {
            let found = look_alike(text.text);
            judge(j, &text, found.map(|it| format!("U+{:04X} among Latin letters in {}", u32::from(it), text.place)));
        }
    }),
    ("safety.hint.name", |e, j| {
        let changes = |tool: &Value| verb::changes(tool["name"].as_str().unwrap_or_default());
        let readers = items(e, TOOLS).filter(|(tool, ..)| is_read_only(tool));
        readers.must_once(j, |tool| !changes(tool), |_| "`readOnlyHint: true`");
    }),
    ("safety.hint.effect", effect::judge),
    ("safety.input.secret", secrets),
    ("safety.env.canary", |e, j| {
        // Values that only the process of the server knows, in what it answers. Only the request is shown.
        let Some((name, value)) = &e.facts.canary else {
            return j.untested("the prober does not start the server");
        };
        let is_meant = |call: &Call<'_>| matches!(call.method(), "tools/call" | "prompts/get" | "resources/read");
        for call in e.calls().filter(|call| is_meant(call) || call.has_error()) {
            let Some(response) = call.response else { continue };
            let is_clean = !String::from_utf8_lossy(response.bytes).contains(value.as_str());
            let subject = ["/params/name", "/params/uri"].iter().find_map(|it| call.request.at(it).as_str());
            let subject = subject.unwrap_or(call.method());
            if !j.has_found(subject) {
                let found = || format!("the value of the variable {name} of its environment");
                j.check_at(is_clean, Some(subject), vec![call.request.place], found);
            }
        }
    }),
];

const TOOLS: &str = "tools/list";

fn is_read_only(tool: &Value) -> bool {
    tool["annotations"]["readOnlyHint"] == true
}

/// A text that the server has sent in normal work.
struct Text<'e> {
    text: &'e str,
    /// The item of a list, the tool, prompt or resource.
    subject: Option<&'e str>,
    call: Call<'e>,
    /// Where it is: a member, in backticks, or `the message of an error`.
    place: String,
    /// Whether it is in a list or the handshake: what the server says of itself. Elsewhere a text may come from others.
    is_own: bool,
    /// Whether it is a name or a title.
    is_name: bool,
}

/// The texts of answers in normal work: an answer to a case may repeat what the prober sent.
fn texts<'e>(evidence: &'e Evidence<'_>) -> Vec<Text<'e>> {
    let mut texts = Vec::new();
    for call in evidence.calls().plain() {
        let list = List::of_method(call.method());
        let is_own = list.is_some() || matches!(call.method(), "initialize" | "server/discover");
        let named = ["/params/name", "/params/uri"].iter().find_map(|it| call.request.at(it).as_str());
        let mut add = |value: &'e Value, subject, name| {
            visit(value, name, &mut |text, member, is_key| {
                let is_name = is_own && (is_key || matches!(member, "name" | "title"));
                let place = if is_key { "a name in the schema".to_owned() } else { format!("`{member}`") };
                texts.push(Text { text, subject, call, place, is_own, is_name });
            })
        };
        match (list, call.result(), call.response.and_then(|it| it.error())) {
            (Some(list), Some(result), _) => {
                for item in elements(&result[list.member()]) {
                    add(item, item[list.key()].as_str(), "");
                }
            }
            (None, Some(result), _) => add(result, named, ""),
            (_, None, Some(error)) => add(error, named, "error"),
            (_, None, None) => {}
        }
    }
    texts
}

/// Visits every string, with the name of its member, and the names of parameters.
fn visit<'e>(value: &'e Value, member: &'e str, seen: &mut impl FnMut(&'e str, &'e str, bool)) {
    match value {
        Value::String(text) => seen(text, member, false),
        Value::Array(values) => values.iter().for_each(|value| visit(value, member, seen)),
        Value::Object(members) => {
            for (name, value) in members {
                if member == "properties" {
                    seen(name, name, true);
                }
                visit(value, name, seen);
            }
        }
        _ => {}
    }
}

/// One finding for each item, however often it was listed.
fn judge(j: &mut Judgement, text: &Text<'_>, found: Option<String>) {
    let subject = text.subject;
    let is_known =
        |found: &String| j.violations.iter().any(|it| it.subject.as_deref() == subject && it.found == *found);
    if !found.as_ref().is_some_and(is_known) {
        j.check_at(found.is_none(), subject, text.call.places(), || found.unwrap_or_default());
    }
}

fn characters(e: &Evidence<'_>, j: &mut Judgement, kind: HiddenKind) {
    for text in texts(e) {
        // Text of others, such as a page or the output of a program, may have colours and places where a line may break.
        let counts = |it: &Hidden| match it.kind {
            _ if it.kind != kind => false,
            HiddenKind::NoWidth => text.is_own,
            HiddenKind::Control => text.is_own || it.character == '\u{1b}',
            HiddenKind::Tag | HiddenKind::Order => true,
        };
        let first = hidden(text.text).into_iter().find(counts);
        let said = tagged(text.text);
        let found = first.map(|it| match kind {
            HiddenKind::Tag if !said.is_empty() => format!("the hidden text {} in {}", quoted(&said, 80), text.place),
            _ => format!("U+{:04X} in {}", u32::from(it.character), text.place),
        });
        let is_of_others = found.is_some() && !text.is_own;
        judge(j, &text, found);
        j.at_level_if(is_of_others && e.facts.counts_harm, Level::ShouldNot);
    }
}

/// Parameters that ask for a secret: a text with the name of one, that is not the name or the place of one.
fn secrets(e: &Evidence<'_>, j: &mut Judgement) {
    for (tool, name, call) in items(e, TOOLS) {
        let mut found = None;
        subschemas(&tool["inputSchema"], &mut |it| {
            let kind = &it.json["type"];
            let is_text =
                kind.is_null() || kind == "string" || kind.as_array().is_some_and(|it| it.contains(&"string".into()));
            let is_secret = is_secret_name(it.property) && is_text && !is_about_a_secret(it.property, it.json);
            found = found.or(is_secret.then_some(it.property));
        });
        if !j.has_found(name) {
            let text = || format!("the parameter `{}`", found.unwrap_or_default());
            j.check_at(found.is_none(), Some(name), call.places(), text);
        }
    }
}

/// Words that say that a token or secret is one for a login.
const LOGIN: [&str; 9] =
    ["api", "access", "auth", "authentication", "authorization", "bearer", "login", "oauth", "personal"];

/// Whether a parameter is rather a name or a place of a secret, or a word that also means something else: a token may be a
/// coin or a part of a text.
fn is_about_a_secret(property: &str, schema: &Value) -> bool {
    let text = ["title", "description"].map(|key| schema[key].as_str().unwrap_or_default().to_lowercase()).join(" ");
    let words: Vec<_> = text.split(|it: char| !it.is_alphanumeric()).collect();
    let has = |wanted: &[&str]| wanted.iter().any(|it| words.contains(it));
    let letters: String = property.chars().filter(char::is_ascii_alphanumeric).collect();
    let letters = letters.to_ascii_lowercase();
    let is_clear = ["clientsecret", "apisecret", "appsecret"].contains(&letters.as_str());
    let is_doubtful = letters == "token" || (letters.ends_with("secret") && !is_clear);
    has(&["path", "filename", "identifier", "variable", "placeholder", "hash"])
        || ["name of", "id of", "reference to"].iter().any(|it| text.contains(it))
        || schema.get("enum").is_some()
        || (is_doubtful && !has(&LOGIN))
}
