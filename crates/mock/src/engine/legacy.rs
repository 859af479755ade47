//! Requests of the legacy versions: a handshake, then methods of a session (2025-11-25, Lifecycle).

use std::sync::Arc;

use super::{
    call::Call,
    catalog::Catalog,
    decision::Decision,
    frames::Incoming,
    instance::Engine,
    legacy_session::LegacySession,
    params::{Params, invalid, text},
    receive::refusal_of,
};
use crate::journal::{Answer, AnswerKind, Handling, Refusal};
use rehearse_protocol::{
    Era, Message, Request, RpcError, Transport, Version,
    message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, is_object},
};

impl Engine {
    /// Takes a message of a legacy connection or session.
    pub fn receive_legacy(
        self: &Arc<Self>,
        session: &Arc<LegacySession>,
        message: Message<'_>,
        incoming: Incoming<'_>,
    ) -> Decision {
        match self.select_faults(Some(session), &message, incoming) {
            None => self.legacy_message(session, message, incoming),
            Some((id, chain, faults)) => {
                self.legacy_message(session, message, Incoming { faults: &faults, ..incoming }).with_faults(id, chain)
            }
        }
    }

    /// Refuses a request of the modern era that belongs to no session, with the faults that the script has for that era;
    /// `None` if it has none for it.
    pub fn refuse_probe(&self, message: &Message<'_>, why: &str, incoming: Incoming<'_>) -> Option<Decision> {
        let (id, chain, faults) = self.select_faults(None, message, incoming)?;
        let Message::Request(request) = message else { return None };
        let (error, incoming) = (RpcError::new(INVALID_REQUEST, why), Incoming { faults: &faults, ..incoming });
        Some(self.refuse(request, 400, Refusal::Negotiation, error, incoming).with_faults(id, chain))
    }

    /// Takes a message of a legacy connection or session, before any fault.
    pub(super) fn legacy_message(
        self: &Arc<Self>,
        session: &Arc<LegacySession>,
        message: Message<'_>,
        incoming: Incoming<'_>,
    ) -> Decision {
        match message {
            Message::Request(request) => {
                let refused = |error: RpcError| {
                    let refusal = match refusal_of(Era::Legacy, &request, &error) {
                        Refusal::Malformed if error.code == INVALID_REQUEST => Refusal::Session,
                        refusal => refusal,
                    };
                    self.refuse(&request, 200, refusal, error, incoming)
                };
                self.legacy_request(session, &request, incoming).unwrap_or_else(refused)
            }
            Message::Notification(notification) => {
                // From here on it receives notifications: none of them overtakes the response to its handshake.
                if notification.method == "notifications/initialized" && session.mark_initialized() {
                    self.subscribers.add_session(session);
                }
                self.receive_notification(&notification, incoming)
            }
            Message::Response(response) if session.accept_response(&response) => {
                self.note(incoming, Handling::Protocol);
                Decision::Ignore
            }
            Message::Response(_) => {
                let why = "a response to a request that the server did not send, or a second one";
                // A fault may have sent the request twice.
                let refusal = if self.has_faults() { Refusal::Expired } else { Refusal::Malformed };
                self.note(incoming, Handling::refused(refusal, why));
                Decision::Ignore
            }
        }
    }

    fn legacy_request(
        self: &Arc<Self>,
        session: &Arc<LegacySession>,
        request: &Request<'_>,
        incoming: Incoming<'_>,
    ) -> Result<Decision, RpcError> {
        let params = Params::parse(request.params)?;
        let catalog = &self.catalog();
        match &*request.method {
            "initialize" => return self.initialize(catalog, session, request, &params, incoming),
            "ping" => return Ok(self.answer(catalog, request, Era::Legacy, "", incoming)),
            _ => {}
        }
        let Some(version) = session.version() else {
            let message = format!("{} before initialize: open the session with `initialize` first", request.method);
            return Err(RpcError::new(INVALID_REQUEST, message));
        };
        let meta = params.meta()?;
        let (log_level, session) = (Some(session.log_level()), Some(session));
        let call = Call { catalog, version, session, log_level, request, params, meta, incoming };
        match self.method(&call)? {
            Some(decision) => Ok(decision),
            None => Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", request.method))),
        }
    }

    /// 2025-11-25, Lifecycle: Initialization and Version Negotiation.
    fn initialize(
        &self,
        catalog: &Catalog,
        session: &Arc<LegacySession>,
        request: &Request<'_>,
        params: &Params<'_>,
        incoming: Incoming<'_>,
    ) -> Result<Decision, RpcError> {
        let requested = text("protocolVersion", params.protocol_version)?;
        if !is_object(params.capabilities) || !is_object(params.client_info) {
            return Err(invalid("`capabilities` and `clientInfo` must be objects"));
        }
        let mut offered = catalog.script.versions.iter().copied().filter(|version| version.era() == Era::Legacy);
        // Clients request 2024-11-05 over streamable HTTP too, although that version does not define it.
        let same = requested.parse::<Version>().ok().filter(|version| offered.clone().any(|it| it == *version));
        let latest = || offered.rfind(|version| incoming.transport.carries(*version));
        let Some(version) = same.or_else(latest) else {
            // A legacy client knows no code for this (2025-11-25, Lifecycle: Error Handling).
            let error = RpcError { code: INVALID_PARAMS, ..catalog.unsupported_version(&requested) };
            return Ok(self.refuse(request, 200, Refusal::Negotiation, error, incoming));
        };
        let capabilities = params.capabilities.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
        // Over streamable HTTP a new session has a new id. Elsewhere a gateway may connect several clients, one after the
        // other, to one server.
        if incoming.transport == Transport::Http && session.version().is_some() {
            return Err(RpcError::new(INVALID_REQUEST, "the session is already initialized"));
        }
        session.initialize(version, capabilities);
        let instructions = catalog.script.instructions.as_ref();
        let instructions =
            instructions.map(|text| format!(",\"instructions\":{}", serde_json::Value::from(text.as_str())));
        let answered = (version.as_str() != requested)
            .then(|| format!("protocol version {requested} is not offered; the answer is {version}"));
        let members = format!(
            "\"protocolVersion\":\"{version}\",\"capabilities\":{},\"serverInfo\":{}{}",
            catalog.capabilities(Era::Legacy),
            catalog.script.server_info,
            instructions.unwrap_or_default(),
        );
        let answer = Some(Answer::of(AnswerKind::Result));
        self.journal.add(incoming.received(), Handling::Protocol, answered, answer);
        Ok(catalog.respond(request, Era::Legacy, &members))
    }
}

impl Catalog {
    /// The error that lists every version that the server speaks (2026-07-28, Versioning: Protocol Version Negotiation).
    pub(super) fn unsupported_version(&self, requested: &str) -> RpcError {
        let offered: Vec<_> = self.script.versions.iter().rev().map(|version| version.as_str()).collect();
        let place = if offered.contains(&requested) { " in `_meta`" } else { "" };
        let message = format!("Unsupported protocol version{place}: {requested}. Supported: {}", offered.join(", "));
        let data = serde_json::json!({ "supported": offered, "requested": requested });
        RpcError::new(UNSUPPORTED_VERSION, message).with_data(data)
    }
}
