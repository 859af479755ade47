//! Single frames of a legacy client, in an open session and before it.

use super::*;

const REQUEST: i64 = -32_600;
const METHOD: i64 = -32_601;

/// The rows of a session in this version.
fn session(version: &str) -> Vec<Row> {
    // Until 2025-06-18 input validation is a protocol error.
    let validation = match version >= "2025-11-25" {
        true => "in a session since 2025-11-25 (Changelog: SEP-1303)",
        false => "in a session until 2025-06-18",
    };
    let batches = if version == "2025-03-26" { "batches in 2025-03-26" } else { "batches in other versions" };
    ["broken in every version", "in a session", validation, batches].into_iter().flat_map(rows).collect()
}

/// The rows before there is a session.
fn unopened() -> Vec<Row> {
    ["broken in every version", "before the handshake"].into_iter().flat_map(rows).collect()
}

#[tokio::test]
async fn frames_of_a_legacy_session() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        for (on, mut line) in line::Line::open_all(&engine, &server).await {
            let hello = line.exchange(initialize(version, &json!({})).to_string().as_bytes()).await;
            assert_eq!(hello[0]["result"]["protocolVersion"], version);
            for row in session(version) {
                row.check(&format!("{on} in {version}"), &line.exchange(&row.frame).await);
            }
            // Lifecycle: Initialization (the answer is open).
            let again = line.exchange(initialize(version, &json!({})).to_string().as_bytes()).await;
            assert_eq!(again[0]["result"]["protocolVersion"], version, "a second handshake on {on}");
            if version == "2025-03-26" {
                let batch = json!([
                    request(1, "ping", json!({})),
                    7,
                    initialize(version, &json!({})),
                    request(2, "nope", json!({}))
                ]);
                let replies: Vec<_> = line.exchange(batch.to_string().as_bytes()).await;
                let replies: Vec<_> =
                    replies.iter().map(|frame| (frame["id"].clone(), frame["error"]["code"].clone())).collect();
                let (ok, bad) = ((json!(1), Json::Null), (Json::Null, json!(REQUEST)));
                assert_eq!(
                    replies,
                    [ok, bad, (json!(0), json!(REQUEST)), (json!(2), json!(METHOD))],
                    "each part for itself"
                );
            }
        }
        let opened = sessions::Session::open(&server, version).await;
        let again = initialize(version, &json!({})).to_string();
        assert_eq!(opened.post(again.as_bytes()).await.code(), Some(REQUEST), "a second handshake in a session");
        for row in session(version) {
            row.check_http(&opened.post(&row.frame).await);
            let header = [("mcp-protocol-version", version)];
            let ping = request(1, "ping", json!({})).to_string();
            assert_eq!(opened.send("POST", &header, ping.as_bytes()).await.status, 200);
        }
    }
}

#[tokio::test]
async fn frames_before_the_handshake() {
    let engine = engine(SCRIPT);
    let server = serve(&engine).await;
    for (on, mut line) in line::Line::open_all(&engine, &server).await {
        for row in unopened() {
            row.check(on, &line.exchange(&row.frame).await);
        }
        let unknown = line.exchange(initialize("1999-01-01", &json!({})).to_string().as_bytes()).await;
        assert_eq!(unknown[0]["result"]["protocolVersion"], "2025-11-25", "Lifecycle: Version Negotiation");
    }
    let address = server.address().to_string();
    let client = http::Http::new(&address);
    for row in unopened() {
        row.check_http(&client.post("/mcp", &[BOTH, IS_JSON], &row.frame).await);
    }
}
