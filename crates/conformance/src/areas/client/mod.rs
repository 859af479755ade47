//! The judges of what a client does, by area.
//!
//! Most look at any traffic. Those of an act look for what a mock does in it, by its trace, or by the name of the act.

use crate::{Connection, Evidence, Fetched, Flow, Judgement, Kind};

const CALL: &str = "tools/call";

pub(super) mod apps;
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
mod reading;
pub(super) mod res;
pub(super) mod robust;
pub(super) mod rpc;
pub(super) mod skills;
pub(super) mod sse;
pub(super) mod sub;
pub(super) mod tasks;
pub(super) mod tools;
pub(super) mod ws;

pub(crate) use asked::answered;

/// Checks that requests of these methods are sent only to a server that declares a capability.
fn only_declared(e: &Evidence<'_>, j: &mut Judgement, methods: &[&str], capability: &str) {
    if e.facts.capabilities.is_null() {
        return;
    }
    let is_declared = e.facts.declares(capability);
    for call in methods.iter().flat_map(|method| e.calls_of(method)) {
        j.check_subject(is_declared, call.method(), call.request, || format!("no capability `{capability}`"));
    }
}

/// Checks that what a client sends first on a new connection is `initialize`.
fn reinitializes(connection: &Connection<'_>, j: &mut Judgement) {
    let mut calls = connection.calls().filter(|call| call.request.kind == Kind::Request);
    if let Some(first) = calls.find(|call| call.method() != "ping") {
        let is_handshake = first.method() == "initialize";
        j.check(is_handshake, first.request, || format!("{} first on a new connection", first.method()));
    }
}

/// A tool that is listed only where a client must not use the list.
const UNUSABLE: &str = "never-listed";

/// Checks that a client does not use the list of tools of an act.
fn ignores_list(e: &Evidence<'_>, j: &mut Judgement, act: &str) {
    if e.facts.is_in(act)
        && let Some(listing) = e.calls_of("tools/list").next()
    {
        let called = e.calls_of("tools/call").find(|call| call.request.at("/params/name") == UNUSABLE);
        let places = [Some(listing), called].into_iter().flatten().map(|call| call.request.place).collect();
        j.check_at(called.is_none(), None, places, || "a call of a tool of this list");
    }
    j.untested(format!("the client listed no tools in the act {act}"));
}

/// Checks that a client does the same in an act as in the act `clean`.
fn completes(e: &Evidence<'_>, j: &mut Judgement, act: &str) {
    compare(e, j, act, |usual, now| usual.missing_in(now));
}

/// As [`completes`], of an act that disturbs the client before the answer to this method, and after it before that to
/// `tools/call`: whether the client has sent that says which of the two it minds.
fn completes_at(e: &Evidence<'_>, j: &mut Judgement, act: &str, method: &str) {
    let is_last = |flow: &Flow| method == CALL || !flow.methods.contains(CALL);
    if e.calls_of(method).next().is_none() {
        j.untested(format!("the client sent no {method} in the act {act}"));
    } else {
        compare(e, j, act, |usual, now| usual.missing_in(now).filter(|_| is_last(now)));
    }
}

/// Checks that a client sends the same requests in an act as in the act `clean`, and ends if it does there. Its exit code
/// may be another one.
fn goes_on(e: &Evidence<'_>, j: &mut Judgement, act: &str) {
    compare(e, j, act, |usual, now| usual.lacks(now).or_else(|| usual.hangs_in(now)));
}

/// Checks that a client ends in an act if it does so in the act `clean`.
fn ends(e: &Evidence<'_>, j: &mut Judgement, act: &str) {
    compare(e, j, act, |usual, now| usual.hangs_in(now));
}

/// Whether the client sends this request in the act that an act is compared with. If not, it does not meet what that act
/// does with it.
fn sends(e: &Evidence<'_>, j: &mut Judgement, method: &str) -> bool {
    let sends = e.facts.flow.as_ref().is_some_and(|flow| flow.methods.contains(method));
    if !sends {
        j.untested(format!("the client sends no {method} in the act clean"));
    }
    sends
}

/// Judges an act in which the server answers this request in another way, if the client sends it.
fn if_sent(
    e: &Evidence<'_>,
    j: &mut Judgement,
    method: &str,
    judge: fn(&Evidence<'_>, &mut Judgement, &str),
    act: &str,
) {
    if sends(e, j, method) {
        judge(e, j, act);
    }
}

fn compare(e: &Evidence<'_>, j: &mut Judgement, act: &str, missing: impl Fn(&Flow, &Flow) -> Option<String>) {
    if !e.facts.is_in(act) {
        return;
    }
    let Some(usual) = e.facts.flow.as_ref().filter(|flow| !flow.methods.is_empty()) else {
        j.untested("the client sends no request in the act clean");
        return;
    };
    let missing = missing(usual, &Flow::new(e));
    let last = e.messages().last().map(|message| message.place);
    j.check_at(missing.is_none(), None, last.into_iter().collect(), || missing.unwrap_or_default());
}

/// Checks what a client has fetched of the URLs that the server only names; `wrong` says what is wrong with it.
fn fetched(e: &Evidence<'_>, j: &mut Judgement, name: &str, wrong: impl Fn(&Fetched) -> Option<String>) {
    let path = format!("/canary/{name}");
    let Some(named) = e.received().find(|it| String::from_utf8_lossy(it.bytes).contains(&path)) else {
        j.untested("the server named no such URL");
        return;
    };
    let found = e.facts.fetched.iter().filter(|it| it.target.starts_with(&path)).find_map(wrong);
    j.check_at(found.is_none(), None, vec![named.place], || found.unwrap_or_default());
}
