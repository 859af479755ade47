//! Input from the client: requests to a legacy client, rounds with a modern client, and the input of tasks.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use serde_json::Value as Json;

use super::{
    exchange::{Event, Exchange},
    exchange_end::ExchangeEnd,
    input_response::check,
    instance::Engine,
    pending_input::{OpenRequest, PendingInput, RequestState},
};
use crate::script::{Action, AnswerPlan, InputRequest, Rule};
use rehearse_document::template::RenderError;
use rehearse_protocol::{
    Era, RpcError,
    message::{self, INVALID_PARAMS},
};

impl Exchange {
    /// Cancels requests whose responses are no longer awaited (2025-11-25, Lifecycle: Timeouts).
    fn abandon(&mut self, pending: &PendingInput) {
        let reason = if pending.is_refused() { "another request was refused" } else { "the answer took too long" };
        self.outbox.extend(pending.cancellations(reason));
    }

    /// Cancels the input requests of a call that is itself cancelled.
    pub(super) fn withdraw(&mut self) {
        let (Some(pending), Some(session)) = (&self.pending, &self.origin.session) else { return };
        if pending.awaited {
            pending.cancellations("the call was cancelled").for_each(|frame| session.push(frame));
        }
    }

    /// Waits until every input request is answered, or the handler has something to send.
    pub fn poll_answers(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(handler) = &mut self.handler {
            return handler.poll(context);
        }
        if let Some(initialized) = &mut self.initialized {
            return Pin::new(initialized).poll(context).map(|_| self.initialized = None);
        }
        let Some(pending) = &mut self.pending else { return Poll::Ready(()) };
        for open in pending.open.iter_mut().filter(|open| open.answer.is_none()) {
            match Pin::new(&mut open.receiver).poll(context) {
                Poll::Ready(Ok(answer)) => open.answer = Some(answer),
                // The task was cancelled, or the client has closed its end: no response will come.
                Poll::Ready(Err(_)) => {
                    pending.is_lost = true;
                    return Poll::Ready(());
                }
                Poll::Pending => {}
            }
        }
        let is_answered = pending.open.iter().all(|open| open.answer.is_some());
        if is_answered || pending.is_refused() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Requests the input that is still missing; `None` if there is none.
    pub(super) fn request_input(
        &mut self,
        step: usize,
        input_requests: &[InputRequest],
        limit: Duration,
        at: Duration,
    ) -> Result<Option<Event>, RenderError> {
        let mut open = Vec::new();
        let mut lacking = Vec::new();
        for input_request in input_requests {
            if self.answers.iter().any(|(name, _)| *name == input_request.name) {
                continue;
            }
            if self.task.is_none()
                && let Some(answer) = self.origin.inputs.remove(&input_request.name)
            {
                match check(input_request, &answer) {
                    Ok(()) => self.bind(&input_request.name, answer),
                    Err(why) => {
                        let error =
                            RpcError::new(INVALID_PARAMS, format!("inputResponses.{}: {why}", input_request.name));
                        self.reason = Some(error.message.clone());
                        return Ok(Some(self.conclude(ExchangeEnd::Error(error, None), at)));
                    }
                }
            } else if input_request.can_ask(self.origin.version, &self.origin.capabilities) {
                open.push(input_request);
            } else if input_request.optional {
                self.bind(&input_request.name, Json::Null);
            } else {
                lacking.push(input_request);
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
            Era::Legacy => match self.await_initialized(step, limit, at) {
                None => self.request_answers(step, &open, limit, at).map(Some),
                waiting => Ok(waiting),
            },
        }
    }

    /// 2026-07-28, Multi Round-Trip Requests: InputRequiredResult.
    fn require_input(&mut self, step: usize, open: &[&InputRequest], at: Duration) -> Result<Event, RenderError> {
        let mut requests = Vec::new();
        for input_request in open {
            requests.push(self.input_request(input_request)?);
        }
        let catalog = self.catalog.clone();
        let (item, rule) = catalog.rule(self.rule);
        let state = RequestState {
            generation: catalog.generation,
            item: item.number,
            rule: self.rule.index,
            label: rule.label.to_string(),
            counts: self.counts,
            next: step,
            answers: self.answers.clone(),
            digest: self.origin.digest.clone(),
            expires: Engine::millis(at + catalog.script.request_state_ttl),
        };
        let state = self.engine.signer.sign(&state);
        let members = format!(
            "\"resultType\":\"input_required\",\"inputRequests\":{{{}}},\"requestState\":\"{state}\",\"_meta\":{{{}}}",
            requests.join(","),
            catalog.server_meta,
        );
        Ok(self.conclude(ExchangeEnd::Verbatim(format!("{{{members}}}")), at))
    }

    /// An input request as a member of `inputRequests`.
    fn input_request(&mut self, input_request: &InputRequest) -> Result<String, RenderError> {
        let params = self.input_params(input_request)?;
        Ok(format!("\"{}\":{{\"method\":\"{}\",\"params\":{params}}}", input_request.name, input_request.method))
    }

    fn request_answers(
        &mut self,
        step: usize,
        input_requests: &[&InputRequest],
        limit: Duration,
        at: Duration,
    ) -> Result<Event, RenderError> {
        let Some(session) = self.origin.session.clone() else {
            let outcome = self.failure("The client cannot be asked: its answers have no way back to the server");
            return Ok(self.conclude(outcome, at));
        };
        let mut open = Vec::new();
        for input_request in input_requests {
            let params = self.input_params(input_request)?;
            let (id, receiver) = session.register_request();
            self.outbox.push_back(message::request(&id, input_request.method, Some(&params)));
            open.push(OpenRequest { name: input_request.name.clone(), id: Some(id), receiver, answer: None });
        }
        self.pending = Some(PendingInput { step, limit, open, awaited: false, is_lost: false });
        Ok(self.next_event(at))
    }

    /// A task waits for its input (SEP-2663, Task Update Requests).
    fn park(&mut self, step: usize, input_requests: &[&InputRequest], at: Duration) -> Result<Event, RenderError> {
        let mut requests = Vec::new();
        for input_request in input_requests {
            requests.push((input_request.name.clone(), self.input_request(input_request)?));
        }
        let Some(task) = self.task.clone() else { return Ok(self.next_event(at)) };
        let receivers = self.engine.park_task(&task, requests, at);
        let open = input_requests.iter().zip(receivers);
        let open = open.map(|(input_request, receiver)| OpenRequest {
            name: input_request.name.clone(),
            id: None,
            receiver,
            answer: None,
        });
        self.pending =
            Some(PendingInput { step, limit: Duration::MAX, open: open.collect(), awaited: false, is_lost: false });
        Ok(self.next_event(at))
    }

    /// Waits for the responses; `None` if no request is open.
    pub(super) fn await_answers(&mut self) -> Option<Event> {
        let pending = self.pending.as_mut().filter(|pending| !pending.awaited)?;
        pending.awaited = true;
        Some(Event::Await(pending.limit))
    }

    /// Takes the expected responses, if any.
    ///
    /// # Errors
    /// How the exchange ends without them.
    pub(super) fn take_answers(&mut self, rule: &Rule) -> Result<(), ExchangeEnd> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        let AnswerPlan::Steps(steps) = &rule.answer.plan else { return Ok(()) };
        let Some(Action::RequestInput { requests, .. }) = steps.get(pending.step).map(|step| &step.action) else {
            return Ok(());
        };
        self.abandon(&pending);
        for OpenRequest { name, answer, .. } in &pending.open {
            let Some(input_request) = requests.iter().find(|input_request| input_request.name == *name) else {
                continue;
            };
            let method = input_request.method;
            match answer {
                Some(Ok(answer)) => match check(input_request, answer) {
                    Ok(()) => self.bind(name, answer.clone()),
                    Err(why) => return Err(self.failure(&format!("The client's answer to {method} is wrong: {why}"))),
                },
                Some(Err(RpcError { code, message, .. })) => {
                    return Err(self.failure(&format!("The client refused {method}: {message} ({code})")));
                }
                None if pending.is_refused() => {}
                None if pending.is_lost => {
                    return Err(self.failure(&format!("The client can no longer answer {method}")));
                }
                None => {
                    let limit = pending.limit.as_secs_f64();
                    return Err(self.failure(&format!("The client did not answer {method} within {limit} s")));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value as Json, json};

    use super::super::test_client::TestClient;

    const SCRIPT: &str = "
requestState: { ttl: 5m }
tools:
  - name: book
    inputSchema: { type: object, properties: { city: { type: string } } }
    steps:
      - set: { begun: '{{ state.begun | default(0) + 1 }}' }
      - elicit:
          as: guest
          message: 'Who goes to {{ args.city }}?'
          requestedSchema: { type: object, properties: { name: { type: string } }, required: [name] }
      - if: guest.action != 'accept'
        reply: { error: 'No guest ({{ guest.action }}).' }
      - ask:
          poem: { sample: { messages: [{ role: user, content: { type: text, text: 'A poem for {{ guest.content.name }}' } }], maxTokens: 50 } }
          folders: { roots: { optional: true } }
      - reply: '{{ guest.content.name }} to {{ args.city }}: {{ poem.content.text }}, {{ folders.roots | length if folders else 0 }} folders, begun {{ state.begun }} (call {{ call }})'
  - name: other
    steps: [{ elicit: { as: guest, message: m, requestedSchema: { type: object } } }, { reply: '{{ guest.action }}' }]
prompts:
  - name: asks
    steps: [{ roots: { as: folders } }, { reply: { messages: [{ role: user, content: '{{ folders.roots[0].uri }}' }] } }]
";

    fn ada_answer() -> Json {
        json!({ "action": "accept", "content": { "name": "Ada" } })
    }

    fn poem() -> Json {
        json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "ode" } })
    }

    fn all_capabilities() -> Json {
        json!({ "elicitation": {}, "sampling": {}, "roots": {} })
    }

    fn round(client: &TestClient, more: Json) -> Json {
        let mut params = json!({ "name": "book", "arguments": { "city": "Paris" } });
        params.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        client.call("tools/call", params)
    }

    /// The second round of a call.
    fn answer(client: &TestClient, answers: Json) -> Json {
        let state = round(client, json!({}))["result"]["requestState"].clone();
        round(client, json!({ "requestState": state, "inputResponses": answers }))
    }

    fn error(reply: &Json) -> String {
        format!("{} {}", reply["error"]["code"], reply["error"]["message"].as_str().unwrap_or_default())
    }

    #[test]
    fn a_legacy_client_is_sent_requests_and_its_answers_are_used() {
        let client = TestClient::legacy(SCRIPT, all_capabilities())
            .answering("elicitation/create", json!({ "result": ada_answer() }))
            .answering("sampling/createMessage", json!({ "result": poem() }))
            .answering("roots/list", json!({ "result": { "roots": [{ "uri": "file:///a" }] } }));
        let frames = client.exchange("tools/call", json!({ "name": "book", "arguments": { "city": "Paris" } }));
        let asked: Vec<_> = frames.iter().map(|frame| frame["method"].as_str().unwrap_or("the response")).collect();
        assert_eq!(asked, ["elicitation/create", "sampling/createMessage", "roots/list", "the response"]);
        assert_eq!(frames[0]["params"]["message"], "Who goes to Paris?");
        assert_eq!(frames[1]["params"]["messages"][0]["content"]["text"], "A poem for Ada");
        assert_eq!(frames[3]["result"]["content"][0]["text"], "Ada to Paris: ode, 1 folders, begun 1 (call 1)");
        let ids: Vec<_> = frames[..3].iter().map(|frame| &frame["id"]).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    }

    #[test]
    fn a_modern_client_answers_in_rounds_and_what_was_done_is_not_done_again() {
        let client = TestClient::modern(SCRIPT, all_capabilities());
        let first = round(&client, json!({}));
        assert_eq!(first["result"]["resultType"], "input_required");
        assert_eq!(first["result"]["inputRequests"]["guest"]["method"], "elicitation/create");
        let state = first["result"]["requestState"].clone();
        let second = round(&client, json!({ "requestState": state, "inputResponses": { "guest": ada_answer() } }));
        let requests = &second["result"]["inputRequests"];
        assert_eq!(requests["poem"]["params"]["messages"][0]["content"]["text"], "A poem for Ada");
        assert_eq!(requests["folders"]["method"], "roots/list");
        let state = second["result"]["requestState"].clone();
        // Only one of two answers: the other one is requested again.
        let third = round(&client, json!({ "requestState": state, "inputResponses": { "poem": poem() } }));
        assert_eq!(
            third["result"]["inputRequests"].as_object().map(|it| it.keys().cloned().collect()),
            Some(vec!["folders".to_owned()])
        );
        let state = third["result"]["requestState"].clone();
        let roots = json!({ "folders": { "roots": [] }, "unknown": {} });
        let last = round(&client, json!({ "requestState": state, "inputResponses": roots }));
        assert_eq!(last["result"]["content"][0]["text"], "Ada to Paris: ode, 0 folders, begun 1 (call 1)");
        assert_eq!(last["result"]["resultType"], "complete");
    }

    #[test]
    fn answers_without_their_state_are_refused_unless_the_script_allows_them() {
        let answers = json!({ "inputResponses": { "guest": { "action": "decline" }, "noise": {} } });
        let client = TestClient::modern(SCRIPT, all_capabilities());
        let refused =
            "Invalid requestState: it is missing, but inputResponses.guest answers a request that came with one";
        assert_eq!(error(&round(&client, answers.clone())), format!("-32602 {refused}"));
        let last = client.engine.journal().entries().pop().expect("an entry");
        assert_eq!(last.handling.to_string(), format!("refused: {refused}"));
        let later_step = round(&client, json!({ "inputResponses": { "poem": poem() } }));
        assert!(error(&later_step).starts_with("-32602 Invalid requestState: it is missing"), "{later_step}");
        let wrong = round(&client, json!({ "inputResponses": { "gest": ada_answer() } }));
        assert_eq!(wrong["result"]["inputRequests"]["guest"]["method"], "elicitation/create");
        let lenient = SCRIPT.replace("ttl: 5m", "required: false");
        let client = TestClient::modern(&lenient, all_capabilities());
        assert_eq!(round(&client, answers)["result"]["content"][0]["text"], "No guest (decline).");
    }

    #[test]
    fn an_invalid_answer_is_an_error() {
        let client = TestClient::modern(SCRIPT, all_capabilities());
        for (answers, expected) in [
            (Json::Null, "-32602 `inputResponses` must be an object"),
            (json!({ "guest": 5 }), "-32602 inputResponses.guest: a response must be an object"),
            (json!({ "guest": {} }), "-32602 inputResponses.guest: `action` must be accept, decline or cancel"),
            (
                json!({ "guest": { "action": "accept", "content": {} } }),
                "-32602 inputResponses.guest: content: \"name\" is a required property",
            ),
        ] {
            assert_eq!(error(&answer(&client, answers)), expected);
        }
        let client = TestClient::legacy(SCRIPT, all_capabilities())
            .answering("elicitation/create", json!({ "result": { "action": "accept" } }));
        let text = client.text("book", json!({ "city": "Rome" }));
        assert!(text.starts_with("The client's answer to elicitation/create is wrong: content"), "{text}");
    }

    #[test]
    fn a_changed_or_expired_state_or_one_of_another_request_is_refused() {
        let client = TestClient::modern(SCRIPT, all_capabilities());
        let state = round(&client, json!({}))["result"]["requestState"].as_str().expect("a state").to_owned();
        let changed = round(&client, json!({ "requestState": format!("{state}x") }));
        assert!(error(&changed).starts_with("-32602 Invalid requestState:"), "{changed}");
        let foreign = "-32602 Invalid requestState: it belongs to another request";
        let elsewhere = json!({ "name": "book", "arguments": { "city": "Rome" }, "requestState": state });
        assert_eq!(error(&client.call("tools/call", elsewhere)), foreign);
        assert_eq!(error(&client.call("tools/call", json!({ "name": "other", "requestState": state }))), foreign);
        client.advance(Duration::from_secs(301));
        let lapsed = round(&client, json!({ "requestState": state, "inputResponses": { "guest": ada_answer() } }));
        assert_eq!(error(&lapsed), "-32602 Invalid requestState: it has expired");
        let stranger = round(&client, json!({ "requestState": 5 }));
        assert_eq!(error(&stranger), "-32602 `requestState` must be a string");
    }

    #[test]
    fn a_client_without_the_capability_is_never_asked() {
        let modern = round(&TestClient::modern(SCRIPT, json!({ "sampling": {} })), json!({}));
        assert_eq!(error(&modern), "-32021 The client does not declare the capability elicitation");
        assert_eq!(modern["error"]["data"], json!({ "requiredCapabilities": { "elicitation": {} } }));
        let legacy = TestClient::legacy(SCRIPT, json!({ "roots": {} }));
        assert_eq!(legacy.text("book", json!({})), "The client does not declare the capability elicitation");
        // An optional input request is left out.
        let legacy = TestClient::legacy(SCRIPT, json!({ "elicitation": {}, "sampling": {} }))
            .answering("elicitation/create", json!({ "result": ada_answer() }))
            .answering("sampling/createMessage", json!({ "result": poem() }));
        assert!(legacy.text("book", json!({ "city": "X" })).contains("ode, 0 folders"));
        let prompt = TestClient::legacy(SCRIPT, json!({})).call("prompts/get", json!({ "name": "asks" }));
        assert_eq!(error(&prompt), "-32600 The client does not declare the capability roots");
    }

    #[test]
    fn forms_and_urls_are_two_abilities() {
        let script = "
tools:
  - { name: form, steps: [{ elicit: { message: m, requestedSchema: { type: object } } }, { reply: x }] }
  - { name: url, steps: [{ elicit: { mode: url, message: m, url: 'https://a.example', elicitationId: e } }, { reply: x }] }
";
        let asks = |tool: &str, elicitation: Json| {
            let client = TestClient::modern(script, json!({ "elicitation": elicitation }));
            client.tool(tool, json!({}))["result"]["resultType"] == "input_required"
        };
        assert!(asks("form", json!({})) && asks("form", json!({ "form": {}, "url": {} })));
        assert!(!asks("form", json!({ "url": {} })));
        assert!(asks("url", json!({ "url": {} })) && !asks("url", json!({})) && !asks("url", json!({ "form": {} })));
    }

    #[test]
    fn a_client_that_refuses_or_does_not_answer_gets_a_failure_and_late_answers_are_ignored() {
        let client = TestClient::legacy(SCRIPT, all_capabilities())
            .answering("elicitation/create", json!({ "error": { "code": -1, "message": "user went away" } }));
        assert_eq!(client.text("other", json!({})), "The client refused elicitation/create: user went away (-1)");
        let client = TestClient::legacy(SCRIPT, all_capabilities());
        let frames = client.exchange("tools/call", json!({ "name": "other" }));
        assert_eq!(frames[1]["method"], "notifications/cancelled");
        assert_eq!(frames[1]["params"]["requestId"], frames[0]["id"]);
        let text = &frames[2]["result"]["content"][0]["text"];
        assert_eq!(text, "The client did not answer elicitation/create within 60 s");
        let late = json!({ "jsonrpc": "2.0", "id": frames[0]["id"], "result": ada_answer() });
        let twice = "refused: a response to a request that the server did not send, or a second one";
        for expected in ["protocol", twice] {
            client.decision(&late);
            let last = client.engine.journal().entries().pop().expect("an entry");
            assert_eq!(last.handling.to_string(), expected);
        }
    }

    #[test]
    fn a_refusal_ends_the_call_and_the_answers_to_its_other_requests_are_right() {
        let script = "
tools:
  - name: both
    steps:
      - ask: { one: { elicit: { message: m, requestedSchema: { type: object } } }, two: { roots: {} } }
      - reply: x
";
        let client = TestClient::legacy(script, all_capabilities())
            .answering("elicitation/create", json!({ "error": { "code": -1, "message": "no" } }));
        let frames = client.exchange("tools/call", json!({ "name": "both" }));
        let request = frames.iter().find(|frame| frame["method"] == "roots/list").expect("a request");
        let text = &frames.last().expect("a response")["result"]["content"][0]["text"];
        assert_eq!(text, "The client refused elicitation/create: no (-1)");
        client.decision(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": { "roots": [] } }));
        let last = client.engine.journal().entries().pop().expect("an entry");
        assert_eq!(last.handling.to_string(), "protocol");
    }

    #[test]
    fn a_prompt_can_ask_in_both_eras() {
        let roots = json!({ "roots": [{ "uri": "file:///home" }] });
        let legacy = TestClient::legacy(SCRIPT, all_capabilities()).answering("roots/list", json!({ "result": roots }));
        let expected = "file:///home";
        let prompt = legacy.call("prompts/get", json!({ "name": "asks" }));
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], expected);
        let modern = TestClient::modern(SCRIPT, all_capabilities());
        let state = modern.call("prompts/get", json!({ "name": "asks" }))["result"]["requestState"].clone();
        let params = json!({ "name": "asks", "requestState": state, "inputResponses": { "folders": roots } });
        let prompt = modern.call("prompts/get", params);
        assert_eq!(prompt["result"]["messages"][0]["content"]["text"], expected);
    }
}
