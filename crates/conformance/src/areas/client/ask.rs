//! Answers to what a server asks: sampling, elicitation and roots.

use rehearse_protocol::Version;
use serde_json::Value;

use super::super::Judge;
use super::super::common::shown;
use super::asked::{Asked, ELICIT, ROOTS, SAMPLE, answered, results};
use super::common::bounded;
use super::{completes, fetched, if_sent};
use crate::areas::query::Query;
use crate::{Evidence, Fetched, Judgement};

mod form;
mod sampling;

use form::{content_matches, defaults_applied, flat, prefers_title, required_present};
use sampling::{blocks, has_tool_use, is_unbalanced, max_tokens, tool_use_shape};

const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-ask.sampling.result-shape", |e, j| {
        each(e, j, SAMPLE, |_, result| {
            let (role, content) = (&result["role"], &result["content"]);
            let wrong = match () {
                () if role != "assistant" && role != "user" => "role",
                () if !(content.is_object() || content.is_array() && e.version >= Version::V2025_11_25) => "content",
                () if !result["model"].is_string() => "model",
                () => return None,
            };
            Some(format!("`{wrong}: {}`", shown(&result[wrong])))
        });
    }),
    ("client-ask.sampling.role-assistant", |e, j| {
        each(e, j, SAMPLE, |_, result| (result["role"] == "user").then(|| "`role: \"user\"`".to_owned()))
    }),
    ("client-ask.sampling.max-tokens", |e, j| each(e, j, SAMPLE, max_tokens)),
    ("client-ask.sampling.tools-undeclared-error", |e, j| {
        let is_odd = |it: &Asked<'_>| {
            it.method == SAMPLE && it.params.get("tools").is_some() && it.declared["sampling"].get("tools").is_none()
        };
        for asked in answered(e).into_iter().filter(is_odd) {
            check(j, &asked, asked.result.map(|_| "a result".to_owned()));
        }
    }),
    ("client-ask.sampling.stop-reason", |e, j| {
        each(e, j, SAMPLE, |_, result| {
            let reason = result.get("stopReason").filter(|it| !it.is_string())?;
            Some(format!("`stopReason: {}`", shown(reason)))
        });
    }),
    ("client-ask.sampling.tool-choice-required", |e, j| {
        chosen(e, j, "required", |result| {
            // The answer may have been cut.
            let is_right = has_tool_use(result) || result["stopReason"] == "maxTokens";
            (!is_right).then(|| "no `tool_use`".to_owned())
        });
    }),
    ("client-ask.sampling.tool-choice-none", |e, j| {
        chosen(e, j, "none", |result| has_tool_use(result).then(|| "`tool_use`".to_owned()))
    }),
    ("client-ask.sampling.tool-use-shape", tool_use_shape),
    ("client-ask.elicit.action-enum", |e, j| {
        each(e, j, ELICIT, |_, result| {
            let action = &result["action"];
            let is_action = action.as_str().is_some_and(|it| ["accept", "decline", "cancel"].contains(&it));
            (!is_action).then(|| format!("`action: {}`", shown(action)))
        });
    }),
    ("client-ask.elicit.content-matches", content_matches),
    ("client-ask.elicit.content-flat", |e, j| each(e, j, ELICIT, |asked, result| flat(asked, result, e.version))),
    ("client-ask.elicit.no-content-on-decline", |e, j| {
        for (asked, result) in results(e, ELICIT) {
            if result["action"] == "decline" || result["action"] == "cancel" {
                let content = result.get("content").filter(|it| !it.is_null());
                check(j, &asked, content.map(|it| format!("`content: {}`", shown(it))));
            }
        }
    }),
    ("client-ask.elicit.required-present", required_present),
    ("client-ask.elicit.enum-variants", |e, j| each_form(e, j, prefers_title)),
    ("client-ask.elicit.mode-default-form", |e, j| {
        for (asked, result) in results(e, ELICIT).iter().filter(|(asked, _)| asked.params.get("mode").is_none()) {
            let requires = asked.params["requestedSchema"]["required"].as_array().is_some_and(|it| !it.is_empty());
            if result["action"] == "accept" && requires {
                let has_content = result["content"].is_object();
                check(j, asked, (!has_content).then(|| "no `content`".to_owned()));
            }
        }
    }),
    ("client-ask.elicit.undeclared-mode-32602", |e, j| {
        for asked in answered(e).into_iter().filter(|it| it.method == ELICIT && !is_mode_declared(it)) {
            refused_with(j, &asked, -32602);
        }
    }),
    ("client-ask.elicit.url-no-content", |e, j| {
        for (asked, result) in results(e, ELICIT).iter().filter(|(asked, _)| asked.params["mode"] == "url") {
            let content = result.get("content").filter(|it| !it.is_null());
            check(j, asked, content.map(|it| format!("`content: {}`", shown(it))));
        }
    }),
    ("client-ask.elicit.complete-unknown-ignored", |e, j| if_sent(e, j, "tools/list", completes, "completed")),
    ("client-ask.elicit.required-error-handled", |e, j| bounded(e, j, -32042)),
    ("client-ask.elicit.url-no-prefetch", |e, j| {
        fetched(e, j, "page", |it| (!is_browser(it)).then(|| format!("a request for {} by the client", it.target)))
    }),
    ("client-ask.elicit.url-not-auto-open", |e, j| {
        let is_accepted = results(e, ELICIT).iter().any(|(_, result)| result["action"] == "accept");
        fetched(e, j, "page", |it| {
            (!is_accepted).then(|| format!("a request for {}, to which the user has not consented", it.target))
        });
    }),
    ("client-ask.elicit.defaults-applied", defaults_applied),
    ("client-ask.sampling.reject-code", |e, j| {
        for connection in &e.connections {
            for ask in connection.asks().filter(|ask| ask.method() == SAMPLE) {
                let Some(error) = ask.responses.first().and_then(|it| it.error()) else { continue };
                let text = error["message"].as_str().unwrap_or_default().to_ascii_lowercase();
                if ["reject", "denied", "declined"].iter().any(|word| text.contains(word)) {
                    j.check_at(error["code"] == -1, None, ask.places(), || format!("`code: {}`", error["code"]));
                }
            }
        }
    }),
    ("client-ask.sampling.tool-balance-error", |e, j| {
        for asked in answered(e).into_iter().filter(|it| it.method == SAMPLE && is_unbalanced(&it.params["messages"])) {
            if asked.declared["sampling"].get("tools").is_some() {
                check(j, &asked, asked.result.map(|_| "a result".to_owned()));
            }
        }
    }),
    ("client-ask.roots.result-shape", |e, j| {
        each(e, j, ROOTS, |_, result| match result["roots"].as_array() {
            None => Some(format!("`roots: {}`", shown(&result["roots"]))),
            Some(roots) => {
                let is_file = |root: &&Value| {
                    root["uri"].as_str().is_some_and(|it| it.to_ascii_lowercase().starts_with("file://"))
                };
                roots.iter().find(|root| !is_file(root)).map(|root| format!("`uri: {}`", shown(&root["uri"])))
            }
        });
    }),
    ("client-ask.roots.uri-absolute", |e, j| {
        each(e, j, ROOTS, |_, result| {
            let mut uris = result["roots"].as_array()?.iter().filter_map(|root| root["uri"].as_str());
            uris.find(|uri| !is_absolute(uri)).map(|uri| format!("{uri:?}"))
        });
    }),
    ("client-ask.roots.list-changed-undeclared", |e, j| {
        for connection in &e.connections {
            let mut sent = connection.messages.iter().filter(|it| it.method() == Some("initialize"));
            let declared = sent.next().map_or(&Value::Null, |it| it.at("/params/capabilities/roots/listChanged"));
            let all = connection.messages.iter().filter(|it| it.method() == Some(ROOTS_CHANGED));
            all.must(j, |_| declared == true, |_| "a notification that the client does not declare");
        }
    }),
    ("client-ask.roots.none-modern", |e, j| {
        let messages = e.sent().filter(|it| it.method().is_some());
        messages.must(j, |message| message.method() != Some(ROOTS_CHANGED), |_| format!("`{ROOTS_CHANGED}`"));
    }),
    ("client-ask.roots.undeclared-32601", |e, j| {
        for asked in answered(e).into_iter().filter(|it| it.method == ROOTS && it.declared.get("roots").is_none()) {
            refused_with(j, &asked, -32601);
        }
    }),
];

