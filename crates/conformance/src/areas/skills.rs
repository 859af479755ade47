//! Skills (extension `io.modelcontextprotocol/skills`, SEP-2640).

use rehearse_protocol::names::{PREFIX, SKILLS_EXTENSION};
use std::collections::{HashMap, HashSet};

use base64::{Engine, prelude::BASE64_STANDARD};
use rehearse_document::{Source, parse_yaml};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::Judge;
use super::common::{capabilities, error_code, keyed, readings, shown};
use super::query::{Calls, Parts, Query, elements};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Material};

pub(super) const LIST: &str = "skills/list";
pub(super) const GET: &str = "skills/get";
pub(super) const DIRECTORY: &str = "resources/directory/read";
const MANIFEST: &str = "/SKILL.md";
const MOST_FILES: usize = 512;
const MOST_BYTES: u64 = 16 * 1024 * 1024;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("skills.caps.resources-too", |e, j| capabilities(e).at("resources").must(j, Value::is_object, keyed("resources"))),
    ("skills.caps.setting-boolean", |e, j| {
        let is_right = |it: &Value| it.get("directoryRead").is_none_or(Value::is_boolean);
        capabilities(e).at("extensions").at(SKILLS_EXTENSION).must(j, is_right, |it| shown(&it["directoryRead"]));
    }),
    ("skills.list.works", |e, j| {
        let is_list = |it: &Value| it["skills"].is_array() && is_cacheable(it);
        normal_calls(e, LIST).must(j, |call| call.result().is_some_and(is_list), answer_text);
    }),
    ("skills.list.terminates", |e, j| {
        for reading in readings(e, LIST) {
            let (mut cursors, mut uris) = (HashSet::new(), HashSet::new());
            for (call, result) in &reading.pages {
                let cursor = result["nextCursor"].as_str();
                let is_new = cursor.is_none_or(|cursor| cursors.insert(cursor));
                j.check_at(is_new, None, call.places(), || format!("the cursor {cursor:?} again"));
                for uri in elements(&result["skills"]).filter_map(|it| it["uri"].as_str()) {
                    j.check_at(uris.insert(uri), Some(uri), call.places(), || "it twice");
                }
            }
        }
    }),
    ("skills.entry.shape", |e, j| {
        let is_text = |it: &Value| it.as_str().is_some_and(|it| !it.is_empty());
        each_entry(e, j, |it| {
            is_text(&it["uri"]) && is_text(&it["frontmatter"]["name"]) && is_text(&it["frontmatter"]["description"])
        });
    }),
    ("skills.entry.uri-ends-skill-md", |e, j| {
        each_entry(e, j, |it| {
            let folder = it["uri"].as_str().and_then(|uri| uri.strip_suffix(MANIFEST));
            folder.is_some_and(|folder| folder.rsplit('/').next() == it["frontmatter"]["name"].as_str())
        });
    }),
    ("skills.entry.name-rule", |e, j| each_entry(e, j, |it| it["frontmatter"]["name"].as_str().is_some_and(is_name))),
    ("skills.entry.names-unique", |e, j| {
        for (call, skills) in listings(e) {
            let mut seen = HashSet::new();
            for name in skills.iter().filter_map(|it| it["frontmatter"]["name"].as_str()) {
                j.check_at(seen.insert(name), Some(name), call.places(), || "it twice");
            }
        }
    }),
    ("skills.entry.resources-form", |e, j| {
        each_entry(e, j, |it| it["resources"].is_array() || it["resources"] == "dynamic")
    }),
    ("skills.entry.resources-complete", |e, j| each_manifest(e, j, is_complete)),
    ("skills.entry.digest-format", |e, j| {
        each_manifest(e, j, |_, files| {
            files.iter().all(|file| file["size"].is_u64() && file["digest"].as_str().is_some_and(is_digest))
        })
    }),
    ("skills.entry.limits", |e, j| {
        each_manifest(e, j, |_, files| {
            let bytes = files.iter().filter_map(|file| file["size"].as_u64()).fold(0, u64::saturating_add);
            files.len() <= MOST_FILES && bytes <= MOST_BYTES
        });
    }),
    ("skills.entry.meta-prefix", |e, j| {
        each_listed(e, j, |resource, _| {
            resource["_meta"].as_object().into_iter().flatten().all(|(key, _)| key.contains('/'))
        })
    }),
    ("skills.entry.reserved-metadata", |e, j| {
        each_entry(e, j, |it| {
            let keys = it["frontmatter"]["metadata"].as_object().into_iter().flatten();
            keys.into_iter().all(|(key, _)| !key.starts_with(PREFIX))
        });
    }),
    ("skills.get.same-entry", |e, j| {
        let listed = by_uri(listings(e).flat_map(|(_, skills)| skills));
        for call in normal_calls(e, GET) {
            let Some(uri) = call.text("/params/uri") else { continue };
            let Some(result) = call.result() else {
                j.check_at(false, Some(uri), call.places(), || call.answer_text());
                continue;
            };
            let is_shaped = is_cacheable(result) && result.get("nextCursor").is_none();
            let is_same = listed.get(uri).is_none_or(|all| all.iter().any(|it| is_equal(it, &result["skill"])));
            j.check_at(is_shaped && is_same, Some(uri), call.places(), || {
                if is_shaped { format!("another entry: {}", shown(&result["skill"])) } else { answer_text(&call) }
            });
        }
        j.untested(NO_SKILL);
    }),
    ("skills.get.unknown-32602", |e, j| error_code(e, j, "unknown-names/skill", &[-32602])),
    ("skills.read.digest-matches", |e, j| {
        let manifests = entries(e).filter_map(|(_, entry)| entry["resources"].as_array());
        let files = by_uri(manifests.flatten());
        for (call, content, uri) in reads(e) {
            let (Some(bytes), Some(listed)) = (bytes(content), files.get(uri)) else { continue };
            let found = json!({ "digest": sha256(&bytes), "size": bytes.len() });
            let matches = listed.iter().any(|it| it["digest"] == found["digest"] && it["size"] == found["size"]);
            j.check_at(matches, Some(uri), call.places(), || {
                let entries: Vec<_> =
                    listed.iter().map(|it| json!({ "digest": it["digest"], "size": it["size"] })).collect();
                format!("{found}, and in its entry {}", shown(&Value::Array(entries)))
            });
        }
        j.untested("no file of a skill has an entry");
    }),
    ("skills.read.frontmatter-equal", |e, j| {
        let skills = by_uri(entries(e).map(|(_, entry)| entry));
        for (call, content, uri) in reads(e) {
            let (Some(bytes), Some(listed)) = (bytes(content), skills.get(uri)) else { continue };
            let written = frontmatter(&bytes).unwrap_or_default();
            let matches = listed.iter().any(|it| is_same_yaml(&it["frontmatter"], &written));
            j.check_at(matches, Some(uri), call.places(), || {
                if written.is_object() {
                    format!("in the file {}", shown(&written))
                } else {
                    "no frontmatter".to_owned()
                }
            });
        }
    }),
    ("skills.read.mime", |e, j| {
        let skills = by_uri(entries(e).map(|(_, entry)| entry));
        for (call, content, uri) in reads(e).filter(|(_, _, uri)| skills.contains_key(uri)) {
            let mime = content["mimeType"].as_str().unwrap_or_default();
            let essence = mime.split(';').next().unwrap_or_default().trim();
            let found = || format!("`mimeType: {mime:?}`");
            j.check_at(essence.eq_ignore_ascii_case("text/markdown"), Some(uri), call.places(), found);
        }
    }),
    ("skills.read.listed-metadata", |e, j| {
        each_listed(e, j, |resource, skill| {
            ["name", "description"].iter().all(|key| resource[*key] == skill["frontmatter"][*key])
        })
    }),
    ("skills.read.unknown-file-32602", |e, j| error_code(e, j, "skills/unknown-file", &[-32602])),
    ("skills.dir.works", directories),
    ("skills.dir.not-a-directory", |e, j| error_code(e, j, "skills/not-a-directory", &[-32602])),
    ("skills.dir.undeclared", |e, j| {
        e.case("skills/undeclared-directory")
            .responded()
            .filter(|call| !call.is_refused_elsewhere())
            .must_get(j, |call| call.has_result() || call.error_code() == Some(-32601))
    }),
];

