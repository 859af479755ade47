//! The selection of the faults that apply to an answer.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{
    call::{parsed, rng},
    frames::Incoming,
    instance::Engine,
    legacy_session::LegacySession,
    params::{Params, optional_text},
};
use crate::{
    faults::Chain,
    script::{FaultTarget, ItemKind, LazyJson, RequestFacts},
};
use rehearse_protocol::{Era, Id, Message, Notification, Request, Version};

/// Separates the random numbers of faults from those of items, which have small numbers.
const DRAWN_FOR: usize = u32::MAX as usize;

impl Engine {
    /// Whether the script has any faults.
    pub fn has_faults(&self) -> bool {
        !self.catalog.load().script.faults.is_empty()
    }

    /// The faults that apply to a message and their names, with the id of the request.
    pub(super) fn select_faults(
        &self,
        session: Option<&Arc<LegacySession>>,
        message: &Message<'_>,
        incoming: Incoming<'_>,
    ) -> Option<(Option<Id>, Chain, Vec<&'static str>)> {
        let catalog = self.catalog.load();
        if catalog.script.faults.is_empty() {
            return None;
        }
        let (method, id, params) = match message {
            Message::Request(Request { method, id, params }) => (method, Some(id), *params),
            Message::Notification(Notification { method, params }) => (method, None, *params),
            Message::Response(_) => return None,
        };
        let of_params = Params::parse(params).unwrap_or_default();
        let meta = of_params.meta().unwrap_or_default();
        let text = |value| optional_text("", value).ok().flatten();
        let version = match session {
            Some(session) => session.version().or_else(|| text(of_params.protocol_version)?.parse().ok()),
            None => text(meta.protocol_version).and_then(|version| version.parse().ok()),
        };
        let era = if session.is_some() { Era::Legacy } else { Era::Modern };
        let latest = || Version::ALL.into_iter().rfind(|version| version.era() == era);
        let mut facts = RequestFacts {
            args: LazyJson::new(|| of_params.arguments.map_or_else(|| Json::Object(Map::new()), parsed)),
            params: LazyJson::new(|| params.map_or_else(|| Json::Object(Map::new()), parsed)),
            headers: incoming.headers,
            version: version.filter(|version: &Version| version.era() == era).or_else(latest)?,
            transport: incoming.transport,
            capabilities: LazyJson::new(|| match session {
                Some(session) => session.capabilities(),
                None => meta.client_capabilities.map(parsed).unwrap_or_default(),
            }),
            call: 0,
            state: LazyJson::new(|| Json::Object(Map::clone(&self.state.get()))),
            at: incoming.at,
            draw: 0.0,
        };
        let mut striking = Vec::new();
        for (index, rule) in catalog.script.faults.iter().enumerate() {
            let aimed = match &rule.target {
                // Faults apply to notifications only by name.
                FaultTarget::Everything => id.is_some(),
                FaultTarget::Method(wanted) => wanted == method,
                FaultTarget::Item(kind, name) => {
                    let member = if *kind == ItemKind::Resource { of_params.uri } else { of_params.name };
                    *method == kind.item_method() && text(member).is_some_and(|it| it == **name)
                }
            };
            if !aimed || !rule.when.covers(&facts) {
                continue;
            }
            facts.call = catalog.count_strike(index);
            facts.draw = rng(self.seed, facts.call, (DRAWN_FOR, index)).fraction();
            if rule.when.mismatches(&facts).is_empty() {
                let exists = rule.faults.iter().filter(|it| it.info().transports.contains(&facts.transport));
                striking.extend(exists.map(|fault| (fault.clone(), facts.call, index)));
            }
        }
        if striking.is_empty() {
            return None;
        }
        let names = striking.iter().map(|(fault, ..)| fault.info().name).collect();
        let seeded = striking.into_iter().enumerate().map(|(position, (fault, nth, index))| {
            (fault, rng(self.seed, nth, (DRAWN_FOR - 1 - position, index)).number())
        });
        Some((id.cloned(), Chain::new(id, seeded), names))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};
    use serde_json::json;

    use super::{super::decision::Decision, *};
    use crate::{faults::ResponsePart, journal::Journal, script::Script};
    use rehearse_document::Source;
    use rehearse_protocol::Transport;

    struct Mock {
        engine: Arc<Engine>,
        session: Arc<LegacySession>,
        transport: Transport,
        headers: Option<HeaderMap>,
    }

