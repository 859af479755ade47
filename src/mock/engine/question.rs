//! A question in the words of the version in which a client is asked.

use serde_json::{Map, Value as Json, json};

use super::{block, exchange::Exchange};
use crate::{
    mock::{
        script::{Question, includes},
        template::RenderError,
    },
    wire::{Era, Version},
};

impl Exchange {
    /// The `params` of a question as JSON text.
    pub(super) fn question_params(&mut self, question: &Question) -> Result<String, RenderError> {
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

    /// A URL has an id in 2025-11-25, which must be unique (Elicitation: URL Mode), and none since (2026-07-28,
    /// Changelog).
    fn identify(&self, question: &Question, params: &mut Map<String, Json>) {
        const ID: &str = "elicitationId";
        if self.era() == Era::Modern {
            params.shift_remove(ID);
        } else if !params.contains_key(ID) {
            let stub = self.catalog.script.stub(self.rule.stub).number;
            let what = format!("elicitation {stub} {}", question.name);
            params.insert(ID.into(), self.engine.seal.unguessable(&what, self.counts.of_stub).into());
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
            *messages = block::messages_known_to(version, std::mem::take(messages));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::super::test_client::TestClient;

    const SCRIPT: &str = "
tools:
  - { name: url, steps: [{ elicit: { mode: url, message: m, url: 'https://a.example' } }, { reply: x }] }
  - { name: named, steps: [{ elicit: { mode: url, message: m, url: 'https://a.example', elicitationId: e } }, { reply: x }] }
  - name: context
    steps: [{ sample: { messages: [{ role: user, content: { type: text, text: t } }], includeContext: '{{ args.of }}' } }, { reply: x }]
";

    fn asked(client: &TestClient, tool: &str, arguments: Json) -> Json {
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
        let id = |tool: &str| asked(&legacy, tool, json!({}))["elicitationId"].as_str().map(str::to_owned);
        let (first, second) = (id("url").expect("an id"), id("url").expect("an id"));
        assert!(first.len() == 32 && first != second, "{first} {second}");
        assert_eq!(id("named").as_deref(), Some("e"));
        let modern = TestClient::modern(SCRIPT, capabilities);
        for tool in ["url", "named"] {
            let expected = json!({ "mode": "url", "message": "m", "url": "https://a.example" });
            assert_eq!(asked(&modern, tool, json!({})), expected);
        }
    }

    #[test]
    fn context_is_asked_for_only_of_who_offers_it() {
        let of =
            |client: &TestClient, what: &str| asked(client, "context", json!({ "of": what }))["includeContext"].clone();
        let [plain, rich] = [json!({ "sampling": {} }), json!({ "sampling": { "context": {} } })];
        for client in [TestClient::legacy(SCRIPT, plain.clone()), TestClient::modern(SCRIPT, plain)] {
            assert_eq!((of(&client, "allServers"), of(&client, "none")), (Json::Null, json!("none")));
        }
        for client in [TestClient::legacy(SCRIPT, rich.clone()), TestClient::modern(SCRIPT, rich)] {
            assert_eq!(of(&client, "allServers"), "allServers");
        }
    }
}
