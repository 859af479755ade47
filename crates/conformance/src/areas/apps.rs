//! Apps (extension `io.modelcontextprotocol/ui`, SEP-1865): tools name a page of HTML, which a client reads as a resource
//! and shows.

use std::{borrow::Cow, collections::HashSet};

use rehearse_protocol::names::{APP_MIME, APPS_EXTENSION};
use serde_json::Value;

use super::Judge;
use super::common::{bytes_of, shown};
use super::query::elements;
use crate::html::{Html, Link, LinkKind, allows, is_origin};
use crate::{Call, Evidence, Judgement, Level};

/// The case of requests of a client that declares the extension.
const SHOWS_APPS: &str = "apps";
const SCHEME: &str = "ui://";
/// The deprecated key of a tool's page.
const FLAT: &str = "ui/resourceUri";
const DOMAINS: [&str; 4] = ["connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"];
const PERMISSIONS: [&str; 4] = ["camera", "microphone", "geolocation", "clipboardWrite"];
/// What a resource says of its page, and no tool.
const OF_PAGE: [&str; 4] = ["csp", "permissions", "domain", "prefersBorder"];
/// What a tool says, and no resource.
const OF_TOOL: [&str; 2] = ["resourceUri", "visibility"];
/// A larger page is slow to show.
const LARGE: usize = 1 << 20;

