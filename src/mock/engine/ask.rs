//! Questions to the client: requests to a legacy one, rounds with a modern one, input that a task waits for.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use futures_channel::oneshot;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use super::{
    Engine,
    exchange::{Counts, Event, Exchange, Outcome},
    peer::ClientAnswer,
};
use crate::{
    mock::{
        script::{Action, Plan, Question, Rule},
        template::RenderError,
    },
    wire::{
        Era, Id, RpcError,
        message::{self, INVALID_PARAMS, INVALID_REQUEST, MISSING_CAPABILITY},
    },
};

/// Questions that were asked and are not all answered yet.
#[derive(Debug)]
pub(super) struct Asking {
    /// The position of the step that asks.
    step: usize,
    limit: Duration,
    open: Vec<Open>,
    /// Whether [`Event::Await`] was given.
    awaited: bool,
}

#[derive(Debug)]
struct Open {
    name: String,
    /// The id of the request, if the question is one.
    id: Option<Id>,
    receiver: oneshot::Receiver<ClientAnswer>,
    answer: Option<ClientAnswer>,
}

/// What a client carries from one round of a call to the next, sealed (2026-07-28, Multi Round-Trip Requests: Server
/// Requirements).
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestState {
    /// The rule that answers, by its number and its label.
    pub(super) stub: usize,
    pub(super) rule: usize,
    pub(super) label: String,
    pub(super) counts: Counts,
    /// The step that asks.
    pub(super) next: usize,
    pub(super) answers: Vec<(String, Json)>,
    /// Digest of what the request asks for.
    pub(super) digest: String,
    /// When the state lapses, in milliseconds since the mock was started.
    pub(super) expires: u64,
}

