//! The members of `params` that the engine reads, borrowed from the frame.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::script::LogLevel;
use rehearse_protocol::{
    Id, RpcError,
    message::{INVALID_PARAMS, is_object},
};

/// The parameters of all methods; all are optional here and checked by the method.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Params<'a> {
    #[serde(borrow)]
    pub(super) name: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) uri: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) cursor: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) level: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) arguments: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) protocol_version: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) client_info: Option<&'a RawValue>,
    #[serde(borrow, deserialize_with = "present")]
    pub(super) input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) request_state: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) notifications: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) task_id: Option<&'a RawValue>,
    #[serde(borrow, rename = "ref")]
    pub(super) reference: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) argument: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// A member that is present, even if it is null.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

#[derive(Deserialize, Default)]
pub(super) struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    pub(super) progress_token: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    pub(super) protocol_version: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
    client_info: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
    pub(super) client_capabilities: Option<&'a RawValue>,
    #[serde(borrow, rename = "io.modelcontextprotocol/logLevel")]
    pub(super) log_level: Option<&'a RawValue>,
}

impl<'a> Params<'a> {
    /// # Errors
    /// `params` is not an object, or has a member twice.
    pub(super) fn parse(params: Option<&'a RawValue>) -> Result<Params<'a>, RpcError> {
        let Some(params) = params else { return Ok(Params::default()) };
        serde_json::from_str(params.get()).map_err(|error| invalid(format!("invalid params: {error}")))
    }

    /// The members of `_meta` that the engine reads; empty without `_meta`.
    ///
    /// # Errors
    /// `_meta` is not an object, or has a member twice.
    pub(super) fn meta(&self) -> Result<Meta<'a>, RpcError> {
        let Some(meta) = self.meta else { return Ok(Meta::default()) };
        if !is_object(Some(meta)) {
            return Err(invalid("`_meta` must be an object"));
        }
        serde_json::from_str(meta.get()).map_err(|error| invalid(format!("invalid _meta: {error}")))
    }
}

/// A member that must be a string.
///
/// # Errors
/// It is missing or something else.
pub(super) fn text<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Cow<'a, str>, RpcError> {
    optional_text(name, value)?.ok_or_else(|| invalid(format!("`{name}` is missing")))
}

/// A member that must be a string if it is there.
///
/// # Errors
/// It is something else.
pub(super) fn optional_text<'a>(name: &str, value: Option<&'a RawValue>) -> Result<Option<Cow<'a, str>>, RpcError> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    let Some(value) = value else { return Ok(None) };
    match serde_json::from_str::<Text<'a>>(value.get()) {
        Ok(text) => Ok(Some(text.0)),
        Err(_) => Err(invalid(format!("`{name}` must be a string"))),
    }
}

/// A member that must be a log level if it is there.
///
/// # Errors
/// It is something else.
pub(super) fn log_level(name: &str, value: Option<&RawValue>) -> Result<Option<LogLevel>, RpcError> {
    let level = |name: Cow<'_, str>| LogLevel::parse(&name).ok_or_else(|| invalid(format!("unknown log level {name}")));
    optional_text(name, value)?.map(level).transpose()
}

pub(super) fn invalid(message: impl Into<String>) -> RpcError {
    RpcError::new(INVALID_PARAMS, message)
}

/// Whether `params._meta` has members that only modern requests have.
pub(super) fn is_modern(params: Option<&RawValue>) -> bool {
    // The key itself may be written with escapes; a request without the word `_meta` has none.
    let may_have_meta = |params: &RawValue| params.get().contains("_meta") || params.get().contains("\\u");
    let meta = || Params::parse(params).and_then(|params| params.meta());
    let is_modern = |meta: Meta<'_>| {
        let Meta { protocol_version, client_info, client_capabilities, .. } = meta;
        [protocol_version, client_info, client_capabilities].iter().any(Option::is_some)
    };
    params.is_some_and(may_have_meta) && meta().is_ok_and(is_modern)
}

/// The request that a `notifications/cancelled` refers to.
pub(super) fn cancelled_id(params: Option<&RawValue>) -> Option<Id> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Cancelled {
        request_id: serde_json::Value,
    }
    match serde_json::from_str::<Cancelled>(params?.get()).ok()?.request_id {
        serde_json::Value::String(id) => Some(Id::String(id.into())),
        serde_json::Value::Number(id) => id.as_i128().map(Id::Number),
        _ => None,
    }
}
