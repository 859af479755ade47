//! The judges of what a client does, by area.
//!
//! Most look at any traffic. Those of an act look for what a mock does in it, by its trace, or by the name of the act.

use crate::{Evidence, Flow, Judgement};

pub(super) mod ask;
mod asked;
pub(super) mod auth;
pub(super) mod cancel;
mod common;
pub(super) mod era;
pub(super) mod hdr;
mod header_value;
pub(super) mod http;
pub(super) mod io;
pub(super) mod life;
pub(super) mod list;
pub(super) mod log;
pub(super) mod lsse;
pub(super) mod modern;
pub(super) mod mrtr;
mod params;
pub(super) mod ping;
pub(super) mod res;
pub(super) mod rpc;
pub(super) mod skills;
pub(super) mod sse;
pub(super) mod sub;
pub(super) mod tasks;
pub(super) mod tools;
pub(super) mod ws;

pub(crate) use asked::answered;

/// Checks that requests of these methods are sent only to a server that declares a capability.
fn only_declared(evidence: &Evidence<'_>, j: &mut Judgement, methods: &[&str], capability: &str) {
    if evidence.facts.capabilities.is_null() {
        return;
    }
    let is_declared = evidence.facts.declares(capability);
    for call in methods.iter().flat_map(|method| evidence.calls_of(method)) {
        j.check_subject(is_declared, call.method(), call.request, || {
            "it, which the server does not declare".to_owned()
        });
    }
}

/// Checks that a client does the same in an act as in the act `clean`.
fn completes(evidence: &Evidence<'_>, j: &mut Judgement, act: &str) {
    if evidence.facts.act.as_deref() != Some(act) {
        j.untested(format!("the act {act} was not run"));
        return;
    }
    let Some(usual) = evidence.facts.flow.as_ref().filter(|flow| !flow.methods.is_empty()) else {
        j.untested("the client sends no request in the act clean");
        return;
    };
    let missing = usual.missing_in(&Flow::new(evidence));
    let last = evidence.messages().last().map(|message| message.place);
    j.check_at(missing.is_none(), None, last.into_iter().collect(), || missing.unwrap_or_default());
}
