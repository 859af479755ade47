//! A script is read or every mistake in it has a place in the file; one that is read can be served.

#![no_main]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use libfuzzer_sys::{Corpus, fuzz_target};
use rehearse_document::{Source, parse_yaml};
use rehearse_mock::{
    engine::Engine, internals::Decision, internals::Event, internals::Incoming, internals::LegacySession,
    journal::Journal, script::Script,
};
use rehearse_protocol::Transport;
use serde_json::{Value as Json, json};

/// Sends a request and plays the answer without waiting; the result, if there is one.
fn ask(engine: &Arc<Engine>, session: &Arc<LegacySession>, method: &str, params: Json) -> Json {
    let bytes = Bytes::from(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string());
    let incoming = Incoming {
        bytes: &bytes,
        transport: Transport::Memory,
        at: Duration::ZERO,
        headers: None,
        token: None, session: None,
        faults: &[],
    };
    let decision = match engine.receive(session, incoming) {
        Decision::Faulted(faulty) => faulty.decision,
        decision => decision,
    };
    let frame = match decision {
        Decision::Respond(answer) => answer.frame,
        Decision::Exchange(mut exchange) => (0..1000)
            .find_map(|_| match exchange.next_event(Duration::ZERO) {
                Event::Finish(answer) | Event::Detach(answer) => Some(answer.frame),
                Event::Exit(_) => Some(Bytes::new()),
                _ => None,
            })
            .unwrap_or_default(),
        other => panic!("{method} is answered by {other:?}"),
    };
    let answer: Json = serde_json::from_slice(&frame).unwrap_or_default();
    answer["result"].clone()
}

fn serve(script: Script) {
    let era = if script.versions.iter().any(|version| version.as_str() < "2026") { 0 } else { 1 };
    let (engine, session) = (Engine::new(script, 1, Journal::default()), Arc::<LegacySession>::default());
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
    });
    let with_meta = |mut params: Json| {
        if era == 1 {
            params["_meta"] = meta.clone();
        }
        params
    };
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {} });
    ask(&engine, &session, "initialize", hello);
    for (list, members, name, method) in [
        ("tools/list", "tools", "name", "tools/call"),
        ("prompts/list", "prompts", "name", "prompts/get"),
        ("resources/list", "resources", "uri", "resources/read"),
        ("resources/templates/list", "resourceTemplates", "uriTemplate", "resources/read"),
    ] {
        let result = ask(&engine, &session, list, with_meta(json!({})));
        for item in result[members].as_array().into_iter().flatten().take(5) {
            let key = if name == "uriTemplate" { "uri" } else { name };
            ask(&engine, &session, method, with_meta(json!({ key: item[name], "arguments": {} })));
        }
    }
    let _ = engine.verify().to_string();
}

fuzz_target!(|text: &str| -> Corpus {
    let source = Source::new("f", text);
    let read_as_yaml = parse_yaml(&source).is_ok();
    match Script::parse(&source) {
        Ok(script) => {
            assert!(read_as_yaml);
            serve(script);
        }
        Err(mistakes) => {
            let shown = mistakes.to_string();
            assert!(!shown.is_empty());
            for line in shown.lines().filter(|line| line.starts_with("f:")) {
                let mut parts = line.splitn(4, ':').skip(1);
                let mut number = || parts.next().and_then(|part| part.parse::<usize>().ok());
                assert!(number().is_some_and(|line| line >= 1) && number().is_some_and(|column| column >= 1), "{line}");
            }
        }
    }
    Corpus::Keep
});