/// What a judge says of one thing: nothing, that the rule holds, or what was found in its place.
type Found = Option<Result<(), String>>;

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("apps.caps.resources", |e, j| {
        each_tool(e, j, |tool| {
            resource_uri(tool).filter(|_| e.facts.capabilities.is_object())?;
            Some(holds(e.facts.declares("resources"), || "no capability `resources`"))
        });
    }),
    ("apps.caps.asked", |e, j| {
        for (tool, name, call) in tools(e).filter(|(.., call)| call.request.case.is_none()) {
            let is_first = !j.has_found(name);
            if is_first && tool["_meta"].get("ui").is_some() {
                let found = || "it with `_meta.ui` for a client that does not declare the extension";
                j.check_at(false, Some(name), call.places(), found);
            }
        }
    }),
    ("apps.tool.meta-shape", |e, j| {
        each_tool(e, j, |tool| {
            let ui = tool["_meta"].get("ui")?;
            let is_text = ui.get("resourceUri").is_none_or(Value::is_string);
            Some(holds(ui.is_object() && is_text, || format!("`_meta.ui: {}`", shown(ui))))
        });
    }),
    ("apps.tool.visibility", |e, j| {
        each_tool(e, j, |tool| {
            let visibility = tool["_meta"]["ui"].get("visibility")?;
            let is_known = |it: &Value| it == "model" || it == "app";
            let all_known = visibility.as_array().is_some_and(|all| all.iter().all(is_known));
            Some(holds(all_known, || format!("`visibility: {}`", shown(visibility))))
        });
    }),
    ("apps.tool.uri-scheme", |e, j| {
        each_tool(e, j, |tool| {
            let uri = resource_uri(tool)?;
            Some(holds(uri.starts_with(SCHEME), || format!("`resourceUri: {uri:?}`")))
        });
    }),
    ("apps.tool.flat-uri", |e, j| {
        each_tool(e, j, |tool| {
            let flat = tool["_meta"].get(FLAT);
            (flat.is_some() || tool["_meta"].get("ui").is_some())
                .then(|| holds(flat.is_none(), || format!("`_meta[\"{FLAT}\"]`")))
        });
    }),
    ("apps.tool.flat-same", |e, j| {
        each_tool(e, j, |tool| {
            let (flat, uri) = (tool["_meta"].get(FLAT)?, tool["_meta"]["ui"].get("resourceUri")?);
            Some(holds(flat == uri, || format!("{} and {}", shown(flat), shown(uri))))
        });
    }),
    ("apps.tool.resource-exists", |e, j| {
        let named: Vec<_> = tools(e).filter_map(|(tool, name, _)| Some((name, resource_uri(tool)?))).collect();
        let reads = e.calls_of("resources/read").filter(|call| is_normal(call) && call.response.is_some());
        for call in reads {
            let uri = call.request.at("/params/uri");
            let Some((name, uri)) = named.iter().find(|(_, it)| uri == it && it.starts_with(SCHEME)) else { continue };
            match call.error_code() {
                // Not found, in the codes of each version, or no resources at all.
                Some(-32002 | -32602 | -32601) => {
                    note(j, name, &call, Some(Err(format!("{} for {uri}", call.answer_text()))))
                }
                Some(_) => j.untested("the server failed for a reason of its own"),
                None => note(j, name, &call, Some(Ok(()))),
            }
        }
    }),
    ("apps.tool.page-members", |e, j| {
        let pages = pages(e);
        each_tool(e, j, |tool| {
            let ui = tool["_meta"]["ui"].as_object()?;
            let page = pages.iter().find(|page| Some(page.uri) == resource_uri(tool))?;
            let lost = OF_PAGE.iter().find(|key| ui.contains_key(**key) && page.meta().get(**key).is_none());
            Some(lost.map_or(Ok(()), |key| Err(format!("`{key}`, which its page does not have"))))
        });
    }),
    ("apps.list.mime", |e, j| {
        each_listed(e, j, |resource| {
            let mime = &resource["mimeType"];
            Some(holds(mime == APP_MIME, || format!("`mimeType: {}`", shown(mime))))
        });
    }),
    ("apps.read.mime", |e, j| {
        for page in pages(e) {
            let (mime, before) = (page.content["mimeType"].as_str().unwrap_or_default(), j.violations.len());
            page.judge(j, Some(holds(mime == APP_MIME, || format!("`mimeType: {mime:?}`"))));
            // Those mean the same, but hosts compare the text.
            let plain: String = mime.chars().filter(|it| !it.is_whitespace() && *it != '"').collect();
            j.at_level_if(j.violations.len() > before && plain.eq_ignore_ascii_case(APP_MIME), Level::Derived);
        }
    }),
    ("apps.read.one-content", |e, j| {
        for page in pages(e) {
            page.judge(j, Some(holds(page.count == 1, || format!("{} contents", page.count))));
        }
    }),
    ("apps.read.text-or-blob", |e, j| {
        for page in pages(e) {
            page.judge(j, Some(holds(page.text().is_some(), || "no `text`, and no text in base64 as `blob`")));
        }
    }),
    ("apps.meta.shape", |e, j| {
        each_meta(e, j, |ui| {
            let has = |key: &str, is_right: fn(&Value) -> bool| ui.get(key).is_none_or(is_right);
            let is_right = ui.is_object()
                && has("csp", |csp| csp.is_object() && DOMAINS.iter().all(|it| csp.get(*it).is_none_or(are_texts)))
                && has("domain", Value::is_string)
                && has("prefersBorder", Value::is_boolean);
            Some(holds(is_right, || format!("`_meta.ui: {}`", shown(ui))))
        });
    }),
    ("apps.meta.permissions", |e, j| {
        each_meta(e, j, |ui| {
            let permissions = ui.get("permissions")?;
            let is_right = |it: &&str| permissions.get(*it).is_none_or(Value::is_object);
            let all_right = permissions.is_object() && PERMISSIONS.iter().all(is_right);
            Some(holds(all_right, || format!("`permissions: {}`", shown(permissions))))
        });
    }),
    ("apps.meta.origins", |e, j| {
        each_meta(e, j, |ui| {
            let csp = ui.get("csp")?;
            let mut all = DOMAINS.iter().flat_map(|key| sources(csp, key));
            let wrong = all.find(|source| !is_origin(source));
            Some(wrong.map_or(Ok(()), |source| Err(format!("{source:?}"))))
        });
    }),
    ("apps.meta.of-tool", |e, j| {
        each_meta(e, j, |ui| {
            let stray = OF_TOOL.iter().find(|key| ui.get(**key).is_some());
            Some(stray.map_or(Ok(()), |key| Err(format!("`{key}`, which only a tool has"))))
        });
    }),
    ("apps.meta.in-contents", |e, j| {
        let pages = pages(e);
        each_listed(e, j, |resource| {
            let ui = resource["_meta"].get("ui")?;
            let page = pages.iter().find(|page| resource["uri"] == page.uri)?;
            let lost = OF_PAGE.iter().find(|key| ui.get(**key).is_some() && page.meta().get(**key).is_none());
            Some(lost.map_or(Ok(()), |key| Err(format!("`{key}` in the list only"))))
        });
    }),
    ("apps.meta.in-list", |e, j| {
        let pages = pages(e);
        each_listed(e, j, |resource| {
            let page = pages.iter().find(|page| resource["uri"] == page.uri)?;
            page.meta().get("csp")?;
            Some(holds(resource["_meta"]["ui"].get("csp").is_some(), || "`csp` in the content only"))
        });
    }),
    ("apps.html.document", |e, j| {
        each_html(e, j, |_, html| {
            let is_document = html.has_doctype || html.has_document_element;
            Some(holds(is_document, || "neither a doctype nor an `<html>`, `<head>` or `<body>`"))
        });
    }),
    ("apps.html.whole", |e, j| {
        each_html(e, j, |_, html| {
            Some(html.cut_in.as_ref().map_or(Ok(()), |place| Err(format!("the end of the text in {place}"))))
        })
    }),
    ("apps.html.doctype", |e, j| each_html(e, j, |_, html| Some(holds(html.has_doctype, || "no `<!doctype html>`")))),
    ("apps.html.size", |e, j| {
        for page in pages(e) {
            let size = page.text().map(|text| text.len());
            page.judge(j, size.map(|size| holds(size <= LARGE, || format!("{} KiB", size >> 10))));
        }
    }),
    ("apps.html.scripts", |e, j| loads(e, j, LinkKind::Script, "resourceDomains", &[])),
    ("apps.html.styles", |e, j| loads(e, j, LinkKind::Style, "resourceDomains", &[])),
    ("apps.html.media", |e, j| loads(e, j, LinkKind::Media, "resourceDomains", &["data:"])),
    ("apps.html.frames", |e, j| loads(e, j, LinkKind::Frame, "frameDomains", &["about:"])),
    ("apps.html.base", |e, j| loads(e, j, LinkKind::Base, "baseUriDomains", &[])),
    ("apps.html.requests", |e, j| loads(e, j, LinkKind::Request, "connectDomains", &[])),
    ("apps.html.files", |e, j| {
        each_html(e, j, |_, html| {
            let is_loaded = |it: &&Link| matches!(it.kind, LinkKind::Script | LinkKind::Style | LinkKind::Media);
            let beside = html.links.iter().filter(is_loaded).find(|link| link.url.is_none());
            Some(beside.map_or(Ok(()), |link| Err(format!("{:?}, beside a page that has no address", link.written))))
        });
    }),
    ("apps.result.content", |e, j| each_result(e, j, |content| holds(!content.is_empty(), || "no content"))),
    ("apps.result.text", |e, j| {
        each_result(e, j, |content| {
            let is_text =
                |it: &Value| it["type"] == "text" && it["text"].as_str().is_some_and(|it| !it.trim().is_empty());
            holds(content.is_empty() || content.iter().any(is_text), || "no text")
        });
    }),
];

