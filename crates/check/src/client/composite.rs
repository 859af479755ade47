//! Composite acts: acts that do not disturb each other, in one run of the client.
//!
//! Each act changes something in the server of the act `clean`, and a composite act is a server with the changes of
//! several: one list with plain, odd and broken tools, one stream with comments and unknown fields. Its script is
//! [merged](merge) from theirs; none is written for it. The judges take its traces for those of all its acts.
//!
//! What an act does must not hide what another one does: an error in place of an answer hides what is odd in the answer.
//! So an act is alone if it ends what the client does: by an error, a status, silence, or the end of a connection. Some
//! of those share a composite act nevertheless, each with the calls of a tool of its own, if the client calls all these
//! tools in the act `clean`; others if one is about older versions only, and the other about newer ones.
//!
//! A composite act stands for its acts only if the client behaves in it: it violates nothing that is not known from an
//! act alone, and does all that it does in the act `clean`. Otherwise each half of them is run, down to single acts.

use std::sync::Arc;

use rehearse_document::{Source, parse_yaml};
use rehearse_mock::script::{ActRules, ScriptError};
use serde_json::{Map, Value as Json, json};

use super::{
    ACTS, ActScript, ClientError,
    merge::{Conflict, merge},
};

/// The acts of each composite act, in the order in which they are merged.
const COMPOSITES: &[&[&str]] = &[
    &[
        "capability",
        "instructions",
        "members",
        "plain-tools",
        "odd-names",
        "same-names",
        "broken-schema",
        "unknown-dialect",
        "huge-schema",
        "huge-description",
        "content",
        "contents",
        "roots",
        "lingers",
    ],
    &[
        "noise",
        "odd-notifications",
        "strays",
        "odd-cancellations",
        "odd-progress",
        "flood",
        "completed",
        "two-in-one",
        "untagged",
        "burst",
        "stderr",
    ],
    &[
        "pages",
        "json",
        "media-type",
        "stateless",
        "untyped",
        "nameless",
        "ttl-negative",
        "listen-cut",
        "late-answers",
        "stderr-flood",
    ],
    // An unknown field belongs to the event that follows.
    &[
        "streams",
        "comments",
        "line-ends",
        "event-types",
        "fields",
        "notices",
        "duplicates",
        "renamed",
        "stray-request",
        "content-empty",
        "ttl-short",
    ],
    // A byte order mark spoils the first line: of the data, if nothing comes before it.
    &["bom", "data-lines", "no-space", "large", "odd-session", "headers", "structured", "reorder"],
    &["pieces", "canaries"],
    &["rounds", "changes"],
    &["tasks", "mismatch-once", "session-lost"],
    &["legacy-1", "tasks-legacy"],
    &["legacy-2", "version-2025-11-25"],
    &["legacy-3", "version-2025-06-18"],
    &["legacy-4", "version-2025-03-26"],
    &["legacy-silent", "page-required"],
    &["version-once", "unknown-method"],
    &["mismatch", "cut-call", "rounds-state", "sessions-lost"],
    &["missing-capability", "modern-ids", "rounds-endless", "resume-refused"],
    &["error-data", "content-unknown", "resume"],
];

/// The acts that are about calls, and the tool whose calls they are about in a composite act.
const CALLED: &[(&str, &str)] = &[
    ("error-data", "add"),
    ("mismatch", "add"),
    ("cut-call", "echo"),
    ("rounds-state", "report"),
    ("modern-ids", "add"),
    ("rounds-endless", "echo"),
    ("missing-capability", "report"),
    ("content-unknown", "report"),
];

/// Acts that are run together, in the order of the first of them. `is_called` says whether the client calls a tool.
pub(super) fn grouped(mut acts: Vec<ActScript>, is_called: impl Fn(&str) -> bool) -> Vec<Vec<ActScript>> {
    let mut groups = Vec::new();
    while !acts.is_empty() {
        let name = &acts[0].name;
        let mates = COMPOSITES.iter().find(|mates| mates.contains(&name.as_str())).copied().unwrap_or_default();
        let is_mate = |act: &ActScript| mates.contains(&act.name.as_str());
        let tools = acts.iter().filter(|act| is_mate(act)).filter_map(|act| tool_of(&act.name));
        let is_alone = mates.is_empty() || !tools.into_iter().all(&is_called);
        let mut group: Vec<_> = match is_alone {
            true => vec![acts.remove(0)],
            false => acts.extract_if(.., |act| is_mate(act)).collect(),
        };
        group.sort_by_key(|act| mates.iter().position(|mate| *mate == act.name));
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
    act.script.act = ActRules::default();
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
    let faults = members.get_mut("faults").and_then(Json::as_array_mut).map_or(&mut [][..], Vec::as_mut_slice);
    if let Some(tool) = tool_of(&act.name) {
        for on in faults.iter_mut().filter_map(|fault| fault.get_mut("on")?.as_object_mut()) {
            narrow(on, tool);
        }
    }
    script
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
    use super::*;

    #[test]
    fn the_acts_of_a_composite_act_do_not_disturb_each_other() {
        let acts = ActScript::select(&[]).expect("the acts");
        let names: Vec<_> = acts.iter().map(|act| act.name.clone()).collect();
        let all: Vec<_> = COMPOSITES.concat().into_iter().chain(CALLED.iter().map(|(act, _)| *act)).collect();
        let unknown: Vec<_> = all.into_iter().filter(|act| !names.iter().any(|name| name == act)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        let groups = grouped(acts, |_| true);
        assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), names.len());
        let composed = groups.iter().filter(|group| group.len() > 1).map(|group| compose(group));
        let disturbed: Vec<_> = composed.filter_map(Result::err).map(|error| error.to_string()).collect();
        assert!(disturbed.is_empty(), "{}", disturbed.join("\n"));
    }
}
