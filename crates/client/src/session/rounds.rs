//! Requests whose result may ask for input first (2026-07-28, Multi Round-Trip Requests).

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{CallOptions, Session, call_options::wait_cancelled};
use crate::{
    exchange::Answer,
    result::{Failure, malformed::check_result},
};
use rehearse_protocol::{Era, Operation};

/// How often a server may ask for input.
const MAX_ROUNDS: usize = 10;
/// Before the next round, if the server only asks for a repetition.
const PAUSE: Duration = Duration::from_millis(100);

/// Distinguishes the types of results.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultType {
    result_type: Option<String>,
}

/// A result that asks for input.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InputRequired {
    input_requests: Option<Map<String, Value>>,
    /// Opaque: it is sent back unchanged.
    request_state: Option<String>,
}

/// The result of a request whose server asks for no more input.
#[derive(Clone, Debug)]
pub struct FinalResult {
    /// The result as it came.
    pub result: Box<RawValue>,
    /// Its `resultType`; absent before 2026-07-28.
    pub kind: Option<String>,
    /// Whether the first request brought it, without any input.
    pub is_plain: bool,
}

impl FinalResult {
    /// The result of this method, if its type is one that every method has (2026-07-28, Basic: ResultType).
    ///
    /// # Errors
    /// [`Failure::Malformed`] if it has another type, or a part of it is missing or wrong.
    pub fn complete(self, method: &str) -> Result<Box<RawValue>, Failure> {
        match self.kind.as_deref() {
            None | Some("complete") => {
                check_result(method, &self.result)?;
                Ok(self.result)
            }
            Some(kind) => Err(Failure::Malformed(format!("the result is of the unknown type {kind:?}"))),
        }
    }
}

impl Session {
    /// Lets the server do something, as [`Session::request_until_final`], for a result of a type that every method has.
    ///
    /// # Errors
    /// Any [`Failure`]; a result of another type or shape is malformed.
    pub async fn perform(
        &self,
        Operation { method, params }: Operation,
        options: CallOptions,
    ) -> Result<Box<RawValue>, Failure> {
        self.request_until_final(&method, Some(params), options).await?.complete(&method)
    }

    /// Makes a request, and repeats it with the session's [`Answers`](crate::Answers) while its result asks for input, all
    /// within one timeout.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub async fn request_until_final(
        &self,
        method: &str,
        params: Option<Map<String, Value>>,
        options: CallOptions,
    ) -> Result<FinalResult, Failure> {
        let limit = options.timeout.unwrap_or(self.timeouts().call);
        let deadline = self.deadline(limit);
        let mut with_answers = params.clone();
        for round in 0..MAX_ROUNDS {
            let is_plain = round == 0;
            let rest = deadline.remaining();
            let within = CallOptions { timeout: Some(rest), ..options.clone() };
            let result = self.request(method, with_answers, within).await.map_err(|failure| failure.within(limit))?;
            if self.info().version.era() == Era::Legacy {
                return Ok(FinalResult { result, kind: None, is_plain });
            }
            let kind = serde_json::from_str::<ResultType>(result.get());
            let kind = kind.map_err(|error| Failure::Malformed(error.to_string()))?.result_type;
            if kind.as_deref() != Some("input_required") {
                return Ok(FinalResult { result, kind, is_plain });
            }
            let asked: InputRequired =
                serde_json::from_str(result.get()).map_err(|error| malformed(&error.to_string()))?;
            let mut answered = params.clone().unwrap_or_default();
            match &asked {
                InputRequired { input_requests: None, request_state: None } => {
                    return Err(malformed("neither `inputRequests` nor `requestState`"));
                }
                InputRequired { input_requests: None, .. } => {
                    sleep_until((Instant::now() + PAUSE).min(deadline.instant())).await
                }
                InputRequired { input_requests: Some(requests), .. } => {
                    answered.insert(
                        "inputResponses".to_owned(),
                        self.answer(requests, options.cancel.clone()).await?.into(),
                    );
                }
            }
            if let Some(state) = asked.request_state {
                answered.insert("requestState".to_owned(), state.into());
            }
            with_answers = Some(answered);
        }
        Err(Failure::Rounds(MAX_ROUNDS))
    }

    /// An answer to each of the requests.
    ///
    /// # Errors
    /// One of them is not a request, or has no answer; the caller cancels it, or the connection ends.
    pub(crate) async fn answer(
        &self,
        requests: &Map<String, Value>,
        cancel: Option<CancellationToken>,
    ) -> Result<Map<String, Value>, Failure> {
        tokio::select! {
            biased;
            answers = self.answer_all(requests) => answers,
            () = wait_cancelled(cancel) => Err(Failure::Cancelled),
            _ = self.recorder().wait_for(self.recorder().end(), |_| false) => Err(self.disconnected().await),
        }
    }

    async fn answer_all(&self, requests: &Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        let mut answers = Map::new();
        for (key, request) in requests {
            let method = request["method"].as_str();
            let method = method.ok_or_else(|| malformed(&format!("{key:?} in `inputRequests` is not a request")))?;
            let unanswered = |why| Failure::Unanswered { method: method.to_owned(), why };
            match self.answers().answer(method, request["params"].clone()).await {
                Some(Answer::Result(result)) => answers.insert(key.clone(), result),
                Some(Answer::Error(_)) => {
                    return Err(unanswered("the answer is an error, which this version cannot carry"));
                }
                None => return Err(unanswered("this client has no answer to it")),
            };
        }
        Ok(answers)
    }
}

fn malformed(what: &str) -> Failure {
    Failure::Malformed(format!("the result asks for input: {what}"))
}