/// Whether a server has apps. It need not declare them: the extension's capability is that of a client.
pub(crate) fn has_any(evidence: &Evidence<'_>) -> bool {
    let of_tool = |tool: &Value| ["ui", FLAT].iter().any(|key| tool["_meta"].get(*key).is_some());
    evidence.facts.has_extension(APPS_EXTENSION)
        || tools(evidence).any(|(tool, ..)| of_tool(tool))
        || listed(evidence).any(|(resource, _)| is_app(&resource["mimeType"]))
}

fn holds<S: Into<String>>(holds: bool, found: impl FnOnce() -> S) -> Result<(), String> {
    if holds { Ok(()) } else { Err(found().into()) }
}

fn are_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|all| all.iter().all(Value::is_string))
}

fn is_app(mime: &Value) -> bool {
    mime.as_str().is_some_and(|mime| mime.contains("profile=mcp-app"))
}

/// The page that a tool names.
fn resource_uri(tool: &Value) -> Option<&str> {
    let meta = tool.get("_meta")?;
    let nested = meta.get("ui").and_then(|ui| ui.get("resourceUri"));
    nested.or_else(|| meta.get(FLAT))?.as_str()
}

/// The results of a method in normal work, and of a client that declares the extension.
fn results<'e>(evidence: &'e Evidence<'_>, method: &'e str) -> impl Iterator<Item = (Call<'e>, &'e Value)> {
    evidence.results_of(method).filter(|(call, _)| is_normal(call))
}

