//! Every check of an authorization server is seen to fail, and none accuses the mock's own issuer.
//!
//! The traces are real: the prober meets a mock. A bad issuer answers some requests otherwise.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use rehearse_check::{IssuerOptions, IssuerRun, Login, check_issuer};
use rehearse_client::download;
use rehearse_conformance::{CheckVerdict, Evidence, Facts, Role, checks_of, judge_all};
use rehearse_document::Source;
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Direction, Event, EventKind, Trace, Transport, Version};
use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

/// What a bad issuer answers otherwise.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadIssuer {
    /// The check that must report it.
    check: String,
    /// The case whose answers are changed, without `issuer/`, or several with spaces between them.
    on: String,
    status: Option<u16>,
    /// Headers; null removes one. `$URI` stands for the redirect URI of the request.
    #[serde(default)]
    header: Map<String, Value>,
    /// Members of the body; null removes one.
    body: Option<Map<String, Value>>,
    /// Parameters of the redirect; null removes one.
    #[serde(default)]
    redirect: Map<String, Value>,
    /// Checks that necessarily report it as well.
    #[serde(default)]
    also: Vec<String>,
    /// The verdict on the check.
    verdict: Option<CheckVerdict>,
    /// The specification allows it: no check reports it.
    #[serde(default)]
    allowed: bool,
}

const SCRIPT: &str =
    "auth: { scopes: [notes], issuer: { jwt: true, metadata: { client_id_metadata_document_supported: true } } }";

async fn mock(script: &str) -> MockServer {
    let script = Script::parse(&Source::new("mock.yaml", script)).unwrap_or_else(|error| panic!("{error}"));
    MockServer::start(Engine::new(script, 1, Journal::default()), ListenOptions::default()).await.expect("starts")
}

fn options(server: &MockServer, login: Option<Login>) -> IssuerOptions {
    let origin = format!("http://{}", server.address());
    IssuerOptions {
        resource: Some(format!("{origin}/mcp")),
        issuer: origin,
        named_by: None,
        client: None,
        port: 0,
        login,
        login_timeout: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
        checks: Vec::new(),
        shutdown: Default::default(),
    }
}

fn verdicts(run: &IssuerRun, verdict: CheckVerdict) -> Vec<(&str, Option<&str>)> {
    let checks = run.checked.versions.iter().flat_map(|version| &version.checks);
    checks.filter(|check| check.verdict == verdict).map(|check| (&*check.id, check.reason.as_deref())).collect()
}

fn violated(traces: &[Trace], options: &IssuerOptions) -> BTreeMap<String, CheckVerdict> {
    let (resource, endpoint) = (options.resource.clone(), Some(options.issuer.clone()));
    let facts = Facts { role: Role::Issuer, resource, endpoint, ..Facts::default() };
    let traces: Vec<_> = traces.iter().collect();
    let judged = judge_all(&Evidence::new(&traces, Version::LATEST, Transport::Http, facts));
    let violated = judged.into_iter().filter(|(_, outcome)| !outcome.judgement.violations.is_empty());
    violated.map(|(check, outcome)| (check.id.clone(), outcome.verdict)).collect()
}

