//! Resources, prompts and completions.

use rehearse_protocol::names::SESSION_HEADER;
use std::{collections::HashSet, time::Duration};

use serde_json::Value;

use super::super::Judge;
use super::super::common::{items, shown};
use super::list::followed;
use super::{completes, fetched, if_sent, only_declared};
use crate::areas::query::{Calls, Query, elements};
use crate::{Message, formats::is_uri, shapes};

const READ: &str = "resources/read";
const GET: &str = "prompts/get";
/// So many completions in a row, each for a longer text and so soon after the last one, are not debounced.
const TYPED: usize = 4;
const KEYSTROKE: Duration = Duration::from_millis(50);

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-res.read.uri-listed", |e, j| {
        // Servers name resources in other places as well, and users know some.
        let templates: Vec<_> = items(e, "resources/templates/list").map(|(_, template, _)| template).collect();
        for call in e.calls_of(READ) {
            let Some(uri) = call.text("/params/uri") else { continue };
            let mut came = e.received().filter(|it| it.result().is_some() && it.id() != call.request.id());
            let is_known = templates.iter().any(|template| is_of(uri, template) || template.starts_with('{'))
                || came.any(|it| it.value.to_string().contains(uri));
            j.check_subject(is_known, uri, call.request, || "a URI that the server has not named");
        }
    }),
    ("client-res.read.template-expanded", |e, j| {
        let listed: HashSet<_> = items(e, "resources/list").map(|(_, uri, _)| uri).collect();
        let templates: Vec<_> = items(e, "resources/templates/list").map(|(_, template, _)| template).collect();
        for call in e.calls_of(READ) {
            let Some(uri) = call.text("/params/uri").filter(|uri| !listed.contains(uri)) else {
                continue;
            };
            if templates.iter().any(|template| is_of(uri, template)) {
                j.check_subject(is_uri(uri), uri, call.request, || "no URI");
            }
        }
    }),
    ("client-res.sub.only-if-declared", |e, j| {
        only_declared(e, j, &["resources/subscribe", "resources/unsubscribe"], "resources/subscribe")
    }),
    ("client-res.prompt.arguments-strings", |e, j| {
        let are_strings = |it: &Value| it.as_object().is_some_and(|it| it.values().all(Value::is_string));
        let is_right = |it: &Message<'_>| it.params().get("arguments").is_none_or(are_strings);
        let found = |it: &Message<'_>| format!("`arguments: {}`", shown(it.at("/params/arguments")));
        e.calls_of(GET).requests().must(j, is_right, found);
    }),
    ("client-res.prompt.required-given", |e, j| {
        for call in e.calls_of(GET) {
            let name = call.text("/params/name").unwrap_or_default();
            let Some((prompt, ..)) = items(e, "prompts/list").find(|(_, listed, _)| *listed == name) else { continue };
            let required = elements(&prompt["arguments"]).filter(|it| it["required"] == true);
            let given = &call.request.params()["arguments"];
            let missing = required.filter_map(|it| it["name"].as_str()).find(|it| given.get(*it).is_none());
            let found = || format!("no argument `{}`", missing.unwrap_or_default());
            j.check_subject(missing.is_none(), name, call.request, found);
        }
    }),
    ("client-res.prompt.paginated", |e, j| followed(e, j, "prompts/list")),
    ("client-res.comp.only-if-declared", |e, j| only_declared(e, j, &["completion/complete"], "completions")),
    ("client-res.read.multiple-contents", |e, j| if_sent(e, j, "resources/read", completes, "contents")),
    ("client-res.read.blob", |e, j| if_sent(e, j, "resources/read", completes, "contents")),
    ("client-res.icons.scheme", |e, j| {
        fetched(e, j, "icon-socket", |it| Some(format!("a request for {}, an icon with `ws:`", it.target)))
    }),
    ("client-res.icons.no-credentials", |e, j| {
        fetched(e, j, "icon", |it| {
            let name =
                ["authorization", "cookie", SESSION_HEADER].into_iter().find(|name| it.headers.contains_key(*name))?;
            Some(format!("a request for {} with `{name}`", it.target))
        });
    }),
    ("client-res.icons.same-origin", |e, j| {
        fetched(e, j, "icon-elsewhere", |it| Some(format!("a request for {}, on another host", it.target)))
    }),
    ("client-res.comp.debounced", |e, j| {
        let calls: Vec<_> = e.calls_of("completion/complete").collect();
        for window in calls.windows(TYPED) {
            let typed = |call: &crate::Call<'_>| call.text("/params/argument/value").unwrap_or_default().to_owned();
            let is_fast = window.iter().zip(window.iter().skip(1)).all(|(one, next)| {
                let gap = next.request.time.saturating_sub(one.request.time);
                typed(next).len() > typed(one).len() && typed(next).starts_with(&typed(one)) && gap < KEYSTROKE
            });
            let places = window.iter().map(|it| it.request.place).collect();
            j.check_at(!is_fast, None, places, || format!("{TYPED} requests while the user types"));
        }
        j.violations.truncate(1);
    }),
    ("client-res.comp.ref-valid", |e, j| shapes::judge(e, j, "client-res.comp.ref-valid")),
];

/// Whether a URI begins as a template does.
fn is_of(uri: &str, template: &str) -> bool {
    let start = template.split('{').next().unwrap_or_default();
    template.contains('{') && !start.is_empty() && uri.starts_with(start)
}