fn is_normal(call: &Call<'_>) -> bool {
    call.request.case.is_none_or(|case| case == SHOWS_APPS)
}

fn tools<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e Value, &'e str, Call<'e>)> {
    results(evidence, "tools/list").flat_map(|(call, result)| {
        let tools = elements(&result["tools"]);
        tools.filter_map(move |tool| Some((tool, tool["name"].as_str()?, call)))
    })
}

fn listed<'e>(evidence: &'e Evidence<'_>) -> impl Iterator<Item = (&'e Value, Call<'e>)> {
    results(evidence, "resources/list").flat_map(|(call, result)| {
        let resources = elements(&result["resources"]);
        resources.map(move |resource| (resource, call))
    })
}

/// The URIs of the pages: those that tools name. Other `ui://` resources may be those of an older way.
fn page_uris<'e>(evidence: &'e Evidence<'_>) -> HashSet<&'e str> {
    let named = tools(evidence).filter_map(|(tool, ..)| resource_uri(tool));
    let others = listed(evidence).filter(|(it, _)| is_app(&it["mimeType"])).filter_map(|(it, _)| it["uri"].as_str());
    named.chain(others).collect()
}

/// Judges something by its name, with one finding for each.
fn note(j: &mut Judgement, name: &str, call: &Call<'_>, found: Found) {
    let is_known = || j.has_found(name);
    match found {
        Some(Ok(())) => j.check_at(true, None, Vec::new(), String::new),
        Some(Err(found)) if !is_known() => j.check_at(false, Some(name), call.places(), || found),
        _ => {}
    }
}

fn each_tool(e: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&Value) -> Found) {
    for (tool, name, call) in tools(e) {
        note(j, name, &call, judge(tool));
    }
}

/// Judges the entry of each page in `resources/list`.
fn each_listed(e: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&Value) -> Found) {
    let uris = page_uris(e);
    for (resource, call) in listed(e) {
        let uri = resource["uri"].as_str().unwrap_or_default();
        note(j, uri, &call, uris.contains(uri).then(|| judge(resource)).flatten());
    }
}

/// A page that was read.
struct Page<'e> {
    uri: &'e str,
    call: Call<'e>,
    content: &'e Value,
    /// How many contents the result has.
    count: usize,
}

impl Page<'_> {
    fn text(&self) -> Option<Cow<'_, str>> {
        let blob = || String::from_utf8(bytes_of(self.content["blob"].as_str()?)?).ok();
        self.content["text"].as_str().map(Cow::Borrowed).or_else(|| blob().map(Cow::Owned))
    }

    fn meta(&self) -> &Value {
        &self.content["_meta"]["ui"]
    }

    fn judge(&self, j: &mut Judgement, found: Found) {
        note(j, self.uri, &self.call, found);
    }
}

/// Every page that was read; one that is read again counts if it is another one then.
fn pages<'e>(evidence: &'e Evidence<'_>) -> Vec<Page<'e>> {
    let uris = page_uris(evidence);
    let mut pages: Vec<Page<'e>> = Vec::new();
    for (call, result) in results(evidence, "resources/read") {
        let uri = call.text("/params/uri").filter(|uri| uris.contains(uri));
        let (Some(uri), Some(contents)) = (uri, result["contents"].as_array()) else { continue };
        let Some(content) = contents.first() else { continue };
        let page = Page { uri, call, content, count: contents.len() };
        if !pages.iter().any(|it| (it.uri, it.content, it.count) == (uri, content, page.count)) {
            pages.push(page);
        }
    }
    pages
}