    impl Mock {
        fn new(faults: &str, seed: u64) -> Mock {
            let text = format!(
                "tools: [{{ name: a, reply: x }}, {{ name: b, reply: x }}]\nprompts: [{{ name: a, messages: [] }}]\nresources: [{{ uri: 'x://a', text: x }}]\nstate: {{ open: true }}\nfaults: {faults}\n"
            );
            let script = Script::parse(&Source::new("m", text)).unwrap_or_else(|error| panic!("{error}"));
            let (transport, headers) = (Transport::Memory, None);
            Mock { engine: Engine::new(script, seed, Journal::default()), session: Arc::default(), transport, headers }
        }

        fn send(&self, frame: Json, at: Duration) -> Decision {
            let bytes = Bytes::from(frame.to_string());
            let (transport, headers) = (self.transport, self.headers.as_ref());
            self.engine.receive(
                &self.session,
                Incoming { bytes: &bytes, transport, at, headers, token: None, session: None, faults: &[] },
            )
        }

        /// The first part of the answer that a fault has changed.
        fn strikes(&self, method: &str, params: Json, at: Duration) -> Option<ResponsePart> {
            let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            match self.send(frame, at) {
                Decision::Faulted(mut faulty) => Some(faulty.chain.push(ResponsePart::Begin).swap_remove(0)),
                _ => None,
            }
        }

        fn calls(&self, tool: &str) -> bool {
            self.strikes("tools/call", json!({ "name": tool }), Duration::ZERO).is_some()
        }

        fn initialize(&self, version: &str) -> bool {
            let params = json!({ "protocolVersion": version, "capabilities": { "roots": {} }, "clientInfo": {} });
            self.strikes("initialize", params, Duration::ZERO).is_some()
        }
    }

    fn modern(mut params: Json) -> Json {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": { "sampling": {} } });
        params
    }

    #[test]
    fn a_script_without_faults_has_no_faulty_answers() {
        let mock = Mock::new("[]", 1);
        assert!(!mock.engine.has_faults() && !mock.initialize("2025-11-25") && !mock.calls("a"));
        let mock = Mock::new("[{ do: hang }]", 1);
        assert!(mock.engine.has_faults() && mock.initialize("2025-11-25") && mock.calls("a"));
    }

    #[test]
    fn a_fault_hits_only_the_named_requests() {
        for (on, struck) in [
            ("method: tools/list", ["tools/list"].as_slice()),
            ("tool: a", &["a"]),
            ("prompt: a", &["prompt a"]),
            ("resource: 'x://a'", &["resource x://a"]),
            ("method: tools/call", &["a", "b"]),
            ("args: { x: 1 }", &["b"]),
            ("params: { name: a }", &["a", "prompt a"]),
            ("method: no/such, era: modern", &[]),
        ] {
            let known = on.replace("method: no/such, ", "");
            let mock = Mock::new(&format!("[{{ on: {{ {known} }}, do: hang }}]"), 1);
            mock.initialize("2025-11-25");
            let all = [
                ("tools/list", "tools/list", json!({})),
                ("a", "tools/call", json!({ "name": "a" })),
                ("b", "tools/call", json!({ "name": "b", "arguments": { "x": 1 } })),
                ("prompt a", "prompts/get", json!({ "name": "a" })),
                ("resource x://a", "resources/read", json!({ "uri": "x://a" })),
            ];
            let found = all
                .into_iter()
                .filter(|(_, method, params)| mock.strikes(method, params.clone(), Duration::ZERO).is_some());
            assert_eq!(found.map(|(name, ..)| name).collect::<Vec<_>>(), struck, "{on}");
        }
    }

    #[test]
    fn eras_versions_and_transports_are_distinguished() {
        let strikes = |on: &str, transport| {
            let mut mock = Mock::new(&format!("[{{ on: {{ {on} }}, do: hang }}]"), 1);
            mock.transport = transport;
            [
                mock.initialize("2025-06-18"),
                mock.calls("a"),
                mock.strikes("tools/call", modern(json!({ "name": "a" })), Duration::ZERO).is_some(),
            ]
        };
        assert_eq!(strikes("era: legacy", Transport::Memory), [true, true, false]);
        assert_eq!(strikes("era: modern", Transport::Memory), [false, false, true]);
        assert_eq!(strikes("version: 2025-06-18", Transport::Memory), [true, true, false]);
        assert_eq!(strikes("version: 2025-11-25", Transport::Memory), [false; 3]);
        assert_eq!(strikes("transport: ws", Transport::Memory), [false; 3]);
        assert_eq!(strikes("transport: ws", Transport::Ws), [true; 3]);
        assert_eq!(strikes("capabilities: { roots: {} }", Transport::Memory), [false, true, false], "not yet declared");
        assert_eq!(strikes("capabilities: { sampling: {} }", Transport::Memory), [false, false, true]);
    }

