//! An input request in the form of the client's protocol version.

use std::time::Duration;

use serde_json::{Map, Value as Json, json};

use super::{
    content_block,
    exchange::{Event, Exchange},
    exchange_end::ExchangeEnd,
};
use crate::script::{InputRequest, includes};
use rehearse_document::template::RenderError;
use rehearse_protocol::{
    Era, RpcError, Version,
    message::{INVALID_REQUEST, MISSING_CAPABILITY},
};

impl Exchange {
    /// The `params` of an input request as JSON text.
    pub(super) fn input_params(&mut self, question: &InputRequest) -> Result<String, RenderError> {
        let text = self.json(&question.params)?;
        if question.method == "roots/list" || question.form.is_some() {
            return Ok(text);
        }
        let Ok(mut params) = serde_json::from_str::<Map<String, Json>>(&text) else { return Ok(text) };
        match question.method {
            "elicitation/create" => self.identify(question, &mut params),
            _ => self.date(&mut params),
        }
        Ok(Json::Object(params).to_string())
    }

    /// No input is requested before the handshake is over (2025-11-25, Lifecycle: Initialization): the step is taken again
    /// when it is; `None` if that is so already.
    pub(super) fn await_initialized(&mut self, step: usize, limit: Duration, at: Duration) -> Option<Event> {
        if self.initialized.take().is_some() {
            let text = "The client cannot be asked: it has not sent notifications/initialized";
            let outcome = self.failure(text);
            return Some(self.conclude(outcome, at));
        }
        self.initialized = Some(self.origin.session.as_ref()?.wait_initialized()?);
        (self.next, self.resumed) = (Some(step), Some(step));
        Some(Event::Await(limit))
    }

    /// The failure of a call whose client lacks a capability.
    pub(super) fn lacks_capability(&mut self, questions: &[&InputRequest]) -> ExchangeEnd {
        let (mut needs, forms) = (Map::new(), json!({ "form": {} }));
        for (name, need) in questions.iter().filter_map(|question| question.needs.as_object()).flatten() {
            // A client that declares elicitation without forms lacks only forms.
            let lacks_forms = name == "elicitation" && self.origin.capabilities.get(name).is_some();
            let need = if lacks_forms && need.as_object().is_some_and(Map::is_empty) { &forms } else { need };
            // A requirement with settings is more specific than one without.
            if need.as_object().is_some_and(|settings| !settings.is_empty()) || !needs.contains_key(name) {
                needs.insert(name.clone(), need.clone());
            }
        }
        let names: Vec<_> = needs.keys().map(String::as_str).collect();
        let text = match self.origin.session.as_ref().is_some_and(|session| session.is_stateless()) {
            true => {
                "The client cannot be asked: without sessions (`http.sessions`) its answers have no way back".into()
            }
            false => format!("The client does not declare the capability {}", names.join(", ")),
        };
        match self.era() {
            Era::Modern => {
                let error = RpcError::new(MISSING_CAPABILITY, text);
                ExchangeEnd::Error(error.with_data(json!({ "requiredCapabilities": needs })), None)
            }
            Era::Legacy => match self.failure(&text) {
                ExchangeEnd::Error(_, status) => ExchangeEnd::Error(RpcError::new(INVALID_REQUEST, text), status),
                outcome => outcome,
            },
        }
    }

    /// A URL has an id in 2025-11-25, which must be unique (Elicitation: URL Mode), and none since (2026-07-28,
    /// Changelog).
    fn identify(&self, question: &InputRequest, params: &mut Map<String, Json>) {
        const ID: &str = "elicitationId";
        if self.era() == Era::Modern {
            params.shift_remove(ID);
        } else if !params.contains_key(ID) {
            let item = self.catalog.script.item(self.rule.item).number;
            let what = format!("elicitation {item} {}", question.name);
            params.insert(ID.into(), self.engine.signer.unguessable(&what, self.counts.item_calls).into());
        }
    }

