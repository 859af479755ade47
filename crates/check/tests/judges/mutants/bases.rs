//! The traces of conformant servers, which mutants change.

use std::{fs, path::Path, time::Duration};

use futures_util::future::join_all;
use rehearse_check::{CheckOptions, Tokens, VersionTraces, check};
use rehearse_client::{ServerParams, Target, ToolPermission};
use rehearse_conformance::{Evidence, Facts};
use rehearse_mock::{
    engine::Engine,
    journal::Journal,
    script::Script,
    serve::{ListenOptions, MockServer},
};
use rehearse_protocol::{Trace, Transport, Version};
use tokio::sync::OnceCell;

use crate::{
    delay::Slowness,
    pipe::serve,
    process::{ProcessFault, process},
};

/// A server whose tools come on pages, one without tools, one that answers with streams, one of the modern era alone, one
/// without sessions whose tool changes nothing, one whose skills have no folders, and one with tasks that cannot be listed.
const SMALL: [&str; 7] = [
    "pageSize: 1\ncapabilities: { logging: null }\ntools: [{ name: a, description: A, steps: [{ roots: { as: r, optional: true } }, { reply: x }] }, { name: b, description: B, annotations: { readOnlyHint: true }, outputSchema: { type: object, required: [n], properties: { t: { type: string, format: date-time } } }, reply: { structured: { n: 1, t: '2026-07-28T12:00:00Z' } } }]\nprompts: [{ name: p, description: P, arguments: [{ name: x }], messages: [{ role: user, content: Hello }] }]\n",
    "resources: [{ uri: 'file:///srv/a.txt', name: a, reply: x }]\n",
    "http: { answers: sse, priming: true }\ntools: [{ name: a, description: A, steps: [{ wait: 20ms }, { reply: x }] }]\n",
    "protocol: 2026-07-28\ntools: [{ name: a, description: A, inputSchema: { type: object, properties: { text: { type: string, x-mcp-header: Text }, count: { type: integer, x-mcp-header: Count }, flag: { type: boolean, x-mcp-header: Flag }, more: { type: string, x-mcp-header: More } }, required: [text, count, flag] }, reply: x }]\nprompts: [{ name: grüße, description: B, messages: [{ role: user, content: x }] }]\n",
    "protocol: 2025-11-25\nhttp: { sessions: false }\ntools: [{ name: a, description: A, annotations: { readOnlyHint: true }, reply: x }]\nresources: [{ uri: 'file:///srv/page.txt', name: page, reply: page 1 }]\n",
    "protocol: 2026-07-28\ncapabilities: { extensions: { io.modelcontextprotocol/skills: { directoryRead: null } } }\nskills: [{ name: a, description: A. }]\n",
    "protocol: 2025-11-25\ncapabilities: { tasks: {} }\nresources: [{ uri: 'file:///srv/a.txt', name: a, reply: x }]\n",
];

/// A server whose tools log, ask and take their time.
const BUSY: &str = r"
pageSize: 2
tools:
  - name: talk
    description: Logs and reports.
    annotations: { idempotentHint: true }
    steps:
      - log: { level: debug, logger: talk, data: 1 }
      - progress: { progress: 1 }
      - notify: { method: notifications/resources/updated, params: { uri: 'a://3' } }
      - reply: x
  - name: ask
    description: Asks.
    steps:
      - elicit: { message: Yes?, requestedSchema: { type: object, properties: { ok: { type: boolean } } } }
      - reply: x
  - name: slow
    description: Takes its time.
    inputSchema: { type: object, properties: { hide: { type: boolean } } }
    steps: [{ wait: 300ms }, { if: args.hide | default(false), disable: { resource: 'a://1' } }, { reply: x }]
resources:
  - { uri: 'a://1', name: one, reply: x }
  - { uri: 'a://2', name: two, reply: x }
  - { uri: 'a://3', name: three, reply: x }
prompts:
  - { name: p, arguments: [{ name: x }], messages: [{ role: user, content: '{{ args.x }}' }] }
";

/// A server with an app that asks for much, and one that asks for nothing.
const APPS: &str = r#"
protocol: [2025-11-25, 2026-07-28]
tools:
  - { name: map, description: A., reply: x, annotations: { readOnlyHint: true }, _meta: { ui: { resourceUri: 'ui://map', visibility: [model, app] } } }
  - { name: move, description: B., reply: x, _meta: { ui: { resourceUri: 'ui://plain', visibility: [app] }, ui/resourceUri: 'ui://plain' } }
