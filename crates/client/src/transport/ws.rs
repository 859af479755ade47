//! WebSocket: one frame a text message, subprotocol `mcp`.

use futures_util::StreamExt;
use reqwest::Url;
use tokio_tungstenite::{
    Connector, connect_async_tls_with_config,
    tungstenite::{self, client::IntoClientRequest, protocol::WebSocketConfig},
};

use super::{
    Link, OpenError,
    duplex::{Incoming, OrderedWriter, Outgoing, Writer},
    web,
    ws_stream::{Socket, Stream},
};
use crate::{
    oauth::{AuthError, AuthMiddleware, RefusedRequest},
    recorder::ClientRecorder,
    url::parse_url,
};
use rehearse_net::tls;
use rehearse_protocol::{EventKind, MAX_FRAME};

type Handshake = http::Request<()>;

/// Connects and upgrades.
///
/// # Errors
/// Any [`OpenError`] but `Spawn`.
pub(crate) async fn open(
    url: &str,
    headers: &[(String, String)],
    auth: Option<AuthMiddleware>,
    recorder: ClientRecorder,
) -> Result<Link, OpenError> {
    let url = parse_url(url, &["ws", "wss"]).map_err(OpenError::Invalid)?;
    let mut request = url.as_str().into_client_request().map_err(|error| OpenError::Invalid(error.to_string()))?;
    let headers = web::header_map(headers)?;
    let auth = web::auth_for(&headers, auth);
    for (name, value) in &headers {
        request.headers_mut().append(name, value.clone());
    }
    request.headers_mut().insert("sec-websocket-protocol", http::HeaderValue::from_static("mcp"));
    let (socket, exchange) = connect_socket(&url, request, auth.as_ref(), &recorder).await?;
    let (sink, stream) = socket.split();
    let stream = Stream { stream, recorder: recorder.clone(), exchange };
    let ordered = OrderedWriter::new(recorder.clone(), Writer::Ws(sink));
    Ok(Link { incoming: Incoming::Ws(stream), outgoing: Outgoing::Ordered(ordered), child: None })
}

/// Connects with the header of the middleware, and again with the next one if it is refused. Also returns the number of
/// the upgrade in the trace.
async fn connect_socket(
    url: &Url,
    request: Handshake,
    auth: Option<&AuthMiddleware>,
    recorder: &ClientRecorder,
) -> Result<(Socket, u32), OpenError> {
    let limits = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
    let connect = async |request: Handshake| {
        let number = recorder.new_exchange();
        recorder.note_detail(Some(number), || {
            let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            EventKind::HttpRequest { method: request.method().clone(), target, headers: request.headers().clone() }
        });
        let connected =
            connect_async_tls_with_config(request, Some(limits), true, Some(Connector::Rustls(tls::config()))).await;
        match &connected {
            Ok((_, response)) => note(recorder, number, response),
            Err(tungstenite::Error::Http(response)) => note(recorder, number, response),
            Err(_) => {}
        }
        connected.map(|(socket, _)| (socket, number))
    };
    let Some(auth) = auth else { return connect(request).await.map_err(refused) };
    let mut header = auth.header().await?;
    for _ in 0..web::MAX_AUTH_ATTEMPTS {
        let mut attempt = request.clone();
        header.insert_into(attempt.headers_mut(), &http::Method::GET, url);
        let error = match connect(attempt).await {
            Ok(connected) => {
                header.mark_accepted();
                return Ok(connected);
            }
            Err(error) => error,
        };
        let tungstenite::Error::Http(response) = &error else { return Err(refused(error)) };
        header.read_response(response.headers());
        if !web::is_refusal(response.status()) {
            return Err(refused(error));
        }
        let refusal =
            RefusedRequest { header, status: response.status(), headers: response.headers().clone(), version: None };
        match auth.header_after_refusal(refusal).await? {
            Some(next) => header = next,
            None => return Err(refused(error)),
        }
    }
    Err(AuthError::Attempts.into())
}

fn note(recorder: &ClientRecorder, number: u32, response: &http::Response<Option<Vec<u8>>>) {
    recorder.note_detail(Some(number), || EventKind::HttpResponse {
        status: response.status(),
        headers: response.headers().clone(),
    });
    recorder.note_body(Some(number), response.body().clone().unwrap_or_default().into());
}

fn refused(error: tungstenite::Error) -> OpenError {
    match error {
        tungstenite::Error::Http(response) => OpenError::Http {
            status: response.status().as_u16(),
            body: String::from_utf8_lossy(response.body().as_deref().unwrap_or_default()).into_owned(),
        },
        tungstenite::Error::Io(error) => OpenError::Unreachable { detail: error.to_string() },
        tungstenite::Error::Url(error) => OpenError::Invalid(error.to_string()),
        error => OpenError::Malformed(error.to_string()),
    }
}
