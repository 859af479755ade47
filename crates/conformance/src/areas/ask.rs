//! Sampling, elicitation and roots: requests of a legacy server, requests for input of a modern one.

use std::collections::HashSet;

use rehearse_document::json_schema::accepts;
use serde_json::Value;

use super::Judge;
use super::common::{connection, shown, silence, survives};
use super::query::{Query, elements};
use crate::{Call, Connection, Evidence, Judgement, Kind, Level, Message};

pub(super) const CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
const ELICIT: &str = "elicitation/create";
const SAMPLE: &str = "sampling/createMessage";
const ROOTS: &str = "roots/list";
const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];
/// Words of names and titles that ask for secrets.
const SECRETS: [&str; 9] =
    ["password", "passphrase", "apikey", "secretkey", "clientsecret", "accesstoken", "creditcard", "cardnumber", "cvv"];
/// Parameters of a URL that give access by themselves.
const ACCESS: [&str; 5] = ["access_token", "id_token", "sig", "x-amz-signature", "x-goog-signature"];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("ask.sampling.capability", |e, j| capability(e, j, SAMPLE)),
    ("ask.sampling.tools-gate", |e, j| {
        each(e, j, SAMPLE, |ask| {
            let has_tools = ask.params.get("tools").is_some() || ask.params.get("toolChoice").is_some();
            (has_tools && ask.declared["sampling"].get("tools").is_none()).then(|| "`tools`".to_owned())
        });
    }),
    ("ask.sampling.context-gate", |e, j| {
        each(e, j, SAMPLE, |ask| {
            let context = &ask.params["includeContext"];
            let is_used = context == "thisServer" || context == "allServers";
            (is_used && ask.declared["sampling"].get("context").is_none())
                .then(|| format!("`includeContext: {context}`"))
        });
    }),
    ("ask.sampling.max-tokens", |e, j| {
        each(e, j, SAMPLE, |ask| {
            let limit = &ask.params["maxTokens"];
            (!limit.as_f64().is_some_and(|it| it.fract() == 0.0)).then(|| format!("`maxTokens: {limit}`"))
        });
    }),
    ("ask.sampling.roles", |e, j| each(e, j, SAMPLE, |ask| messages(ask).iter().find_map(|it| wrong_message(it)))),
    ("ask.sampling.tool-result-only", |e, j| each(e, j, SAMPLE, mixed_results)),
    ("ask.sampling.tool-balance", |e, j| each(e, j, SAMPLE, unbalanced)),
    ("ask.sampling.priorities", |e, j| {
        each(e, j, SAMPLE, |ask| {
            let names = ["costPriority", "speedPriority", "intelligencePriority"];
            names.into_iter().find_map(|name| {
                let value = ask.params["modelPreferences"].get(name)?;
                let is_in_range = value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it));
                (!is_in_range).then(|| format!("`{name}: {value}`"))
            })
        });
    }),
    ("ask.sampling.refusal-handled", |e, j| ends(e, j, "asking/error/sampling")),
    ("ask.elicit.capability", |e, j| capability(e, j, ELICIT)),
    ("ask.elicit.mode-gate", |e, j| {
        each(e, j, ELICIT, |ask| {
            let declared = ask.declared.get("elicitation")?;
            let is_page = ask.params["mode"] == "url";
            // Without a mode, a client supports forms.
            let is_supported = match is_page {
                true => declared.get("url").is_some(),
                false => declared.get("form").is_some() || declared.get("url").is_none(),
            };
            (!is_supported).then(|| format!("`mode: {}`", ask.params["mode"]))
        });
    }),
    ("ask.elicit.message", |e, j| {
        each(e, j, ELICIT, |ask| {
            let message = &ask.params["message"];
            message.as_str().is_none_or(str::is_empty).then(|| format!("`message: {message}`"))
        });
    }),
    ("ask.elicit.mode-value", |e, j| {
        each(e, j, ELICIT, |ask| {
            let mode = ask.params.get("mode")?;
            (mode != "form" && mode != "url").then(|| format!("`mode: {mode}`"))
        });
    }),
    ("ask.elicit.form-has-schema", |e, j| {
        forms(e, j, |ask| (!ask.params["requestedSchema"].is_object()).then(|| "no `requestedSchema`".to_owned()))
    }),
    ("ask.elicit.flat-schema", |e, j| {
        forms(e, j, |ask| {
            let schema = ask.params.get("requestedSchema").filter(|it| it.is_object())?;
            let is_object = schema["type"] == "object" && schema["properties"].is_object();
            let root = (!is_object).then(|| format!("the schema {}", shown(schema)));
            root.or_else(|| fields(ask).find(|(_, it)| !is_flat(it)).map(found))
        });
    }),
    ("ask.elicit.string-format", |e, j| {
        forms(e, j, |ask| {
            let is_known = |it: &Value| it["format"].as_str().is_none_or(|format| FORMATS.contains(&format));
            fields(ask).find(|(_, it)| it["type"] == "string" && !is_known(it)).map(found)
        });
    }),
    ("ask.elicit.enum-shapes", |e, j| forms(e, j, |ask| fields(ask).find(|(_, it)| !is_choice_known(it)).map(found))),
    ("ask.elicit.defaults-valid", |e, j| {
        forms(e, j, |ask| fields(ask).find(|(_, it)| !is_default_valid(it)).map(found))
    }),
    ("ask.elicit.required-exists", |e, j| {
        forms(e, j, |ask| {
            let schema = &ask.params["requestedSchema"];
            let required = elements(&schema["required"]).filter_map(Value::as_str);
            let unknown = required.into_iter().find(|name| schema["properties"].get(name).is_none());
            unknown.map(|name| format!("{name:?}, required and not among the properties"))
        });
    }),
    ("ask.elicit.no-secrets", |e, j| {
        let is_secret = |text: &str| {
            let text: String =
                text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
            SECRETS.iter().any(|word| text.contains(word))
        };
        forms(e, j, |ask| {
            fields(ask).find(|(name, it)| is_secret(name) || it["title"].as_str().is_some_and(is_secret)).map(found)
        });
        // Words can only be suspected.
        j.all_at_level(Level::Should);
    }),
    ("ask.elicit.no-clickable-url", |e, j| {
        forms(e, j, |ask| {
            let texts = fields(ask).filter(|(_, it)| it["format"] != "uri");
            let texts = texts.flat_map(|(_, it)| [&it["title"], &it["description"], &it["default"]]);
            let is_url = |it: &str| it.contains("http://") || it.contains("https://");
            let mut all = texts.chain([&ask.params["message"]]).filter_map(Value::as_str);
            all.find(|it| is_url(it)).map(|it| format!("{it:?}"))
        });
    }),
    ("ask.elicit.url-valid", |e, j| {
        pages(e, j, |ask, url| url.is_none().then(|| format!("`url: {}`", ask.params["url"])))
    }),
    ("ask.elicit.url-https", |e, j| {
        pages(e, j, |_, url| {
            let host = url?.host_str().unwrap_or_default();
            let is_local =
                host == "localhost" || host.ends_with(".localhost") || host.starts_with("127.") || host == "[::1]";
            (url?.scheme() == "http" && !is_local)
                .then(|| format!("`{}`", url.map(ToString::to_string).unwrap_or_default()))
        });
    }),
    ("ask.elicit.url-no-pii", |e, j| suspect(e, j, |url| !url.username().is_empty() || has_address(url))),
    ("ask.elicit.url-not-preauthenticated", |e, j| {
        suspect(e, j, |url| url.query_pairs().any(|(key, _)| ACCESS.contains(&key.to_ascii_lowercase().as_str())))
    }),
    ("ask.elicit.url-id", |e, j| {
        let mut seen = HashSet::new();
        for ask in asks(e).iter().filter(|ask| ask.method == ELICIT && ask.params["mode"] == "url") {
            let id = ask.params["elicitationId"].as_str().unwrap_or_default();
            let holds = !id.is_empty() && seen.insert((ask.message.place.connection, id));
            j.check(holds, ask.message, || format!("`elicitationId: {}`", ask.params["elicitationId"]));
        }
    }),
    ("ask.elicit.complete-known-id", |e, j| {
        let known = elicitation_ids(e);
        for message in e.notifications("notifications/elicitation/complete") {
            let id = message.at("/params/elicitationId").as_str().unwrap_or_default();
            j.check(known.contains(&(message.place.connection, id)), message, || format!("the id {id:?}"));
        }
    }),
    ("ask.elicit.required-error-shape", |e, j| {
        for response in e.responses().filter(|it| it.error_code() == Some(-32042)) {
            let listed = response.at("/error/data/elicitations").as_array();
            let is_page = |it: &Value| it["mode"] == "url" && it["elicitationId"].is_string();
            let holds = listed.is_some_and(|listed| !listed.is_empty() && listed.iter().all(is_page));
            j.check(holds, response, || shown(response.at("/error/data")));
        }
    }),
    ("ask.elicit.decline-cancel-handled", |e, j| {
        for case in ["asking/decline", "asking/cancel", "asking/error/elicitation"] {
            ends(e, j, case);
        }
    }),
    ("ask.elicit.validates-answer", |e, j| {
        // No field of a form is an object.
        let is_invalid =
            |answer: &Value| answer["content"].as_object().is_some_and(|it| it.values().any(Value::is_object));
        let calls = e.case("asking/schema").filter(|call| call.request.kind == Kind::Request);
        for (call, response) in calls.filter_map(|call| Some((call, call.response?))) {
            let Some(connection) = connection(e, call.request.place) else { continue };
            let retried = call.request.at("/params/inputResponses").as_object().into_iter().flatten();
            let replies = connection.sent();
            let mut replies = replies.filter(|it| it.place > call.request.place && it.place < response.place);
            if !retried.into_iter().any(|(_, it)| is_invalid(it)) && !replies.any(|it| is_invalid(it.at("/result"))) {
                continue;
            }
            let is_complete = |it: &Value| it["resultType"] != "input_required" && it["isError"] != true;
            let is_asked_again = connection.on_the_way(&call).filter(|it| it.method() == Some(ELICIT)).count() > 1;
            j.check_call(!call.result().is_some_and(is_complete) || is_asked_again, &call);
        }
        let otherwise =
            "no tool, prompt or resource asked with a form; --allow-tool NAME lets the prober call a tool that does";
        not_varied(e, j, otherwise);
    }),
    ("ask.roots.capability", |e, j| capability(e, j, ROOTS)),
    ("ask.roots.error-handled", |e, j| ends(e, j, "asking/error/roots")),
    ("ask.roots.list-changed-handled", |e, j| silence(e, j, "asking/roots-changed")),
    ("ask.any.associated", |e, j| {
        for connection in &e.connections {
            let posted = connection.calls().filter(|call| call.http.is_some_and(|http| http.method == "POST"));
            for call in posted.filter(|call| call.request.kind == Kind::Request) {
                let Some((http, response)) = call.http.zip(call.response) else { continue };
                let all = connection.messages_of(http).filter(|it| it.kind == Kind::Request);
                all.must(j, |request| request.place < response.place, |_| "a request after the response");
            }
        }
    }),
    ("ask.any.bogus-response", |e, j| survives(e, j, "asking/bogus-response")),
];