fn refused_with(j: &mut Judgement, asked: &Asked<'_>, code: i64) {
    let wrong = match (asked.result, asked.error_code) {
        (Some(_), _) => Some("a result".to_owned()),
        (None, Some(found)) if found == code => None,
        (None, Some(found)) => Some(format!("the error {found}")),
        (None, None) => Some("an error without a code".to_owned()),
    };
    check(j, asked, wrong);
}

fn check(j: &mut Judgement, asked: &Asked<'_>, wrong: Option<String>) {
    j.check_at(wrong.is_none(), Some(asked.method), asked.places.clone(), || wrong.unwrap_or_default());
}

/// Checks each result of a method; `wrong` says what is wrong with it.
fn each(e: &Evidence<'_>, j: &mut Judgement, method: &str, wrong: impl Fn(&Asked<'_>, &Value) -> Option<String>) {
    for (asked, result) in results(e, method) {
        check(j, &asked, wrong(&asked, result));
    }
    j.untested("the server asked for nothing of the kind, or the client refused");
}

/// Checks each value of an accepted form with its schema.
fn each_form(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Value, &Value) -> Option<String>) {
    for (asked, result) in results(e, ELICIT).iter().filter(|(_, result)| result["action"] == "accept") {
        if asked.params["mode"] == "url" {
            continue;
        }
        for (name, schema) in asked.params["requestedSchema"]["properties"].as_object().into_iter().flatten() {
            let Some(value) = result["content"].get(name) else { continue };
            check(j, asked, wrong(schema, value).map(|wrong| format!("`{name}: {wrong}`")));
        }
    }
    j.untested("the user accepted no form");
}

