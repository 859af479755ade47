//! `rehearse mcp` as those meet it who hand tools and results to a language model.

use serde_json::{Value as Json, json};

use crate::{
    mcp::{commands_of, mcp, stdio},
    rehearse::Rehearse,
};

#[track_caller]
fn json_of(story: Rehearse, code: i32) -> Json {
    let run = story.run().code(code);
    serde_json::from_str(run.stdout_text()).expect("JSON")
}

fn call(args: &[&str]) -> Rehearse {
    mcp(["call-tool"]).args(args.iter().copied()).args(stdio("tools.yaml"))
}

#[test]
fn a_result_is_printed_as_the_program_has_it_that_is_named() {
    let told = |form: &str, words: &[&str], code| json_of(call(&[words, &["--as", form][..]].concat()), code);
    let block = |text: &str| json!({ "block_type": "content", "modality_type": "text", "mime_type": "text/plain", "content": text });
    let message = |is_error: bool, text: &str| json!({ "role": "tool_result", "tool_result_error": is_error, "blocks": [block(text)] });
    assert_eq!(told("cpe", &["echo", "text=a"], 0), message(false, "a -"));
    assert_eq!(told("cpe", &["fail"], 1), message(true, "It never works."));
    assert_eq!(
        told("code_agent", &["data"], 0),
        json!({ "success": true, "output": "{\"ok\":true}", "data": { "ok": true }, "error": null })
    );
    let text = json!([{ "type": "text", "text": "a -" }]);
    let response = json!({ "content": text, "isError": false, "success": true });
    assert_eq!(told("mcpilot", &["echo", "text=a"], 0), response);
    let result = json!({ "toolUseId": "", "name": "echo", "success": true, "content": text });
    assert_eq!(told("engine", &["echo", "text=a"], 0), result);
    assert_eq!(told("canonical", &["both"], 0)["structuredContent"], json!({ "n": 1.0 }));
    call(&["both", "--as", "canonical"]).run().stdout_has("{ \"n\": 1.0 }".replace(' ', "").as_str()).code(0);

    call(&["fail", "--as", "gai"]).run().stderr_has("use canonical, cpe, code_agent, mcpilot, engine").code(2);
    call(&["fail", "--as", "cpe", "--output", "f"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn a_failed_call_is_printed_in_the_form_and_told_without_secrets() {
    let run = call(&["refuse", "--as", "code_agent"]).run().code(1);
    let told: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let error = "failed to call MCP tool \"refuse\" with err: error -31000: No such city";
    assert_eq!(told, json!({ "success": false, "output": "", "data": null, "error": error }));
    run.stderr_has("error: rpc: error -31000: No such city");
    let told = json_of(call(&["never", "--as", "engine", "--timeout", "300ms"]), 1);
    assert_eq!(told["success"], false);
    assert!(told["content"][0]["text"].as_str().is_some_and(|text| text.contains("TIMEOUT_ERROR")), "{told}");
    let secret = call(&["refuse", "--as", "mcpilot", "--env", "API_TOKEN=Oslo0123456789"]).file(
        "tools.yaml",
        "tools: [{ name: refuse, reply: { rpcError: { code: 1, message: 'not {{ env.API_TOKEN }}' } } }]",
    );
    let told = json_of(secret, 1);
    assert_eq!(told["content"][0]["text"], "error 1: not ***");
}

#[test]
fn every_command_of_the_pages_says_what_the_page_says() {
    assert_eq!(commands_of(include_str!("../../docs/results.md")), 1);
}
