//! How the client receives what a legacy server asks it.

use std::future::ready;

use serde_json::Value;

use rmcp::{
    RoleClient, Service,
    model::{ClientConfig, ClientResult, CustomResult, ErrorCode, ErrorData, ServerNotification, ServerRequest},
    service::{NotificationContext, RequestContext},
};

use super::answers::{Answer, Answers, Question};
use crate::wire::{RpcError, message::METHOD_NOT_FOUND};

/// Answers the requests of a server. Notifications are read from the tap by whoever wants them.
pub(super) struct Handler {
    config: ClientConfig,
    answers: Answers,
}

impl Handler {
    pub(super) fn new(config: ClientConfig, answers: Answers) -> Handler {
        Handler { config, answers }
    }

    async fn answer(&self, request: ServerRequest) -> Result<ClientResult, ErrorData> {
        let method = match &request {
            ServerRequest::PingRequest(_) => return Ok(ClientResult::empty(())),
            ServerRequest::ElicitRequest(_) => Question::Elicitation.method(),
            ServerRequest::CreateMessageRequest(_) => Question::Sampling.method(),
            ServerRequest::ListRootsRequest(_) => Question::Roots.method(),
            // Also a request of the kinds above that rmcp cannot read.
            ServerRequest::CustomRequest(request) => &request.method,
            _ => "a request of an unknown kind",
        };
        let mut asked = serde_json::to_value(&request).unwrap_or_default();
        let params = asked.get_mut("params").map(Value::take).unwrap_or_default();
        match self.answers.answer(method, params).await {
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
        _context: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ClientResult, ErrorData>> + Send + '_ {
        self.answer(request)
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
