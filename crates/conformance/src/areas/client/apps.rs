//! Apps (extension `io.modelcontextprotocol/ui`, SEP-1865), in a client that shows them.

use rehearse_protocol::names::APPS_EXTENSION;
use serde_json::Value;

use super::super::Judge;
use super::super::ask::CAPABILITIES;
use super::super::common::{items, shown};
use crate::{Call, Evidence};

const NOT_DECLARED: &str = "the client does not declare that it shows apps";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-apps.caps.mime-types", |e, j| {
        for (call, settings) in declarations(e) {
            let types = &settings["mimeTypes"];
            let are_types = types.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
            j.check(are_types, call.request, || format!("`mimeTypes: {}`", shown(types)));
        }
    }),
    ("client-apps.call.app-only", |e, j| {
        if declarations(e).next().is_none() {
            j.untested(NOT_DECLARED);
            return;
        }
        let calls: Vec<_> = e.calls_of("tools/call").collect();
        for (_, name, listing) in items(e, "tools/list").filter(|(tool, ..)| is_for_apps(tool) && !calls.is_empty()) {
            let called = calls.iter().find(|call| call.request.at("/params/name") == name);
            let places = [Some(&listing), called].into_iter().flatten().map(|call| call.request.place).collect();
            j.check_at(called.is_none(), Some(name), places, || "a call of it");
        }
    }),
];

/// Where a client says that it shows apps, and how: when it opens a session, and with each request since 2026-07-28.
fn declarations<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.calls().filter_map(|call| {
        let mut places = ["/params/capabilities", CAPABILITIES].into_iter();
        let settings = places.find_map(|place| call.request.at(place)["extensions"].get(APPS_EXTENSION))?;
        Some((call, settings))
    })
}

/// Whether a tool is hidden from models (Visibility).
fn is_for_apps(tool: &Value) -> bool {
    let visibility = tool["_meta"]["ui"]["visibility"].as_array();
    visibility.is_some_and(|all| !all.iter().any(|it| it == "model"))
}
