//! A server that does everything right, and slowly: it is never accused.

use std::time::Duration;

use rehearse_check::{CheckOptions, check};
use rehearse_client::{ServerParams, Target, ToolPermission};
use rehearse_conformance::CheckVerdict;

use crate::{
    delay::{Slowness, seeds},
    pipe::serve,
};

const SCRIPT: &str = r#"
tools:
  - { name: a, annotations: { readOnlyHint: true }, inputSchema: { type: object, properties: { x: { type: string } } }, reply: x }
resources: [{ uri: "file:///srv/a.txt", name: a, reply: x }]
prompts: [{ name: p, arguments: [{ name: x }], messages: [{ role: user, content: x }] }]
"#;

/// The checks that accuse the slow twin of a conformant server.
async fn accused(slowness: Slowness, seed: u64) -> Vec<String> {
    let (address, serving) = serve(SCRIPT, Some((slowness, seed)));
    let tools = ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() };
    let (budget, varied_prompts) = (Duration::from_secs(10 * 60), vec!["*".to_owned()]);
    let options = CheckOptions { tools, varied_prompts, seed, budget, ..CheckOptions::default() };
    let checked = check(&ServerParams::new("server", Target::Memory(address)), &options).await.checked;
    serving.abort();
    let mut accused = Vec::new();
    for version in &checked.versions {
        let violated = version.checks.iter().filter(|check| check.verdict <= CheckVerdict::Warn);
        accused.extend(violated.map(|check| {
            format!(
                "{slowness:?} {seed} {}: {} {:?}",
                version.version,
                check.id,
                check.violations.first().map(|it| it.found.clone())
            )
        }));
    }
    accused
}

#[test]
fn a_slow_server_is_never_accused() {
    let mut wrong = Vec::new();
    for seed in 0..seeds(8) {
        for slowness in Slowness::ALL {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            wrong.extend(runtime.expect("a runtime").block_on(accused(slowness, seed)));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
