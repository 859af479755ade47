//! Composite acts: acts that do not disturb each other, in one run of the client.
//!
//! Each act changes something in the server of the act `clean`, and a composite act is a server with the changes of
//! several: one list with plain, odd and broken tools, one stream with comments and unknown fields. Its script is
//! [merged](merge) from theirs; none is written for it. The judges take its traces for those of all its acts.
//!
//! What an act does must not hide what another one does: an error in place of an answer hides what is odd in the answer.
//! So an act is alone if it ends what the client does: by an error, a status, silence, or the end of a connection. Those
//! that are about calls share a composite act nevertheless, each with the calls of a tool of its own, if the client calls
//! that tool in the act `clean`. A server of older versions that does not know the newer ones may also be odd in what it
//! does in the older ones.
//!
//! A composite act stands for its acts only if the client behaves in it: it violates nothing that is not known from an
//! act alone, and does all that it does in the act `clean`. Otherwise parts of them are run, down to single acts.

use std::sync::Arc;

use rehearse_document::{Source, parse_yaml};
use rehearse_mock::script::{ActRules, ScriptError};
use serde_json::{Map, Value as Json, json};

use super::{
    ACTS, ActScript, ClientError,
    merge::{Conflict, merge},
};

macro_rules! composites {
    ($([$($name:literal)*])*) => {
        &[$(&[$($name),*]),*]
    };
}

/// The acts of each composite act, in the order in which they are merged.
const COMPOSITES: &[&[&str]] = composites! {
    ["capability" "instructions" "members" "plain-tools" "odd-names" "same-names" "broken-schema" "unknown-dialect"
     "huge-schema" "huge-description" "content" "contents" "roots" "odd-progress" "lingers"]
    ["noise" "odd-notifications" "strays" "odd-cancellations" "flood" "two-in-one" "untagged" "slow-call" "stderr"]
    ["pages" "json" "media-type" "stateless" "nameless" "listen-cut" "late-answers"
     "mismatch-once" "stderr-flood"]
    // An unknown field belongs to the event that follows.
    ["streams" "comments" "line-ends" "event-types" "fields" "notices" "duplicates" "renamed" "stray-request"
     "content-empty" "ttl-short"]
    ["data-lines" "no-space" "large" "headers" "structured" "reorder" "changes"]
    ["pieces" "rounds" "canaries" "tasks" "apps" "initialize-slow"]
    ["legacy-1" "tasks-legacy" "page-required" "burst" "completed"]
    ["odd-session" "resume"]
    ["legacy-2" "version-2025-11-25"]
    ["legacy-3" "version-2025-06-18"]
    ["legacy-4" "version-2025-03-26"]
    ["legacy-silent" "version-2024-11-05"]
    ["version-once" "rounds-state" "rounds-endless" "missing-capability"]
    ["error-data" "content-unknown" "cut-call"]
    ["unknown-method" "mismatch"]
};

/// The acts that are about calls, and the tool that they are about in a composite act.
const CALLED: &[(&str, &str)] = &[
    ("changes", "echo"),
    ("slow-call", "report"),
    ("rounds", "echo"),
    ("canaries", "report"),
    ("tasks", "add"),
    ("rounds-endless", "echo"),
    ("missing-capability", "add"),
    ("rounds-state", "report"),
    ("error-data", "add"),
    ("content-unknown", "report"),
    ("cut-call", "echo"),
    ("unknown-method", "echo"),
    ("mismatch", "add"),
];

/// The number of the composite act that an act belongs to.
pub(super) fn composite_of(act: &str) -> Option<usize> {
    COMPOSITES.iter().position(|composite| composite.contains(&act))
}

/// Acts that are run together, in the order of the first of them. `is_called` says whether the client calls a tool; an
/// act about one that it does not call is alone.
pub(super) fn grouped(mut acts: Vec<ActScript>, is_called: impl Fn(&str) -> bool) -> Vec<Vec<ActScript>> {
    let mut groups = Vec::new();
    while !acts.is_empty() {
        let composite = composite_of(&acts[0].name).map(|number| COMPOSITES[number]);
        let place = |act: &ActScript| composite?.iter().position(|name| *name == act.name);
        let is_mate = |act: &ActScript| place(act).is_some() && tool_of(&act.name).is_none_or(&is_called);
        let mut group: Vec<_> = match is_mate(&acts[0]) {
            true => acts.extract_if(.., |act| is_mate(act)).collect(),
            false => vec![acts.remove(0)],
        };
        group.sort_by_key(place);
        groups.push(group);
    }
    groups
}

/// The tool whose calls an act is about, if it shares its run.
pub(super) fn tool_of(act: &str) -> Option<&'static str> {
    CALLED.iter().find(|(name, _)| *name == act).map(|(_, tool)| *tool)
}

