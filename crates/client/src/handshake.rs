//! The handshake: performed by rmcp, while the recorder is checked for answers that rmcp drops.

use std::time::Duration;

use rmcp::{
    RoleClient,
    model::{
        ClientCapabilities, ClientConfig, DiscoverResult, Implementation, InitializeResult, ProtocolVersion,
        ServerJsonRpcMessage,
    },
    service::{
        ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle,
    },
    transport::WorkerTransport,
};
use tokio::time::timeout;

use super::{
    ClientInfo, ConnectError, PeerInfo, ServerParams, handler::Handler, order::OrderedTransport, probe::ProbeTransport,
    probe::probe_timeout,
};
use crate::{
    recorder::TraceRecorder,
    transport::{Link, http::HttpClient},
};
use rehearse_protocol::Protocol;
use rehearse_protocol::{Direction, Era, Frame, Id, Message, Transport, Version};

pub(super) type Running = RunningService<RoleClient, Handler>;

/// Performs the handshake of the protocol.
///
/// # Errors
/// Any [`ConnectError`] that has to do with the server's answers.
pub(super) async fn perform(
    recorder: &TraceRecorder,
    link: Link,
    protocol: Protocol,
    config: &ServerParams,
    target: &str,
) -> Result<(Running, PeerInfo), ConnectError> {
    let answers = &config.answers;
    let (identity, lifecycle) = lifecycle(config, protocol);
    let service = Handler::new(identity, answers.clone(), recorder.connection());
    let may_fall_back = matches!(lifecycle, ClientLifecycleMode::Auto { .. });
    let patience = may_fall_back.then(|| probe_timeout(config.timeouts.connect));
    let http = match &link {
        Link::Http(link) => Some(link.client.clone()),
        Link::Duplex(_) => None,
    };
    let serving = async {
        match link {
            Link::Duplex(link) => {
                let transport = ProbeTransport::new(OrderedTransport::new(*link), patience);
                Box::pin(serve_client_with_lifecycle(service, transport, lifecycle)).await
            }
            Link::Http(link) => {
                if let Some(patience) = patience {
                    link.client.limit_probe(patience);
                }
                // The HTTP client ends the wait, because rmcp's worker sends nothing else until the probe is over.
                let transport = ProbeTransport::new(OrderedTransport::new(WorkerTransport::spawn(link.worker)), None);
                Box::pin(serve_client_with_lifecycle(service, transport, lifecycle)).await
            }
        }
    };
    let overlooked = |frame: &Frame| overlooked_answer(frame).is_some_and(|id| !(may_fall_back && id == PROBE));
    let running = tokio::select! {
        biased;
        served = serving => served.map_err(|error| refused(error, protocol, target, http.as_ref(), recorder))?,
        Some((_, frame)) = recorder.wait_for(0, overlooked) => {
            return Err(ConnectError::Malformed(parse_error(&frame)));
        }
    };
    running.set_response_cache_config(ClientCacheConfig::disabled()).await;
    if let Some(http) = &http {
        let _ = timeout(LISTENING, http.listening()).await;
    }
    let selected = running.peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    let info = PeerInfo::read(recorder.take_handshake(), &selected).map_err(ConnectError::Malformed)?;
    Ok((running, info))
}

/// How long to wait for the stream on which a legacy server sends messages of its own. What it sends before may be lost,
/// but some servers answer the GET only when they have something to say.
const LISTENING: Duration = Duration::from_millis(500);

/// rmcp's first request. Any answer of a legacy server to it leads to the fallback.
const PROBE: Id = Id::Number(0);

