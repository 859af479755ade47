use std::time::Duration;

use serde_json::{Value, json, value::RawValue};

use super::*;
use rehearse_protocol::RpcError;

const CALL: Call<'_> = Call { id: "t1", server: "files", tool: "read" };

const TEXT: &str = r#"{"type":"text","text":"one"}"#;
const IMAGE: &str = r#"{"type":"image","data":"QUJD","mimeType":"image/png"}"#;
const AUDIO: &str = r#"{"type":"audio","data":"QUJDRA==","mimeType":"audio/wav"}"#;
const LINK: &str =
    r#"{"type":"resource_link","uri":"file:///a","name":"a","mimeType":"text/plain","description":"an a"}"#;
const NOTE: &str = r#"{"type":"resource","resource":{"uri":"file:///b","mimeType":"text/plain","text":"hello"}}"#;
const FILM: &str = r#"{"type":"resource","resource":{"uri":"file:///c","mimeType":"video/mp4","blob":"QUJD"}}"#;

fn outcome(result: &str) -> ToolOutcome {
    ToolOutcome::parse(RawValue::from_string(result.to_owned()).expect("JSON")).expect("a result")
}

fn content(blocks: &[&str]) -> ToolOutcome {
    outcome(&format!(r#"{{"content":[{}]}}"#, blocks.join(",")))
}

fn failing(blocks: &[&str]) -> ToolOutcome {
    outcome(&format!(r#"{{"content":[{}],"isError":true}}"#, blocks.join(",")))
}

fn projected(projection: Projection, outcome: &ToolOutcome) -> Value {
    serde_json::to_value(project(projection, &CALL, Ok(outcome))).expect("serialises")
}

fn failed(projection: Projection, failure: &Failure) -> Value {
    serde_json::to_value(project(projection, &CALL, Err(failure))).expect("serialises")
}

fn rejected(projection: Projection, rejection: &CallRejection) -> Value {
    serde_json::to_value(reject(projection, &CALL, rejection)).expect("serialises")
}

fn cpe_text(text: &str) -> Value {
    json!({ "id": "t1", "block_type": "content", "modality_type": "text", "mime_type": "text/plain", "content": text })
}

fn cpe_media(modality: &str, mime_type: &str, data: &str) -> Value {
    json!({ "id": "t1", "block_type": "content", "modality_type": modality, "mime_type": mime_type, "content": data })
}

#[test]
fn every_projection_reads_back_from_its_name_and_unknown_names_are_errors() {
    for projection in Projection::ALL {
        assert_eq!(projection.to_string().parse(), Ok(projection));
    }
    let error = "gai".parse::<Projection>().expect_err("no projection").to_string();
    assert_eq!(error, "unknown form \"gai\": use canonical, cpe, code_agent, mcpilot, engine");
}

#[test]
fn json_of_the_server_is_verbatim() {
    let structured = r#"{"b":1.0, "a":123456789012345678901234567890, "a":2}"#;
    let result = format!(r#"{{"content":[{LINK}],"structuredContent":{structured},"new":1.50}}"#);
    let outcome = outcome(&result);
    let text =
        |projection: Projection| serde_json::to_string(&project(projection, &CALL, Ok(&outcome))).expect("serialises");
    assert_eq!(text(Projection::Canonical), result);
    for projection in [Projection::CodeAgent, Projection::Engine] {
        assert!(text(projection).contains(structured), "{projection}");
    }
    assert!(text(Projection::Mcpilot).contains(LINK));
}

#[test]
fn a_tool_that_reports_an_error_is_never_reported_as_a_success() {
    let outcome = failing(&[TEXT]);
    assert_eq!(projected(Projection::Canonical, &outcome)["isError"], true);
    assert_eq!(projected(Projection::Cpe, &outcome)["tool_result_error"], true);
    assert_eq!(projected(Projection::Cpe, &outcome)["blocks"], json!([cpe_text("one")]));
    let expected = json!({ "success": false, "output": "one", "data": null,
        "error": "Tool execution failed. Details: one" });
    assert_eq!(projected(Projection::CodeAgent, &outcome), expected);
    let expected = json!({ "content": [{ "type": "text", "text": "one" }], "isError": true, "success": false });
    assert_eq!(projected(Projection::Mcpilot, &outcome), expected);
    let expected = json!({ "toolUseId": "t1", "name": "read", "success": false,
        "content": [{ "type": "text", "text": "one" }], "error": "one" });
    assert_eq!(projected(Projection::Engine, &outcome), expected);
}

#[test]
fn an_error_without_content_has_a_default_message() {
    let outcome = failing(&[]);
    assert_eq!(projected(Projection::CodeAgent, &outcome)["error"], "Tool execution failed.");
    assert_eq!(projected(Projection::Engine, &outcome)["error"], "Tool execution failed");
    assert_eq!(projected(Projection::Cpe, &outcome)["blocks"], json!([cpe_text("")]));
}

#[test]
fn a_failed_call_has_the_message_of_each_program() {
    let rpc = Failure::Rpc(RpcError::new(-32601, "no tools here").with_data(json!({ "a": 1 })));
    let expected = json!({ "failure": "rpc", "message": "error -32601: no tools here",
        "error": { "code": -32601, "message": "no tools here", "data": { "a": 1 } } });
    assert_eq!(failed(Projection::Canonical, &rpc), expected);
    let text = "Error calling MCP tool files/read: error -32601: no tools here";
    let expected = json!({ "role": "tool_result", "tool_result_error": true, "blocks": [cpe_text(text)] });
    assert_eq!(failed(Projection::Cpe, &rpc), expected);
    let error = "failed to call MCP tool \"read\" with err: error -32601: no tools here";
    let expected = json!({ "success": false, "output": "", "data": null, "error": error });
    assert_eq!(failed(Projection::CodeAgent, &rpc), expected);
    let text = json!({ "type": "text", "text": "error -32601: no tools here" });
    assert_eq!(failed(Projection::Mcpilot, &rpc), json!({ "content": [text], "isError": true, "success": false }));
    let text = r#"{"error":"error -32601: no tools here","error_type":"APPLICATION_ERROR","error_details":{"name":"rpc","code":-32601}}"#;
    let expected = json!({ "toolUseId": "t1", "name": "read", "success": false,
        "content": [{ "type": "text", "text": text }], "error": "error -32601: no tools here" });
    assert_eq!(failed(Projection::Engine, &rpc), expected);
}

#[test]
fn a_failure_without_an_error_of_the_server_names_its_kind() {
    let failure = Failure::Timeout(Duration::from_secs(5).into());
    let text = "Error calling MCP tool files/read: timeout: no answer within 5s";
    assert_eq!(failed(Projection::Cpe, &failure)["blocks"][0]["content"], text);
    let expected = json!({ "failure": "timeout", "message": "no answer within 5s" });
    assert_eq!(failed(Projection::Canonical, &failure), expected);
}

#[test]
fn the_engine_has_an_error_type_for_every_failure() {
    let http = |status| Failure::Http { status, body: String::new() };
    let table = [
        (Failure::Timeout(Duration::from_secs(1).into()), "TIMEOUT_ERROR"),
        (http(504), "TIMEOUT_ERROR"),
        (Failure::Disconnected { detail: "gone".into() }, "NETWORK_ERROR"),
        (http(500), "NETWORK_ERROR"),
        (http(429), "RATE_LIMIT_ERROR"),
        (http(401), "AUTH_ERROR"),
        (http(403), "AUTH_ERROR"),
        (Failure::Rpc(RpcError::new(-32602, "m")), "VALIDATION_ERROR"),
        (Failure::Rpc(RpcError::new(-32000, "m")), "APPLICATION_ERROR"),
        (Failure::Rounds(10), "APPLICATION_ERROR"),
        (Failure::Malformed("m".into()), "INVALID_RETURN_TYPE"),
        (Failure::Cancelled, "UNKNOWN_ERROR"),
    ];
    for (failure, expected) in table {
        let record = failed(Projection::Engine, &failure);
        let text = record["content"][0]["text"].as_str().expect("a text");
        let report: Value = serde_json::from_str(text).expect("JSON");
        assert_eq!(report["error_type"], expected, "{failure:?}");
        assert_eq!((&report["error"], &record["success"]), (&record["error"], &false.into()), "{failure:?}");
    }
}

#[test]
fn a_rejected_call_has_the_message_of_each_program() {
    let arguments = CallRejection::InvalidArguments("expected value".into());
    let unconnected = CallRejection::NotConnected("no route".into());
    let cpe = |rejection| rejected(Projection::Cpe, rejection)["blocks"][0]["content"].clone();
    assert_eq!(cpe(&arguments), "Error parsing parameters: expected value");
    assert_eq!(cpe(&CallRejection::UnknownTool), "tool 'read' not found");
    assert_eq!(cpe(&CallRejection::Denied), "Error calling MCP tool files/read: the call was denied");
    let code_agent = |rejection| rejected(Projection::CodeAgent, rejection)["error"].clone();
    assert_eq!(code_agent(&CallRejection::UnknownServer), "server not found: files");
    assert_eq!(code_agent(&unconnected), "failed to get MCP session: no route");
    assert_eq!(code_agent(&arguments), "failed to call MCP tool \"read\" with err: invalid arguments: expected value");
    let mcpilot = |rejection| rejected(Projection::Mcpilot, rejection)["content"][0]["text"].clone();
    let text = "No connection found for server: files. Please make sure to use MCP servers available under 'Connected MCP Servers'.";
    assert_eq!(mcpilot(&CallRejection::UnknownServer), text);
    assert_eq!(mcpilot(&unconnected), text);
    assert_eq!(mcpilot(&CallRejection::Disabled), "Server \"files\" is disabled and cannot be used");
    assert_eq!(mcpilot(&CallRejection::UnknownTool), "Unknown tool: read");
    let engine = |rejection| rejected(Projection::Engine, rejection);
    let record = engine(&CallRejection::UnknownTool);
    assert_eq!(record["error"], "Tool \"read\" is not available");
    let text = r#"{"error":"Tool \"read\" is not available","error_type":"TOOL_NOT_FOUND"}"#;
    assert_eq!(record["content"], json!([{ "type": "text", "text": text }]));
    assert_eq!(engine(&unconnected)["error"], "MCP server \"files\" is not connected");
    let denied = engine(&CallRejection::Denied);
    assert_eq!(denied["content"][0]["text"], "Tool execution was denied by user.");
    assert_eq!(denied["error"], "User denied tool execution");
    assert_eq!(rejected(Projection::Canonical, &CallRejection::Disabled)["failure"], "refused");
    for projection in Projection::ALL {
        let text = rejected(projection, &CallRejection::Denied).to_string();
        assert!(!text.contains("\"success\":true"), "{projection}: {text}");
    }
}

#[test]
fn cpe_has_a_block_for_each_content_item_or_an_error() {
    let message = projected(Projection::Cpe, &content(&[TEXT, IMAGE, AUDIO, LINK, NOTE]));
    let cpe_error = |what: &str| cpe_text(&format!("Error calling MCP tool files/read: cannot handle {what}"));
    let blocks = [
        cpe_text("one"),
        cpe_media("image", "image/png", "QUJD"),
        cpe_media("audio", "audio/wav", "QUJDRA=="),
        cpe_error("resource links in tool call result"),
        cpe_error("embedded resources in tool call result"),
    ];
    assert_eq!(message, json!({ "role": "tool_result", "tool_result_error": true, "blocks": blocks }));
    let message = projected(Projection::Cpe, &content(&[TEXT, IMAGE, AUDIO]));
    assert_eq!(message["tool_result_error"], false);
}

#[test]
fn strict_cpe_rejects_content_without_a_block() {
    let cpe_error = |blocks: &[&str]| cpe::Message::strict(&CALL, &content(blocks)).expect_err("no block").to_string();
    assert_eq!(cpe_error(&[TEXT, LINK]), "cannot handle resource links in tool call result");
    assert_eq!(cpe_error(&[NOTE, LINK]), "cannot handle embedded resources in tool call result");
    let outcome = failing(&[TEXT]);
    assert!(cpe::Message::strict(&CALL, &outcome).is_ok_and(|message| message.tool_result_error));
}

#[test]
fn cpe_accepts_a_pdf_file_and_rejects_other_types_as_images() {
    for mime_type in ["application/pdf", "application/x-pdf"] {
        let image = IMAGE.replace("image/png", mime_type);
        let message = projected(Projection::Cpe, &content(&[&image]));
        let mut expected = cpe_media("image", "application/pdf", "QUJD");
        expected["extra_fields"] = json!({ "filename": "document.pdf" });
        assert_eq!((&message["blocks"][0], &message["tool_result_error"]), (&expected, &false.into()));
    }
    let image = IMAGE.replace("image/png", "text/html");
    let message = projected(Projection::Cpe, &content(&[TEXT, &image]));
    let text = "block 1 has image modality but non-image MIME type: \"text/html\"";
    assert_eq!(message["blocks"][1]["content"], format!("Error calling MCP tool files/read: {text}"));
    assert_eq!(message["tool_result_error"], true);
}

#[test]
fn a_cpe_message_always_has_a_block() {
    assert_eq!(projected(Projection::Cpe, &content(&[]))["blocks"], json!([cpe_text("")]));
}

#[test]
fn structured_content_without_text_is_added_as_text() {
    let structured = outcome(&format!(r#"{{"content":[{IMAGE}],"structuredContent":{{"n":1.0}}}}"#));
    assert_eq!(projected(Projection::Cpe, &structured)["blocks"][1], cpe_text(r#"{"n":1.0}"#));
    let expected = json!({ "type": "text", "text": r#"{"n":1.0}"# });
    assert_eq!(projected(Projection::Mcpilot, &structured)["content"][1], expected);
    let repeated = outcome(&format!(r#"{{"content":[{TEXT}],"structuredContent":{{"n":1}}}}"#));
    assert_eq!(projected(Projection::Cpe, &repeated)["blocks"].as_array().map(Vec::len), Some(1));
    assert_eq!(projected(Projection::Mcpilot, &repeated)["content"].as_array().map(Vec::len), Some(1));
}

#[test]
fn code_agent_has_texts_and_references_to_other_content() {
    let result = projected(Projection::CodeAgent, &content(&[TEXT, TEXT, IMAGE, AUDIO, LINK, NOTE, FILM]));
    let lines = [
        "one",
        "one",
        "[image: image/png, 3 bytes]",
        "[audio: audio/wav, 4 bytes]",
        "[resource link: file:///a, a, text/plain, an a]",
        "[resource: file:///b, text/plain, 5 bytes]",
        "hello",
        "[resource: file:///c, video/mp4, 3 bytes]",
    ];
    assert_eq!(result, json!({ "success": true, "output": lines.join("\n"), "data": null, "error": null }));
    let ended = r#"{"type":"text","text":"one\n"}"#;
    assert_eq!(projected(Projection::CodeAgent, &content(&[ended, TEXT]))["output"], "one\none");
}

#[test]
fn the_data_of_code_agent_is_an_object() {
    for (structured, data) in
        [(r#"{"n":1}"#, json!({ "n": 1 })), (" [1]", json!({ "output": [1] })), ("\"a\"", json!({ "output": "a" }))]
    {
        let outcome = outcome(&format!(r#"{{"structuredContent":{structured}}}"#));
        assert_eq!(projected(Projection::CodeAgent, &outcome)["data"], data, "{structured}");
    }
}

#[test]
fn mcpilot_keeps_every_block() {
    let blocks = [TEXT, IMAGE, AUDIO, LINK, NOTE, FILM];
    let outcome = content(&blocks);
    let text = serde_json::to_string(&project(Projection::Mcpilot, &CALL, Ok(&outcome))).expect("serialises");
    assert_eq!(text, format!(r#"{{"content":[{}],"isError":false,"success":true}}"#, blocks.join(",")));
}

#[test]
fn the_engine_gets_its_own_blocks() {
    let record = projected(Projection::Engine, &content(&[TEXT, IMAGE, AUDIO, LINK, NOTE, FILM]));
    let base64 = |data: &str, mime_type: &str| json!({ "type": "base64", "data": data, "mimeType": mime_type });
    let url = json!({ "type": "url", "url": "file:///a", "mimeType": "text/plain" });
    let blocks = json!([
        { "type": "text", "text": "one" },
        { "type": "image", "source": base64("QUJD", "image/png") },
        { "type": "audio", "source": base64("QUJDRA==", "audio/wav") },
        { "type": "document", "source": url, "title": "a" },
        { "type": "document", "source": base64("aGVsbG8=", "text/plain"), "title": "file:///b" },
        { "type": "video", "source": base64("QUJD", "video/mp4") },
    ]);
    let expected = json!({ "toolUseId": "t1", "name": "read", "success": true, "content": blocks });
    assert_eq!(record, expected);
}

#[test]
fn the_engine_has_structured_content_once() {
    let repeated = r#"{"content":[{"type":"text","text":"{\"n\": 1}"}],"structuredContent":{"n":1}}"#;
    let expected = json!([{ "type": "json", "text": "{\"n\": 1}", "data": { "n": 1 } }]);
    assert_eq!(projected(Projection::Engine, &outcome(repeated))["content"], expected);
    let beside = r#"{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}"#;
    let json_block = json!({ "type": "json", "text": "{\"n\":1}", "data": { "n": 1 } });
    let expected = json!([{ "type": "text", "text": "one" }, json_block]);
    assert_eq!(projected(Projection::Engine, &outcome(beside))["content"], expected);
}

#[test]
fn the_tool_result_of_the_engine_is_a_block_of_a_message_as_well() {
    let outcome = failing(&[TEXT]);
    let Projected::Engine(record) = project(Projection::Engine, &CALL, Ok(&outcome)) else { panic!("another form") };
    let expected = json!({ "type": "tool_result", "toolUseId": "t1", "name": "read", "isError": true,
        "content": [{ "type": "text", "text": "one" }] });
    assert_eq!(serde_json::to_value(record.into_block()).expect("serialises"), expected);
}
