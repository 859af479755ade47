//! The mocks that `rehearse` carries do nothing wrong, however many versions call their tools at once.

use std::{fs, path::Path, time::Duration};

use rehearse_check::{CheckOptions, check};
use rehearse_client::{Endpoint, ServerParams, Target, ToolPermission};
use rehearse_conformance::CheckVerdict;
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Transport, Version};

/// The mocks: not those that fail on purpose, need a token, or start slowly.
const SHIPPED: [&str; 11] = [
    "everything",
    "filesystem",
    "stateful-cart",
    "tasks",
    "basic",
    "elicitation",
    "paginated",
    "huge",
    "unicode",
    "modern-only",
    "stateless",
];
const TRANSPORTS: [Transport; 3] = [Transport::Http, Transport::Ws, Transport::Sse];

/// What the checks accuse a mock of.
async fn accused(name: &str, transport: Transport) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../mock-servers/{name}.yaml"));
    let script = fs::read_to_string(path).expect("the script");
    let source = rehearse_document::Source::new("script.yaml", script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let at = Endpoint { url: server.url(transport).expect("a URL"), headers: Vec::new() };
    let target = match transport {
        Transport::Http => Target::Http(at),
        Transport::Sse => Target::Sse(at),
        _ => Target::Ws(at),
    };
    let tools = ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() };
    // The machine may be busy.
    let (request_timeout, budget) = (Duration::from_secs(60), Duration::from_secs(10 * 60));
    let grace = Duration::from_millis(150);
    let versions = Version::ALL.into();
    let options = CheckOptions {
        tools,
        request_timeout,
        budget,
        grace,
        versions,
        counts_harm: true,
        counts_sdk: true,
        ..CheckOptions::default()
    };
    let checked = check(&ServerParams::new("server", target), &options).await.checked;
    let versions = checked.versions.iter();
    let all = versions.flat_map(|version| version.checks.iter().map(move |check| (version.version, check)));
    let bad = all.filter(|(_, check)| check.verdict <= CheckVerdict::Warn);
    // The texts of one tool are there to harm careless programs.
    let is_meant = |id: &str| name == "unicode" && ["safety.text.order", "safety.text.control"].contains(&id);
    let bad = bad.filter(|(_, check)| {
        let of_the_tool = || check.violations.iter().all(|it| it.subject.as_deref() == Some("collection"));
        !(is_meant(&check.id) && of_the_tool())
    });
    bad.map(|(version, check)| format!("{name} {transport} {version} {}: {:?}", check.id, check.violations)).collect()
}

/// `SHIPPED=all` checks each mock over each transport, as `make nightly` does, and `SHIPPED=NAME` one as well as those with
/// lists that tools change.
#[tokio::test]
async fn no_shipped_mock_is_accused_of_what_another_version_has_called() {
    let which = std::env::var("SHIPPED").unwrap_or_default();
    let some = [("everything", Transport::Http), ("filesystem", Transport::Ws)];
    let all = SHIPPED.iter().flat_map(|name| TRANSPORTS.iter().map(move |transport| (*name, *transport)));
    let mut wrong = Vec::new();
    for (name, transport) in all.filter(|it| which == "all" || which == it.0 || some.contains(it)) {
        wrong.extend(accused(name, transport).await);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
