//! A server that does everything right, and slowly: it is never accused.

use std::time::Duration;

use futures_util::future::join_all;
use rehearse_check::{CheckOptions, check};
use rehearse_client::{ServerParams, Target, ToolPermission};
use rehearse_conformance::CheckVerdict;
use rehearse_protocol::Version;

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

/// A server whose tools change its lists and what others see of it.
const EVERYTHING: &str = include_str!("../../../../mock-servers/everything.yaml");

/// The checks that accuse the slow twin of a conformant server, in several runs at once and in these versions, or those of
/// a usual run.
async fn accused(script: &str, slowness: Slowness, seed: u64, versions: &[Version], runs: u64) -> Vec<String> {
    let (address, serving) = serve(script, Some((slowness, seed)));
    let server = &ServerParams::new("server", Target::Memory(address));
    let checking = (0..runs).map(|run| async move {
        let tools = ToolPermission { allowed: vec!["*".to_owned()], ..ToolPermission::default() };
        let (budget, varied_prompts) = (Duration::from_secs(30 * 60), vec!["*".to_owned()]);
        let (seed, versions) = (seed + run, versions.to_vec());
        let options = CheckOptions { tools, varied_prompts, seed, budget, versions, ..CheckOptions::default() };
        check(server, &options).await.checked
    });
    let all = join_all(checking).await;
    serving.abort();
    let mut accused = Vec::new();
    for version in all.iter().flat_map(|checked| &checked.versions) {
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

/// Runs with a clock of their own.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.expect("a runtime").block_on(future)
}

#[test]
fn a_slow_server_is_never_accused() {
    let all = (0..seeds(8)).flat_map(|seed| Slowness::ALL.map(|slowness| (slowness, seed)));
    let wrong: Vec<_> = all.flat_map(|(slowness, seed)| at_once(accused(SCRIPT, slowness, seed, &[], 1))).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// All connections of all versions are interleaved by the seed.
#[test]
fn a_server_whose_lists_change_is_never_accused_in_two_runs_at_once() {
    let seeds = 0..seeds(2);
    let wrong: Vec<_> =
        seeds.flat_map(|seed| at_once(accused(EVERYTHING, Slowness::Bursts, seed, &Version::ALL, 2))).collect();
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
