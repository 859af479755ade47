//! Servers that require a token.

use std::{collections::BTreeMap, time::Duration};

use rehearse_check::{CheckOptions, RecordSink, Tokens, check};
use rehearse_client::{Endpoint, ServerParams, Target};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Event, EventKind, Transport, Version};
use rehearse_report::check::{CheckVerdict, CheckedServer};

const TOKEN: &str = "rehearse-secret";
const OFFERS: &str = "
tools: [{ name: a, description: A., annotations: { readOnlyHint: true }, reply: x }]
resources: [{ uri: 'test://a', name: a, reply: x }]
prompts: [{ name: p, messages: [{ role: user, content: x }] }]
";

async fn serve(auth: &str) -> MockServer {
    let source = rehearse_document::Source::new("script.yaml", format!("{OFFERS}{auth}"));
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    MockServer::start(engine, ListenOptions::default()).await.expect("starts")
}

fn target(server: &MockServer) -> Target {
    Target::Http(Endpoint { url: server.url(Transport::Http).expect("a URL"), headers: Vec::new() })
}

/// The verdicts on all checks but those of authorization, by version and id.
fn verdicts(checked: &CheckedServer) -> BTreeMap<(String, &str), CheckVerdict> {
    let all = checked.versions.iter().flat_map(|it| it.checks.iter().map(move |check| (it.version.to_string(), check)));
    let others = all.filter(|(_, check)| !check.id.starts_with("auth."));
    others.map(|(version, check)| ((version, check.id.as_str()), check.verdict)).collect()
}

#[tokio::test]
async fn a_server_behind_a_token_is_judged_in_every_version_as_one_without() {
    // The machine may be busy.
    let [grace, request_timeout, budget] = [1, 60, 600].map(Duration::from_secs);
    let versions = Version::ALL.to_vec();
    let options = CheckOptions { versions, grace, request_timeout, budget, ..CheckOptions::default() };
    let server = serve("").await;
    let open = check(&ServerParams::new("open", target(&server)), &options).await.checked;
    let server =
        serve(&format!("auth: {{ issuer: {{}}, scopes: [read], tokens: [{{ token: {TOKEN}, scopes: [read] }}] }}\n"))
            .await;
    let tokens = Tokens { valid: Some(TOKEN.to_owned()), ..Tokens::default() };
    let locked =
        check(&ServerParams::new("locked", target(&server)), &CheckOptions { tokens, ..options }).await.checked;
    assert!(open.versions.len() >= 4, "{:?}", open.error);
    let (open, behind) = (verdicts(&open), verdicts(&locked));
    let other: Vec<_> = open.iter().filter(|(key, verdict)| behind.get(key) != Some(verdict)).collect();
    assert!(other.is_empty(), "{other:?}");
    let tested = |id: &str, verdict| {
        let versions = locked.versions.iter().filter(|it| it.version >= Version::V2025_06_18);
        versions.flat_map(|it| &it.checks).filter(|it| it.id == id && it.verdict == verdict).count()
    };
    assert_eq!(tested("auth.issuer.identical", CheckVerdict::Pass), 3);
    assert_eq!(tested("auth.issuer.pkce", CheckVerdict::Pass), 2);
    assert_eq!(tested("auth.issuer.iss-parameter", CheckVerdict::Pass), 1);
}

#[tokio::test]
async fn an_authorization_server_on_another_origin_gets_no_token_and_is_not_judged_as_the_server() {
    let other = serve(
        "auth: { issuer: { metadata: { issuer: 'http://127.0.0.1/', code_challenge_methods_supported: null } } }\n",
    )
    .await;
    let address = other.address();
    // Nothing is asked that is nearer than the server, and nothing that is not secure.
    let named = format!("['http://{address}', 'http://10.0.0.1', 'file:///etc']");
    let auth = format!("auth: {{ authorizationServers: {named}, scopes: [read], tokens: [{{ token: {TOKEN} }}] }}\n");
    let server = serve(&auth).await;
    let requests: std::sync::Arc<parking_lot::Mutex<Vec<rehearse_client::ClientRecorder>>> = Default::default();
    let seen = requests.clone();
    let record_sink = RecordSink(Some(std::sync::Arc::new(move |_, recorder| seen.lock().push(recorder.clone()))));
    let options = CheckOptions { versions: vec![Version::LATEST], record_sink, ..CheckOptions::default() };
    let mut params = ServerParams::new("locked", target(&server));
    params.target.endpoint_mut().expect("a URL").headers.push(("X-Key".to_owned(), TOKEN.to_owned()));
    let checked = check(&params, &options).await.checked;
    let violated = checked.versions.iter().flat_map(|it| &it.checks).filter(|it| it.verdict <= CheckVerdict::Warn);
    let violated: Vec<_> = violated.map(|it| (it.id.as_str(), it.violations[0].found.as_str())).collect();
    assert_eq!(violated.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["auth.issuer.identical", "auth.issuer.pkce"]);
    let expected = format!("the issuer \"http://127.0.0.1/\", and the server names \"http://{address}\"");
    assert_eq!(violated[0].1, expected);
    let is_named = |events: &[Event]| {
        events.iter().any(|it| matches!(&it.kind, EventKind::Case(case) if case.starts_with("issuer/")))
    };
    let traces: Vec<Vec<Event>> = requests.lock().iter().map(|it| it.trace().events().cloned().collect()).collect();
    let asked: Vec<_> = traces.iter().filter(|events| is_named(events)).flatten().collect();
    let heads: Vec<_> = asked
        .iter()
        .filter_map(|it| match &it.kind {
            EventKind::HttpRequest { headers, target, .. } => Some((target.as_str(), headers)),
            _ => None,
        })
        .collect();
    assert_eq!(
        heads.iter().map(|(target, _)| *target).collect::<Vec<_>>(),
        ["/.well-known/oauth-authorization-server"]
    );
    assert!(heads.iter().all(|(_, headers)| !headers.contains_key("x-key") && !headers.contains_key("authorization")));
}
