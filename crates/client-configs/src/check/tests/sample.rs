//! Files as the table of a dialect wants them, in which one thing is wrong.

use crate::dialect::{Collection, Dialect, Field, WhenTypeMissing};
use rehearse_protocol::Transport;

pub(super) fn key(dialect: &Dialect, field: Field) -> Option<&'static str> {
    dialect.keys.iter().find(|key| key.field == field).map(|key| key.name)
}

pub(super) fn word(dialect: &Dialect, transport: Transport) -> Option<&'static str> {
    dialect.transports.iter().find(|(_, it)| *it == transport).map(|it| it.0)
}

/// A file with these servers, each a name with an object, both as written in JSON.
pub(super) fn file(dialect: &Dialect, servers: &[(&str, String)]) -> String {
    let beside = dialect.companions.iter().map(|it| format!("\"{}\": \"{}\", ", it.key, it.value)).collect::<String>();
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\": ")).collect();
    let open = open.replacen('{', &format!("{{{beside}"), 1);
    let is_list = matches!(dialect.collection, Collection::List { .. });
    let each = servers.iter().map(|(name, server)| match is_list {
        true => format!("{{\"name\": {name}, {}", server[1..].trim_start()),
        false => format!("{name}: {server}"),
    });
    let all = each.collect::<Vec<_>>().join(", ");
    let (begin, end) = if is_list { ('[', ']') } else { ('{', '}') };
    format!("{open}{begin}{all}{end}{}", "}".repeat(dialect.roots[0].len()))
}

/// The member that says which program is started.
pub(super) fn command(dialect: &Dialect) -> String {
    match (key(dialect, Field::CommandLine), key(dialect, Field::Command)) {
        (Some(line), _) => format!("\"{line}\": [\"node\"]"),
        (None, command) => format!("\"{}\": \"node\"", command.expect("a command")),
    }
}

/// A server that is started, with these members besides.
pub(super) fn process(dialect: &Dialect, rest: &str) -> String {
    let mut members = Vec::new();
    if let (Some(key), Some(word)) = (key(dialect, Field::Transport), word(dialect, Transport::Stdio)) {
        members.push(format!("\"{key}\": \"{word}\""));
    }
    let is_other = key(dialect, Field::Command).is_some_and(|key| rest.contains(&format!("\"{key}\":")));
    if key(dialect, Field::CommandLine).is_some() || !is_other {
        members.push(command(dialect));
    }
    for key in dialect.required_keys.iter().filter(|key| !rest.contains(&format!("\"{key}\""))) {
        members.push(format!("\"{key}\": []"));
    }
    members.push(rest.to_owned());
    members.retain(|member| !member.is_empty());
    format!("{{{}}}", members.join(", "))
}

/// A server at a URL, if the dialect has such, with this URL as written in JSON and these members besides.
pub(super) fn remote(dialect: &Dialect, transport: Transport, url: &str, rest: &str) -> Option<String> {
    let at = dialect.keys.iter().find(|key| match key.field {
        Field::Url(None) => true,
        Field::Url(only) => only == Some(transport),
        _ => false,
    })?;
    let mut members = vec![format!("\"{}\": {url}", at.name)];
    if let (Some(key), Some(word)) = (key(dialect, Field::Transport), word(dialect, transport)) {
        members.push(format!("\"{key}\": \"{word}\""));
    } else if !matches!(dialect.when_type_missing, WhenTypeMissing::Inferred(it) if it == transport) {
        return None;
    }
    members.push(rest.to_owned());
    members.retain(|member| !member.is_empty());
    Some(format!("{{{}}}", members.join(", ")))
}

pub(super) const GOOD: &str = "\"https://mcp.example.com/mcp\"";

/// A server that is started, with a value for this field, if the dialect has it.
pub(super) fn with(dialect: &Dialect, field: Field, value: &str) -> Option<String> {
    key(dialect, field).map(|key| process(dialect, &format!("\"{key}\": {value}")))
}

/// A server at this URL, as [`remote`].
pub(super) fn http(dialect: &Dialect, url: &str, rest: &str) -> Option<String> {
    remote(dialect, Transport::Http, url, rest)
}

/// A server at a good URL, with a value for this field, if the dialect has it.
pub(super) fn http_with(dialect: &Dialect, field: Field, value: &str) -> Option<String> {
    http(dialect, GOOD, &format!("\"{}\": {value}", key(dialect, field)?))
}