/// Why nothing could be said of a skill.
const NO_SKILL: &str = "the server lists no skill";

pub(super) fn cases(material: &Material) -> Vec<Case> {
    if !material.is_modern() || !material.has_extension(SKILLS_EXTENSION) {
        return Vec::new();
    }
    let folder = format!("skill://{}", material.unknown_name());
    let case =
        |name: &str, method: &str, uri: String| Case::request(name, CaseGroup::Negative, method, json!({ "uri": uri }));
    let is_declared = material.capabilities["extensions"][SKILLS_EXTENSION]["directoryRead"] == true;
    let name = if is_declared { "skills/not-a-directory/unknown" } else { "skills/undeclared-directory" };
    vec![case("unknown-names/skill", GET, format!("{folder}{MANIFEST}")), case(name, DIRECTORY, folder)]
}

/// The calls of a method that are normal work and reached it.
fn normal_calls<'e>(evidence: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = Call<'e>> {
    let calls = evidence.calls_of(method).plain();
    calls.reached()
}

fn is_cacheable(result: &Value) -> bool {
    result["resultType"] == "complete" && result["ttlMs"].is_u64() && result["cacheScope"].is_string()
}

fn answer_text(call: &Call<'_>) -> String {
    match call.result() {
        Some(result) => format!(
            "`resultType: {}`, `ttlMs: {}`, `cacheScope: {}`",
            shown(&result["resultType"]),
            shown(&result["ttlMs"]),
            shown(&result["cacheScope"])
        ),
        None => call.answer_text(),
    }
}