const NOTHING_ASKED: &str = "the server asked for nothing; --allow-tool NAME lets the prober call a tool that does";

/// Says why no other answer was given to what the server asks.
pub(super) fn not_varied(e: &Evidence<'_>, j: &mut Judgement, otherwise: &str) {
    let asks = |call: &Call<'_>| {
        let mut messages = connection(e, call.request.place).into_iter().flat_map(|it| it.on_the_way(call));
        call.result().is_some_and(|it| it["resultType"] == "input_required")
            || messages.any(|it| it.kind == Kind::Request)
    };
    if e.case("asking/prompt").any(|call| asks(&call)) {
        j.untested("a prompt may pass on what it gets; --allow-prompt NAME lets the prober answer it in other ways");
    }
    j.untested(otherwise);
}

/// What a server asks its client.
struct Ask<'e> {
    method: &'e str,
    params: &'e Value,
    /// What the client has declared.
    declared: &'e Value,
    message: &'e Message<'e>,
}

/// Everything that the server asks of clients whose capabilities are known.
fn asks<'e>(evidence: &'e Evidence<'_>) -> Vec<Ask<'e>> {
    let mut asks = Vec::new();
    for connection in &evidence.connections {
        if evidence.is_modern() {
            for call in connection.calls() {
                let (Some(message), declared) = (call.response, call.request.at(CAPABILITIES)) else { continue };
                let inputs = message.at("/result/inputRequests").as_object().into_iter().flatten();
                asks.extend(inputs.filter(|_| declared.is_object()).map(|(_, input)| {
                    let method = input["method"].as_str().unwrap_or_default();
                    Ask { method, params: &input["params"], declared, message }
                }));
            }
            continue;
        }
        let mut declared = &Value::Null;
        for message in &connection.messages {
            match (message.is_from_server(), message.method()) {
                (false, Some("initialize")) => declared = message.at("/params/capabilities"),
                (true, Some(method)) if message.kind == Kind::Request && declared.is_object() => {
                    asks.push(Ask { method, params: message.params(), declared, message });
                }
                _ => {}
            }
        }
    }
    asks
}