resources:
  - uri: ui://map
    name: map
    mimeType: text/html;profile=mcp-app
    _meta: { ui: { prefersBorder: true, csp: { connectDomains: ['https://a.example'] } } }
    contents:
      - uri: ui://map
        mimeType: text/html;profile=mcp-app
        _meta:
          ui:
            prefersBorder: true
            permissions: { geolocation: {} }
            csp:
              connectDomains: ['https://a.example', 'wss://a.example']
              resourceDomains: ['https://*.cdn.example']
              frameDomains: ['https://video.example']
              baseUriDomains: ['https://a.example']
        text: |
          <!doctype html><base href="https://a.example/"><link rel=stylesheet href="https://x.cdn.example/s.css">
          <script src="https://x.cdn.example/m.js"></script><img src="https://x.cdn.example/i.png">
          <iframe src="https://video.example/v"></iframe><script>fetch("https://a.example/data")</script>
  - { uri: 'ui://plain', name: plain, mimeType: text/html;profile=mcp-app, blob: PCFkb2N0eXBlIGh0bWw+PGltZyBzcmM9ImRhdGE6LCI+ }
"#;

/// A server that speaks no version with a handshake.
const MODERN: &str = "protocol: 2026-07-28\ntools: [{ name: a, description: A, reply: x }]\n";

/// A server of two legacy versions, and one that requires a token.
const LEGACY: &str = "protocol: [2025-06-18, 2025-11-25]\ntools: [{ name: a, description: A, reply: x }]\n";
const LOCKED: &str = "auth: { scopes: [read], issuer: {}, tokens: [{ token: eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3In0.c2lnbmVk, scopes: [read, write] }, { token: reader, scopes: [read] }] }\ntools: [{ name: write, description: W, scopes: [write], annotations: { readOnlyHint: true }, reply: x }]\n";

/// The tools of `everything` that are called: a list that changes on the way is no good base for the change of an answer.
pub(crate) const CALLED: [&str; 14] = [
    "greet",
    "json_schema_2020_12_tool",
    "test_custom_header",
    "test_sampling",
    "test_elicitation",
    "test_input_required_*",
    "test_missing_capability",
    "test_error_handling",
    "failing_job",
    "protocol_error_job",
    "confirm_delete",
    "multi_input",
    "test_tool_with_task",
    "slow_compute",
];

/// The versions in which `everything` is probed on other transports than HTTP: those that differ most.
pub(crate) const FEW: [Version; 3] = [Version::V2024_11_05, Version::V2025_11_25, Version::V2026_07_28];

/// The token that the prober sends.
const TOKEN: &str = "rehearse-token";

/// The traces of the conformant server in one version over one transport.
pub(crate) struct Base {
    /// The number of its script.
    pub(crate) script: usize,
    pub(crate) endpoint: Option<String>,
    pub(crate) transport: Transport,
    pub(crate) run: VersionTraces,
}

/// The traces of runs for all checks.
pub(crate) async fn all_bases() -> &'static [Base] {
    static BASES: OnceCell<Vec<Base>> = OnceCell::const_new();
    BASES.get_or_init(|| bases_of(&[])).await
}

/// The traces of runs for these checks alone, or for all.
pub(crate) async fn bases_of(only: &[String]) -> Vec<Base> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../mock-servers/everything.yaml");
    let everything = fs::read_to_string(path).expect("the script");
    let scripts = [
        (everything.as_str(), Transport::Http),
        (&everything, Transport::Ws),
        (&everything, Transport::Sse),
        (SMALL[0], Transport::Http),
        (SMALL[1], Transport::Http),
        (SMALL[2], Transport::Http),
        (SMALL[3], Transport::Http),
        (SMALL[4], Transport::Http),
        (SMALL[5], Transport::Http),
        (SMALL[6], Transport::Http),
        (BUSY, Transport::Http),
        (APPS, Transport::Http),
        (BUSY, Transport::Ws),
        (MODERN, Transport::Ws),
        (LOCKED, Transport::Http),
        (LEGACY, Transport::Ws),
        (include_str!("../../scripts/tasks.yaml"), Transport::Http),
        (include_str!("../../scripts/tasks-2025-11-25.yaml"), Transport::Http),
    ];
    // A few at a time: on a busy machine a server that shares it with all others seems to be silent.
    let mut bases = Vec::new();
    for (first, scripts) in (0..).step_by(2).zip(scripts.chunks(2)) {
        let runs = (first..).zip(scripts).map(|(number, (script, transport))| served(number, script, *transport, only));
        bases.extend(join_all(runs).await.into_iter().flatten());
    }
    let (number, only) = (scripts.len(), only.to_vec());
    let recording = tokio::task::spawn_blocking(move || recorded(number, &everything, &only, None));
    bases.extend(recording.await.expect("no panic"));
    bases
}

