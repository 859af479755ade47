//! The envelope of a result in each era.

use serde_json::{Map, Value as Json};

use super::catalog::Catalog;
use crate::script::Body;
use rehearse_protocol::{Era, List, Operation, names::META_SERVER_INFO};

/// The optional parts of a result's envelope.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Envelope<'a> {
    /// `_meta` as JSON text.
    pub(super) meta: Option<&'a str>,
    /// The cache scope, if the result may be cached.
    pub(super) cache: Option<CacheScope>,
    /// The reply of the script, if it may have members of the envelope.
    pub(super) reply: Option<&'a Body>,
}

/// 2026-07-28, Caching: Cache Scope Field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CacheScope {
    Public,
    Private,
}

impl Envelope<'_> {
    fn has_member(&self, name: &str) -> bool {
        self.reply.is_some_and(|body| body.member(name).is_some())
    }

    /// Interim results carry no hints (Caching: Cacheable Results).
    fn is_complete(&self) -> bool {
        let kind = self.reply.and_then(|body| body.member("resultType"));
        kind.is_none_or(|kind| kind.literal() == Some("\"complete\""))
    }
}

/// Whether clients may keep the results of a method (2026-07-28, Caching: Cacheable Results; SEP-2640 adds skills).
pub(super) fn is_cacheable(method: &str) -> bool {
    let others = ["server/discover", Operation::READ, "skills/list", "skills/get", "resources/directory/read"];
    List::of_method(method).is_some() || others.contains(&method)
}

impl Catalog {
    /// The cache scope of a result. Results that require a token are private.
    pub(super) fn cache_scope(&self, depends_on_caller: bool) -> CacheScope {
        match depends_on_caller || self.script.auth.is_some() {
            true => CacheScope::Private,
            false => CacheScope::Public,
        }
    }

    /// The result object around `members`, which are JSON members without braces.
    ///
    /// A modern result names its type, the server (2026-07-28, Basic: Per-response protocol fields) and, where it may
    /// be cached, for how long (Caching: a mock promises nothing, so 0). Members from the script take precedence.
    pub(super) fn result(&self, era: Era, members: &str, envelope: Envelope<'_>) -> String {
        let meta = envelope.meta.and_then(|meta| meta.strip_prefix('{')?.strip_suffix('}'));
        let meta = meta.filter(|meta| !meta.trim().is_empty());
        let mut out = String::with_capacity(members.len() + self.server_meta.len() + 96);
        out.push('{');
        let mut member = |text: &[&str]| {
            if out.len() > 1 {
                out.push(',');
            }
            text.iter().for_each(|part| out.push_str(part));
        };
        if !members.is_empty() {
            member(&[members]);
        }
        match (era, meta) {
            (Era::Legacy, None) => {}
            (Era::Legacy, Some(meta)) => member(&["\"_meta\":{", meta, "}"]),
            (Era::Modern, _) => {
                if !envelope.has_member("resultType") {
                    member(&["\"resultType\":\"complete\""]);
                }
                if let Some(scope) = envelope.cache.filter(|_| envelope.is_complete()) {
                    if !envelope.has_member("ttlMs") {
                        member(&["\"ttlMs\":0"]);
                    }
                    if !envelope.has_member("cacheScope") {
                        member(&["\"cacheScope\":", scope.as_json()]);
                    }
                }
                match meta {
                    None => member(&["\"_meta\":{", &self.server_meta, "}"]),
                    Some(meta) if names_server(meta) => member(&["\"_meta\":{", meta, "}"]),
                    Some(meta) => member(&["\"_meta\":{", meta, ",", &self.server_meta, "}"]),
                }
            }
        }
        out.push('}');
        out
    }
}

impl CacheScope {
    fn as_json(self) -> &'static str {
        match self {
            CacheScope::Public => "\"public\"",
            CacheScope::Private => "\"private\"",
        }
    }
}

