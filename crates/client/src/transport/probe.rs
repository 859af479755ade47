//! Ends the wait for the answer to `server/discover`.

use std::time::Duration;

use futures_util::StreamExt;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage},
    transport::streamable_http_client::{StreamableHttpError, StreamableHttpPostResponse},
};
use sse_stream::Sse;
use tokio::time::Instant;

use super::LinkError;

type Posted = Result<StreamableHttpPostResponse, StreamableHttpError<LinkError>>;

/// What rmcp gets in place of the answer to `server/discover`: an error that no modern server sends leads to
/// `initialize` (2026-07-28, stdio: Backward Compatibility).
pub(crate) fn unanswered(probe: RequestId) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(ErrorData::internal_error("no answer in time", None), Some(probe))
}

/// The id of a `server/discover`.
pub(super) fn probe_id(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::DiscoverRequest(_)).then(|| request.id.clone())
}

/// Replaces the failure of an exchange after its limit by [`unanswered`].
pub(super) async fn limit_probe(limit: Duration, probe: RequestId, posting: impl Future<Output = Posted>) -> Posted {
    let started = Instant::now();
    match posting.await {
        Err(StreamableHttpError::Client(LinkError::Exchange(_))) if started.elapsed() >= limit => {
            Ok(StreamableHttpPostResponse::Json(unanswered(probe), None))
        }
        Ok(StreamableHttpPostResponse::Sse(events, session)) => {
            let late = serde_json::to_string(&unanswered(probe))?;
            let events = events.map(move |event| match event {
                Err(_) if started.elapsed() >= limit => Ok(Sse::default().data(late.clone())),
                event => event,
            });
            Ok(StreamableHttpPostResponse::Sse(events.boxed(), session))
        }
        posted => posted,
    }
}
