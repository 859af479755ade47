//! Skills (extension `io.modelcontextprotocol/skills`).

use rehearse_protocol::names::SKILLS_EXTENSION;
use serde_json::Value;

use super::super::{
    Judge,
    skills::{DIRECTORY, GET, LIST, bytes, entries, frontmatter, is_same_yaml, reads, sha256},
};
use crate::areas::query::{Calls, Query};
use crate::{Call, Evidence, Judgement, Message};

const NO_SKILL: &str = "the client read no skill";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-skills.list.after-declaration", |e, j| {
        let is_declared = e.facts.has_extension(SKILLS_EXTENSION);
        let calls = e.calls_of(LIST).chain(e.calls_of(GET)).filter(|_| !e.facts.capabilities.is_null());
        let found = |_: &Message<'_>| format!("no extension `{SKILLS_EXTENSION}` of the server");
        calls.requests_by_method().must(j, |_| is_declared, found);
    }),
    ("client-skills.dir.only-if-declared", |e, j| {
        let is_declared = e.facts.capabilities["extensions"][SKILLS_EXTENSION]["directoryRead"] == true;
        let calls = e.calls_of(DIRECTORY).filter(|_| !e.facts.capabilities.is_null());
        calls.requests().must(j, |_| is_declared, |_| "no `directoryRead` of the server");
    }),
    ("client-skills.verify.digest", |e, j| {
        unused(e, j, |entry, bytes| {
            let file = file(entry, entry["uri"].as_str()?)?;
            (file["size"] == bytes.len()).then(|| file["digest"].as_str() == Some(&sha256(bytes)))
        });
    }),
    ("client-skills.verify.size", |e, j| {
        unused(e, j, |entry, bytes| {
            let size = file(entry, entry["uri"].as_str()?)?["size"].as_u64()?;
            Some(usize::try_from(size) == Ok(bytes.len()))
        });
    }),
    ("client-skills.verify.frontmatter", |e, j| {
        unused(e, j, |entry, bytes| Some(is_same_yaml(&entry["frontmatter"], &frontmatter(bytes)?)))
    }),
    ("client-skills.verify.unlisted-file", |e, j| {
        let entries: Vec<_> = entries(e).map(|(_, entry)| entry).collect();
        for call in e.calls_of("resources/read") {
            let Some(uri) = call.text("/params/uri") else { continue };
            let mut of = entries.iter().filter(|entry| is_in(uri, entry)).peekable();
            if of.peek().is_some() {
                let is_listed = of.any(|it| it["uri"] == uri || !it["resources"].is_array() || file(it, uri).is_some());
                j.check_subject(is_listed, uri, call.request, || "a file that its skill does not list");
            }
        }
    }),
    ("client-skills.list.resources-missing-invalid", |e, j| {
        let all: Vec<_> = entries(e).collect();
        for (listing, entry) in all.iter().filter(|(_, entry)| entry.get("resources").is_none()) {
            let Some(uri) = entry["uri"].as_str() else { continue };
            let is_whole = |it: &Value| it["uri"] == uri && it.get("resources").is_some();
            if all.iter().any(|(_, entry)| is_whole(entry)) {
                continue;
            }
            let read = e.calls_of("resources/read").find(|call| call.request.at("/params/uri") == uri);
            let places = listing.places_with(read.map(|it| it.request.place));
            j.check_at(read.is_none(), Some(uri), places, || "a read of it");
        }
    }),
];

/// A file of a skill.
fn file<'e>(entry: &'e Value, uri: &str) -> Option<&'e Value> {
    entry["resources"].as_array()?.iter().find(|file| file["uri"] == uri)
}

/// Whether a URI is below the folder of a skill.
fn is_in(uri: &str, entry: &Value) -> bool {
    let folder = entry["uri"].as_str().and_then(|it| it.strip_suffix("SKILL.md"));
    folder.is_some_and(|folder| uri.starts_with(folder) && !uri.ends_with('/'))
}

/// Checks that nothing more of a skill is read whose `SKILL.md` is not that of any of its entries.
fn unused(e: &Evidence<'_>, j: &mut Judgement, is_right: impl Fn(&Value, &[u8]) -> Option<bool>) {
    let entries: Vec<_> = entries(e).map(|(_, entry)| entry).collect();
    for (call, content, uri) in reads(e) {
        let Some(bytes) = bytes(content) else { continue };
        let of: Vec<_> = entries.iter().filter(|entry| entry["uri"] == uri).collect();
        let verdicts: Vec<_> = of.iter().filter_map(|entry| is_right(entry, &bytes)).collect();
        if verdicts.is_empty() {
            continue;
        }
        let is_verified = verdicts.contains(&true);
        let is_later = |other: &Call<'_>| {
            let (place, read) = (other.request.place, other.request.at("/params/uri").as_str().unwrap_or_default());
            let is_other = read != uri && of.iter().any(|entry| is_in(read, entry));
            call.response.is_some_and(|it| it.place.connection == place.connection && it.place < place) && is_other
        };
        let later = e.calls_of("resources/read").find(|other| !is_verified && is_later(other));
        let places = call.places_with(later.map(|it| it.request.place));
        let found = || "a read of another file of the skill, although `SKILL.md` does not match its entry";
        j.check_at(later.is_none(), Some(uri), places, found);
    }
    j.untested(NO_SKILL);
}