/// Whether the members of a `_meta`, without braces, name the server.
fn names_server(meta: &str) -> bool {
    meta.contains(META_SERVER_INFO)
        && serde_json::from_str::<Map<String, Json>>(&format!("{{{meta}}}"))
            .is_ok_and(|it| it.contains_key(META_SERVER_INFO))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::super::test_client::TestClient;

    fn modern_and_legacy(script: &str, method: &str, params: &Json) -> [Json; 2] {
        let clients = [TestClient::modern(script, json!({})), TestClient::legacy(script, json!({}))];
        clients.map(|client| {
            let mut result = client.call(method, params.clone())["result"].take();
            if let Some(meta) = result.get_mut("_meta").and_then(Json::as_object_mut)
                && let Some(server) = meta.shift_remove(super::META_SERVER_INFO)
            {
                assert_eq!(server["name"], "s");
            }
            result
        })
    }

    #[test]
    fn a_result_of_a_script_gets_what_it_lacks_of_the_envelope_of_the_era() {
        let script = "
server: { name: s }
methods:
  - { method: acme/ping, reply: { result: { 'a\"b': 1, pong: '{{ call }}' } } }
  - { method: tools/list, reply: { result: { tools: [], _meta: { k: '{{ call }}' } } } }
  - { method: prompts/list, reply: { result: { prompts: [], ttlMs: 5, cacheScope: private } } }
  - { method: resources/list, replies: [{ result: { resultType: odd } }] }
tools: [{ name: t, reply: { result: { content: [] } } }]
resources: [{ uri: 'x:a', reply: { result: { contents: [] } } }]
";
        let both = |method: &str, params: Json| modern_and_legacy(script, method, &params);
        let [modern, legacy] = both("acme/ping", json!({}));
        assert_eq!(modern, json!({ "a\"b": 1, "pong": 1, "resultType": "complete", "_meta": {} }));
        assert_eq!(legacy, json!({ "a\"b": 1, "pong": 1 }));
        let [modern, legacy] = both("tools/list", json!({}));
        let hints =
            json!({ "tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "public", "_meta": { "k": 1 } });
        assert_eq!((modern, legacy), (hints, json!({ "tools": [], "_meta": { "k": 1 } })));
        let [modern, _] = both("prompts/list", json!({}));
        let own = json!({ "prompts": [], "ttlMs": 5, "cacheScope": "private", "resultType": "complete", "_meta": {} });
        assert_eq!(modern, own);
        let [modern, legacy] = both("resources/list", json!({}));
        assert_eq!((modern, legacy), (json!({ "resultType": "odd", "_meta": {} }), json!({ "resultType": "odd" })));
        let [modern, _] = both("tools/call", json!({ "name": "t" }));
        assert_eq!(modern, json!({ "content": [], "resultType": "complete", "_meta": {} }));
        let [modern, legacy] = both("resources/read", json!({ "uri": "x:a" }));
        assert_eq!((&modern["ttlMs"], &modern["cacheScope"]), (&json!(0), &json!("public")));
        assert_eq!(legacy, json!({ "contents": [] }));
    }

    #[test]
    fn the_server_is_named_once() {
        let script = "
tools: [{ name: t, reply: { text: x, _meta: { io.modelcontextprotocol/serverInfo: { name: other, version: '1' } } } }]";
        let client = TestClient::modern(script, json!({}));
        let frame = match client.decision(&client.request("tools/call", json!({ "name": "t" }))) {
            super::super::Decision::Exchange(mut exchange) => exchange.next_event(std::time::Duration::ZERO),
            other => panic!("{other:?}"),
        };
        let super::super::Event::Finish(answer) = frame else { panic!("no answer") };
        let text = String::from_utf8_lossy(&answer.frame).into_owned();
        assert_eq!(text.matches("serverInfo").count(), 1, "{text}");
    }

    #[test]
    fn results_that_depend_on_the_client_are_private() {
        let scope = |script: &str, method: &str, params: Json| {
            let client = TestClient::modern(script, json!({ "roots": {} }));
            client.call(method, params)["result"]["cacheScope"].as_str().map(str::to_owned).unwrap_or_default()
        };
        let read = |rest: &str| {
            let roots = json!({ "r": { "roots": [] } });
            scope(
                &format!("requestState: {{ required: false }}\nresources: [{{ uri: 'x:a', {rest} }}]"),
                "resources/read",
                json!({ "uri": "x:a", "inputResponses": roots }),
            )
        };
        let plain = "tools: [{ name: t, reply: x }]\nresources: [{ uri: 'x:a', text: '{{ call }}' }]\n";
        assert_eq!(scope(plain, "resources/read", json!({ "uri": "x:a" })), "public");
        assert_eq!(scope(plain, "tools/list", json!({})), "public");
        let secret = format!("{plain}auth: {{ tokens: [{{ token: t }}] }}\n");
        for (method, params) in
            [("resources/read", json!({ "uri": "x:a" })), ("tools/list", json!({})), ("server/discover", json!({}))]
        {
            assert_eq!(scope(&secret, method, params), "private", "{method}");
        }
        let greets = "resources: [{ uri: 'x:a', text: 'hello {{ headers.who | default(1) }}' }]";
        assert_eq!(scope(greets, "resources/read", json!({ "uri": "x:a" })), "private");
        let chooses = "resources: [{ uri: 'x:a', rules: [{ when: { capabilities: { roots: {} } }, text: a }] }]";
        assert_eq!(scope(chooses, "resources/read", json!({ "uri": "x:a" })), "private");
        assert_eq!(read("steps: [{ roots: { as: r } }, { reply: '{{ r.roots | length }}' }]"), "private");
        assert_eq!(read("text: a"), "private", "it answers a retry (Caching: Cache Key)");
    }
}