/// The composite act of several.
///
/// # Errors
/// They disturb each other.
pub(super) fn compose(acts: &[ActScript]) -> Result<ActScript, ClientError> {
    let base = read(&Source::new(ACTS[0].name, ACTS[0].script))?;
    let mut merged = base.clone();
    for act in acts {
        let script = changed(read(&act.script.source)?, act, &base);
        let both = merge(Some(&base), Some(&merged), Some(&script), "");
        merged =
            both.map_err(|Conflict(place)| ClientError::Merge { act: act.name.clone(), place })?.unwrap_or_default();
    }
    let names: Vec<_> = acts.iter().map(|act| act.name.clone()).collect();
    let name = match names.split_first() {
        Some((first, [])) => first.clone(),
        Some((first, [_])) => format!("{first} and another one"),
        Some((first, others)) => format!("{first} and {} others", others.len()),
        None => String::new(),
    };
    let mut act = ActScript::parse(name, &Source::new("composite", merged.to_string()))?;
    act.acts = names;
    let idle = acts.iter().filter_map(|act| act.script.act.idle).max();
    act.script.act = ActRules { idle, ..ActRules::default() };
    for process in acts.iter().map(|act| act.script.act.process) {
        let all = &mut act.script.act.process;
        all.stderr = all.stderr.max(process.stderr);
        all.linger = all.linger.max(process.linger);
        all.deaf |= process.deaf;
    }
    Ok(act)
}

fn read(source: &Arc<Source>) -> Result<Json, ScriptError> {
    let script = parse_yaml(source).map_err(|problems| ScriptError::Invalid(problems.in_source(source)))?;
    Ok(script.to_json())
}

/// The script of an act as a change of the base.
fn changed(mut script: Json, act: &ActScript, base: &Json) -> Json {
    let Some(members) = script.as_object_mut() else { return script };
    members.remove("act");
    if members.get("server").is_some_and(|server| server["name"] == format!("rehearse-{}", act.name)) {
        members.insert("server".to_owned(), base["server"].clone());
    }
    let Some(tool) = tool_of(&act.name) else { return script };
    for on in items(members, "faults").filter_map(|fault| fault.get_mut("on")?.as_object_mut()) {
        narrow(on, tool);
    }
    for other in items(members, "tools").filter(|other| other["name"] != tool) {
        let usual = base["tools"].as_array().and_then(|tools| tools.iter().find(|it| it["name"] == other["name"]));
        *other = usual.unwrap_or(other).clone();
    }
    script
}

fn items<'s>(script: &'s mut Map<String, Json>, key: &str) -> impl Iterator<Item = &'s mut Json> {
    script.get_mut(key).and_then(Json::as_array_mut).into_iter().flatten()
}

/// Makes a condition on all calls one on those of a tool.
fn narrow(on: &mut Map<String, Json>, tool: &str) {
    if on.get("method").is_some_and(|method| method == "tools/call") {
        on.remove("method");
        on.insert("tool".to_owned(), json!(tool));
    }
}

#[cfg(test)]
mod tests {
    use rehearse_mock::script::Script;
    use rehearse_protocol::{Era, Transport};

    use super::*;

    #[test]
    fn a_client_that_behaves_is_started_for_groups_of_acts() {
        let mut acts = ActScript::select(&[]).expect("the acts");
        // All acts of a client that does not authorize itself, the groups if it calls one tool, and those if it calls all.
        let mut starts = Vec::new();
        for transport in [Transport::Http, Transport::Stdio] {
            for era in [Era::Legacy, Era::Modern] {
                let is_met = |act: &mut ActScript| {
                    let script = &act.script;
                    let is_over = script.act.transports.is_empty() || script.act.transports.contains(&transport);
                    is_over && script.auth.is_none() && script.act.era.is_none_or(|it| it == era)
                };
                let met: Vec<_> = acts.extract_if(.., is_met).collect();
                let all = met.len();
                let one = grouped(met, |tool| tool == "echo");
                let called = one.len();
                let groups = grouped(one.into_iter().flatten().collect(), |_| true);
                starts.push((transport, era, all, called, groups.len()));
                acts.extend(groups.into_iter().flatten());
            }
        }
        let expected = [
            (Transport::Http, Era::Legacy, 72, 32, 29),
            (Transport::Http, Era::Modern, 84, 40, 32),
            (Transport::Stdio, Era::Legacy, 62, 28, 25),
            (Transport::Stdio, Era::Modern, 73, 36, 30),
        ];
        assert_eq!(starts, expected);
    }

    #[test]
    fn the_acts_of_a_composite_act_do_not_disturb_each_other() {
        let acts = ActScript::select(&[]).expect("the acts");
        let names: Vec<_> = acts.iter().map(|act| act.name.clone()).collect();
        let all: Vec<_> = COMPOSITES.concat().into_iter().chain(CALLED.iter().map(|(act, _)| *act)).collect();
        let unknown: Vec<_> = all.into_iter().filter(|act| !names.iter().any(|name| name == act)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let groups = grouped(acts, |_| true);
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), names.len());
        let mut wrong = Vec::new();
        for group in groups.iter().filter(|group| group.len() > 1) {
            let composed = match compose(group) {
                Ok(composed) => composed,
                Err(error) => {
                    wrong.push(error.to_string());
                    continue;
                }
            };
            // The versions that an act is about are still there.
            for act in group {
                let has = |script: &Script, era| script.versions.iter().any(|version| version.era() == era);
                let is_lost = |era: &Era| has(&act.script, *era) && !has(&composed.script, *era);
                wrong.extend(act.script.act.era.filter(is_lost).map(|era| format!("{}: no {era} version", act.name)));
                // A client has the time that the act gives it.
                let is_hurried = composed.script.act.idle < act.script.act.idle;
                wrong.extend(is_hurried.then(|| format!("{}: ended too soon", act.name)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
