//! The client's response to an input request.

use serde_json::Value as Json;

use crate::script::InputRequest;
use rehearse_document::json_schema::Mismatch;
use rehearse_protocol::RpcError;

/// The client's response to an input request.
pub(super) type InputResponse = Result<Json, RpcError>;

/// Why a client's result does not fit the request.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidResponse {
    #[error("a response must be an object")]
    NotAnObject,
    #[error("content{}: {}", .0.pointer, .0.message)]
    Content(Mismatch),
    #[error("`action` must be accept, decline or cancel")]
    Action,
    #[error("a message needs `role`, `content` and `model`")]
    Message,
    #[error("`roots` must be an array of objects with a `uri`")]
    Roots,
}

/// Checks a client's result against the request.
pub(super) fn check(question: &InputRequest, answer: &Json) -> Result<(), InvalidResponse> {
    let Json::Object(members) = answer else { return Err(InvalidResponse::NotAnObject) };
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    match question.method {
        "elicitation/create" => match text("action") {
            Some("decline" | "cancel") => Ok(()),
            Some("accept") => match &question.form {
                None => Ok(()),
                Some(form) => {
                    let content = members.get("content").unwrap_or(&Json::Null);
                    let violation = form.violations(content).into_iter().next();
                    violation.map_or(Ok(()), |violation| Err(InvalidResponse::Content(violation)))
                }
            },
            _ => Err(InvalidResponse::Action),
        },
        "sampling/createMessage" => {
            let has_content = matches!(members.get("content"), Some(Json::Object(_) | Json::Array(_)));
            match text("role").is_some() && text("model").is_some() && has_content {
                true => Ok(()),
                false => Err(InvalidResponse::Message),
            }
        }
        _ => {
            let has_uri = |root: &Json| root.get("uri").is_some_and(Json::is_string);
            match members.get("roots").and_then(Json::as_array) {
                Some(roots) if roots.iter().all(has_uri) => Ok(()),
                _ => Err(InvalidResponse::Roots),
            }
        }
    }
}
