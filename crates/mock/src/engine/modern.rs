//! Requests of 2026-07-28: stateless, everything needed is in `_meta` and, over HTTP, mirrored in headers.

use std::{borrow::Cow, sync::Arc};

use http::{HeaderMap, HeaderName};

use super::{
    call::Call,
    catalog::Catalog,
    decision::Decision,
    frames::Incoming,
    instance::Engine,
    params::{Meta, Params, invalid, log_level, text},
    receive::refusal_of,
};
use crate::journal::{Handling, Refusal};
use rehearse_document::mirrored;
use rehearse_protocol::{
    Era, Message, Request, RpcError, Version,
    message::{HEADER_MISMATCH, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, is_object},
    names::{META_CLIENT_CAPABILITIES, META_LOG_LEVEL, META_VERSION, METHOD_HEADER, NAME_HEADER, VERSION_HEADER},
};

/// A refusal and its HTTP status.
struct HttpError(u16, RpcError);

impl From<RpcError> for HttpError {
    fn from(error: RpcError) -> Self {
        let status = if matches!(error.code, MISSING_CAPABILITY | HEADER_MISMATCH) { 400 } else { 200 };
        HttpError(status, error)
    }
}

fn mismatch(message: impl Into<String>) -> HttpError {
    HttpError(400, RpcError::new(HEADER_MISMATCH, message))
}

impl Engine {
    /// Takes a message of the modern era.
    pub fn receive_modern(self: &Arc<Self>, message: Message<'_>, incoming: Incoming<'_>) -> Decision {
        match self.select_faults(None, &message, incoming) {
            None => self.modern_message(message, incoming),
            Some((id, chain, faults)) => {
                self.modern_message(message, Incoming { faults: &faults, ..incoming }).with_faults(id, chain)
            }
        }
    }

    /// Takes a message of the modern era, before any fault.
    pub(super) fn modern_message(self: &Arc<Self>, message: Message<'_>, incoming: Incoming<'_>) -> Decision {
        match message {
            Message::Request(request) => {
                let refused = |HttpError(status, error)| {
                    let refusal = refusal_of(Era::Modern, &request, &error);
                    self.refuse(&request, status, refusal, error, incoming)
                };
                self.modern_request(&request, incoming).unwrap_or_else(refused)
            }
            Message::Notification(notification) => self.receive_notification(&notification, incoming),
            Message::Response(response) => {
                let error = RpcError::new(INVALID_REQUEST, "a client sends no responses in 2026-07-28");
                self.note(incoming, Handling::refused(Refusal::Malformed, error.message.clone()));
                let frame = rehearse_protocol::message::error(response.id.as_ref(), &error);
                match incoming.mirror() {
                    Some(_) => Decision::Respond(super::ResponseFrame::new(400, frame)),
                    None => Decision::Ignore,
                }
            }
        }
    }

    /// Each check relies on the checks before it: headers are present, `_meta` is complete, both agree, the version is
    /// offered, the method exists, the other headers agree with the body.
    fn modern_request(self: &Arc<Self>, request: &Request<'_>, incoming: Incoming<'_>) -> Result<Decision, HttpError> {
        let catalog = &self.catalog();
        let header_version = match incoming.mirror().map(required_headers).transpose() {
            Err(HttpError(status, error)) if request.method == "initialize" => {
                return Err(HttpError(status, catalog.no_handshake(error)));
            }
            version => version?,
        };
        let bad_request = |error| HttpError(400, error);
        let params = Params::parse(request.params).map_err(bad_request)?;
        let meta = params.meta().map_err(bad_request)?;
        let version = required_meta(&meta).map_err(|error| match &*request.method {
            "initialize" => HttpError(400, catalog.no_handshake(error)),
            _ => HttpError(400, error),
        })?;
        if let Some(header) = header_version.filter(|header| *header != version) {
            return Err(mismatch(format!(
                "Header mismatch: MCP-Protocol-Version is {header}, but the body says {version}"
            )));
        }
        let offered = version.parse::<Version>().ok().filter(|version| catalog.script.versions.contains(version));
        let Some(version) = offered.filter(|version| version.era() == Era::Modern) else {
            return Err(bad_request(catalog.unsupported_version(&version)));
        };
        if !catalog.knows(&request.method) {
            let message = format!("Method not found: {}", request.method);
            return Err(HttpError(404, RpcError::new(METHOD_NOT_FOUND, message)));
        }
        if let Some(headers) = incoming.mirror() {
            mirrored_headers(headers, &request.method, &params)?;
        }
        if request.method == "server/discover" {
            return Ok(self.discover(catalog, request, incoming));
        }
        let log_level = log_level(META_LOG_LEVEL, meta.log_level)?;
        let call = Call { catalog, version, session: None, log_level, request, params, meta, incoming };
        match self.method(&call)? {
            Some(decision) => Ok(decision),
            None => Err(HttpError(404, RpcError::new(METHOD_NOT_FOUND, "Method not found"))),
        }
    }

