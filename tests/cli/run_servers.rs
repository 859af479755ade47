//! Servers of scenarios that are commands on the network. The rest is in `tests/console/run-servers.md`.

use crate::rehearse::{Rehearse, Run};

const MOCK: &str = "server: { name: several }\ntools: [{ name: hello, reply: hello }]";

fn run(scenario: &str, args: &[&str]) -> Run {
    let scenario = scenario.replace("$REHEARSE", Rehearse::BINARY);
    let story = Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", &scenario).env("CI", "");
    story.args(["run", "demo.yaml"]).args(args.iter().copied()).run()
}

#[test]
fn a_command_has_its_address_for_itself() {
    let scenario = |address: &str| {
        format!(
            "servers: {{ s: {{ command: $REHEARSE, args: [mock, mock.yaml, --listen, '{address}'], url: 'http://{address}/mcp' }} }}\n\
             matrix: {{ protocol: [2025-06-18, 2025-11-25, 2026-07-28] }}\nsteps: [{{ call: {{ tool: hello }} }}]"
        )
    };
    let free = format!("127.0.0.1:{}", rehearse_client::free_port().expect("a port"));
    run(&scenario(&free), &["--jobs", "3"]).stdout_has("3 passed").code(0);
    let mut other = Rehearse::new().file("mock.yaml", MOCK).args(["mock", "mock.yaml", "--listen", ":0"]).start();
    let taken = other.address("http://", "/mcp");
    let found = format!("another server listens on {taken} already");
    run(&scenario(&taken), &[]).stdout_has(&found).code(3);
    other.signal("TERM");
    other.end();
}