    /// Messages have the blocks that the version has, and a client that does not offer context since 2025-11-25 is not
    /// asked for any (2025-11-25, Sampling: Capabilities; 2026-07-28, Sampling).
    fn date(&self, params: &mut Map<String, Json>) {
        let version = self.origin.version;
        let has_context = || includes(&self.origin.capabilities, &json!({ "sampling": { "context": {} } }));
        if version >= Version::V2025_11_25
            && params.get("includeContext").is_some_and(|it| it != "none")
            && !has_context()
        {
            params.shift_remove("includeContext");
        }
        if let Some(Json::Array(messages)) = params.get_mut("messages") {
            *messages = content_block::downgrade_messages(version, std::mem::take(messages));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::{
        super::{Decision, test_client::TestClient},
        *,
    };

    const SCRIPT: &str = "
tools:
  - { name: url, steps: [{ elicit: { mode: url, message: m, url: 'https://a.example' } }, { reply: x }] }
  - { name: named, steps: [{ elicit: { mode: url, message: m, url: 'https://a.example', elicitationId: e } }, { reply: x }] }
  - name: context
    steps: [{ sample: { messages: [{ role: user, content: { type: text, text: t } }], includeContext: '{{ args.of }}' } }, { reply: x }]
";

    fn input_request(client: &TestClient, tool: &str, arguments: Json) -> Json {
        let frame = client.exchange("tools/call", json!({ "name": tool, "arguments": arguments })).swap_remove(0);
        let request = match frame["result"]["inputRequests"].as_object() {
            Some(requests) => requests.values().next().expect("a question"),
            None => &frame,
        };
        request["params"].clone()
    }

    #[test]
    fn a_url_has_an_id_where_the_version_wants_one() {
        let capabilities = json!({ "elicitation": { "url": {} } });
        let legacy = TestClient::legacy(SCRIPT, capabilities.clone());
        let id = |tool: &str| input_request(&legacy, tool, json!({}))["elicitationId"].as_str().map(str::to_owned);
        let (first, second) = (id("url").expect("an id"), id("url").expect("an id"));
        assert!(first.len() == 32 && first != second, "{first} {second}");
        assert_eq!(id("named").as_deref(), Some("e"));
        let modern = TestClient::modern(SCRIPT, capabilities);
        for tool in ["url", "named"] {
            let expected = json!({ "mode": "url", "message": "m", "url": "https://a.example" });
            assert_eq!(input_request(&modern, tool, json!({})), expected);
        }
    }

    #[test]
    fn context_is_requested_only_from_servers_that_offer_it() {
        let of = |client: &TestClient, what: &str| {
            input_request(client, "context", json!({ "of": what }))["includeContext"].clone()
        };
        let [plain, rich] = [json!({ "sampling": {} }), json!({ "sampling": { "context": {} } })];
        for client in [TestClient::legacy(SCRIPT, plain.clone()), TestClient::modern(SCRIPT, plain)] {
            assert_eq!((of(&client, "allServers"), of(&client, "none")), (Json::Null, json!("none")));
        }
        for client in [TestClient::legacy(SCRIPT, rich.clone()), TestClient::modern(SCRIPT, rich)] {
            assert_eq!(of(&client, "allServers"), "allServers");
        }
    }

    const TWO: &str = "
tools:
  - name: both
    steps:
      - ask: { first: { roots: {} }, second: { sample: { messages: [] } } }
      - reply: x
  - { name: slow, steps: [{ wait: 1s }, { roots: {} }, { reply: done }] }
";

    fn both_eras() -> Json {
        json!({ "roots": {}, "sampling": {} })
    }

    #[test]
    fn one_refusal_ends_the_call_and_cancels_the_other_question() {
        let client = TestClient::legacy(TWO, both_eras())
            .answering("sampling/createMessage", json!({ "error": { "code": -1, "message": "no" } }));
        let frames = client.exchange("tools/call", json!({ "name": "both" }));
        assert_eq!(frames[2]["method"], "notifications/cancelled");
        assert_eq!(
            frames[2]["params"],
            json!({ "requestId": frames[0]["id"], "reason": "another request was refused" })
        );
        let text = &frames[3]["result"]["content"][0]["text"];
        assert_eq!(text, "The client refused sampling/createMessage: no (-1)");
        assert_eq!(client.clock.get(), Duration::ZERO, "no wait");
    }

    #[test]
    fn open_requests_are_cancelled_with_the_call() {
        let client = TestClient::legacy(TWO, both_eras());
        let Decision::Exchange(mut exchange) =
            client.decision(&client.request("tools/call", json!({ "name": "both" })))
        else {
            panic!("no exchange");
        };
        let first = exchange.next_event(Duration::ZERO);
        let second = exchange.next_event(Duration::ZERO);
        assert!(matches!((first, second), (Event::Send(_), Event::Send(_))));
        assert!(matches!(exchange.next_event(Duration::ZERO), Event::Await(_)));
        client.decision(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "roots": [] } }));
        assert!(exchange.poll_answers(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(exchange);
        let cancelled = client.unasked.take();
        assert_eq!(cancelled.len(), 1, "{cancelled:?}");
        assert_eq!(
            (&cancelled[0]["method"], &cancelled[0]["params"]["requestId"]),
            (&json!("notifications/cancelled"), &json!(2))
        );
    }

    #[test]
    fn no_request_is_sent_before_the_handshake_ends() {
        let client =
            TestClient::uninitialized(TWO, both_eras()).answering("roots/list", json!({ "result": { "roots": [] } }));
        let Decision::Exchange(mut exchange) =
            client.decision(&client.request("tools/call", json!({ "name": "slow" })))
        else {
            panic!("no exchange");
        };
        let second = Duration::from_secs(1);
        assert!(matches!(exchange.next_event(Duration::ZERO), Event::Wait(time) if time == second));
        assert!(matches!(exchange.next_event(second), Event::Await(_)));
        let mut context = Context::from_waker(Waker::noop());
        assert!(exchange.poll_answers(&mut context).is_pending());
        client.initialized();
        assert!(exchange.poll_answers(&mut context).is_ready());
        assert!(matches!(exchange.next_event(second), Event::Send(_)));
        let gone = TestClient::uninitialized(TWO, both_eras());
        let Decision::Exchange(mut exchange) = gone.decision(&gone.request("tools/call", json!({ "name": "slow" })))
        else {
            panic!("no exchange");
        };
        exchange.next_event(Duration::ZERO);
        assert!(matches!(exchange.next_event(second), Event::Await(_)));
        gone.session.close_input();
        assert!(exchange.poll_answers(&mut context).is_ready());
        let silent = TestClient::uninitialized(TWO, both_eras());
        assert_eq!(
            silent.text("slow", json!({})),
            "The client cannot be asked: it has not sent notifications/initialized"
        );
    }

    #[test]
    fn a_client_without_a_session_gets_the_reason_for_no_request() {
        let client = TestClient::stateless(TWO);
        let why = "The client cannot be asked: without sessions (`http.sessions`) its answers have no way back";
        assert_eq!(client.text("slow", json!({})), why);
    }
}