    #[test]
    fn the_requests_that_an_entry_covers_are_counted_for_it_alone() {
        let mock = Mock::new(
            "[{ on: { tool: a, call: 2 }, do: hang }, { on: { args: { x: 1 }, call: { every: 2 } }, do: reset }]",
            1,
        );
        mock.initialize("2025-11-25");
        let call = |tool: &str, x: i64| {
            mock.strikes("tools/call", json!({ "name": tool, "arguments": { "x": x } }), Duration::ZERO)
        };
        let (hang, reset) =
            (Some(ResponsePart::Stop(crate::faults::Stop::Hang)), Some(ResponsePart::Stop(crate::faults::Stop::Reset)));
        assert_eq!(call("b", 0), None);
        assert_eq!(call("a", 0), None, "the first of a");
        assert_eq!(call("b", 1), None, "the first with x");
        assert_eq!(call("a", 0), hang, "the second of a");
        assert_eq!(call("b", 1), reset, "the second with x");
        mock.engine.reset(Duration::ZERO);
        assert_eq!(
            [call("a", 1), call("a", 1)],
            [None, hang],
            "counted anew; the first entry stands first in the chain"
        );
    }

    #[test]
    fn chance_is_decided_by_the_seed() {
        let drawn = |seed| {
            let mock = Mock::new("[{ on: { tool: a, probability: 0.3 }, do: { delay: { max: 1s } } }]", seed);
            mock.initialize("2025-11-25");
            let strike = |_| mock.strikes("tools/call", json!({ "name": "a" }), Duration::ZERO);
            (0..200).map(strike).collect::<Vec<_>>()
        };
        let first = drawn(7);
        let struck = first.iter().flatten().count();
        assert!((30..90).contains(&struck), "{struck}");
        assert_eq!(first, drawn(7));
        assert_ne!(first, drawn(8));
        let times: std::collections::HashSet<_> = first.iter().flatten().map(|part| format!("{part:?}")).collect();
        assert!(times.len() > struck / 2, "every strike draws anew: {times:?}");
    }

    #[test]
    fn a_condition_matches_a_schedule_a_state_and_a_header() {
        let mut mock = Mock::new(
            "[{ on: { tool: a, time: { after: 5s, until: 10s }, state: { open: true }, headers: { x-t: y } }, do: hang }]",
            1,
        );
        mock.initialize("2025-11-25");
        let mut headers = HeaderMap::new();
        headers.insert("x-t", HeaderValue::from_static("y"));
        mock.headers = Some(headers);
        let at = |mock: &Mock, seconds| {
            mock.strikes("tools/call", json!({ "name": "a" }), Duration::from_secs(seconds)).is_some()
        };
        assert_eq!([4, 5, 9, 10].map(|seconds| at(&mock, seconds)), [false, true, true, false]);
        mock.headers = None;
        assert!(!at(&mock, 5));
        mock.headers = Some(HeaderMap::from_iter([("x-t".parse().expect("a name"), HeaderValue::from_static("y"))]));
        mock.engine.state().replace(Map::new());
        assert!(!at(&mock, 5));
    }

    #[test]
    fn a_fault_hits_a_notification_by_name_only_and_never_a_response() {
        let notification = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let struck = |faults: &str, frame: &Json| match Mock::new(faults, 1).send(frame.clone(), Duration::ZERO) {
            Decision::Faulted(faulty) => Some(faulty.id),
            _ => None,
        };
        assert_eq!(struck("[{ do: hang }]", &notification), None);
        assert_eq!(struck("[{ on: { method: notifications/initialized }, do: hang }]", &notification), Some(None));
        assert_eq!(struck("[{ do: hang }]", &json!({ "jsonrpc": "2.0", "id": 1, "result": {} })), None);
    }

    #[test]
    fn a_fault_that_a_transport_does_not_have_is_not_a_strike() {
        let mut mock = Mock::new("[{ do: [{ status: 500 }, { content_type: text/html }] }]", 1);
        assert!(!mock.initialize("2025-11-25"));
        mock.transport = Transport::Http;
        assert!(mock.initialize("2025-11-25"));
    }

    #[test]
    fn faults_hit_the_parts_of_a_batch_one_by_one() {
        let mock = Mock::new("[{ on: { tool: a }, do: hang }]", 1);
        mock.initialize("2025-03-26");
        let call =
            |tool: &str| json!({ "jsonrpc": "2.0", "id": tool, "method": "tools/call", "params": { "name": tool } });
        let Decision::Batch(parts) = mock.send(json!([call("a"), call("b")]), Duration::ZERO) else {
            panic!("a batch")
        };
        assert!(matches!(parts[..], [Decision::Faulted(_), Decision::Exchange(_)]), "{parts:?}");
    }
}
