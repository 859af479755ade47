//! JSON-RPC 2.0: envelopes, ids, errors, malformed input.

use super::Judge;
use crate::{Case, Evidence, Judgement, Lane, Material};
use serde_json::json;

pub(super) const JUDGES: &[(&str, Judge)] = &[("rpc.envelope.version-field", version_field)];

fn version_field(evidence: &Evidence<'_>, j: &mut Judgement) {
    for message in evidence.received().filter(|it| it.value.is_object()) {
        let version = message.at("/jsonrpc");
        j.check(version == "2.0", message, || format!("`jsonrpc` is {version}"));
    }
}

pub(super) fn cases(_material: &Material) -> Vec<Case> {
    vec![
        Case::request("bad-method/unknown", Lane::Negative, "rehearse/no-such-method", json!({})),
        Case::bytes("malformed/truncated", Lane::Malformed, r#"{"jsonrpc":"2.0","id":"#),
    ]
}
