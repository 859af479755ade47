use serde_json::json;

use super::*;

fn text(piece: &str) -> Delta {
    Delta::Text(piece.into())
}

fn thought(piece: &str) -> Delta {
    Delta::Thinking(piece.into())
}

/// Each value as an event.
fn sse(events: &[Json]) -> String {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect()
}

#[tokio::test]
async fn a_whole_and_a_streamed_answer_of_the_messages_api_are_the_same() {
    let message = |content: Json, stop: Json, usage: Json| json!({ "type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": usage });
    let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 5 });
    let whole = message(
        json!([
            { "type": "thinking", "thinking": "Hm.", "signature": "sig" },
            { "type": "redacted_thinking", "data": "x" },
            { "type": "text", "text": "I read." },
            { "type": "server_tool_use", "id": "s", "name": "web_search", "input": {} },
            { "type": "tool_use", "id": "1", "name": "read", "input": { "n": 1 } },
            { "type": "tool_use", "id": "2", "name": "now", "input": {} },
        ]),
        "tool_use".into(),
        usage,
    );
    let (_server, model) = model(Anthropic, json_answer(&whole.to_string())).await;
    let answer = ask(&model, None).await.expect("an answer");
    let sealed = r#"{"type":"redacted_thinking","data":"x"}"#;
    let expected = Response {
        content: vec![
            Block::Thinking { text: "Hm.".into(), signature: Some("sig".into()) },
            Block::Thinking { text: String::new(), signature: Some(sealed.into()) },
            Block::text("I read."),
            call("1", "read", r#"{"n":1}"#),
            call("2", "now", "{}"),
        ],
        stop: StopReason::ToolUse,
        usage: Usage { input_tokens: 15, output_tokens: 5, cache_read_tokens: 3, cache_write_tokens: 2 },
    };
    assert_eq!(answer, expected);
    let start =
        |index: u64, block: Json| json!({ "type": "content_block_start", "index": index, "content_block": block });
    let delta = |index: u64, delta: Json| json!({ "type": "content_block_delta", "index": index, "delta": delta });
    let stream_text = sse(&[
        json!({ "type": "message_start", "message": message(json!([]), Json::Null, json!({
            "input_tokens": 10, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 1,
        })) }),
        json!({ "type": "ping" }),
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "Hm" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "." })),
        delta(0, json!({ "type": "signature_delta", "signature": "sig" })),
        json!({ "type": "content_block_stop", "index": 0 }),
        start(1, json!({ "type": "redacted_thinking", "data": "x" })),
        start(2, json!({ "type": "text", "text": "" })),
        delta(2, json!({ "type": "text_delta", "text": "I " })),
        delta(2, json!({ "type": "text_delta", "text": "read." })),
        start(3, json!({ "type": "tool_use", "id": "1", "name": "read", "input": {} })),
        delta(3, json!({ "type": "input_json_delta", "partial_json": "{\"n\"" })),
        delta(3, json!({ "type": "input_json_delta", "partial_json": ":1}" })),
        start(4, json!({ "type": "tool_use", "id": "2", "name": "now", "input": {} })),
        delta(4, json!({ "type": "input_json_delta", "partial_json": "" })),
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 5, "input_tokens": null } }),
        json!({ "type": "message_stop" }),
    ]);
    let (answer, pieces) = stream(Anthropic, &stream_text).await;
    assert_eq!(answer.expect("an answer"), expected);
    assert_eq!(pieces, [thought("Hm"), thought("."), text("I "), text("read.")]);
}

#[tokio::test]
async fn a_whole_and_a_streamed_answer_of_chat_completions_are_the_same() {
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": { "cached_tokens": 8 } });
    let whole = json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "I read.", "reasoning_content": "Hm.",
        "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "read", "arguments": "{\"n\":1}" } },
            { "id": "2", "type": "function", "function": { "name": "now", "arguments": "" } },
        ],
    } }], "usage": usage });
    let (_server, model) = model(OpenAi, json_answer(&whole.to_string())).await;
    let answer = ask(&model, None).await.expect("an answer");
    let expected = Response {
        content: vec![
            Block::Thinking { text: "Hm.".into(), signature: None },
            Block::text("I read."),
            call("1", "read", r#"{"n":1}"#),
            call("2", "now", "{}"),
        ],
        stop: StopReason::ToolUse,
        usage: Usage { input_tokens: 9, output_tokens: 4, cache_read_tokens: 8, cache_write_tokens: 0 },
    };
    assert_eq!(answer, expected);
    let chunk =
        |delta: Json, reason: Json| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }] });
    let piece = |call: Json| chunk(json!({ "tool_calls": [call] }), Json::Null);
    let stream_text = sse(&[
        chunk(json!({ "role": "assistant", "content": "", "reasoning_content": "Hm." }), Json::Null),
        chunk(json!({ "content": "I " }), Json::Null),
        chunk(json!({ "content": "read." }), Json::Null),
        piece(json!({ "index": 0, "id": "1", "type": "function", "function": { "name": "read", "arguments": "" } })),
        piece(json!({ "index": 1, "id": "2", "type": "function", "function": { "name": "now" } })),
        piece(json!({ "index": 0, "function": { "arguments": "{\"n\"" } })),
        piece(json!({ "index": 0, "function": { "arguments": ":1}" } })),
        chunk(json!({}), "tool_calls".into()),
        json!({ "choices": [], "usage": usage }),
    ]);
    for end in ["data: [DONE]\n\n", ""] {
        let (answer, pieces) = stream(OpenAi, &format!("{stream_text}{end}")).await;
        assert_eq!(answer.expect("an answer"), expected, "{end}");
        assert_eq!(pieces, [thought("Hm."), text("I "), text("read.")]);
    }
}