    /// 2026-07-28, Discovery.
    fn discover(&self, catalog: &Catalog, request: &Request<'_>, incoming: Incoming<'_>) -> Decision {
        let versions: Vec<_> = catalog.script.versions.iter().rev().map(|version| format!("\"{version}\"")).collect();
        let instructions = catalog.script.instructions.as_ref();
        let instructions =
            instructions.map(|text| format!(",\"instructions\":{}", serde_json::Value::from(text.as_str())));
        let members = format!(
            "\"supportedVersions\":[{}],\"capabilities\":{}{}",
            versions.join(","),
            catalog.capabilities(Era::Modern),
            instructions.unwrap_or_default(),
        );
        self.answer(catalog, request, Era::Modern, &members, incoming)
    }
}

impl Catalog {
    /// The refusal of the handshake names the supported versions for a legacy client (Versioning: Backward
    /// Compatibility).
    fn no_handshake(&self, mut error: RpcError) -> RpcError {
        let offered: Vec<_> = self.script.versions.iter().map(|version| version.as_str()).collect();
        error.message = format!("{}; this server has no handshake and supports {}", error.message, offered.join(", "));
        error
    }

    fn knows(&self, method: &str) -> bool {
        method == "server/discover" || self.has_method(Era::Modern, method) || self.method_item(method).is_some()
    }
}

/// The version header; it and `Mcp-Method` are required (Streamable HTTP: Request Metadata).
fn required_headers(headers: &HeaderMap) -> Result<&str, HttpError> {
    let version =
        header(headers, VERSION_HEADER)?.ok_or_else(|| mismatch("the header MCP-Protocol-Version is missing"))?;
    header(headers, METHOD_HEADER)?.ok_or_else(|| mismatch("the header Mcp-Method is missing"))?;
    Ok(version)
}

fn header<'h>(headers: &'h HeaderMap, name: &'static str) -> Result<Option<&'h str>, HttpError> {
    mirrored::single_header(headers, &HeaderName::from_static(name), name).map_err(|why| mismatch(why.to_string()))
}

/// The protocol version of the request; it and the client's capabilities are required (Basic: `_meta`).
fn required_meta<'a>(meta: &Meta<'a>) -> Result<Cow<'a, str>, RpcError> {
    if !is_object(meta.client_capabilities) && meta.protocol_version.is_some() {
        return Err(invalid(format!("`{META_CLIENT_CAPABILITIES}` is missing in `_meta`")));
    }
    text(META_VERSION, meta.protocol_version)
}

/// `Mcp-Method` and `Mcp-Name` must match the body (Streamable HTTP: Server Validation).
fn mirrored_headers(headers: &HeaderMap, method: &str, params: &Params<'_>) -> Result<(), HttpError> {
    let mirrored = header(headers, METHOD_HEADER)?.unwrap_or_default();
    if mirrored != method {
        return Err(mismatch(format!("Header mismatch: Mcp-Method is {mirrored}, but the body says {method}")));
    }
    let (member, source) = match method {
        "tools/call" | "prompts/get" => ("name", params.name),
        "resources/read" => ("uri", params.uri),
        "tasks/get" | "tasks/update" | "tasks/cancel" => ("taskId", params.task_id),
        _ => return Ok(()),
    };
    let expected = text(member, source)?;
    let Some(mirrored) = header(headers, NAME_HEADER)? else {
        return Err(mismatch("the header Mcp-Name is missing"));
    };
    let decoded = mirrored::decode(mirrored)
        .ok_or_else(|| mismatch(format!("the header Mcp-Name is not valid Base64: {mirrored}")))?;
    if decoded != expected {
        return Err(mismatch(format!("Header mismatch: Mcp-Name is {decoded}, but the body says {expected}")));
    }
    Ok(())
}
