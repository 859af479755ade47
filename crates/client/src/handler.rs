//! Requests of legacy servers.

use std::{
    future::ready,
    sync::{Mutex, PoisonError},
};

use serde_json::Value;
use tokio_util::sync::{CancellationToken, DropGuard};

use rmcp::{
    RoleClient, Service,
    model::{ClientConfig, ClientResult, CustomResult, ErrorCode, ErrorData, ServerNotification, ServerRequest},
    service::{NotificationContext, RequestContext},
};

use super::{
    answers::{Answer, Answers, InputKind},
    backlog::OpenRequest,
    order::QueueTicket,
};
use crate::recorder::TraceRecorder;
use rehearse_protocol::{RpcError, message::METHOD_NOT_FOUND};

/// Answers the requests of a server. Notifications are read from the recorder.
pub(super) struct Handler {
    config: ClientConfig,
    answers: Answers,
    recorder: TraceRecorder,
    active: ActiveRequests,
}

/// The active requests during which a server may make requests of its own: one token each, cancelled at its end.
#[derive(Default)]
struct ActiveRequests(Mutex<Vec<CancellationToken>>);

impl ActiveRequests {
    fn start(&self) -> DropGuard {
        let token = CancellationToken::new();
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|token| !token.is_cancelled());
        tokens.push(token.clone());
        token.drop_guard()
    }

    /// Waits for the end of all requests that are active when this is called; forever if there are none.
    fn all_ended(&self) -> impl Future<Output = ()> + use<> {
        let tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let tokens: Vec<_> = tokens.into_iter().filter(|token| !token.is_cancelled()).collect();
        async move {
            if tokens.is_empty() {
                return std::future::pending().await;
            }
            for token in tokens {
                token.cancelled().await;
            }
        }
    }
}

impl Handler {
    pub(super) fn new(config: ClientConfig, answers: Answers, recorder: TraceRecorder) -> Handler {
        Handler { config, answers, recorder, active: ActiveRequests::default() }
    }

    /// Registers a request until the result is dropped. A legacy server does not say which client request caused its
    /// own; once all that may have caused it have ended, its answer is no longer needed.
    pub(super) fn start_request(&self, method: &str) -> Option<DropGuard> {
        matches!(method, "tools/call" | "prompts/get" | "resources/read").then(|| self.active.start())
    }

    /// Waits until the answer to a request that arrives now is no longer needed: the server has cancelled it, its cause
    /// has ended, or the connection has.
    fn withdrawn(&self, request: CancellationToken) -> impl Future<Output = ()> {
        let (over, written) = (self.active.all_ended(), self.recorder.end());
        async move {
            tokio::select! {
                () = request.cancelled() => {}
                () = over => {}
                _ = self.recorder.wait_for(written, |_| false) => {}
            }
        }
    }

    async fn answer(
        &self,
        request: ServerRequest,
        ticket: Option<QueueTicket>,
        cancelled: CancellationToken,
    ) -> Result<ClientResult, ErrorData> {
        let method = match &request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::ElicitRequest(_) => InputKind::Elicitation.method(),
            ServerRequest::CreateMessageRequest(_) => InputKind::Sampling.method(),
            ServerRequest::ListRootsRequest(_) => InputKind::Roots.method(),
            // This includes requests of the kinds above that rmcp cannot read.
            ServerRequest::CustomRequest(request) => &request.method,
            _ => "a request of an unknown kind",
        };
        let mut asked = serde_json::to_value(&request).unwrap_or_default();
        let params = asked.get_mut("params").map(Value::take).unwrap_or_default();
        // Taken now, because requests that start later cannot be the cause.
        let withdrawn = self.withdrawn(cancelled);
        let answering = async {
            let answering = self.answers.answer(method, params);
            match ticket {
                Some(ticket) => ticket.run_in_turn(answering).await,
                None => answering.await,
            }
        };
        let answer = tokio::select! {
            biased;
            answer = answering => answer,
            () = withdrawn => self.answers.declares(method).then(|| Answer::for_withdrawn(method)),
        };
        match answer {
            Some(Answer::Result(result)) => Ok(ClientResult::CustomResult(CustomResult::new(result))),
            Some(Answer::Error(error)) => Err(error_data(error)),
            None => Err(error_data(RpcError::new(METHOD_NOT_FOUND, format!("this client does not answer {method}")))),
        }
    }
}

impl Service<RoleClient> for Handler {
    fn handle_request(
        &self,
        request: ServerRequest,
        mut context: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ClientResult, ErrorData>> + Send + '_ {
        let open = context.extensions.remove::<OpenRequest>();
        let answering = self.answer(request, context.extensions.remove(), context.ct);
        async move {
            let _until_it_is_answered = open;
            answering.await
        }
    }

    fn handle_notification(
        &self,
        _notification: ServerNotification,
        _context: NotificationContext<RoleClient>,
    ) -> impl Future<Output = Result<(), ErrorData>> + Send + '_ {
        ready(Ok(()))
    }

    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

fn error_data(error: RpcError) -> ErrorData {
    let code = ErrorCode(i32::try_from(error.code).unwrap_or(ErrorCode::INTERNAL_ERROR.0));
    let data = error.data.and_then(|data| serde_json::from_str(data.get()).ok());
    ErrorData::new(code, error.message, data)
}
