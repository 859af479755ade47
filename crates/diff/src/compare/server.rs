//! What belongs to no list: versions, capabilities, instructions, and the name of the server.

use serde_json::Value as Json;

use super::{
    Changes, Subject,
    items::{compare_text, verb},
    keys, pair,
};
use crate::{Surface, surface::is_legacy};
use rehearse_report::diff::Class;

pub(super) fn compare(changes: &mut Changes, old: &Surface, new: &Surface) {
    if let (Some(before), Some(after)) = (&old.protocol_versions, &new.protocol_versions) {
        compare_versions(changes, before, after);
    }
    if let (Some(before), Some(after)) = (&old.capabilities, &new.capabilities) {
        compare_capabilities(changes, &at("capabilities"), "", (before, after));
    }
    if let (Some(before), Some(after)) = (&old.instructions, &new.instructions) {
        let text = |text: &String| Some(Json::from(text.as_str())).filter(|_| !text.is_empty());
        let (before, after) = (text(before), text(after));
        compare_text(changes, "server.instructions", &server(), "instructions", (before.as_ref(), after.as_ref()));
    }
    if let (Some(before), Some(after)) = (&old.server, &new.server) {
        compare_identity(changes, before, after);
    }
}

fn server() -> Subject {
    Subject { name: "server".to_owned(), old: Some(String::new()), new: Some(String::new()) }
}

/// A member of a surface that both sides have.
fn at(member: &str) -> Subject {
    server().member(member, (Some(&Json::Null), Some(&Json::Null)))
}

fn compare_versions(changes: &mut Changes, old: &[String], new: &[String]) {
    let at = at("protocolVersions");
    // What is older than the only one with a handshake is not known.
    let is_known = |side: &[String], version: &String| {
        let mut legacy = side.iter().filter(|it| is_legacy(it));
        let (first, second) = (legacy.next(), legacy.next());
        second.is_some() || first.is_none_or(|only| version >= only)
    };
    for gone in old.iter().filter(|version| !new.contains(version) && is_known(new, version)) {
        let text = format!("The protocol version {gone} is gone: a client that speaks only this one fails.");
        changes.push(Class::Breaking, "server.version-removed", Subject { new: None, ..at.clone() }, text);
    }
    for added in new.iter().filter(|version| !old.contains(version) && is_known(old, version)) {
        let text = format!("The protocol version {added} is new.");
        changes.push(Class::Addition, "server.version-added", Subject { old: None, ..at.clone() }, text);
    }
}

/// Compares the members of capabilities: a capability, an extension, or a flag of one.
fn compare_capabilities(changes: &mut Changes, at: &Subject, path: &str, (old, new): (&Json, &Json)) {
    for key in keys(old, new) {
        let members = pair(old, new, &key);
        // A flag that is false is as good as none.
        let is_on = |side: Option<&Json>| side.is_some_and(|value| *value != Json::Bool(false));
        let subject = at.member(&key, members);
        let is_container = path.is_empty() && matches!(&*key, "extensions" | "experimental");
        let name = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        let absent = Json::Object(serde_json::Map::new());
        match (is_on(members.0), is_on(members.1)) {
            (false, false) => {}
            _ if is_container => {
                let sides = (members.0.unwrap_or(&absent), members.1.unwrap_or(&absent));
                compare_capabilities(changes, &at.member(&key, (Some(&absent), Some(&absent))), &name, sides);
            }
            (false, true) => {
                let text = format!("The server has the capability `{name}` now.");
                changes.push(Class::Addition, "server.capability-added", subject, text);
            }
            (true, false) => {
                let (class, why) = match path {
                    _ if key == "listChanged" => (Class::Behaviour, "a host no longer hears of changes"),
                    "experimental" => (Class::Behaviour, "a client that knows it acts differently"),
                    _ => (Class::Breaking, "a client that uses it fails"),
                };
                let text = format!("The server no longer has the capability `{name}`: {why}.");
                changes.push(class, "server.capability-removed", subject, text);
            }
            (true, true) if members.0 == members.1 => {}
            (true, true) => match members {
                (Some(before @ Json::Object(_)), Some(after @ Json::Object(_))) => {
                    compare_capabilities(changes, &subject, &name, (before, after));
                }
                _ => {
                    let text = format!("The capability `{name}` differs: a client may act differently.");
                    changes.push(Class::Behaviour, "server.capability-changed", subject, text);
                }
            },
        }
    }
}

fn compare_identity(changes: &mut Changes, old: &Json, new: &Json) {
    let at = at("server");
    for key in keys(old, new) {
        let members = pair(old, new, &key);
        if members.0 != members.1 {
            let (class, why) = match &*key {
                "name" => (Class::Behaviour, "a host that knows the server by its name takes it for another one"),
                "version" => (Class::Cosmetic, "it is another release"),
                _ => (Class::Cosmetic, "only people see it"),
            };
            let text = format!("`{key}` of the server {}: {why}.", verb(members));
            changes.push(class, "server.identity", at.member(&key, members), text);
        }
    }
}
