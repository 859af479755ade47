//! The shapes of results, notifications, requests and errors: what no other area says of them.

use rehearse_protocol::Version;

use super::Judge;
use super::common::{is_empty, shown};
use super::query::{Calls, Query};
use crate::{Judgement, Kind, Level, Message, Role, method::method, shapes};

macro_rules! shapes {
    ($($check:literal)*) => {
        &[$(($check, |e, j| shapes::judge(e, j, $check))),*]
    };
}

pub(super) const SHAPES: &[(&str, Judge)] = shapes! {
    "schema.result.initialize" "schema.result.discover" "schema.result.tools-list" "schema.result.tools-call"
    "schema.result.resources-list" "schema.result.resources-templates-list" "schema.result.resources-read"
    "schema.result.prompts-list" "schema.result.prompts-get" "schema.result.completion" "schema.result.task-types"
    "schema.notify.progress" "schema.notify.message" "schema.notify.cancelled" "schema.notify.resource-updated"
    "schema.notify.list-changed" "schema.notify.elicitation-complete" "schema.notify.task-status"
    "schema.notify.subscription-ack" "schema.request.sampling" "schema.request.elicitation" "schema.request.roots"
    "schema.request.ping" "schema.error.unsupported-version" "schema.error.missing-capability"
    "schema.error.url-elicitation" "schema.content.text" "schema.content.image" "schema.content.audio"
    "schema.content.embedded" "schema.content.resource-link" "schema.content.known-type" "schema.capabilities.server"
    "schema.ids.uri-format" "schema.ids.uri-template-format"
};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("schema.result.empty", |e, j| {
        // `ping` and `logging/setLevel` have checks of their own.
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            let results = e.results_of(method).by_method();
            results.must(j, |result| !result.is_object() || is_empty(result), shown);
        }
    }),
    ("schema.request.known-method", |e, j| {
        // A notification with an id is another mistake.
        let is_request = |it: &&Message<'_>| it.method().is_some_and(|method| !method.starts_with("notifications/"));
        e.server_requests().filter(is_request).for_each(|request| known(e.version, j, request));
    }),
    ("schema.notify.known-method", |e, j| {
        let notifications = e.received().filter(|it| it.kind == Kind::Notification);
        notifications.for_each(|notification| known(e.version, j, notification));
    }),
];

/// A method of another version is a mistake; one of no version may be that of an extension.
fn known(version: Version, j: &mut Judgement, message: &Message<'_>) {
    let name = message.method().unwrap_or_default();
    if j.has_found(name) {
        return;
    }
    let found = method(Role::Server, message.kind, name);
    let is_of_clients = method(Role::Client, Kind::Notification, name).is_some();
    j.check_subject(found.is_some_and(|it| it.is_in(version)), name, message, || match found {
        Some(it) if it.since > version => format!("a method of {}", it.since),
        Some(it) => format!("a method that ended with {}", it.until),
        None if is_of_clients => "a method of clients".to_owned(),
        None => "a method of no version".to_owned(),
    });
    match found {
        None if !is_of_clients => j.at_level(Level::Info),
        // The server does not respect the negotiated version.
        Some(it) if it.since > version && version >= Version::V2025_06_18 => j.at_level(Level::Must),
        _ => {}
    }
}
