//! Common parts of HTTP, SSE and WebSocket clients: the HTTP client, headers, errors.

use std::sync::Arc;

use bytes::Bytes;
use reqwest::{
    Client, ClientBuilder, Request, RequestBuilder, Response, StatusCode, Url,
    header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION},
    redirect,
};

use super::{OpenError, WireError};
use crate::{
    oauth::{AuthMiddleware, RefusedRequest, SsrfGuard},
    recorder::ClientRecorder,
};
pub(crate) use rehearse_net::http_client::describe;
use rehearse_net::http_client::{builder, display_url, is_loopback};
use rehearse_protocol::{Direction, EventKind, is_protocol_header};

const MAX_ERROR_BODY: usize = 64 << 10;
const MAX_REDIRECTS: usize = 5;
/// How often a refused request is sent at most.
pub(crate) const MAX_AUTH_ATTEMPTS: usize = 4;

/// An HTTP client for one server. It uses the proxies of the environment except for loopback addresses, and follows
/// only redirects that keep the method and the origin.
///
/// # Errors
/// [`OpenError::Invalid`] if TLS cannot be set up.
pub(crate) fn client(url: &Url, guard: Option<&SsrfGuard>) -> Result<Client, OpenError> {
    client_builder(url, guard).build().map_err(|error| OpenError::Invalid(describe(error)))
}

/// As [`client`], but the names of its headers begin in upper case.
pub(crate) fn title_case_client(url: &Url, guard: Option<&SsrfGuard>) -> Result<Client, OpenError> {
    let builder = client_builder(url, guard).http1_title_case_headers();
    builder.build().map_err(|error| OpenError::Invalid(describe(error)))
}

fn client_builder(url: &Url, guard: Option<&SsrfGuard>) -> ClientBuilder {
    let origin = url.origin();
    let follow = redirect::Policy::custom(move |attempt| {
        let keeps = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        if keeps && attempt.url().origin() == origin && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    });
    let builder = builder(is_loopback(url)).redirect(follow);
    match guard {
        Some(guard) => builder.dns_resolver(Arc::new(guard.clone())),
        None => builder,
    }
}

/// The headers, without those that the protocol sets itself.
///
/// # Errors
/// [`OpenError::Invalid`] names the header that cannot be sent, without its value.
pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, OpenError> {
    headers
        .iter()
        .filter(|(name, _)| !is_protocol_header(name))
        .map(|(name, value)| match (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
            (Ok(name), Ok(value)) => Ok((name, value)),
            _ => Err(OpenError::Invalid(format!("the header {name:?} has an invalid name or value"))),
        })
        .collect()
}

/// Sends a request with the header of the middleware, and again with the next one if it is refused. Records each
/// attempt as an exchange, and the frame in it.
///
/// # Errors
/// [`WireError::Unauthorized`] if there is no authorization, [`WireError::Exchange`] if there is no answer, and
/// [`WireError::Invalid`] if it cannot be sent.
pub(crate) async fn send(
    http: &Client,
    auth: Option<&AuthMiddleware>,
    request: RequestBuilder,
    recorder: &ClientRecorder,
    frame: Option<&Bytes>,
) -> Result<Response, WireError> {
    send_in(recorder.new_exchange(), http, auth, request, recorder, frame).await
}

/// As [`send`], the first attempt as the exchange of this number.
///
/// # Errors
/// As [`send`].
pub(crate) async fn send_in(
    number: u32,
    http: &Client,
    auth: Option<&AuthMiddleware>,
    request: RequestBuilder,
    recorder: &ClientRecorder,
    frame: Option<&Bytes>,
) -> Result<Response, WireError> {
    let mut request = request.build().map_err(|error| WireError::Invalid(describe(error)))?;
    let Some(auth) = auth else { return execute(number, http, request, recorder, frame).await };
    let (mut header, mut number) = (auth.header().await?, number);
    for _ in 1..MAX_AUTH_ATTEMPTS {
        let Some(mut attempt) = request.try_clone() else { break };
        header.insert_into(attempt.headers_mut(), request.method(), request.url());
        let response = execute(number, http, attempt, recorder, frame).await?;
        header.read_response(response.headers());
        let status = response.status();
        if !is_refusal(status) {
            header.mark_accepted();
            return Ok(response);
        }
        let (headers, version) = (response.headers().clone(), request.headers().get("mcp-protocol-version").cloned());
        match auth.header_after_refusal(RefusedRequest { header, status, headers, version }).await? {
            Some(next) => header = next,
            None => return Ok(response),
        }
        number = recorder.new_exchange();
    }
    let (method, url) = (request.method().clone(), request.url().clone());
    header.insert_into(request.headers_mut(), &method, &url);
    execute(number, http, request, recorder, frame).await
}