impl BadIssuer {
    fn concerns(&self, case: &str) -> bool {
        let case = case.strip_prefix("issuer/").unwrap_or_default();
        self.on.split(' ').any(|on| case.strip_prefix(on).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    }

    fn answers(&self, traces: &[Trace]) -> Vec<Trace> {
        traces.iter().map(|trace| self.answers_in(trace)).collect()
    }

    fn answers_in(&self, trace: &Trace) -> Trace {
        let (mut out, mut concerned, mut uri) = (Trace::default(), BTreeSet::new(), String::new());
        for event in trace.events() {
            let is_concerned = concerned.contains(&event.exchange);
            let kind = match &event.kind {
                EventKind::Case(case) if self.concerns(case) => {
                    concerned.insert(event.exchange);
                    event.kind.clone()
                }
                EventKind::HttpRequest { target, .. } => {
                    let url = Url::parse("http://h").and_then(|base| base.join(target)).expect("a URL");
                    let redirect = url.query_pairs().find(|(name, _)| name == "redirect_uri");
                    uri = redirect.map(|(_, uri)| uri.into_owned()).unwrap_or_default();
                    event.kind.clone()
                }
                EventKind::HttpResponse { status, headers } if is_concerned => {
                    let mut headers = headers.clone();
                    for (name, value) in &self.header {
                        let name: HeaderName = name.parse().expect("a name");
                        match value.as_str().map(|value| value.replace("$URI", &uri)) {
                            Some(value) => drop(headers.insert(name, HeaderValue::from_str(&value).expect("a value"))),
                            None => drop(headers.remove(name)),
                        }
                    }
                    if let (Some(location), false) = (headers.get("location"), self.redirect.is_empty()) {
                        let location = self.redirected(location.to_str().expect("text"));
                        headers.insert("location", location);
                    }
                    let status = self.status.map_or(*status, |status| StatusCode::from_u16(status).expect("a status"));
                    EventKind::HttpResponse { status, headers }
                }
                EventKind::Frame(frame) if is_concerned && frame.direction == Direction::ServerToClient => {
                    self.body(&frame.bytes)
                }
                EventKind::HttpBody { direction: Direction::ServerToClient, bytes } if is_concerned => self.body(bytes),
                _ => event.kind.clone(),
            };
            out.push_event(Event { kind, ..event.clone() });
        }
        out
    }

    fn redirected(&self, location: &str) -> HeaderValue {
        let mut url = Url::parse(location).expect("a URL");
        let pairs: Vec<_> = url.query_pairs().into_owned().collect();
        let kept = pairs.into_iter().filter(|(name, _)| !self.redirect.contains_key(name));
        let added = self.redirect.iter().filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let all: Vec<_> = kept.chain(added).collect();
        url.query_pairs_mut().clear().extend_pairs(all);
        HeaderValue::from_str(url.as_str()).expect("a value")
    }

    fn body(&self, bytes: &Bytes) -> EventKind {
        let mut body: Value = serde_json::from_slice(bytes).unwrap_or_default();
        for (name, value) in self.body.iter().flatten() {
            let members = body.as_object_mut().expect("an object");
            match value {
                Value::Null => drop(members.remove(name)),
                value => drop(members.insert(name.clone(), value.clone())),
            }
        }
        EventKind::HttpBody { direction: Direction::ServerToClient, bytes: body.to_string().into() }
    }
}

#[tokio::test]
async fn every_check_reports_a_bad_issuer_and_none_that_of_the_mock() {
    let server = mock(SCRIPT).await;
    let options = options(&server, None);
    let run = check_issuer(&options).await;
    assert_eq!(verdicts(&run, CheckVerdict::NotTested), [], "all is tested");
    assert_eq!(violated(&run.traces, &options), BTreeMap::new());
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for line in include_str!("../bad-issuers.jsonl").lines() {
        let bad: BadIssuer = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut expected: BTreeSet<_> = bad.also.iter().cloned().collect();
        expected.extend((!bad.allowed).then(|| bad.check.clone()));
        let found = violated(&bad.answers(&run.traces), &options);
        let is_as_bad = bad.verdict.is_none_or(|verdict| found.get(&bad.check) == Some(&verdict));
        if !found.keys().eq(&expected) || !is_as_bad {
            wrong.push(format!("{}: {found:?} for {line}", bad.check));
        }
        seen.extend((!bad.allowed).then_some(bad.check));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let unseen: Vec<_> = checks_of(Role::Issuer).filter(|check| !seen.contains(&check.id)).map(|it| &it.id).collect();
    assert!(unseen.is_empty(), "without a bad issuer: {unseen:?}");
}

#[tokio::test]
async fn what_needs_a_code_is_tested_only_with_a_login() {
    // The page behind which a user logs in.
    let server = mock(&SCRIPT.replace("metadata: {", "metadata: { authorization_endpoint: '{origin}/mcp',")).await;
    let run = check_issuer(&options(&server, None)).await;
    let untested = verdicts(&run, CheckVerdict::NotTested);
    let without_login = untested.iter().filter(|(_, reason)| reason.is_some_and(|it| it.contains("--login")));
    assert_eq!((without_login.count(), untested.len()), (17, 20), "{untested:?}");
    assert_eq!(verdicts(&run, CheckVerdict::Fail), []);
    let login: Login = Arc::new(|url| {
        let page = url.replace("/mcp?", "/authorize?");
        tokio::spawn(async move { download(&page, Duration::from_secs(60), 1 << 20).await });
    });
    let run = check_issuer(&options(&server, Some(login))).await;
    assert_eq!(verdicts(&run, CheckVerdict::Fail), []);
    let untested: Vec<_> = verdicts(&run, CheckVerdict::NotTested).into_iter().map(|(id, _)| id).collect();
    let unasked = ["issuer.redirect.exact", "issuer.pkce.plain", "issuer.pkce.required"];
    assert_eq!(untested, unasked, "the page comes first");
}

#[tokio::test]
async fn a_server_that_gives_no_token_is_not_accused_of_how_it_refuses() {
    let server = mock(&SCRIPT.replace("jwt: true", "dpop: true")).await;
    let run = check_issuer(&options(&server, None)).await;
    assert_eq!((verdicts(&run, CheckVerdict::Fail), verdicts(&run, CheckVerdict::Warn)), (vec![], vec![]));
    let untested = verdicts(&run, CheckVerdict::NotTested);
    let reason = Some("the server gave no token for a valid code");
    for check in ["issuer.pkce.verifier-wrong", "issuer.pkce.verifier-long", "issuer.code.single-use"] {
        assert!(untested.contains(&(check, reason)), "{untested:?}");
    }
}
