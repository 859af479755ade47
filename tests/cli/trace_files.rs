//! `rehearse record` on the network. The rest is in `tests/console/traces.md`.

use crate::rehearse::Rehearse;

#[test]
fn a_recorder_stands_between_client_and_server_over_http() {
    let mut mock = Rehearse::new().files_of("traces").args(["mock", "shop.yaml", "--listen", ":0"]).start();
    let to = format!("http://{}/mcp", mock.address("http://", "/mcp"));
    let recorder = ["record", "--trace-file", "trace.jsonl", "--listen", "0", "--to", &to];
    let mut recorder = Rehearse::new().args(recorder).start();
    let url = format!("http://{}/mcp", recorder.address("http://", "/mcp"));
    for protocol in ["2025-11-25", "2026-07-28"] {
        let call = ["mcp", "call-tool", "price", "item=fig", "--http", &url, "--protocol", protocol];
        Rehearse::new().args(call).run().stdout_has(" euro").code(0);
    }
    recorder.signal("TERM");
    let text = std::fs::read_to_string(recorder.path("trace.jsonl")).expect("a trace");
    assert!(text.contains("\"status\":200") && text.contains("1 euro") && text.contains("2 euro"), "{text}");
    let script = Rehearse::new().file("trace.jsonl", &text).args(["mock", "--from-trace", "trace.jsonl"]).run();
    script.stdout_has("name: shop").stdout_has("1 euro").code(0);
    recorder.end();
}
