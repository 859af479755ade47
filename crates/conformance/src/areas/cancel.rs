//! Cancellation.

use serde_json::{Value, json};

use super::{
    Judge,
    common::{connection, shown, silence},
};
use crate::{Case, Evidence, Judgement, Kind, Lane, Material, Message};

const CANCELLED: &str = "notifications/cancelled";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("cancel.unknown.ignored", |e, j| silence(e, j, "cancel-cheap/unknown")),
    ("cancel.completed.ignored", |e, j| silence(e, j, "cancel-cheap/completed")),
    ("cancel.malformed.ignored", |e, j| silence(e, j, "cancel-cheap/malformed")),
    ("cancel.server.only-listen", only_listen),
    ("cancel.server.own-requests", own_requests),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    // 2026-07-28 defines no notification of a client over HTTP.
    if material.is_modern() && material.is_http() {
        return Vec::new();
    }
    let cancel = |name: &str, params: Value| Case::notification(name, Lane::Negative, CANCELLED, params);
    vec![
        cancel("cancel-cheap/unknown", json!({ "requestId": "rehearse-none" })),
        cancel("cancel-cheap/completed", json!({ "requestId": 1 })),
        cancel("cancel-cheap/malformed/no-id", json!({})),
        cancel("cancel-cheap/malformed/object", json!({ "requestId": {} })),
    ]
}

fn cancelled<'e, 't>(evidence: &'e Evidence<'t>) -> impl Iterator<Item = (&'e Message<'t>, &'e Value)> {
    let all = evidence.notifications(CANCELLED).map(|it| (it, it.at("/params/requestId")));
    all.filter(|(_, id)| id.is_string() || id.is_number())
}

fn only_listen(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (message, id) in cancelled(evidence) {
        let Some(connection) = connection(evidence, message.place) else { continue };
        let is_open =
            connection.calls().any(|call| call.method() == "subscriptions/listen" && call.request.id() == Some(id));
        j.check(is_open, message, || format!("the id {}", shown(id)));
    }
}

fn own_requests(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (message, id) in cancelled(evidence) {
        let Some(connection) = connection(evidence, message.place) else { continue };
        let own = connection.messages.iter().filter(|it| it.is_from_server() && it.kind == Kind::Request);
        let is_own = own.filter(|it| it.place < message.place).any(|it| it.id() == Some(id));
        j.check(is_own, message, || format!("the id {}", shown(id)));
    }
}
