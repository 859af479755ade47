//! Requests of the legacy versions: a handshake, then methods of a session (2025-11-25, Lifecycle).

use std::sync::Arc;

use super::{
    Engine, Incoming, Intake, Peer,
    call::Call,
    catalog::Catalog,
    params::{Params, invalid, text},
};
use crate::{
    mock::journal::Handling,
    wire::{
        Era, Message, Request, RpcError, Version,
        message::{INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, is_object},
    },
};

impl Engine {
    /// Takes a message of a legacy connection or session, before any fault.
    pub(super) fn legacy_message(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        message: Message<'_>,
        incoming: Incoming<'_>,
    ) -> Intake {
        match message {
            Message::Request(request) => {
                let refused = |error| self.refuse(&request.id, 200, error, incoming);
                self.legacy_request(peer, &request, incoming).unwrap_or_else(refused)
            }
            Message::Notification(notification) => {
                // From here on it hears of changes: nothing overtakes the answer to its handshake.
                if notification.method == "notifications/initialized" && peer.greet() {
                    self.audience.welcome(peer);
                }
                self.receive_notification(&notification, incoming)
            }
            Message::Response(response) if peer.answered(&response) => {
                self.note(incoming, Handling::Protocol);
                Intake::Silent
            }
            Message::Response(_) => {
                self.note(incoming, Handling::Refused("an answer to a request that was not sent".into()));
                Intake::Silent
            }
        }
    }

    fn legacy_request(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        request: &Request<'_>,
        incoming: Incoming<'_>,
    ) -> Result<Intake, RpcError> {
        let params = Params::parse(request.params)?;
        let catalog = &self.catalog();
        match &*request.method {
            "initialize" => return self.initialize(catalog, peer, request, &params, incoming),
            "ping" => return Ok(self.answer(catalog, request, Era::Legacy, "", incoming)),
            _ => {}
        }
        let Some(version) = peer.version() else {
            let message = format!("{} before initialize: open the session with `initialize` first", request.method);
            return Err(RpcError::new(INVALID_REQUEST, message));
        };
        let meta = params.meta()?;
        let (log_level, peer) = (Some(peer.log_level()), Some(peer));
        let call = Call { catalog, version, peer, log_level, request, params, meta, incoming };
        match self.method(&call)? {
            Some(intake) => Ok(intake),
            None => Err(RpcError::new(METHOD_NOT_FOUND, format!("Method not found: {}", request.method))),
        }
    }

    /// 2025-11-25, Lifecycle: Initialization and Version Negotiation.
    fn initialize(
        &self,
        catalog: &Catalog,
        peer: &Arc<Peer>,
        request: &Request<'_>,
        params: &Params<'_>,
        incoming: Incoming<'_>,
    ) -> Result<Intake, RpcError> {
        let requested = text("protocolVersion", params.protocol_version)?;
        if !is_object(params.capabilities) || !is_object(params.client_info) {
            return Err(invalid("`capabilities` and `clientInfo` must be objects"));
        }
        let offered = catalog.script.versions.iter().copied();
        let offered = offered.filter(|version| version.era() == Era::Legacy && incoming.transport.carries(*version));
        let same = requested.parse::<Version>().ok().filter(|version| offered.clone().any(|it| it == *version));
        let Some(version) = same.or_else(|| offered.max()) else {
            // A legacy client knows no code for this (2025-11-25, Lifecycle: Error Handling).
            return Err(RpcError { code: INVALID_PARAMS, ..catalog.unsupported_version(&requested) });
        };
        let capabilities = params.capabilities.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
        if !peer.initialize(version, capabilities) {
            return Err(RpcError::new(INVALID_REQUEST, "the session is already initialized"));
        }
        let instructions = catalog.script.instructions.as_ref();
        let instructions =
            instructions.map(|text| format!(",\"instructions\":{}", serde_json::Value::from(text.as_str())));
        let members = format!(
            "\"protocolVersion\":\"{version}\",\"capabilities\":{},\"serverInfo\":{}{}",
            catalog.capabilities(Era::Legacy),
            catalog.script.server_info,
            instructions.unwrap_or_default(),
        );
        Ok(self.answer(catalog, request, Era::Legacy, &members, incoming))
    }
}

impl Catalog {
    /// The error that names what is offered (2026-07-28, Versioning: Protocol Version Negotiation).
    pub(super) fn unsupported_version(&self, requested: &str) -> RpcError {
        let offered = self.script.versions.iter().rev().map(|version| version.as_str());
        // A legacy version in `_meta` is offered, but not in this way; to name it would invite the same request again.
        let offered: Vec<_> = offered.filter(|version| *version != requested).collect();
        let message = format!("Unsupported protocol version: {requested}. Supported: {}", offered.join(", "));
        let data = serde_json::json!({ "supported": offered, "requested": requested });
        RpcError::new(UNSUPPORTED_VERSION, message).with_data(data)
    }
}
