//! Receives frames: detects their era, and handles the parts that all eras share.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use super::{
    catalog::Catalog,
    decision::Decision,
    envelope::{Envelope, is_cacheable},
    frames::{Incoming, ResponseFrame},
    instance::Engine,
    legacy_session::LegacySession,
    params,
};
use crate::journal::{AnswerKind, Handling, Refusal};
use rehearse_protocol::{
    Era, Message, Notification, ParseError, Request, RpcError, Version,
    message::{
        self, HEADER_MISMATCH, INTERNAL_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY,
        UNSUPPORTED_VERSION,
    },
    names::{SESSION_HEADER, VERSION_HEADER},
};

impl Engine {
    /// The era of a message (2026-07-28, Versioning: Backward Compatibility): modern if it carries a protocol version
    /// of its own or a header that no legacy version has, or if only that is offered.
    pub fn era_of(&self, message: &Message<'_>, headers: Option<&HeaderMap>) -> Era {
        if !self.offers(Era::Legacy) {
            return Era::Modern;
        }
        if !self.offers(Era::Modern) {
            return Era::Legacy;
        }
        let params = match message {
            Message::Request(Request { params, .. }) | Message::Notification(Notification { params, .. }) => *params,
            Message::Response(_) => None,
        };
        let in_session = headers.is_some_and(|headers| headers.contains_key(SESSION_HEADER));
        let header = headers.and_then(|headers| headers.get(VERSION_HEADER));
        let modern_header = header.is_some_and(|header| {
            let version = header.to_str().ok().and_then(|text| text.parse::<Version>().ok());
            version.map_or(!in_session, |version| version.era() == Era::Modern)
        });
        let is_handshake = message.method() == Some("initialize");
        let is_discover = headers.is_none() && message.method() == Some("server/discover");
        if (modern_header && !is_handshake) || is_discover || params::is_modern(params) {
            Era::Modern
        } else {
            Era::Legacy
        }
    }

    /// Takes a frame from a connection whose session has state: every transport but streamable HTTP.
    pub fn receive(self: &Arc<Self>, session: &Arc<LegacySession>, incoming: Incoming<'_>) -> Decision {
        match Message::parse(incoming.bytes) {
            Ok(message) => match self.era_of(&message, incoming.mirror()) {
                Era::Modern if incoming.transport.carries(Version::LATEST) => self.receive_modern(message, incoming),
                _ => self.receive_legacy(session, message, incoming),
            },
            Err(error) => self.receive_broken(session, error, incoming),
        }
    }

    /// Takes a frame that is not a single message: a batch where the version has batches, else an error.
    pub fn receive_broken(
        self: &Arc<Self>,
        session: &Arc<LegacySession>,
        error: ParseError,
        incoming: Incoming<'_>,
    ) -> Decision {
        if error == ParseError::Batch && session.version() == Some(Version::V2025_03_26) {
            let parts = match message::split_batch(incoming.bytes) {
                Ok(parts) => parts,
                Err(error) => return self.refuse_frame(&error, incoming),
            };
            let receive = |bytes: &Bytes| match Message::parse(bytes) {
                // 2025-03-26, Lifecycle: Initialization.
                Ok(Message::Request(request)) if request.method == "initialize" => {
                    let error = RpcError::new(INVALID_REQUEST, "`initialize` must not be part of a batch");
                    self.refuse(&request, 200, Refusal::Malformed, error, Incoming { bytes, ..incoming })
                }
                Ok(message) => self.receive_legacy(session, message, Incoming { bytes, ..incoming }),
                Err(error) => self.refuse_frame(&error, Incoming { bytes, ..incoming }),
            };
            return Decision::Batch(parts.iter().map(receive).collect());
        }
        self.refuse_frame(&error, incoming)
    }

    fn refuse_frame(&self, error: &ParseError, incoming: Incoming<'_>) -> Decision {
        let handling = Handling::refused(Refusal::Malformed, error.to_string());
        self.note_answer(incoming, handling, AnswerKind::Error);
        let error_object = RpcError::new(error.code(), error.to_string());
        Decision::Respond(ResponseFrame::new(400, message::error(error.request_id(), &error_object)))
    }

    /// Takes a notification, whose handling is the same in both eras.
    pub(super) fn receive_notification(&self, notification: &Notification<'_>, incoming: Incoming<'_>) -> Decision {
        self.note(incoming, Handling::Protocol);
        match (&*notification.method, params::cancelled_id(notification.params)) {
            ("notifications/cancelled", Some(id)) => Decision::Cancel(id),
            _ => Decision::Ignore,
        }
    }

    /// Journals the refusal of a request and answers it with an error.
    pub(super) fn refuse(
        &self,
        request: &Request<'_>,
        status: u16,
        refusal: Refusal,
        error: RpcError,
        incoming: Incoming<'_>,
    ) -> Decision {
        let why = error.message.clone();
        let handling = match (error.code, refusal) {
            (METHOD_NOT_FOUND, Refusal::Malformed) => Handling::Unmatched { closest: None, why },
            _ => Handling::Refused { refusal, why },
        };
        self.note_answer(incoming, handling, AnswerKind::Error);
        Decision::Respond(ResponseFrame::new(status, message::error(Some(&request.id), &error)))
    }

    /// Journals a request that the protocol itself answers, with the members of its result.
    pub(super) fn answer(
        &self,
        catalog: &Catalog,
        request: &Request<'_>,
        era: Era,
        members: &str,
        incoming: Incoming<'_>,
    ) -> Decision {
        self.note_answer(incoming, Handling::Protocol, AnswerKind::Result);
        catalog.respond(request, era, members)
    }
}

impl Catalog {
    /// The response of the protocol itself, with the members of its result.
    pub(super) fn respond(&self, request: &Request<'_>, era: Era, members: &str) -> Decision {
        let cache = is_cacheable(&request.method).then(|| self.cache_scope(false));
        let result = self.result(era, members, Envelope { cache, ..Envelope::default() });
        Decision::Respond(ResponseFrame::ok(message::result(&request.id, &result)))
    }
}

/// Why an error refuses a request of an era.
pub(super) fn refusal_of(era: Era, request: &Request<'_>, error: &RpcError) -> Refusal {
    // A client that detects the era of a server may send a request of the other era.
    let is_probe = match era {
        Era::Legacy => request.method == "server/discover" || params::is_modern(request.params),
        Era::Modern => request.method == "initialize",
    };
    match error.code {
        _ if is_probe => Refusal::Negotiation,
        UNSUPPORTED_VERSION => Refusal::Negotiation,
        MISSING_CAPABILITY => Refusal::Optional,
        INTERNAL_ERROR => Refusal::Limit,
        HEADER_MISMATCH => Refusal::Header,
        _ => Refusal::Malformed,
    }
}