fn each_html(e: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&Page<'_>, &Html) -> Found) {
    for page in pages(e) {
        let found = page.text().and_then(|text| judge(&page, &Html::parse(&text)));
        page.judge(j, found);
    }
}

/// Judges what each page says of itself, in the list and in its content.
fn each_meta(e: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&Value) -> Found) {
    for page in pages(e) {
        page.judge(j, page.content["_meta"].get("ui").and_then(&judge));
    }
    each_listed(e, j, |resource| resource["_meta"].get("ui").and_then(&judge));
}

/// The origins in one list of a policy.
fn sources<'v>(csp: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    elements(&csp[key]).filter_map(Value::as_str)
}

/// Checks that the policy which a page declares allows what it loads. Hosts allow nothing else (Content Security Policy
/// Enforcement: "Host MUST block connections to undeclared domains").
fn loads(e: &Evidence<'_>, j: &mut Judgement, kind: LinkKind, key: &str, always: &[&str]) {
    // A host may know the policy from the list.
    let in_list: Vec<_> = listed(e).map(|(it, _)| (&it["uri"], &it["_meta"]["ui"]["csp"])).collect();
    each_html(e, j, |page, html| {
        let policies = || {
            let other = in_list.iter().filter(|(uri, _)| **uri == page.uri).map(|(_, csp)| *csp);
            [&page.meta()["csp"]].into_iter().chain(other)
        };
        let is_allowed = |link: &&Link| {
            let Some(url) = &link.url else { return true };
            policies().flat_map(|csp| sources(csp, key)).chain(always.iter().copied()).any(|it| allows(it, url))
        };
        let mut links = html.links.iter().filter(|link| link.kind == kind).peekable();
        links.peek()?;
        let foreign = links.find(|link| !is_allowed(link));
        Some(foreign.map_or(Ok(()), |link| {
            let origin = link.url.as_ref().map(|url| url.origin().ascii_serialization());
            let origin = origin.filter(|origin| origin != "null").unwrap_or_else(|| link.written.clone());
            Err(format!("{origin:?}, which `csp.{key}` does not have"))
        }))
    });
}

/// Judges the content of each success of a tool that has a page and is for models.
fn each_result(e: &Evidence<'_>, j: &mut Judgement, judge: impl Fn(&[Value]) -> Result<(), String>) {
    let is_for_models = |tool: &Value| {
        let visibility = tool["_meta"]["ui"]["visibility"].as_array();
        visibility.is_none_or(|all| all.iter().any(|it| it == "model"))
    };
    let with_page = tools(e).filter(|(tool, ..)| resource_uri(tool).is_some() && is_for_models(tool));
    let names: HashSet<_> = with_page.map(|(_, name, _)| name).collect();
    for (call, result) in results(e, "tools/call").filter(|(_, result)| result["isError"] != true) {
        let Some(name) = call.text("/params/name").filter(|name| names.contains(name)) else { continue };
        note(j, name, &call, result["content"].as_array().map(|content| judge(content)));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Direction, Trace, Transport, Version};
    use serde_json::json;

    use super::*;
    use crate::Facts;

    #[test]
    fn a_page_of_more_than_a_mebibyte_is_noted() {
        let has_violation = |size: usize| {
            let tool = json!({ "name": "t", "_meta": { "ui": { "resourceUri": "ui://p" } } });
            let page = json!({ "uri": "ui://p", "mimeType": APP_MIME, "text": "x".repeat(size) });
            let mut trace = Trace::default();
            for (id, method, params, result) in [
                (1, "tools/list", json!({}), json!({ "tools": [tool] })),
                (2, "resources/read", json!({ "uri": "ui://p" }), json!({ "contents": [page] })),
            ] {
                let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
                let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                trace.push_frame(Duration::ZERO, Direction::ClientToServer, request.to_string().into());
                trace.push_frame(Duration::ZERO, Direction::ServerToClient, response.to_string().into());
            }
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
            let check = crate::checks().iter().find(|it| it.id == "apps.html.size");
            check.map(|check| check.judge(&evidence).judgement.violations.len())
        };
        assert_eq!((has_violation(LARGE), has_violation(LARGE + 1)), (Some(0), Some(1)));
    }
}
