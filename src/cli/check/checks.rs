//! `--list` and `--explain`.

use std::fmt::Write;

use serde_json::{Map, Value as Json, json};

use crate::cli::{
    Failure, output,
    style::{DIM, STRONG},
};
use rehearse_check::selects;
use rehearse_conformance::{Check, Role, checks, checks_of};
use rehearse_document::nearest;
use rehearse_report::Format;

/// The checks about a role.
pub(super) fn of(role: Role) -> impl Iterator<Item = &'static Check> {
    checks_of(role)
}

/// Prints checks, as text one a line, with their ids in the official suite.
///
/// # Errors
/// The format is another one than human or json.
pub(super) fn list(selected: &[&Check], format: Format) -> Result<(), Failure> {
    let mut out = String::new();
    for check in selected {
        let level = check.levels.values().next_back().map_or("", |level| level.as_str());
        let _ = write!(out, "{STRONG}{:45}{STRONG:#} {level:10} {}", check.id, check.rule);
        if !check.official.is_empty() {
            let _ = write!(out, "  {DIM}{}{DIM:#}", check.official.join(", "));
        }
        out.push('\n');
    }
    output::write_list("--list", format, &out, &selected.iter().map(|check| entry(check)).collect())
}

/// All that is known of a check, as JSON.
fn entry(check: &Check) -> Json {
    let text = |value: &Option<String>| value.clone().map(Json::from).unwrap_or_default();
    let levels = check.levels.iter().map(|(version, level)| {
        let entry = json!({ "level": level.as_str(), "specification": check.link(*version) });
        (version.to_string(), entry)
    });
    json!({
        "id": check.id,
        "rule": check.rule,
        "versions": levels.collect::<Map<_, _>>(),
        "transports": check.transports,
        "capability": text(&check.capability),
        "extension": text(&check.extension),
        "looksAt": check.looks_at,
        "allowed": text(&check.allowed),
        "help": text(&check.help),
        "official": check.official,
    })
}

/// The failure about an id or a pattern that selects no check.
pub(super) fn unknown(id: &str, role: Role) -> Failure {
    if checks().iter().any(|check| check.role() != role && selects(id, &check.id)) {
        let owner = checks().iter().find(|check| selects(id, &check.id)).map(Check::role).unwrap_or_default();
        let command = match owner {
            Role::Server => "rehearse check",
            Role::Client => "rehearse check client",
            Role::Issuer => "rehearse check --auth-server",
            Role::Gateway => "rehearse check gateway",
        };
        return Failure::Usage(format!("the check {id:?} belongs to `{command}`"));
    }
    let ids: Vec<_> = checks_of(role).map(|check| check.id.as_str()).collect();
    let near = nearest(id, &ids).map(|near| format!("did you mean {near}?"));
    let hint = near.unwrap_or_else(|| "`rehearse check --list` prints all checks".to_owned());
    Failure::Usage(format!("there is no check {id:?}; {hint}"))
}

/// Prints all that is known of a check.
///
/// # Errors
/// There is no such check; or the format is another one than human or json.
pub(super) fn explain(id: &str, format: Format) -> Result<(), Failure> {
    let Some(check) = checks().iter().find(|check| check.id == id) else { return Err(unknown(id, Role::Server)) };
    let mut out = format!("{STRONG}{}{STRONG:#}\n{}\n\n", check.id, check.rule);
    for (version, level) in &check.levels {
        let _ = writeln!(out, "{version}  {:10} {DIM}{}{DIM:#}", level.as_str(), check.link(*version));
    }
    let transports: Vec<_> = check.transports.iter().map(|transport| transport.as_str()).collect();
    let _ = writeln!(out, "\nTransports: {}", transports.join(", "));
    if let Some(capability) = &check.capability {
        let _ = writeln!(out, "Needs: the capability `{capability}`");
    }
    if let Some(extension) = &check.extension {
        let _ = writeln!(out, "Needs: the extension `{extension}`");
    }
    let _ = writeln!(out, "Looks at: {}", check.looks_at);
    if let Some(allowed) = &check.allowed {
        let _ = writeln!(out, "Allowed: {allowed}");
    }
    if let Some(help) = &check.help {
        let _ = writeln!(out, "Help: {help}");
    }
    if !check.official.is_empty() {
        let _ = writeln!(out, "Official suite: {}", check.official.join(", "));
    }
    output::write_list("--explain", format, &out, &entry(check))
}