impl Exchange {
    /// Resolves when every question is answered.
    pub fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(asking) = &mut self.asking else { return Poll::Ready(()) };
        for open in asking.open.iter_mut().filter(|open| open.answer.is_none()) {
            match Pin::new(&mut open.receiver).poll(context) {
                Poll::Ready(Ok(answer)) => open.answer = Some(answer),
                // The task was cancelled, or the session is gone: nothing will come any more.
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => {}
            }
        }
        if asking.open.iter().all(|open| open.answer.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Asks what is not answered yet; `None` if nothing is left to ask.
    pub(super) fn ask(
        &mut self,
        step: usize,
        questions: &[Question],
        limit: Duration,
        at: Duration,
    ) -> Result<Option<Event>, RenderError> {
        let mut open = Vec::new();
        let mut lacking = Vec::new();
        for question in questions {
            if self.answers.iter().any(|(name, _)| *name == question.name) {
                continue;
            }
            if self.task.is_none()
                && let Some(answer) = self.origin.inputs.remove(&question.name)
            {
                match check(question, &answer) {
                    Ok(()) => self.bind(&question.name, answer),
                    Err(why) => {
                        let error = RpcError::new(INVALID_PARAMS, format!("inputResponses.{}: {why}", question.name));
                        return Ok(Some(self.conclude(Outcome::Error(error, None), at)));
                    }
                }
            } else if question.can_ask(self.origin.version, &self.origin.capabilities) {
                open.push(question);
            } else if question.optional {
                self.bind(&question.name, Json::Null);
            } else {
                lacking.push(question);
            }
        }
        if !lacking.is_empty() {
            let outcome = self.lacks_capability(&lacking);
            return Ok(Some(self.conclude(outcome, at)));
        }
        if open.is_empty() {
            return Ok(None);
        }
        if self.task.is_some() {
            return self.park(step, &open, at).map(Some);
        }
        match self.era() {
            Era::Modern => self.require_input(step, &open, at).map(Some),
            Era::Legacy => self.request_answers(step, &open, limit, at).map(Some),
        }
    }

    /// 2026-07-28, Multi Round-Trip Requests: InputRequiredResult.
    fn require_input(&mut self, step: usize, open: &[&Question], at: Duration) -> Result<Event, RenderError> {
        let mut requests = Vec::new();
        for question in open {
            requests.push(self.input_request(question)?);
        }
        let catalog = self.catalog.clone();
        let (stub, rule) = catalog.rule(self.rule);
        let state = RequestState {
            stub: stub.number,
            rule: self.rule.index,
            label: rule.label.to_string(),
            counts: self.counts,
            next: step,
            answers: self.answers.clone(),
            digest: self.origin.digest.clone(),
            expires: Engine::millis(at + catalog.script.request_state_ttl),
        };
        let state = self.engine.seal.seal(&state);
        let members = format!(
            "\"resultType\":\"input_required\",\"inputRequests\":{{{}}},\"requestState\":\"{state}\",\"_meta\":{{{}}}",
            requests.join(","),
            catalog.server_meta,
        );
        Ok(self.conclude(Outcome::Verbatim(format!("{{{members}}}")), at))
    }

    /// A question as a member of `inputRequests`.
    fn input_request(&mut self, question: &Question) -> Result<String, RenderError> {
        let params = self.json(&question.params)?;
        Ok(format!("\"{}\":{{\"method\":\"{}\",\"params\":{params}}}", question.name, question.method))
    }

    fn request_answers(
        &mut self,
        step: usize,
        questions: &[&Question],
        limit: Duration,
        at: Duration,
    ) -> Result<Event, RenderError> {
        let Some(peer) = self.origin.peer.clone().filter(|_| self.can_send()) else {
            let outcome = self.failure("The client cannot be asked: its answers have no way back to the server");
            return Ok(self.conclude(outcome, at));
        };
        let mut open = Vec::new();
        for question in questions {
            let params = self.json(&question.params)?;
            let (id, receiver) = peer.ask();
            self.outbox.push_back(message::request(&id, question.method, Some(&params)));
            open.push(Open { name: question.name.clone(), id: Some(id), receiver, answer: None });
        }
        self.asking = Some(Asking { step, limit, open, awaited: false });
        Ok(self.next_event(at))
    }

    /// A task waits for its input (SEP-2663, Task Update Requests).
    fn park(&mut self, step: usize, questions: &[&Question], at: Duration) -> Result<Event, RenderError> {
        let mut requests = Vec::new();
        for question in questions {
            requests.push((question.name.clone(), self.input_request(question)?));
        }
        let Some(task) = self.task.clone() else { return Ok(self.next_event(at)) };
        let receivers = self.engine.park_task(&task, requests, at);
        let open = questions.iter().zip(receivers);
        let open =
            open.map(|(question, receiver)| Open { name: question.name.clone(), id: None, receiver, answer: None });
        self.asking = Some(Asking { step, limit: Duration::MAX, open: open.collect(), awaited: false });
        Ok(self.next_event(at))
    }

    /// Waits for what was asked, if anything was; `None` if nothing is open.
    pub(super) fn await_answers(&mut self) -> Option<Event> {
        let asking = self.asking.as_mut().filter(|asking| !asking.awaited)?;
        asking.awaited = true;
        Some(Event::Await(asking.limit))
    }

    /// Takes the answers that were waited for, if any were.
    ///
    /// # Errors
    /// How the exchange ends without them.
    pub(super) fn take_answers(&mut self, rule: &Rule) -> Result<(), Outcome> {
        let Some(asking) = self.asking.take() else { return Ok(()) };
        let Plan::Steps(steps) = &rule.answer.plan else { return Ok(()) };
        let Some(Action::Ask { questions, .. }) = steps.get(asking.step).map(|step| &step.action) else {
            return Ok(());
        };
        for Open { name, answer, .. } in &asking.open {
            let Some(question) = questions.iter().find(|question| question.name == *name) else { continue };
            let method = question.method;
            match answer {
                Some(Ok(answer)) => match check(question, answer) {
                    Ok(()) => self.bind(name, answer.clone()),
                    Err(why) => return Err(self.failure(&format!("The client's answer to {method} is wrong: {why}"))),
                },
                Some(Err(RpcError { code, message, .. })) => {
                    return Err(self.failure(&format!("The client refused {method}: {message} ({code})")));
                }
                None => {
                    for id in
                        asking.open.iter().filter(|open| open.answer.is_none()).filter_map(|open| open.id.as_ref())
                    {
                        let params = json!({ "requestId": id, "reason": "the answer took too long" }).to_string();
                        self.outbox.push_back(message::notification("notifications/cancelled", &params));
                    }
                    let limit = asking.limit.as_secs_f64();
                    return Err(self.failure(&format!("The client did not answer {method} within {limit} s")));
                }
            }
        }
        Ok(())
    }

    /// The client cannot be asked what must be asked.
    fn lacks_capability(&self, questions: &[&Question]) -> Outcome {
        let mut needs = Map::new();
        for (name, need) in questions.iter().filter_map(|question| question.needs.as_object()).flatten() {
            // A need with settings says more than one without.
            if need.as_object().is_some_and(|settings| !settings.is_empty()) || !needs.contains_key(name) {
                needs.insert(name.clone(), need.clone());
            }
        }
        let names: Vec<_> = needs.keys().map(String::as_str).collect();
        let text = format!("The client does not declare the capability {}", names.join(", "));
        match self.era() {
            Era::Modern => {
                let error = RpcError::new(MISSING_CAPABILITY, text);
                Outcome::Error(error.with_data(json!({ "requiredCapabilities": needs })), None)
            }
            Era::Legacy => match self.failure(&text) {
                Outcome::Error(_, status) => Outcome::Error(RpcError::new(INVALID_REQUEST, text), status),
                outcome => outcome,
            },
        }
    }
}

/// Whether a client's result is one for the question.
fn check(question: &Question, answer: &Json) -> Result<(), String> {
    let Json::Object(members) = answer else { return Err("an answer is an object".into()) };
    let text = |name: &str| members.get(name).and_then(Json::as_str);
    match question.method {
        "elicitation/create" => match text("action") {
            Some("decline" | "cancel") => Ok(()),
            Some("accept") => match &question.form {
                None => Ok(()),
                Some(form) => {
                    let content = members.get("content").unwrap_or(&Json::Null);
                    form.violations(content).first().map_or(Ok(()), |violation| Err(format!("content{violation}")))
                }
            },
            _ => Err("`action` is accept, decline or cancel".into()),
        },
        "sampling/createMessage" => {
            let has_content = matches!(members.get("content"), Some(Json::Object(_) | Json::Array(_)));
            match text("role").is_some() && text("model").is_some() && has_content {
                true => Ok(()),
                false => Err("a message has `role`, `content` and `model`".into()),
            }
        }
        _ => {
            let has_uri = |root: &Json| root.get("uri").is_some_and(Json::is_string);
            match members.get("roots").and_then(Json::as_array) {
                Some(roots) if roots.iter().all(has_uri) => Ok(()),
                _ => Err("`roots` is a list of objects with a `uri`".into()),
            }
        }
    }
}
