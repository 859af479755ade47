//! Apps (extension `io.modelcontextprotocol/ui`, SEP-1865): a tool names a page of HTML, which is a resource.
//!
//! ```yaml
//! tools:
//!   - name: map
//!     ui:
//!       file: map.html                 # beside the script; or `html: <!doctype html>…`
//!       csp: { resourceDomains: [https://tiles.example.com] }
//!       visibility: [model, app]
//! ```
//!
//! The page is served as it is written: `{{ … }}` is not a template in it, because pages have templates of their own.

use std::{fs, path::Path};

use serde_json::{Map, Value as Json, json};

use super::{capabilities::merge, keys::KEYS};
use rehearse_document::{Fields, Node, Problem, Problems, Span};
use rehearse_protocol::names::APP_MIME;

/// The page of an app.
#[derive(Debug)]
pub(super) struct AppPage {
    pub(super) uri: String,
    /// The MCP `Resource` as JSON text.
    pub(super) definition: String,
    /// The list of resource contents as JSON text.
    pub(super) contents: String,
    pub(super) span: Span,
}

/// The app of a tool.
pub(super) struct App {
    /// The member `_meta` of the tool as JSON text.
    pub(super) meta: String,
    /// Its own page.
    pub(super) page: Option<AppPage>,
}

/// The app of the tool with these fields; its file is in `folder`.
pub(super) fn read(fields: &Fields<'_>, folder: &Path) -> Result<Option<App>, Problems> {
    let Some(node) = fields.get("ui") else { return Ok(None) };
    let (ui, page) = read_ui(node, fields.required("name")?.str()?, folder)?;
    // What `_meta` says itself may be wrong on purpose.
    let own = fields.get("_meta").map(Node::to_json).unwrap_or_default();
    let meta = if own.is_object() { merge(json!({ "ui": ui }), &own) } else { json!({ "ui": ui }) };
    Ok(Some(App { meta: format!("\"_meta\":{meta}"), page }))
}

/// What the tool says of its app, and the page.
fn read_ui(node: &Node, name: &str, folder: &Path) -> Result<(Json, Option<AppPage>), Problems> {
    let fields = KEYS.fields(node, "app")?;
    fields.read("csp", |node| read_domains(node).map(|()| true))?;
    fields.read("permissions", |node| KEYS.fields(node, "permissions").map(|_| true))?;
    fields.read("domain", Node::str)?;
    fields.read("prefersBorder", Node::bool)?;
    let (uri, mime) = (fields.read("uri", Node::str)?, fields.read("mimeType", Node::str)?.unwrap_or(APP_MIME));
    let html = match (fields.read("html", Node::str)?, fields.get("file")) {
        (Some(_), Some(file)) => return Err(file.problem("`html` and `file` exclude each other").into()),
        (Some(html), None) => Some(html.to_owned()),
        (None, Some(file)) => Some(read_file(file, folder)?),
        (None, None) => None,
    };
    let uri = uri.map(ToOwned::to_owned).or_else(|| html.as_ref().map(|_| format!("ui://{name}")));
    if html.is_none()
        && let Some(key) = KEYS.keys("page").into_iter().chain(["mimeType"]).find_map(|key| fields.get(key))
    {
        return Err(key.problem("there is no page to say this of").hint("give `html` or `file`").into());
    }
    let mut ui = Map::new();
    ui.extend(uri.iter().map(|uri| ("resourceUri".to_owned(), json!(uri))));
    let visibility = fields.read_each("visibility", |node| match node.str()? {
        who @ ("model" | "app") => Ok(who),
        _ => Err(node.problem("a tool is visible to `model`, to `app` or to both").into()),
    })?;
    if fields.get("visibility").is_some() {
        ui.insert("visibility".into(), json!(visibility));
    }
    Ok((ui.into(), html.zip(uri).map(|(html, uri)| page(&fields, uri, name, mime, &html))))
}

fn page(fields: &Fields<'_>, uri: String, name: &str, mime: &str, html: &str) -> AppPage {
    let members = KEYS.keys("page").into_iter().filter_map(|key| Some(((*key).to_owned(), fields.get(key)?.to_json())));
    let members: Map<_, _> = members.collect();
    let mut content = json!({ "uri": uri, "mimeType": mime, "text": html });
    let mut definition = json!({ "uri": uri, "name": name, "mimeType": mime });
    if !members.is_empty() {
        let meta = json!({ "ui": members });
        content["_meta"] = meta.clone();
        definition["_meta"] = meta;
    }
    let (definition, contents) = (definition.to_string(), json!([content]).to_string());
    AppPage { uri, definition, contents, span: fields.node().span }
}

fn read_domains(node: &Node) -> Result<(), Problems> {
    let fields = KEYS.fields(node, "csp")?;
    KEYS.keys("csp").into_iter().try_for_each(|key| fields.read_each(key, |domain| domain.str().map(drop)).map(drop))
}

fn read_file(node: &Node, folder: &Path) -> Result<String, Problems> {
    let path = folder.join(node.str()?);
    fs::read_to_string(&path).map_err(|error| node.problem(format!("cannot read {}: {error}", path.display())).into())
}

/// Pages with a URI that another resource has.
pub(super) fn clashes<'p>(pages: &'p [AppPage], others: impl Iterator<Item = &'p str>) -> Vec<Problem> {
    let mut seen: std::collections::HashSet<_> = others.collect();
    let clashing = pages.iter().filter(|page| !seen.insert(&page.uri));
    let problem = |page: &AppPage| Problem::new(page.span, format!("there is another resource `{}`", page.uri));
    clashing.map(|page| problem(page).hint("a second tool names the page of the first with `uri` alone")).collect()
}

#[cfg(test)]
mod tests {
    use crate::script::Script;
    use rehearse_document::Source;
    use rehearse_protocol::Era;
    use serde_json::{Value as Json, json};

    #[test]
    fn a_tool_with_an_app_has_a_page_and_the_extension_is_declared() {
        let text = "
tools:
  - name: map
    _meta: { a.example/x: 1 }
    ui: { html: '<!doctype html>{{ x }}', csp: { connectDomains: ['https://a.example'] }, prefersBorder: true }
  - { name: move, ui: { uri: 'ui://map', visibility: [app] } }
";
        let script = Script::parse(&Source::new("m", text)).unwrap_or_else(|error| panic!("{error}"));
        let meta = |number: usize| {
            let tool: Json = serde_json::from_str(&script.tools[number].definition).expect("JSON");
            tool["_meta"].clone()
        };
        assert_eq!(meta(0), json!({ "ui": { "resourceUri": "ui://map" }, "a.example/x": 1 }));
        assert_eq!(meta(1), json!({ "ui": { "resourceUri": "ui://map", "visibility": ["app"] } }));
        let page: Json = serde_json::from_str(&script.resources[0].definition).expect("JSON");
        assert_eq!(page["_meta"]["ui"]["prefersBorder"], true);
        let modern = script.capabilities.for_era(Era::Modern);
        assert_eq!(json!(modern)["extensions"], json!({ "io.modelcontextprotocol/ui": {} }));
        assert!(modern.contains_key("resources"));
    }

    #[test]
    fn a_page_that_cannot_be_read_is_refused() {
        let text = "tools: [{ name: t, ui: { file: no/such.html } }]";
        let error = Script::parse(&Source::new("m", text)).expect_err(text).to_string();
        assert!(error.contains("cannot read no/such.html"), "{error}");
    }
}
