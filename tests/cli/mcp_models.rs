//! `rehearse mcp`: tools and results for language models.

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
fn a_result_is_printed_in_the_form_of_a_program() {
    let printed = |form: &str, words: &[&str], code| json_of(call(&[words, &["--as", form][..]].concat()), code);
    let block = |text: &str| json!({ "block_type": "content", "modality_type": "text", "mime_type": "text/plain", "content": text });
    let message = |is_error: bool, text: &str| json!({ "role": "tool_result", "tool_result_error": is_error, "blocks": [block(text)] });
    assert_eq!(printed("cpe", &["echo", "text=a"], 0), message(false, "a -"));
    assert_eq!(printed("cpe", &["fail"], 1), message(true, "It never works."));
    assert_eq!(
        printed("code_agent", &["data"], 0),
        json!({ "success": true, "output": "{\"ok\":true}", "data": { "ok": true }, "error": null })
    );
    let text = json!([{ "type": "text", "text": "a -" }]);
    let response = json!({ "content": text, "isError": false, "success": true });
    assert_eq!(printed("mcpilot", &["echo", "text=a"], 0), response);
    let result = json!({ "toolUseId": "", "name": "echo", "success": true, "content": text });
    assert_eq!(printed("engine", &["echo", "text=a"], 0), result);
    assert_eq!(printed("canonical", &["both"], 0)["structuredContent"], json!({ "n": 1.0 }));
    call(&["both", "--as", "canonical"]).run().stdout_has("{ \"n\": 1.0 }".replace(' ', "").as_str()).code(0);

    call(&["fail", "--as", "gai"]).run().stderr_has("use canonical, cpe, code_agent, mcpilot, engine").code(2);
    call(&["fail", "--as", "cpe", "--output", "f"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn a_failed_call_is_printed_in_the_form_and_reported_without_secrets() {
    let run = call(&["refuse", "--as", "code_agent"]).run().code(1);
    let printed: Json = serde_json::from_str(run.stdout_text()).expect("JSON");
    let error = "failed to call MCP tool \"refuse\" with err: error -31000: No such city";
    assert_eq!(printed, json!({ "success": false, "output": "", "data": null, "error": error }));
    run.stderr_has("error: rpc: error -31000: No such city");
    let printed = json_of(call(&["never", "--as", "engine", "--timeout", "3s"]), 1);
    assert_eq!(printed["success"], false);
    assert!(printed["content"][0]["text"].as_str().is_some_and(|text| text.contains("TIMEOUT_ERROR")), "{printed}");
    let secret = call(&["refuse", "--as", "mcpilot", "--env", "API_TOKEN=Oslo0123456789"]).file(
        "tools.yaml",
        "tools: [{ name: refuse, reply: { rpcError: { code: 1, message: 'not {{ env.API_TOKEN }}' } } }]",
    );
    let printed = json_of(secret, 1);
    assert_eq!(printed["content"][0]["text"], "error 1: not ***");
}

#[test]
fn every_command_of_the_pages_has_the_shown_output() {
    assert_eq!(commands_of(include_str!("../../docs/results.md")), 1);
    assert_eq!(commands_of(include_str!("../../docs/llm.md")), 1);
}

fn tools(args: &[&str]) -> Rehearse {
    mcp(["list-tools"]).args(args.iter().copied()).args(stdio("tools.yaml"))
}

#[test]
fn a_model_gets_tool_names_that_its_provider_accepts() {
    let schema =
        r#"{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"]}"#;
    let schema: Json = serde_json::from_str(schema).expect("JSON");
    let about = "Returns its input text.";
    let printed = json_of(tools(&["--for", "anthropic"]), 0);
    assert_eq!(printed[0], json!({ "name": "echo", "description": about, "input_schema": schema }));
    assert_eq!(printed[1]["name"], "fail");
    let printed = json_of(tools(&["--for", "openai", "--naming", "tool@server"]), 0);
    let function = json!({ "name": "echo_rehearse", "description": about, "parameters": schema });
    assert_eq!(printed[0], json!({ "type": "function", "function": function }));
    call(&["echo_rehearse", "text=a", "--naming", "tool@server"]).run().stdout("a -\n").code(0);
    call(&["echo@rehearse", "text=a", "--naming", "tool@server"]).run().stdout("a -\n").code(0);

    let filtered = json!({ "mcpServers": { "one": {
        "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"], "enabledTools": ["fail"],
    } } });
    let story = mcp(["list-tools", "--for", "anthropic", "--mcp-config", "cpe.yaml"]);
    let printed = json_of(story.file("cpe.yaml", &filtered.to_string()), 0);
    assert_eq!(printed.as_array().map(Vec::len), Some(1), "{printed}");
}

#[test]
fn a_text_model_gets_a_prompt_with_tools() {
    let run = tools(&["--for", "xml"]).run().stdout_has("Call one tool per response.").code(0);
    run.stdout_has(
        "### echo\n\nReturns its input text.\n\nParameters:\n\n- text (required): No description\n  - string\n",
    );
    tools(&["--for", "xml", "--max-calls", "3"]).run().stdout_has("Call at most 3 tools per response.").code(0);
    tools(&["--for", "xml", "--show-all"]).run().stderr_has("cannot be used with").code(2);
    tools(&["--max-calls", "3"]).run().stderr_has("--for <API>").code(2);
}

/// Two calls, an unknown tool, and wrong parameters.
const MESSAGE: &str = "<thinking>Hm.</thinking>\n<echo>\n<text>a & b</text>\n<n>007</n>\n</echo>\n\n<ecko><text>x</text></ecko>\n\n\
                       <echo><n>x</n></echo>\n<fail/>\n";

fn asked(args: &[&str], message: &str) -> Rehearse {
    mcp(["call-tool", "--xml", "m.txt"]).args(args.iter().copied()).args(stdio("tools.yaml")).file("m.txt", message)
}

#[test]
fn requests_of_a_model_are_run_in_order_and_errors_are_reported_in_place() {
    let run = asked(&["--max-calls", "9"], MESSAGE).run().stdout("a & b 7\nIt never works.\n").code(1);
    let run = run.stderr_has("error: m.txt:7:1: UNKNOWN_TOOL: Unknown tool: ecko; did you mean echo?\n");
    let parameters = "text (MISSING_REQUIRED): Missing required parameter: text; n (INVALID_TYPE): Invalid type for n";
    let run = run.stderr_has(&format!("error: m.txt:9:1: VALIDATION_ERROR: Invalid parameters: {parameters}"));
    run.stderr_has("info: calling 'echo'\n").stderr_has("error: the tool fail reported an error\n");

    let printed = json_of(asked(&["--max-calls", "9", "--format", "json"], MESSAGE), 1);
    let calls: Vec<_> =
        printed["calls"].as_array().expect("calls").iter().map(|it| (&it["tool"], &it["isError"])).collect();
    assert_eq!(calls, [(&json!("echo"), &json!(false)), (&json!("fail"), &json!(true))]);
    let missing =
        json!({ "parameter": "text", "code": "MISSING_REQUIRED", "message": "Missing required parameter: text" });
    assert_eq!(printed["errors"][1]["details"][0], missing);
    assert_eq!((&printed["errors"][0]["code"], &printed["errors"][0]["line"]), (&json!("UNKNOWN_TOOL"), &json!(7)));
}

#[test]
fn a_secret_in_a_wrong_request_is_never_printed() {
    let secret = "Oslo0123456789";
    let message = format!("<echo>{secret}<text>a</text></echo>");
    let story = |args: &[&str]| asked(&[args, &["--env", "API_TOKEN=Oslo0123456789"]].concat(), &message);
    let run = story(&["--format", "json"]).run().stdout_has("\"code\": \"PARSE_ERROR\"").stdout_has("***").code(1);
    let run = run.stderr_has("PARSE_ERROR: Invalid tool request format: \"***\" is not in a parameter");
    assert!(!run.stdout_text().contains(secret) && !run.stderr().contains(secret), "{}", run.stderr());
}

#[test]
fn a_message_may_have_one_call_unless_more_are_allowed() {
    let two = "<echo><text>a</text></echo>\n<echo><text>b</text></echo>";
    let run = asked(&[], two).run().stdout("a -\n").code(1);
    run.stderr_has(
        "error: m.txt:2:1: TOO_MANY_CALLS: Too many tool requests: echo was not run; a message may have at most 1",
    );
    asked(&["--max-calls", "2"], two).run().stdout("a -\nb -\n").code(0);
    let story = mcp(["call-tool", "--xml", "-"]).args(stdio("tools.yaml"));
    let run = story.stdin("<echo><text>a</text></echo>").run().stdout("a -\n").code(0);
    assert_eq!(run.stderr(), "");
    asked(&[], "I am done.").run().stdout("").stderr_has("the message has no tool call").code(4);
    asked(&[], "<nosuch>").run().stderr_has("error: m.txt:1:1: UNKNOWN_TOOL: Unknown tool: nosuch\n").code(1);
    asked(&["echo"], two).run().stderr_has("cannot be used with").code(2);
    let gone = mcp(["call-tool", "--xml", "gone.txt"]).args(stdio("tools.yaml"));
    gone.run().stderr_has("error: cannot read gone.txt: ").code(2);
}

#[test]
fn results_for_a_model_are_printed_in_the_form_of_a_program() {
    let printed = json_of(asked(&["--as", "mcpilot"], "<use_mcp_tool><tool_name>fail</tool_name></use_mcp_tool>"), 1);
    let text = json!([{ "type": "text", "text": "It never works." }]);
    let call = json!({ "content": text, "isError": true, "success": false });
    assert_eq!(printed, json!({ "calls": [call], "errors": [] }));
}

#[test]
fn a_request_with_a_server_reaches_a_shadowed_tool() {
    let server = |name: &str| json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", name] });
    let config = json!({ "mcpServers": { "one": server("one.yaml"), "two": server("two.yaml") } }).to_string();
    let story = |tool: &str| {
        let message = format!("<use_mcp_tool>{tool}<tool_name>who</tool_name></use_mcp_tool>");
        let story = mcp(["call-tool", "--xml", "m.txt", "--mcp-config", "cpe.yaml"]).file("m.txt", &message);
        let story = story.file("one.yaml", "tools: [{ name: who, reply: one }]").file("cpe.yaml", &config);
        story.file("two.yaml", "tools: [{ name: who, reply: two }]").run().code(0)
    };
    story("").stdout("one\n");
    story("<server_name>one</server_name>").stdout("one\n");
    story("<server_name>two</server_name>").stdout("two\n");
}
