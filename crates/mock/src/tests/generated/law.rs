//! The laws for every message of a conformant mock, with any script and any clients.

use std::collections::{BTreeMap, HashSet};

use crate::internals::ResponseFrame;
use rehearse_protocol::Era;
use rehearse_protocol::Id;
use rehearse_protocol::Message;
use rehearse_protocol::Request;
use serde_json::{Value as Json, json, value::RawValue};

use super::script::{LEVELS, MODERN, is_odd};

pub(crate) const META: &str = "io.modelcontextprotocol/";
pub(crate) const TASKS: &str = "io.modelcontextprotocol/tasks";
/// The results that a client may cache (2026-07-28, Caching).
const CACHEABLE: [&str; 6] =
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"];
/// The requests that may be answered with questions (2026-07-28, Multi Round-Trip Requests: Supported Requests).
const INTERACTIVE: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// An error with the broken law.
pub(crate) type Law = Result<(), String>;

macro_rules! hold {
    ($condition:expr, $($why:tt)+) => {
        if !$condition {
            return Err(format!($($why)+));
        }
    };
}
pub(super) use hold;

/// A message of the server, for another judge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Said<'a> {
    pub version: &'a str,
    pub what: What<'a>,
    pub message: &'a Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// To a request of this method.
    Response(&'a str),
    Notification,
    Request,
}

/// Judges what was said besides the laws.
pub(crate) type Judge = fn(&Said<'_>) -> Law;

/// A request as the server had to understand it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub client: usize,
    pub era: Era,
    /// What the client speaks, as far as it is known.
    pub version: String,
    pub id: Id,
    pub method: String,
    /// What is called, read or got.
    pub target: String,
    pub params: Json,
    pub token: Option<Json>,
    /// The least severe log message that may be sent; `None` for none.
    pub level: Option<usize>,
    pub capabilities: Json,
}

impl Asked {
    /// `client` is what is known of a legacy client: its version, its log level and its capabilities.
    pub(crate) fn of(request: &Request<'_>, number: usize, era: Era, client: (&str, usize, &Json)) -> Asked {
        let params = request.params.map(|params| shallow(params.get())).unwrap_or_default();
        let target = ["name", "uri", "taskId"].iter().find_map(|name| params[*name].as_str()).unwrap_or_default();
        let meta = &params["_meta"];
        let token = Some(&meta["progressToken"]).filter(|token| token.is_string() || token.is_i64());
        let (version, level, capabilities) = match era {
            Era::Legacy => (client.0, Some(client.1), client.2.clone()),
            Era::Modern => {
                let level = meta[format!("{META}logLevel")].as_str();
                let level = level.and_then(|name| LEVELS.iter().position(|level| *level == name));
                (MODERN, level, meta[format!("{META}clientCapabilities")].clone())
            }
        };
        Asked {
            client: number,
            era,
            version: version.to_owned(),
            id: request.id.clone(),
            method: request.method.clone().into_owned(),
            target: target.to_owned(),
            token: token.cloned(),
            level,
            capabilities,
            params,
        }
    }

    /// Whether the script may answer this against the protocol.
    pub(crate) fn is_odd(&self) -> bool {
        is_odd(&self.method) || (INTERACTIVE.contains(&&*self.method) && is_odd(&self.target))
    }
}

/// An object whose members are there as far as they can be read: not where they are nested too deeply.
fn shallow(text: &str) -> Json {
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).unwrap_or_default();
    let read = |value: &RawValue| serde_json::from_str::<Json>(value.get()).unwrap_or_default();
    members.into_iter().map(|(name, value)| (name, read(value))).collect()
}

/// The message as JSON. It is one line, as stdio needs it.
pub(crate) fn message(frame: &[u8]) -> Result<Json, String> {
    hold!(!frame.contains(&b'\n'), "a line break in {}", String::from_utf8_lossy(frame));
    Message::parse(frame).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(frame)))?;
    serde_json::from_slice(frame).map_err(|error| error.to_string())
}

