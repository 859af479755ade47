//! The messages of the APIs of providers, in both directions: an [`HttpModel`](crate::model::HttpModel) sends
//! what an endpoint receives.

pub(crate) mod anthropic;
pub(crate) mod openai_chat;
pub(crate) mod openai_responses;

use serde_json::{Value as Json, json};

use crate::message::{Media, StopReason, Usage};

/// A block that an API does not have, such as `video/mp4 in a tool result`.
#[derive(Debug)]
pub(crate) struct Unsupported(pub(crate) String);

/// A part of a message without a member that parts of its kind have.
#[derive(Debug, thiserror::Error)]
#[error("{part} without {member}")]
pub(crate) struct IncompletePart {
    part: String,
    member: String,
}

impl IncompletePart {
    pub(crate) fn new(part: impl Into<String>, member: impl Into<String>) -> IncompletePart {
        IncompletePart { part: part.into(), member: member.into() }
    }
}

/// The types and codes of errors, and the HTTP status of each. The first of a status is that of Anthropic.
const ERRORS: &[(&str, u16)] = &[
    ("invalid_request_error", 400),
    ("authentication_error", 401),
    ("billing_error", 402),
    ("permission_error", 403),
    ("not_found_error", 404),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("rate_limit_exceeded", 429),
    ("insufficient_quota", 429),
    ("api_error", 500),
    ("server_error", 500),
    ("timeout_error", 504),
    ("overloaded_error", 529),
    ("invalid_prompt", 400),
];

/// Why an answer ends. `names` are those of the API for the end of the turn, for tool calls, and for the limit of tokens.
pub(crate) fn read_stop(names: [&str; 3], name: &str) -> StopReason {
    match names.iter().position(|known| *known == name) {
        Some(0) => StopReason::EndTurn,
        Some(1) => StopReason::ToolUse,
        Some(_) => StopReason::MaxTokens,
        None => StopReason::Other(name.to_owned()),
    }
}

/// The opposite of [`read_stop`].
pub(crate) fn write_stop<'a>(names: [&'a str; 3], stop: &'a StopReason) -> &'a str {
    let [end, calls, limit] = names;
    match stop {
        StopReason::EndTurn => end,
        StopReason::ToolUse => calls,
        StopReason::MaxTokens => limit,
        StopReason::Other(other) => other,
    }
}

/// Usage in the form of OpenAI: `input` and `output` name the counts.
pub(crate) fn read_usage(usage: &Json, input: &str, output: &str) -> Usage {
    let tokens = |value: &Json| value.as_u64().unwrap_or_default();
    Usage {
        input_tokens: tokens(&usage[input]),
        output_tokens: tokens(&usage[output]),
        cache_read_tokens: tokens(&usage[format!("{input}_details")]["cached_tokens"]),
        cache_write_tokens: 0,
    }
}

/// The opposite of [`read_usage`].
pub(crate) fn write_usage(usage: Usage, input: &str, output: &str) -> Json {
    let details = format!("{input}_details");
    json!({
        input: usage.input_tokens,
        details: { "cached_tokens": usage.cache_read_tokens },
        output: usage.output_tokens,
        "total_tokens": usage.total(),
    })
}

/// The HTTP status of an error in an answer that began with status 200.
pub(crate) fn error_status(error: &Json) -> u16 {
    let number =
        || error["code"].as_u64().and_then(|code| u16::try_from(code).ok()).filter(|it| (400..600).contains(it));
    let named = |key: &str| {
        let name = error[key].as_str()?;
        ERRORS.iter().find_map(|(known, status)| (*known == name).then_some(*status))
    };
    number().or_else(|| named("code")).or_else(|| named("type")).unwrap_or(500)
}

/// The type of an error with this HTTP status.
pub(crate) fn error_type(status: u16) -> &'static str {
    let usual = if status < 500 { "invalid_request_error" } else { "api_error" };
    ERRORS.iter().find_map(|(name, it)| (*it == status).then_some(*name)).unwrap_or(usual)
}

/// The message in the body of an error, in any of the forms that servers use.
pub(crate) fn error_message(body: &Json) -> Option<&str> {
    [&body["error"]["message"], &body["message"], &body["error"], &body["detail"]].into_iter().find_map(Json::as_str)
}

/// The provider's own form of a thought, which is kept in its signature.
pub(crate) fn sealed(signature: &str, kind: &str) -> Option<Json> {
    let block: Json = serde_json::from_str(signature).ok()?;
    (block["type"] == kind).then_some(block)
}

/// The arguments of a call as an object, which some APIs require.
pub(crate) fn arguments_object(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(value @ Json::Object(_)) => value,
        _ if text.trim().is_empty() => json!({}),
        _ => json!({ "INVALID_JSON": text }),
    }
}

/// An array that may be missing.
pub(crate) fn items(value: &Json) -> &[Json] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The media as a URL.
pub(crate) fn data_url(media: &Media) -> String {
    format!("data:{};base64,{}", media.mime_type, media.data)
}

/// The media that a URL names. Only that of a `data:` URL has its bytes.
pub(crate) fn media(url: &str, usual_type: &str) -> Media {
    match url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((mime_type, data)) => Media { mime_type: mime_type.to_owned(), data: data.to_owned(), name: None },
        None => Media { mime_type: usual_type.to_owned(), data: String::new(), name: Some(url.to_owned()) },
    }
}