/// Whether a client has declared what a method needs.
pub(super) fn is_declared(declared: &Value, method: &str) -> bool {
    match method {
        ELICIT => declared.get("elicitation").is_some(),
        SAMPLE => declared.get("sampling").is_some(),
        ROOTS => declared.get("roots").is_some(),
        _ => true,
    }
}

/// Checks each request of a method; `wrong` says what is wrong with it.
fn each(e: &Evidence<'_>, j: &mut Judgement, method: &str, wrong: impl Fn(&Ask<'_>) -> Option<String>) {
    for ask in asks(e).iter().filter(|ask| ask.method == method) {
        let wrong = wrong(ask);
        j.check(wrong.is_none(), ask.message, || wrong.unwrap_or_default());
    }
    j.untested(NOTHING_ASKED);
}

fn forms(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Ask<'_>) -> Option<String>) {
    each(e, j, ELICIT, |ask| if ask.params["mode"] == "url" { None } else { wrong(ask) });
}

fn pages(e: &Evidence<'_>, j: &mut Judgement, wrong: impl Fn(&Ask<'_>, Option<&url::Url>) -> Option<String>) {
    for ask in asks(e).iter().filter(|ask| ask.method == ELICIT && ask.params["mode"] == "url") {
        let url = ask.params["url"].as_str().and_then(|url| url::Url::parse(url).ok());
        let wrong = wrong(ask, url.as_ref());
        j.check(wrong.is_none(), ask.message, || wrong.unwrap_or_default());
    }
    j.untested("the server sent the user to no page");
}