/// Checks the results for requests with this `toolChoice`, if the client declares tools.
fn chosen(e: &Evidence<'_>, j: &mut Judgement, mode: &str, wrong: impl Fn(&Value) -> Option<String>) {
    for (asked, result) in results(e, SAMPLE) {
        let is_declared = asked.declared["sampling"].get("tools").is_some();
        if is_declared && asked.params["toolChoice"]["mode"] == mode && blocks(result).next().is_some() {
            check(j, &asked, wrong(result));
        }
    }
    j.untested("the server asked for no such choice of tools");
}

/// Whether a person looks at what was fetched.
fn is_browser(fetched: &Fetched) -> bool {
    let agent = fetched.headers.get("user-agent").and_then(|it| it.to_str().ok());
    // The second one is the browser that a client gets here.
    agent.is_some_and(|agent| agent.contains("Mozilla") || agent.starts_with("rehearse/"))
}

fn is_mode_declared(asked: &Asked<'_>) -> bool {
    let Some(declared) = asked.declared.get("elicitation") else { return true };
    match asked.params["mode"].as_str() {
        Some("url") => declared.get("url").is_some(),
        Some("form") | None => declared.get("form").is_some() || declared.get("url").is_none(),
        Some(_) => true,
    }
}

/// Whether a URI names a place of its own, whatever stands before it.
fn is_absolute(uri: &str) -> bool {
    let Some((_, rest)) = uri.split_once("://") else { return false };
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let mut parts = path.split(['?', '#']).next().unwrap_or_default().split('/');
    rest.contains('/') && parts.all(|part| !matches!(part.to_ascii_lowercase().as_str(), "." | ".." | "%2e%2e" | "%2e"))
}