fn lifecycle(params: &ServerParams, protocol: Protocol) -> (ClientConfig, ClientLifecycleMode) {
    let ClientInfo { name, title, version } = &params.client_info;
    let mut identity = Implementation::new(name, version);
    identity.title.clone_from(title);
    let capabilities = serde_json::from_value::<ClientCapabilities>(params.answers.capabilities().into());
    let config = ClientConfig::new(capabilities.unwrap_or_default(), identity);
    let (version, mode) = match protocol {
        Protocol::Exact(version) if version.era() == Era::Modern => {
            (version, ClientLifecycleMode::Discover { preferred_versions: vec![rmcp_version(version)] })
        }
        Protocol::Exact(version) => (version, ClientLifecycleMode::Initialize),
        Protocol::Auto if params.target.transport() == Transport::Sse => {
            (Version::LATEST_LEGACY, ClientLifecycleMode::Initialize)
        }
        Protocol::Auto => {
            let preferred_versions = vec![rmcp_version(Version::LATEST)];
            let legacy_version = Some(rmcp_version(Version::LATEST_LEGACY));
            (Version::LATEST, ClientLifecycleMode::Auto { preferred_versions, legacy_version })
        }
    };
    (config.with_protocol_version(rmcp_version(version)), mode)
}

fn rmcp_version(version: Version) -> ProtocolVersion {
    match version {
        Version::V2024_11_05 => ProtocolVersion::V_2024_11_05,
        Version::V2025_03_26 => ProtocolVersion::V_2025_03_26,
        Version::V2025_06_18 => ProtocolVersion::V_2025_06_18,
        Version::V2025_11_25 => ProtocolVersion::V_2025_11_25,
        Version::V2026_07_28 => ProtocolVersion::V_2026_07_28,
    }
}

/// The id of an answer that rmcp cannot parse and would drop.
fn overlooked_answer(frame: &Frame) -> Option<Id> {
    let id = match frame.message() {
        Ok(Message::Response(response)) => response.id,
        Err(error) => error.id().cloned(),
        Ok(_) => None,
    };
    let refused = || serde_json::from_slice::<ServerJsonRpcMessage>(&frame.bytes).is_err();
    id.filter(|_| frame.direction == Direction::ServerToClient && refused())
}

fn parse_error(frame: &Frame) -> String {
    match (frame.message(), serde_json::from_slice::<ServerJsonRpcMessage>(&frame.bytes)) {
        (Err(error), _) => error.to_string(),
        (Ok(_), Err(error)) => error.to_string(),
        (Ok(_), Ok(_)) => "an answer of another kind".to_owned(),
    }
}

fn refused(
    error: ClientInitializeError,
    protocol: Protocol,
    target: &str,
    http: Option<&HttpClient>,
    recorder: &TraceRecorder,
) -> ConnectError {
    if let (ClientInitializeError::JsonRpcError(_), Some((status, body))) =
        (&error, http.and_then(HttpClient::rejected))
    {
        return ConnectError::Http {
            target: target.to_owned(),
            status,
            body,
            is_streamable: true,
            is_newest_only: protocol.is_newest_only(),
        };
    }
    let last = match &error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => fallback,
        error => error,
    };
    if matches!(last, ClientInitializeError::ExpectedInitResult(_)) {
        return ConnectError::Malformed(unreadable_result(recorder));
    }
    let overlooked = recorder.since(0).into_iter().rev().find(|frame| overlooked_answer(frame).is_some());
    match (ConnectError::from_rmcp(error, protocol, target), overlooked, recorder.closed()) {
        (ConnectError::Closed { .. }, Some(frame), _) => ConnectError::Malformed(parse_error(&frame)),
        (ConnectError::Closed { stderr, .. }, None, Some(why)) => {
            ConnectError::Closed { detail: why.to_string(), stderr }
        }
        (ConnectError::Http { target, status, body, is_newest_only, .. }, _, _) => {
            ConnectError::Http { target, status, body, is_streamable: http.is_some(), is_newest_only }
        }
        (error, _, _) => error,
    }
}

/// The parse error of the result, which rmcp does not report because it tries the results of all methods.
fn unreadable_result(recorder: &TraceRecorder) -> String {
    let Some((method, result)) = recorder.take_handshake().result else { return "no result".to_owned() };
    let error = match method.as_str() {
        "initialize" => serde_json::from_str::<InitializeResult>(result.get()).err(),
        _ => serde_json::from_str::<DiscoverResult>(result.get()).err(),
    };
    let error = error.map_or_else(|| "it is the result of another method".to_owned(), |error| error.to_string());
    format!("the result of `{method}`: {error}")
}
