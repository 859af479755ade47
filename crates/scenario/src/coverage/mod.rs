//! What of each server the requests of scenarios have used.

mod branches;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use rehearse_document::uri_template::UriTemplate;
use rehearse_protocol::{Answered, List, Trace, names::META_SERVER_INFO};
use rehearse_report::{Coverage, CoverageItem, CoverageKind, ServerCoverage};

/// What the traffic with servers has shown, by their names: those that they give themselves, or those of the scenario.
#[derive(Debug, Default)]
pub struct Usage(BTreeMap<String, ServerUsage>);

/// What one server has, and what was used of it.
#[derive(Debug, Default)]
struct ServerUsage {
    /// The items that it lists. Of a tool the input schema.
    listed: BTreeMap<CoverageKind, BTreeMap<String, Json>>,
    declared: BTreeSet<CoverageKind>,
    /// What was used with a result, with the arguments as JSON.
    used: BTreeMap<(CoverageKind, String), BTreeSet<String>>,
    /// Tools of which a call was refused or had an error.
    failed: BTreeSet<String>,
}

/// What an item of a list is.
fn kind(list: List) -> CoverageKind {
    match list {
        List::Tools => CoverageKind::Tool,
        List::Prompts => CoverageKind::Prompt,
        List::Resources => CoverageKind::Resource,
        List::ResourceTemplates => CoverageKind::Template,
    }
}

impl Usage {
    /// Adds the traffic with a server.
    pub fn add(&mut self, server: &str, traces: &[Trace]) {
        for trace in traces {
            let mut usage = ServerUsage::default();
            let mut name = server.to_owned();
            for answered in Answered::all(trace) {
                let result = answered.result();
                if let Some(own) = result.as_ref().and_then(|result| own_name(&answered.method, result)) {
                    name = own;
                }
                usage.answered(&answered.method, &answered.params, result.as_ref());
            }
            self.0.entry(name).or_default().merge(usage);
        }
    }

    /// Adds what other traffic has shown.
    pub fn merge(&mut self, other: Usage) {
        other.0.into_iter().for_each(|(name, usage)| self.0.entry(name).or_default().merge(usage));
    }

    /// What was used, and what was not.
    pub fn coverage(&self) -> Coverage {
        Coverage::new(self.0.iter().map(|(name, usage)| usage.coverage(name)).collect())
    }
}

/// The name that a server gives itself in its handshake: in the result (2025-11-25, Lifecycle), or in its `_meta`
/// (2026-07-28, Basic: Result Responses).
fn own_name(method: &str, result: &Json) -> Option<String> {
    let info = match method {
        "initialize" => result.get("serverInfo"),
        "server/discover" => result.get("_meta")?.get(META_SERVER_INFO),
        _ => None,
    };
    info?["name"].as_str().map(str::to_owned)
}

impl ServerUsage {
    /// Adds an answer to a request; an error has no result.
    fn answered(&mut self, method: &str, params: &Json, result: Option<&Json>) {
        let text = |key: &str| params[key].as_str().unwrap_or_default().to_owned();
        match (method, result) {
            ("initialize" | "server/discover", Some(result)) => {
                let is_declared = |list: &List| result["capabilities"].get(list.capability()).is_some();
                self.declared.extend(List::ALL.into_iter().filter(is_declared).map(kind));
            }
            ("tools/call", Some(result)) if result["isError"] != true => {
                self.used(CoverageKind::Tool, text("name"), params.get("arguments"));
            }
            ("tools/call", _) => {
                self.failed.insert(text("name"));
            }
            ("prompts/get", Some(_)) => self.used(CoverageKind::Prompt, text("name"), None),
            ("resources/read", Some(_)) => self.used(CoverageKind::Resource, text("uri"), None),
            (_, Some(result)) => {
                let Some(list) = List::of_method(method) else { return };
                let listed = self.listed.entry(kind(list)).or_default();
                for item in result[list.member()].as_array().into_iter().flatten() {
                    let Some(name) = item[list.key()].as_str() else { continue };
                    let schema = item.get("inputSchema").cloned().unwrap_or_default();
                    listed.insert(name.to_owned(), schema);
                }
            }
            (_, None) => {}
        }
    }

    fn used(&mut self, kind: CoverageKind, name: String, arguments: Option<&Json>) {
        let arguments = arguments.map_or_else(|| "{}".to_owned(), Json::to_string);
        self.used.entry((kind, name)).or_default().insert(arguments);
    }

    fn merge(&mut self, other: ServerUsage) {
        for (kind, items) in other.listed {
            self.listed.entry(kind).or_default().extend(items);
        }
        self.declared.extend(other.declared);
        for (item, arguments) in other.used {
            self.used.entry(item).or_default().extend(arguments);
        }
        self.failed.extend(other.failed);
    }

    fn coverage(&self, server: &str) -> ServerCoverage {
        let none = BTreeMap::new();
        let listed = |kind| self.listed.get(&kind).unwrap_or(&none);
        let templates = listed(CoverageKind::Template).keys();
        let templates: Vec<_> = templates.map(|text| (text, UriTemplate::parse(text).ok())).collect();
        // A resource that is not listed is one of a template.
        let template_of = |uri: &str| {
            let is_match = |it: &&(&String, Option<UriTemplate>)| {
                it.1.as_ref().is_some_and(|template| template.match_uri(uri).is_some())
            };
            let is_listed = listed(CoverageKind::Resource).contains_key(uri);
            templates.iter().find(is_match).filter(|_| !is_listed).map(|(text, _)| (*text).clone())
        };
        let mut used: BTreeMap<(CoverageKind, &str), BTreeSet<&str>> = BTreeMap::new();
        let mut of_templates = BTreeSet::new();
        for ((kind, name), arguments) in &self.used {
            match Some(name).filter(|_| *kind == CoverageKind::Resource).and_then(|uri| template_of(uri)) {
                Some(template) => {
                    of_templates.insert(template);
                }
                None => used.entry((*kind, name)).or_default().extend(arguments.iter().map(String::as_str)),
            }
        }
        let listed_names =
            CoverageKind::ALL.into_iter().flat_map(|kind| listed(kind).keys().map(move |it| (kind, &**it)));
        let names: BTreeSet<_> = listed_names.chain(used.keys().copied()).collect();
        let mut items = Vec::new();
        for (kind, name) in names {
            let calls = used.get(&(kind, name));
            let covered = calls.is_some() || (kind == CoverageKind::Template && of_templates.contains(name));
            let mut item = CoverageItem { kind, name: name.to_owned(), covered, branches: Vec::new() };
            if kind == CoverageKind::Tool {
                let calls = calls.into_iter().flatten().filter_map(|text| serde_json::from_str(text).ok());
                let calls: Vec<Json> = calls.collect();
                let schema = listed(kind).get(name);
                item.branches = schema.map(|schema| branches::branches(schema, &calls)).unwrap_or_default();
                let covered = self.failed.contains(name);
                let (kind, name) = (CoverageKind::Error, name.to_owned());
                items.push(CoverageItem { kind, name, covered, branches: Vec::new() });
            }
            items.push(item);
        }
        items.sort_by(|one, two| (one.kind, &one.name).cmp(&(two.kind, &two.name)));
        let not_listed = self.declared.iter().filter(|kind| !self.listed.contains_key(kind)).copied();
        ServerCoverage { server: server.to_owned(), items, not_listed: not_listed.collect() }
    }
}