/// A response to a request, whose result or error is one of its era and its method.
pub(crate) fn response(asked: &Asked, answer: &ResponseFrame, judge: Judge) -> Law {
    if asked.is_odd() && message(&answer.frame).is_err() {
        return Ok(());
    }
    let said = message(&answer.frame)?;
    let text = || String::from_utf8_lossy(&answer.frame).into_owned();
    hold!(said.get("method").is_none(), "no response: {}", text());
    hold!(said["id"] == json!(asked.id), "another id than {}: {}", asked.id, text());
    match (said.get("result"), said.get("error")) {
        (Some(_), None) if asked.is_odd() => return Ok(()),
        (Some(result), None) => {
            hold!(answer.status == 200, "a result with status {}", answer.status);
            let law = match asked.era {
                Era::Legacy => legacy_result(result),
                Era::Modern => modern_result(asked, result),
            };
            law.map_err(|why| format!("{why}: {}", text()))?;
        }
        (None, Some(error)) => {
            error_object(asked.era, error, answer.status).map_err(|why| format!("{why}: {}", text()))?;
        }
        _ => return Err(format!("neither result nor error: {}", text())),
    }
    judge(&Said { version: &asked.version, what: What::Response(&asked.method), message: &said })
}

fn error_object(era: Era, error: &Json, status: u16) -> Law {
    let code = error["code"].as_i64().ok_or("no code")?;
    hold!(error["message"].is_string(), "no message");
    let expected: &[u16] = match (era, code) {
        (Era::Legacy, -32_099..=-32_020) => return Err("a modern code for a legacy client".into()),
        (Era::Modern, -32_022..=-32_020) => &[400],
        (Era::Modern, -32_099..=-32_000) => return Err("a code that 2026-07-28 does not have".into()),
        (Era::Modern, -32_601) => &[404],
        (Era::Modern, -32_602 | -32_600) => &[200, 400],
        _ => &[200],
    };
    hold!(expected.contains(&status), "status {status} for the code {code}");
    if code == -32_021 {
        hold!(error["data"]["requiredCapabilities"].is_object(), "no requiredCapabilities");
    }
    if code == -32_022 {
        hold!(error["data"]["supported"].is_array() && error["data"]["requested"].is_string(), "no versions");
    }
    Ok(())
}

fn legacy_result(result: &Json) -> Law {
    let modern = ["resultType", "ttlMs", "cacheScope", "inputRequests", "requestState", "supportedVersions", "taskId"];
    hold!(result.is_object(), "the result is no object");
    match modern.into_iter().find(|name| result.get(name).is_some()) {
        Some(name) => Err(format!("`{name}` for a legacy client")),
        None => legacy_meta(result),
    }
}

fn legacy_meta(holder: &Json) -> Law {
    let meta = holder["_meta"].as_object();
    match meta.and_then(|meta| meta.keys().find(|name| name.starts_with(META))) {
        Some(name) => Err(format!("`{name}` for a legacy client")),
        None => Ok(()),
    }
}

fn modern_result(asked: &Asked, result: &Json) -> Law {
    let name = &result["_meta"][format!("{META}serverInfo")]["name"];
    hold!(name == "generated", "no serverInfo");
    match result["resultType"].as_str() {
        Some("complete") => {
            let cacheable = CACHEABLE.contains(&&*asked.method);
            hold!(cacheable == result["cacheScope"].is_string(), "a cacheScope where it does not belong, or none");
            hold!(!cacheable || result["ttlMs"].is_u64(), "no ttlMs");
        }
        Some("input_required") => {
            hold!(INTERACTIVE.contains(&&*asked.method), "{} asks back", asked.method);
            hold!(result["requestState"].is_string(), "no requestState");
            input_requests(&result["inputRequests"], &asked.capabilities)?;
        }
        Some("task") => {
            hold!(asked.method == "tools/call", "{} gives a task", asked.method);
            hold!(declares(&asked.capabilities, &["extensions", TASKS]), "a task for a client without tasks");
            task(result)?;
        }
        other => return Err(format!("resultType is {other:?}")),
    }
    if asked.method == "tasks/get" {
        task(result)?;
    }
    Ok(())
}

/// Questions, each of which the client has declared.
fn input_requests(requests: &Json, capabilities: &Json) -> Law {
    let requests = requests.as_object().ok_or("no inputRequests")?;
    hold!(!requests.is_empty(), "no question is asked");
    requests.values().try_for_each(|request| question(MODERN, request, capabilities))
}

