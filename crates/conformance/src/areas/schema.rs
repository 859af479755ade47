//! The shapes of results, notifications, requests and errors: what no other area says of them.

use rehearse_protocol::Version;

use super::Judge;
use super::common::{is_empty, shown};
use super::query::{Calls, Query};
use crate::{Evidence, Judgement, Kind, Level, Message, shapes};

macro_rules! shape {
    ($check:literal) => {
        ($check, |e, j| shapes::judge(e, j, $check))
    };
}

/// The methods of a server's requests, and the versions that define them.
const REQUESTS: [(&str, Version, Version); 8] = [
    ("ping", Version::V2024_11_05, Version::V2025_11_25),
    ("roots/list", Version::V2024_11_05, Version::V2025_11_25),
    ("sampling/createMessage", Version::V2024_11_05, Version::V2025_11_25),
    ("elicitation/create", Version::V2025_06_18, Version::V2025_11_25),
    ("tasks/get", Version::V2025_11_25, Version::V2025_11_25),
    ("tasks/result", Version::V2025_11_25, Version::V2025_11_25),
    ("tasks/list", Version::V2025_11_25, Version::V2025_11_25),
    ("tasks/cancel", Version::V2025_11_25, Version::V2025_11_25),
];
/// The methods of a server's notifications, and the versions that define them.
const NOTIFICATIONS: [(&str, Version, Version); 11] = [
    ("notifications/cancelled", Version::V2024_11_05, Version::LATEST),
    ("notifications/progress", Version::V2024_11_05, Version::LATEST),
    ("notifications/message", Version::V2024_11_05, Version::LATEST),
    ("notifications/resources/updated", Version::V2024_11_05, Version::LATEST),
    ("notifications/resources/list_changed", Version::V2024_11_05, Version::LATEST),
    ("notifications/tools/list_changed", Version::V2024_11_05, Version::LATEST),
    ("notifications/prompts/list_changed", Version::V2024_11_05, Version::LATEST),
    ("notifications/elicitation/complete", Version::V2025_11_25, Version::V2025_11_25),
    ("notifications/tasks/status", Version::V2025_11_25, Version::V2025_11_25),
    ("notifications/subscriptions/acknowledged", Version::V2026_07_28, Version::LATEST),
    // Of the tasks extension.
    ("notifications/tasks", Version::V2026_07_28, Version::LATEST),
];
/// What only a client sends.
const OF_CLIENTS: [&str; 2] = ["notifications/initialized", "notifications/roots/list_changed"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    shape!("schema.result.initialize"),
    shape!("schema.result.discover"),
    shape!("schema.result.tools-list"),
    shape!("schema.result.tools-call"),
    shape!("schema.result.resources-list"),
    shape!("schema.result.resources-templates-list"),
    shape!("schema.result.resources-read"),
    shape!("schema.result.prompts-list"),
    shape!("schema.result.prompts-get"),
    shape!("schema.result.completion"),
    ("schema.result.empty", |e, j| {
        // `ping` and `logging/setLevel` have checks of their own.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let results = e.results_of(method).by_method();
            results.must(j, |result| !result.is_object() || is_empty(result), shown);
        }
    }),
    shape!("schema.result.task-types"),
    shape!("schema.notify.progress"),
    shape!("schema.notify.message"),
    shape!("schema.notify.cancelled"),
    shape!("schema.notify.resource-updated"),
    shape!("schema.notify.list-changed"),
    shape!("schema.notify.elicitation-complete"),
    shape!("schema.notify.task-status"),
    shape!("schema.notify.subscription-ack"),
    shape!("schema.request.sampling"),
    shape!("schema.request.elicitation"),
    shape!("schema.request.roots"),
    shape!("schema.request.ping"),
    ("schema.request.known-method", |e, j| {
        // A notification with an id is another mistake.
        let is_request = |it: &&Message<'_>| it.method().is_some_and(|method| !method.starts_with("notifications/"));
        for request in e.server_requests().filter(is_request) {
            known(e.version, j, request, &REQUESTS);
        }
    }),
    ("schema.notify.known-method", notifications),
    shape!("schema.error.unsupported-version"),
    shape!("schema.error.missing-capability"),
    shape!("schema.error.url-elicitation"),
    shape!("schema.content.text"),
    shape!("schema.content.image"),
    shape!("schema.content.audio"),
    shape!("schema.content.embedded"),
    shape!("schema.content.resource-link"),
    shape!("schema.content.known-type"),
    shape!("schema.capabilities.server"),
    shape!("schema.ids.uri-format"),
    shape!("schema.ids.uri-template-format"),
];

fn notifications(e: &Evidence<'_>, j: &mut Judgement) {
    for notification in e.received().filter(|it| it.kind == Kind::Notification) {
        known(e.version, j, notification, &NOTIFICATIONS);
    }
}

/// A method of another version is a mistake; one of no version may be that of an extension.
fn known(version: Version, j: &mut Judgement, message: &Message<'_>, methods: &[(&str, Version, Version)]) {
    let method = message.method().unwrap_or_default();
    if j.has_found(method) {
        return;
    }
    let found = methods.iter().find(|(it, ..)| *it == method);
    let holds = found.is_some_and(|(_, since, until)| (*since..=*until).contains(&version));
    j.check_subject(holds, method, message, || match found {
        Some((_, since, _)) if *since > version => format!("a method of {since}"),
        Some((.., until)) => format!("a method that ended with {until}"),
        None if OF_CLIENTS.contains(&method) => "a method of clients".to_owned(),
        None => "a method of no version".to_owned(),
    });
    let is_newer = found.is_some_and(|(_, since, _)| *since > version);
    match found {
        None if !OF_CLIENTS.contains(&method) => j.at_level(Level::Info),
        // The server does not respect the negotiated version.
        Some(_) if !holds && is_newer && version >= Version::V2025_06_18 => j.at_level(Level::Must),
        _ => {}
    }
}
