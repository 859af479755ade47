//! HTTP with SSE (2024-11-05, Transports: HTTP with SSE): a GET whose event stream names the endpoint for POSTs.

use std::sync::Arc;

use reqwest::{
    StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue},
};

use super::{
    Link, OpenError, WireError,
    duplex::{Incoming, Outgoing},
    events::EventReader,
    sse_poster::Poster,
    web,
};
use crate::{oauth::AuthMiddleware, recorder::ClientRecorder, url::parse_url};
use rehearse_protocol::{Closed, ClosedHow};

/// Opens the stream and waits for the `endpoint` event.
///
/// # Errors
/// Any [`OpenError`] but `Spawn`. An endpoint of another origin is refused as [`OpenError::Malformed`].
pub(crate) async fn open(
    url: &str,
    headers: &[(String, String)],
    auth: Option<AuthMiddleware>,
    recorder: ClientRecorder,
) -> Result<Link, OpenError> {
    let url = parse_url(url, &["http", "https"]).map_err(OpenError::Invalid)?;
    let (http, headers) = (web::client(&url, None)?, web::header_map(headers)?);
    let auth = web::auth_for(&headers, auth);
    // This replaces a configured header.
    let own = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("text/event-stream"))]);
    let request = http.get(url.clone()).headers(headers.clone()).headers(own);
    let response = web::send(&http, auth.as_ref(), request, &recorder, None).await.map_err(|error| match error {
        WireError::Unauthorized(why) => OpenError::Unauthorized(why),
        error => OpenError::Unreachable { detail: error.to_string() },
    })?;
    if response.status() != StatusCode::OK {
        let status = response.status().as_u16();
        let body = web::error_text(response, &recorder).await;
        return Err(OpenError::Http { status, body });
    }
    let media_type = web::media_type(&response);
    if media_type != "text/event-stream" {
        return Err(OpenError::Malformed(format!("the answer to GET is {media_type:?} and not an event stream")));
    }
    let mut events = EventReader::new(response, Some(recorder.clone()));
    let endpoint = endpoint(&mut events, &url, &recorder).await?;
    let poster = Poster { recorder: recorder.clone(), http, endpoint, headers: Arc::new(headers), auth };
    Ok(Link { incoming: Incoming::Sse(Box::new(events)), outgoing: Outgoing::Sse(poster), child: None })
}

async fn endpoint(events: &mut EventReader, url: &Url, recorder: &ClientRecorder) -> Result<Url, OpenError> {
    loop {
        let event = events.next().await.map_err(|closed| OpenError::Unreachable { detail: closed.to_string() })?;
        let Some(event) = event else {
            return Err(OpenError::Malformed("the event stream ended before an `endpoint` event".to_owned()));
        };
        if event.event.as_deref() != Some("endpoint") {
            continue;
        }
        let data = event.data.unwrap_or_default();
        let text = String::from_utf8_lossy(&data);
        let endpoint = url.join(text.trim());
        return match endpoint {
            Ok(endpoint) if endpoint.origin() == url.origin() => Ok(endpoint),
            Ok(endpoint) => {
                let why = format!("the endpoint {endpoint} is of another origin");
                recorder.close(Closed::by_client(why.as_str()).with(ClosedHow::ForeignEndpoint));
                Err(OpenError::Malformed(why))
            }
            Err(error) => Err(OpenError::Malformed(format!("the endpoint {text:?} is not a URL: {error}"))),
        };
    }
}