/// Checks URLs for what can only be suspected.
fn suspect(e: &Evidence<'_>, j: &mut Judgement, is_wrong: impl Fn(&url::Url) -> bool) {
    pages(e, j, |_, url| url.filter(|url| is_wrong(url)).map(|url| format!("`{url}`")));
    j.all_at_level(Level::Should);
}

fn has_address(url: &url::Url) -> bool {
    url.query_pairs()
        .any(|(_, value)| value.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.')))
}

fn capability(e: &Evidence<'_>, j: &mut Judgement, method: &str) {
    each(e, j, method, |ask| (!is_declared(ask.declared, method)).then(|| format!("`{method}`, not declared")));
}

fn messages<'e>(ask: &Ask<'e>) -> Vec<&'e Value> {
    elements(&ask.params["messages"]).collect()
}

fn wrong_message(message: &Value) -> Option<String> {
    let has_role = message["role"] == "user" || message["role"] == "assistant";
    let has_content = message["content"].is_object() || message["content"].is_array();
    (!has_role || !has_content).then(|| shown(message))
}

/// The blocks of a message of a type.
fn blocks<'e>(message: &'e Value, kind: &str) -> Vec<&'e Value> {
    let content = &message["content"];
    let blocks = content.as_array().map_or_else(|| vec![content], |blocks| blocks.iter().collect());
    blocks.into_iter().filter(|block| block["type"] == kind).collect()
}