/// The traces of a process with this script, in a time that is not real: how long a busy machine takes is not in them.
/// A slow one has a seed.
pub(crate) fn recorded(number: usize, script: &str, only: &[String], slow: Option<(Slowness, u64)>) -> Vec<Base> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let day = Duration::from_secs(24 * 60 * 60);
    let options = CheckOptions { versions: FEW.into(), budget: day, ..options(&CALLED, only) };
    runtime.expect("a runtime").block_on(piped(number, script, &options, slow))
}

/// The traces of a process with this script. A slow one has a seed.
async fn piped(number: usize, script: &str, options: &CheckOptions, slow: Option<(Slowness, u64)>) -> Vec<Base> {
    let (address, serving) = serve(script, slow);
    let run = check(&ServerParams::new("server", Target::Memory(address)), options).await;
    serving.abort();
    let as_process = |mut run: VersionTraces| {
        run.traces = run.traces.iter().map(|trace| process(trace, &ProcessFault::default())).collect();
        Base { script: number, endpoint: None, transport: Transport::Stdio, run }
    };
    run.traces.into_iter().map(as_process).collect()
}

pub(crate) fn options(tools: &[&str], only: &[String]) -> CheckOptions {
    let allowed = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let tools = ToolPermission { allowed, ..ToolPermission::default() };
    // The machine may be busy.
    let (request_timeout, budget) = (Duration::from_secs(60), Duration::from_secs(10 * 60));
    let grace = Duration::from_millis(150);
    let versions = Version::ALL.to_vec();
    let (checks, varied_prompts) = (only.to_vec(), vec!["*".to_owned()]);
    CheckOptions { versions, grace, request_timeout, budget, tools, varied_prompts, checks, ..CheckOptions::default() }
}

/// The traces of a server with this script.
async fn served(number: usize, script: &str, transport: Transport, only: &[String]) -> Vec<Base> {
    let source = rehearse_document::Source::new("script.yaml", script);
    let engine = Engine::new(Script::parse(&source).expect("a valid script"), 1, Journal::default());
    let server = MockServer::start(engine, ListenOptions::default()).await.expect("starts");
    let headers = (script == BUSY).then(|| ("Authorization".to_owned(), format!("Bearer {TOKEN}")));
    let at = rehearse_client::Endpoint {
        url: server.url(transport).expect("a URL"),
        headers: headers.into_iter().collect(),
    };
    let target = match transport {
        Transport::Http => Target::Http(at.clone()),
        Transport::Sse => Target::Sse(at.clone()),
        _ => Target::Ws(at.clone()),
    };
    let is_everything = script.contains("name: everything");
    let mut options = options(if is_everything { &CALLED } else { &["*"] }, only);
    if is_everything && transport != Transport::Http {
        options.versions = FEW.into();
    }
    if script == LOCKED {
        let token = |token: &str| Some(token.to_owned());
        options.tokens = Tokens {
            valid: token("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ3In0.c2lnbmVk"),
            low_scope: token("reader"),
            expired: token("expired"),
            wrong_audience: token("foreign"),
        };
    }
    let run = check(&ServerParams::new("server", target), &options).await;
    let base = |run| Base { script: number, endpoint: Some(at.url.clone()), transport, run };
    run.traces.into_iter().map(base).collect()
}

pub(crate) fn facts(base: &Base) -> Facts {
    let secrets = vec!["s3cret-of-the-environment".to_owned()];
    let canary = Some(("REHEARSE_CANARY", "canary-of-the-environment".to_owned()));
    Facts { is_local: true, secrets, canary, endpoint: base.endpoint.clone(), ..Facts::default() }
}

pub(crate) fn evidence<'t>(traces: &[&'t Trace], base: &Base) -> Evidence<'t> {
    Evidence::new(traces, base.run.version, base.transport, facts(base))
}