/// Every reading of the list that was read to its end, with its first page.
fn listings<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, Vec<&'e Value>)> {
    readings(evidence, LIST).into_iter().filter_map(|reading| {
        let (first, _) = *reading.pages.first()?;
        let skills = reading.pages.iter().flat_map(|(_, result)| elements(&result["skills"]));
        Some((first, skills.collect()))
    })
}

/// Every entry of a skill, listed or got.
pub(super) fn entries<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    let listed = evidence.results_of(LIST).flat_map(|(call, result)| {
        let skills = elements(&result["skills"]);
        skills.map(move |skill| (call, skill))
    });
    let got = evidence.results_of(GET).filter_map(|(call, result)| Some((call, result.get("skill")?)));
    listed.chain(got).plain()
}

fn each_entry(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value) -> bool) {
    let mut wrong = HashSet::new();
    for (call, entry) in entries(e) {
        let uri = entry["uri"].as_str().unwrap_or_default();
        let holds = holds(entry);
        if holds || wrong.insert(uri) {
            j.check_at(holds, Some(uri), call.places(), || shown(entry));
        }
    }
    j.untested(NO_SKILL);
}

fn each_manifest(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&str, &[Value]) -> bool) {
    let mut wrong = HashSet::new();
    for (call, entry) in entries(e) {
        let (Some(uri), Some(files)) = (entry["uri"].as_str(), entry["resources"].as_array()) else { continue };
        let holds = holds(uri, files);
        if holds || wrong.insert(uri) {
            let found = || format!("{} files: {}", files.len(), shown(&entry["resources"]));
            j.check_at(holds, Some(uri), call.places(), found);
        }
    }
    j.untested("the server lists no skill with its files");
}

/// Checks every skill in `resources/list` against its entry.
fn each_listed(e: &Evidence<'_>, j: &mut Judgement, holds: impl Fn(&Value, &Value) -> bool) {
    let skills = by_uri(entries(e).map(|(_, entry)| entry));
    for (call, result) in e.results_of("resources/list").plain() {
        for resource in elements(&result["resources"]) {
            let Some(uri) = resource["uri"].as_str() else { continue };
            let Some(entries) = skills.get(uri) else { continue };
            let holds = entries.iter().any(|skill| holds(resource, skill));
            j.check_at(holds, Some(uri), call.places(), || shown(resource));
        }
    }
    j.untested("no skill is in `resources/list`");
}

/// Entries by URI; of equal ones that follow each other, the first. A skill or file may change, so each of its entries
/// will do in a comparison.
fn by_uri<'e>(entries: impl Iterator<Item = &'e Value>) -> HashMap<&'e str, Vec<&'e Value>> {
    let mut all: HashMap<_, Vec<_>> = HashMap::new();
    for entry in entries {
        let Some(uri) = entry["uri"].as_str() else { continue };
        let known = all.entry(uri).or_default();
        if known.last() != Some(&entry) {
            known.push(entry);
        }
    }
    all
}

/// The naming rules of the Agent Skills specification.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.chars().all(|it| it.is_alphanumeric() && !it.is_uppercase());
    (1..=64).contains(&name.chars().count()) && name.split('-').all(is_part)
}