#[tokio::test]
async fn a_whole_and_a_streamed_answer_of_the_responses_api_are_the_same() {
    let reasoning = json!({ "id": "rs_1", "type": "reasoning", "summary": [{ "type": "summary_text", "text": "Hm." }], "encrypted_content": "x" });
    let output = json!([
        reasoning,
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "I read.", "annotations": [] }] },
        { "type": "function_call", "id": "fc_1", "call_id": "1", "name": "read", "arguments": "{\"n\":1}" },
        { "type": "web_search_call", "id": "ws_1" },
    ]);
    let usage = json!({ "input_tokens": 9, "output_tokens": 4, "input_tokens_details": { "cached_tokens": 8 } });
    let response = |output: &Json| json!({ "status": "completed", "error": null, "output": output, "usage": usage });
    let (_server, model) = model(OpenAiResponses, json_answer(&response(&output).to_string())).await;
    let answer = ask(&model, None).await.expect("an answer");
    let expected = Response {
        content: vec![
            Block::Thinking { text: "Hm.".into(), signature: Some(reasoning.to_string()) },
            Block::text("I read."),
            call("1", "read", r#"{"n":1}"#),
        ],
        stop: StopReason::ToolUse,
        usage: Usage { input_tokens: 9, output_tokens: 4, cache_read_tokens: 8, cache_write_tokens: 0 },
    };
    assert_eq!(answer, expected);
    for last in [&output, &json!([])] {
        let done = output
            .as_array()
            .expect("items")
            .iter()
            .map(|item| json!({ "type": "response.output_item.done", "item": item }));
        let mut events = vec![
            json!({ "type": "response.created", "response": response(&json!([])) }),
            json!({ "type": "response.reasoning_summary_text.delta", "delta": "Hm." }),
            json!({ "type": "response.output_text.delta", "delta": "I " }),
            json!({ "type": "response.output_text.delta", "delta": "read." }),
            json!({ "type": "response.function_call_arguments.delta", "delta": "{" }),
        ];
        events.extend(done);
        events.push(json!({ "type": "response.completed", "response": response(last) }));
        let (answer, pieces) = stream(OpenAiResponses, &sse(&events)).await;
        assert_eq!(answer.expect("an answer"), expected);
        assert_eq!(pieces, [thought("Hm."), text("I "), text("read.")]);
    }
}

#[tokio::test]
async fn every_api_says_why_an_answer_ends() {
    let anthropic = |stop: &str| json!({ "content": [], "stop_reason": stop });
    let chat = |stop: &str| json!({ "choices": [{ "message": { "content": "x" }, "finish_reason": stop }] });
    let incomplete =
        |reason: &str| json!({ "status": "incomplete", "incomplete_details": { "reason": reason }, "output": [] });
    let other = |reason: &str| StopReason::Other(reason.to_owned());
    for (api, whole, expected) in [
        (Anthropic, anthropic("end_turn"), StopReason::EndTurn),
        (Anthropic, anthropic("stop_sequence"), StopReason::EndTurn),
        (Anthropic, anthropic("max_tokens"), StopReason::MaxTokens),
        (Anthropic, anthropic("refusal"), other("refusal")),
        (OpenAi, chat("stop"), StopReason::EndTurn),
        (OpenAi, chat("length"), StopReason::MaxTokens),
        (OpenAi, chat("content_filter"), other("content_filter")),
        (
            OpenAi,
            json!({ "choices": [{ "message": { "refusal": "No." }, "finish_reason": "stop" }] }),
            other("refusal"),
        ),
        (OpenAiResponses, json!({ "status": "completed", "output": [] }), StopReason::EndTurn),
        (OpenAiResponses, incomplete("max_output_tokens"), StopReason::MaxTokens),
        (OpenAiResponses, incomplete("content_filter"), other("content_filter")),
    ] {
        let (_server, model) = model(api, json_answer(&whole.to_string())).await;
        assert_eq!(ask(&model, None).await.expect("an answer").stop, expected, "{whole}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_stream_gives_its_texts_as_one_piece() {
    let whole = json!({ "content": [{ "type": "text", "text": "a b" }], "stop_reason": "end_turn" });
    let (_server, model) = model(Anthropic, json_answer(&whole.to_string())).await;
    let pieces = Mutex::new(Vec::new());
    ask(&model, Some(&|delta| pieces.lock().expect("no panic").push(delta))).await.expect("an answer");
    assert_eq!(pieces.into_inner().expect("no panic"), [text("a b")]);
}