fn mixed_results(ask: &Ask<'_>) -> Option<String> {
    let is_mixed = |message: &&Value| {
        let results = blocks(message, "tool_result").len();
        results > 0 && results < message["content"].as_array().map_or(1, Vec::len)
    };
    messages(ask).into_iter().find(is_mixed).map(shown)
}

fn unbalanced(ask: &Ask<'_>) -> Option<String> {
    let messages = messages(ask);
    for (index, message) in messages.iter().enumerate() {
        let results: HashSet<_> = messages
            .get(index + 1)
            .map(|next| blocks(next, "tool_result"))
            .into_iter()
            .flatten()
            .map(|it| it["toolUseId"].as_str())
            .collect();
        let open = blocks(message, "tool_use").into_iter().find(|it| !results.contains(&it["id"].as_str()));
        let Some(open) = open else { continue };
        return Some(format!("no result for {}", shown(open)));
    }
    None
}

/// The fields of a form.
fn fields<'e>(ask: &Ask<'e>) -> impl Iterator<Item = (&'e String, &'e Value)> {
    ask.params["requestedSchema"]["properties"].as_object().into_iter().flatten()
}

fn found((name, field): (&String, &Value)) -> String {
    format!("{name}: {}", shown(field))
}

fn is_flat(field: &Value) -> bool {
    match field["type"].as_str() {
        Some("string" | "number" | "integer" | "boolean") => true,
        Some("array") => field["items"].get("enum").is_some() || field["items"].get("anyOf").is_some(),
        _ => false,
    }
}

fn is_choice_known(field: &Value) -> bool {
    let texts = |values: &Value| values.as_array().is_some_and(|values| values.iter().all(Value::is_string));
    let titled = |values: &Value| {
        let is_titled = |it: &Value| it["const"].is_string() && it["title"].is_string();
        values.as_array().is_some_and(|values| values.iter().all(is_titled))
    };
    let items = &field["items"];
    if let Some(names) = field.get("enumNames") {
        let length = |values: &Value| values.as_array().map(Vec::len);
        return texts(names) && length(names) == length(&field["enum"]);
    }
    match (field.get("enum"), field.get("oneOf"), items.get("enum"), items.get("anyOf")) {
        (Some(values), ..) => field["type"] == "string" && texts(values),
        (_, Some(values), ..) => field["type"] == "string" && titled(values),
        (_, _, Some(values), _) => field["type"] == "array" && texts(values),
        (.., Some(values)) => field["type"] == "array" && titled(values),
        _ => true,
    }
}

fn is_default_valid(field: &Value) -> bool {
    let Some(default) = field.get("default") else { return true };
    accepts(field, default) == Some(true) || !is_flat(field)
}

/// The ids of elicitations on each connection, with where they were given.
fn elicitation_ids<'e>(evidence: &'e Evidence<'_>) -> HashSet<(usize, &'e str)> {
    let requests = asks(evidence).into_iter().filter(|ask| ask.method == ELICIT);
    let requests =
        requests.filter_map(|ask| Some((ask.message.place.connection, ask.params["elicitationId"].as_str()?)));
    let errors = evidence.responses().filter(|it| it.error_code() == Some(-32042)).flat_map(|it| {
        let listed = it.at("/error/data/elicitations").as_array().into_iter().flatten();
        listed.filter_map(move |entry| Some((it.place.connection, entry["elicitationId"].as_str()?)))
    });
    requests.chain(errors).collect()
}

/// Checks that a call ends after the client refused what it asks.
fn ends(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in e.case(case).filter(|call| call.request.kind == Kind::Request) {
        let is_refused = |connection: &Connection<'_>| {
            let mut asked = connection.asks().filter(|ask| ask.request.place > call.request.place).peekable();
            connection.closed.is_some() && asked.peek().is_some() && asked.all(|ask| !ask.responses.is_empty())
        };
        if call.response.is_some() || connection(e, call.request.place).is_some_and(is_refused) {
            j.check_call(call.response.is_some(), &call);
        }
    }
    not_varied(e, j, NOTHING_ASKED);
}