fn is_digest(digest: &str) -> bool {
    let digits = digest.strip_prefix("sha256:").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

fn is_complete(uri: &str, files: &[Value]) -> bool {
    let folder = uri.strip_suffix("SKILL.md").unwrap_or(uri);
    let uris: Vec<_> = files.iter().filter_map(|file| file["uri"].as_str()).collect();
    let unique: HashSet<_> = uris.iter().collect();
    uris.len() == files.len()
        && unique.len() == uris.len()
        && unique.contains(&uri)
        && uris.iter().all(|file| file.starts_with(folder))
}

/// Whether two entries say the same: the order of the files says nothing.
fn is_equal(one: &Value, other: &Value) -> bool {
    let sorted = |entry: &Value| {
        let mut files = entry["resources"].as_array().cloned().unwrap_or_default();
        files.sort_by_key(|file| file["uri"].as_str().unwrap_or_default().to_owned());
        files
    };
    one["uri"] == other["uri"]
        && one["frontmatter"] == other["frontmatter"]
        && one["resources"].is_array() == other["resources"].is_array()
        && sorted(one) == sorted(other)
}

/// What was read of files: the call, the content and the URI.
pub(super) fn reads<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (Call<'e>, &'e Value, &'e str)> {
    let results = evidence.results_of("resources/read").plain();
    results.filter_map(|(call, result)| {
        let uri = call.request.params()["uri"].as_str()?;
        let contents = result["contents"].as_array()?;
        Some((call, contents.iter().find(|it| it["uri"] == uri).or_else(|| contents.first())?, uri))
    })
}

pub(super) fn bytes(content: &Value) -> Option<Vec<u8>> {
    match (content["text"].as_str(), content["blob"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(blob)) => BASE64_STANDARD.decode(blob).ok(),
        (None, None) => None,
    }
}

/// The digest of a file, as an entry has it.
pub(super) fn sha256(bytes: &[u8]) -> String {
    let hexadecimal: String = digest(&SHA256, bytes).as_ref().iter().map(|it| format!("{it:02x}")).collect();
    format!("sha256:{hexadecimal}")
}

/// The YAML between the first two lines of three hyphens.
pub(super) fn frontmatter(content: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(content).ok()?;
    let mut lines = text.split_inclusive('\n');
    lines.next().filter(|line| line.trim_end() == "---")?;
    let yaml: String = lines.take_while(|line| line.trim_end() != "---").collect();
    Some(parse_yaml(&Source::new("SKILL.md", yaml)).ok()?.to_json())
}

/// Whether JSON says what YAML says. A date or a number may have become a text, and the reverse.
pub(super) fn is_same_yaml(json: &Value, yaml: &Value) -> bool {
    match (json, yaml) {
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|it| is_same_yaml(value, it)))
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same_yaml(one, other))
        }
        (Value::String(one), Value::String(other)) => {
            // JSON may have the whole time of a date.
            one.trim_end() == other.trim_end() || (other.len() == 10 && one.starts_with(&format!("{other}T")))
        }
        (Value::String(_), Value::Number(_)) | (Value::Number(_), Value::String(_)) => {
            json.to_string().trim_matches('"') == yaml.to_string().trim_matches('"')
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => json == yaml,
    }
}

fn directories(e: &Evidence<'_>, j: &mut Judgement) {
    let setting = e.facts.capabilities.pointer("/extensions/io.modelcontextprotocol~1skills/directoryRead");
    if setting != Some(&Value::Bool(true)) {
        j.untested("`directoryRead` is not declared");
        return;
    }
    for call in normal_calls(e, DIRECTORY) {
        let Some(folder) = call.request.params()["uri"].as_str() else { continue };
        let children = call.result().and_then(|it| it["resources"].as_array());
        let is_child = |child: &Value| {
            let name = child["uri"].as_str().and_then(|uri| uri.strip_prefix(folder)?.strip_prefix('/'));
            name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
        };
        let is_complete = call.result().is_some_and(|it| it["resultType"] == "complete");
        let holds = is_complete && children.is_some_and(|children| children.iter().all(is_child));
        j.check_at(holds, Some(folder), call.places(), || match children {
            Some(children) => {
                let stray = children.iter().find(|child| !is_child(child));
                stray.map_or_else(|| answer_text(&call), |child| format!("the child {}", shown(&child["uri"])))
            }
            None => call.answer_text(),
        });
    }
    let skills = by_uri(entries(e).map(|(_, entry)| entry));
    for reading in readings(e, DIRECTORY) {
        let is_whole = reading.pages.last().is_some_and(|(_, result)| !result["nextCursor"].is_string());
        let Some((call, _)) = reading.pages.first().filter(|_| is_whole) else { continue };
        let manifest = format!("{}{MANIFEST}", call.request.params()["uri"].as_str().unwrap_or_default());
        if skills.contains_key(&*manifest) {
            let mut children = reading.pages.iter().flat_map(|(_, it)| elements(&it["resources"]));
            let found = || "no `SKILL.md` in the folder of the skill";
            j.check_at(children.any(|it| it["uri"] == manifest), Some(&manifest), call.places(), found);
        }
    }
    j.untested(NO_SKILL);
}
