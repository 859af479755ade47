use serde_json::json;

use super::*;

/// The body of a request with one block of each kind.
async fn body_of(api: Provider, options: &GenerationOptions, thought: &str) -> (Json, wiremock::Request) {
    let (server, model) = model(api, ResponseTemplate::new(400)).await;
    let image = Block::Media(Media { mime_type: "image/png".into(), data: "AA==".into(), name: None });
    let pdf =
        Block::Media(Media { mime_type: "application/pdf".into(), data: "BB==".into(), name: Some("a.pdf".into()) });
    let thought = Block::Thinking { text: "Hm.".into(), signature: Some(thought.into()) };
    let result = |id: &str, text: &str, is_error| {
        let content = vec![Block::text(text)];
        Message::ToolResult(ToolResult { call_id: id.into(), tool: "read".into(), content, is_error })
    };
    let messages = [
        Message::User { content: vec![Block::text("Look."), image, pdf] },
        Message::Assistant {
            content: vec![thought, Block::text("I read."), call("1", "read", r#"{"n":1}"#), call("2", "read", "{oops")],
        },
        result("1", "one", false),
        result("2", "bad", true),
    ];
    let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned()).expect("JSON");
    let tools = [ToolDefinition { description: Some("Reads."), ..ToolDefinition::new("read", &schema) }];
    let request = Request { system: Some("Be brief."), messages: &messages, tools: &tools, options };
    model.generate(&request, Some(&|_| {})).await.expect_err("400");
    let request = server.received_requests().await.expect("recorded").remove(0);
    (serde_json::from_slice(&request.body).expect("JSON"), request)
}

fn all_options(thinking: &str) -> GenerationOptions {
    GenerationOptions {
        max_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        stop_sequences: vec!["END".into()],
        tool_choice: Some("read".into()),
        thinking: Some(thinking.into()),
        ..GenerationOptions::default()
    }
}

#[tokio::test]
async fn a_request_of_the_messages_api_has_everything() {
    let (body, request) = body_of(Anthropic, &all_options("50"), "c2ln").await;
    assert_eq!(request.url.path(), "/v1/messages");
    let header = |name: &str| request.headers.get(name).map(|it| it.to_str().expect("text").to_owned());
    assert_eq!(
        (header("x-api-key").as_deref(), header("anthropic-version").as_deref()),
        (Some(KEY), Some("2023-06-01"))
    );
    assert_eq!(header("authorization"), None);
    let expected = json!({
        "model": "m", "max_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop_sequences": ["END"], "stream": true,
        "system": "Be brief.",
        "thinking": { "type": "enabled", "budget_tokens": 50 },
        "tools": [{ "name": "read", "description": "Reads.", "input_schema": { "type": "object" } }],
        "tool_choice": { "type": "tool", "name": "read" },
        "messages": [
            { "role": "user", "content": [
                { "type": "text", "text": "Look." },
                { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } },
                { "type": "document", "source": { "type": "base64", "media_type": "application/pdf", "data": "BB==" } },
            ] },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" },
                { "type": "text", "text": "I read." },
                { "type": "tool_use", "id": "1", "name": "read", "input": { "n": 1 } },
                { "type": "tool_use", "id": "2", "name": "read", "input": { "INVALID_JSON": "{oops" } },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "1", "content": [{ "type": "text", "text": "one" }] },
                { "type": "tool_result", "tool_use_id": "2", "content": [{ "type": "text", "text": "bad" }], "is_error": true },
            ] },
        ],
    });
    assert_eq!(body, expected);
    let (body, _) =
        body_of(Anthropic, &GenerationOptions::default(), r#"{"type":"redacted_thinking","data":"x"}"#).await;
    assert_eq!(body["max_tokens"], 8192);
    assert_eq!(body["messages"][1]["content"][0], json!({ "type": "redacted_thinking", "data": "x" }));
    let (body, _) = body_of(Anthropic, &all_options("high"), "c2ln").await;
    assert_eq!((&body["thinking"]["type"], &body["output_config"]["effort"]), (&json!("adaptive"), &json!("high")));
}