/// A question that the client has declared.
fn question(version: &str, request: &Json, capabilities: &Json) -> Law {
    let params = &request["params"];
    let (needs, since): (&[&str], _) = match request["method"].as_str() {
        Some("elicitation/create") if params["mode"] == "url" => (&["elicitation", "url"], "2025-11-25"),
        Some("elicitation/create") => (&["elicitation"], "2025-06-18"),
        Some("sampling/createMessage") if params.get("tools").is_some() => (&["sampling", "tools"], "2025-11-25"),
        Some("sampling/createMessage") => (&["sampling"], "2024-11-05"),
        Some("roots/list") => (&["roots"], "2024-11-05"),
        other => return Err(format!("a question {other:?}")),
    };
    hold!(version >= since, "{version} has no such question");
    hold!(declares(capabilities, needs), "a question that the client did not declare: {needs:?}");
    let forms_only = request["method"] == "elicitation/create" && params["mode"] != "url";
    let elicitation = &capabilities["elicitation"];
    let has_forms = elicitation.get("form").is_some() || elicitation.get("url").is_none();
    hold!(!forms_only || has_forms, "a form for a client that has URLs only");
    Ok(())
}

fn declares(capabilities: &Json, path: &[&str]) -> bool {
    path.iter().try_fold(capabilities, |value, name| value.get(name)).is_some()
}

/// A task as SEP-2663 describes it.
pub(crate) fn task(task: &Json) -> Law {
    hold!(task["taskId"].is_string(), "no taskId");
    hold!(task["ttlMs"].is_u64() || task["ttlMs"].is_null() && task.get("ttlMs").is_some(), "no ttlMs");
    hold!(task["pollIntervalMs"].is_u64(), "no pollIntervalMs");
    hold!(task["createdAt"].as_str() <= task["lastUpdatedAt"].as_str(), "updated before it was created");
    let (has, lacks) = match task["status"].as_str() {
        Some("working" | "cancelled") => (None, ["result", "error", "inputRequests"].as_slice()),
        Some("input_required") => (Some("inputRequests"), ["result", "error"].as_slice()),
        Some("completed") => (Some("result"), ["error", "inputRequests"].as_slice()),
        Some("failed") => (Some("error"), ["result", "inputRequests"].as_slice()),
        other => return Err(format!("a task is {other:?}")),
    };
    hold!(has.is_none_or(|name| task[name].is_object()), "a task without {has:?}");
    hold!(lacks.iter().all(|name| task.get(name).is_none()), "a task with one of {lacks:?}");
    Ok(())
}

/// What is said on the way to the response of a request.
#[derive(Debug, Default)]
pub(crate) struct Way {
    progress: Option<f64>,
    /// The ids of the questions that were asked.
    pub asked: HashSet<String>,
}

impl Way {
    /// Judges a message on the way; the method if it is a question.
    pub(crate) fn message(&mut self, asked: &Asked, frame: &[u8], judge: Judge) -> Result<Json, String> {
        let said = message(frame)?;
        let why = |why: String| format!("{why}: {said}");
        let params = &said["params"];
        let legacy = asked.era == Era::Legacy;
        let what = match (said["method"].as_str(), said.get("id")) {
            (None, _) => return Err(why("a response on the way".into())),
            (Some(_), Some(id)) => {
                hold!(legacy, "a server request for a modern client: {said}");
                hold!(self.asked.insert(id.to_string()), "an id twice: {said}");
                question(&asked.version, &said, &asked.capabilities).map_err(why)?;
                What::Request
            }
            (Some("notifications/progress"), None) => {
                hold!(asked.token.as_ref() == Some(&params["progressToken"]), "an unknown token: {said}");
                let progress = params["progress"].as_f64().ok_or_else(|| why("no number".into()))?;
                hold!(self.progress.is_none_or(|before| progress > before), "progress does not grow: {said}");
                self.progress = Some(progress);
                What::Notification
            }
            (Some("notifications/message"), None) => {
                let level = LEVELS.iter().position(|level| params["level"] == *level);
                let wanted = asked.level.ok_or_else(|| why("the client did not enable log messages".into()))?;
                hold!(level.is_some_and(|level| level >= wanted), "below the level {wanted}: {said}");
                What::Notification
            }
            (Some("notifications/cancelled"), None) => {
                hold!(legacy, "a modern server cancels no request: {said}");
                hold!(self.asked.contains(&params["requestId"].to_string()), "it was never asked: {said}");
                What::Notification
            }
            (Some("notifications/odd/own"), None) => return Ok(said),
            (Some(_), None) => return Err(why("it belongs to no request".into())),
        };
        if legacy {
            legacy_meta(params).map_err(why)?;
        }
        judge(&Said { version: &asked.version, what, message: &said })?;
        Ok(said)
    }
}