async fn execute(
    number: u32,
    http: &Client,
    request: Request,
    recorder: &ClientRecorder,
    frame: Option<&Bytes>,
) -> Result<Response, WireError> {
    let exchange = Some(number);
    recorder.note_detail(exchange, || {
        let url = request.url();
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let (method, headers) = (request.method().clone(), request.headers().clone());
        EventKind::HttpRequest { method, target: format!("{}{query}", url.path()), headers }
    });
    if let Some(frame) = frame {
        recorder.record_in(exchange, Direction::ClientToServer, frame.clone());
    }
    let mut response = http.execute(request).await.map_err(|error| {
        if !error.is_connect() {
            recorder.note_detail(exchange, || EventKind::HttpEnd { is_whole: false });
        }
        WireError::Exchange(describe(error))
    })?;
    response.extensions_mut().insert(ExchangeNumber(number));
    let head = || EventKind::HttpResponse { status: response.status(), headers: response.headers().clone() };
    recorder.note_detail(exchange, head);
    Ok(response)
}

/// The number of the exchange of a response in the trace.
#[derive(Clone, Copy)]
struct ExchangeNumber(u32);

/// The number of the exchange of this response in the trace.
pub(crate) fn exchange(response: &Response) -> Option<u32> {
    response.extensions().get::<ExchangeNumber>().map(|number| number.0)
}

/// Whether another authorization may fix it.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// The middleware for requests with these headers: a configured `Authorization` takes precedence.
pub(crate) fn auth_for(headers: &HeaderMap, auth: Option<AuthMiddleware>) -> Option<AuthMiddleware> {
    auth.filter(|_| !headers.contains_key(AUTHORIZATION))
}

/// The start of the body of a response that is not a message.
pub(crate) async fn error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk[..chunk.len().min(MAX_ERROR_BODY - body.len())]);
        if body.len() == MAX_ERROR_BODY {
            break;
        }
    }
    body
}

/// As [`error_body`], as a string, which is recorded; for a redirect that was not followed, the reason.
pub(crate) async fn error_text(response: Response, recorder: &ClientRecorder) -> String {
    let (redirection, exchange) = (redirection(&response), exchange(&response));
    let body = error_body(response).await;
    let text = String::from_utf8_lossy(&body).into_owned();
    recorder.note_body(exchange, body.into());
    redirection.unwrap_or(text)
}

/// Why a redirect was not followed.
pub(crate) fn redirection(response: &Response) -> Option<String> {
    let location = response.headers().get(LOCATION).filter(|_| response.status().is_redirection())?;
    let (from, to) = (response.url(), response.url().join(location.to_str().ok()?).ok()?);
    let to_where = display_url(to.as_str());
    Some(if to.origin() != from.origin() {
        format!("it redirects to another origin, {to_where}; if that is the server, use that URL")
    } else if matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        format!("too many redirects, the last one to {to_where}")
    } else {
        format!(
            "it redirects to {to_where}, with another method than that of the request; if that is the server, use that URL"
        )
    })
}

/// The media type of an answer, lower case and without parameters.
pub(crate) fn media_type(response: &Response) -> String {
    let value = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_header_is_named_without_the_value() {
        let error = header_map(&[("a".into(), "se\ncret".into())]).expect_err("a newline").to_string();
        assert!(error.contains("\"a\"") && !error.contains("cret"), "{error}");
    }
}