#[tokio::test]
async fn a_request_of_chat_completions_has_everything_but_thoughts() {
    let (body, request) = body_of(OpenAi, &all_options("low"), "c2ln").await;
    assert_eq!(request.url.path(), "/v1/chat/completions");
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    let function = |arguments: &str| json!({ "name": "read", "arguments": arguments });
    let expected = json!({
        "model": "m", "max_completion_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "stream": true,
        "stream_options": { "include_usage": true },
        "reasoning_effort": "low",
        "tools": [{ "type": "function", "function": { "name": "read", "description": "Reads.", "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": "read" } },
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "Look." },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==" } },
                { "type": "file", "file": { "filename": "a.pdf", "file_data": "data:application/pdf;base64,BB==" } },
            ] },
            { "role": "assistant", "content": "I read.", "tool_calls": [
                { "id": "1", "type": "function", "function": function("{\"n\":1}") },
                { "id": "2", "type": "function", "function": function("{oops") },
            ] },
            { "role": "tool", "tool_call_id": "1", "content": "one" },
            { "role": "tool", "tool_call_id": "2", "content": "bad" },
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_request_of_the_responses_api_has_everything() {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" });
    let (body, request) = body_of(OpenAiResponses, &all_options("low"), &reasoning.to_string()).await;
    assert_eq!(request.url.path(), "/v1/responses");
    let expected = json!({
        "model": "m", "max_output_tokens": 100, "temperature": 0.5, "top_p": 0.9, "stop": ["END"], "stream": true,
        "store": false,
        "instructions": "Be brief.",
        "reasoning": { "effort": "low", "summary": "auto" },
        "include": ["reasoning.encrypted_content"],
        "tools": [{
            "type": "function", "name": "read", "description": "Reads.", "parameters": { "type": "object" }, "strict": false,
        }],
        "tool_choice": { "type": "function", "name": "read" },
        "input": [
            { "role": "user", "content": [
                { "type": "input_text", "text": "Look." },
                { "type": "input_image", "image_url": "data:image/png;base64,AA==" },
                { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BB==" },
            ] },
            reasoning,
            { "type": "message", "role": "assistant", "content": [
                { "type": "output_text", "text": "I read.", "annotations": [] },
            ] },
            { "type": "function_call", "call_id": "1", "name": "read", "arguments": "{\"n\":1}" },
            { "type": "function_call", "call_id": "2", "name": "read", "arguments": "{oops" },
            { "type": "function_call_output", "call_id": "1", "output": "one" },
            { "type": "function_call_output", "call_id": "2", "output": "bad" },
        ],
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn what_an_api_does_not_have_is_an_error_before_the_request() {
    let film = [Message::User {
        content: vec![Block::Media(Media { mime_type: "video/mp4".into(), data: String::new(), name: None })],
    }];
    let budget = GenerationOptions { thinking: Some("1000".into()), ..GenerationOptions::default() };
    for api in Provider::ALL {
        let (server, model) = model(api, ResponseTemplate::new(400)).await;
        let options = GenerationOptions::default();
        let request = Request { system: None, messages: &film, tools: &[], options: &options };
        let error = model.generate(&request, None).await.expect_err("a film").to_string();
        assert_eq!(error, format!("{}: this API does not take video/mp4", model.endpoint()));
        if api != Anthropic {
            let request = Request { messages: &[], options: &budget, ..request };
            let error = model.generate(&request, None).await.expect_err("a budget").to_string();
            assert!(error.contains("1000 tokens for thinking; it takes an effort"), "{error}");
        }
        assert!(server.received_requests().await.expect("recorded").is_empty());
    }
}

#[tokio::test]
async fn an_empty_message_is_sent_as_each_api_accepts_it() {
    let thought = Block::Thinking { text: "Hm.".into(), signature: None };
    let result = ToolResult { call_id: "1".into(), tool: "read".into(), content: Vec::new(), is_error: false };
    let messages = [
        Message::Assistant { content: vec![thought] },
        Message::Assistant { content: vec![call("1", "read", "{}")] },
        Message::ToolResult(result),
    ];
    let options = GenerationOptions::default();
    let request = Request { system: None, messages: &messages, tools: &[], options: &options };
    for (api, expected) in [
        (
            Anthropic,
            json!([
                { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "read", "input": {} }] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": [] }] },
            ]),
        ),
        (
            OpenAi,
            json!([
                { "role": "assistant", "content": "" },
                { "role": "assistant", "content": null, "tool_calls": [
                    { "id": "1", "type": "function", "function": { "name": "read", "arguments": "{}" } },
                ] },
                { "role": "tool", "tool_call_id": "1", "content": "" },
            ]),
        ),
        (
            OpenAiResponses,
            json!([
                { "type": "function_call", "call_id": "1", "name": "read", "arguments": "{}" },
                { "type": "function_call_output", "call_id": "1", "output": "" },
            ]),
        ),
    ] {
        let (server, model) = model(api, ResponseTemplate::new(400)).await;
        model.generate(&request, None).await.expect_err("400");
        let sent = server.received_requests().await.expect("recorded").remove(0);
        let body: Json = serde_json::from_slice(&sent.body).expect("JSON");
        let key = if api == OpenAiResponses { "input" } else { "messages" };
        assert_eq!(body[key], expected, "{api}");
    }
}

#[test]
fn a_base_url_may_have_a_version_and_a_slash() {
    let url = |base: &str| resource(base, "messages").map(|url| url.to_string());
    for (base, expected) in [
        ("http://h", "http://h/v1/messages"),
        ("http://h/", "http://h/v1/messages"),
        ("http://h/v1/", "http://h/v1/messages"),
        ("https://h/api/v1", "https://h/api/v1/messages"),
        ("https://h/v1beta/openai/", "https://h/v1beta/openai/messages"),
        ("https://h/vertex?a=b", "https://h/vertex/v1/messages?a=b"),
    ] {
        assert_eq!(url(base).as_deref(), Ok(expected), "{base}");
    }
    for base in ["h:1", "ftp://h", "", "http://"] {
        assert!(url(base).is_err(), "{base}");
    }
}

#[test]
fn a_key_is_not_shown() {
    let model = HttpModel::new(options(OpenAi, "http://u:pass@h/?token=tok")).expect("a model");
    assert_eq!(model.endpoint(), "http://h/v1/chat/completions");
    assert!(!format!("{:?}", model.options.key).contains("secret"));
    let key = Some(ApiKey::new("sk\nsecret"));
    let error = HttpModel::new(HttpModelOptions { key, ..HttpModelOptions::new(Anthropic, "m") });
    assert!(!error.expect_err("a line break").to_string().contains("secret"));
}
