use std::sync::Mutex;

use reqwest::Client;
use serde_json::value::RawValue;

use super::*;
use crate::{
    ToolDefinition,
    model::{
        ApiKey, Block, Delta, DeltaSink, HttpModel, HttpModelOptions, Message, Request as Asked, RetryPolicy,
        StopReason, ToolCall, ToolResult,
    },
    native::Provider::{self, Anthropic, OpenAi, OpenAiResponses},
};
use rehearse_document::Source;
use rehearse_net::http_client;
use rehearse_testing::table;

const SCRIPT: &str = "
model: scripted
rules:
- when: { prompt: { contains: round } }
  turns:
  - { thinking: I read it., text: First I read., calls: [{ tool: read, args: { path: 'a file', n: 1 } }, { tool: read, raw: '{oops' }] }
  - 'It says {{ result }}.'
- when: { prompt: busy }
  reply: { error: { status: 429, retryAfter: 1500ms } }
- when: { prompt: cut }
  reply: { error: the wire broke }
- when: { prompt: long }
  reply: { text: and so on, stop: max_tokens }
- when: { prompt: '[7]' }
  reply: '[7]'
- when: { prompt: { not: nothing } }
  reply: '{{ turn }}|{{ prompt }}|{{ system }}|{{ tools | join(\",\") }}|{{ tool }}|{{ result }}|{{ failed }}|{{ media }}'
";
const PATHS: [(Provider, &str); 3] =
    [(Anthropic, "/v1/messages"), (OpenAi, "/v1/chat/completions"), (OpenAiResponses, "/v1/responses")];

async fn start() -> (ModelEndpoint, Arc<Mutex<Vec<String>>>) {
    let model = ScriptedModel::parse(&Source::new("m", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = lines.clone();
    let log = Box::new(move |line| log.lock().expect("no panic").push(line));
    (ModelEndpoint::start(model, EndpointOptions { log, ..EndpointOptions::default() }).await.expect("binds"), lines)
}

fn client() -> Client {
    http_client::builder(true).build().expect("a client")
}

async fn post(endpoint: &ModelEndpoint, path: &str, body: &Json) -> (u16, Json) {
    let url = format!("{}{path}", endpoint.url());
    let response = client().post(url).body(body.to_string()).send().await.expect("an answer");
    (response.status().as_u16(), serde_json::from_str(&response.text().await.expect("text")).expect("JSON"))
}

/// The text of an answer of any API.
fn text(answer: &Json) -> &str {
    let texts = [
        "/content/0/text",
        "/choices/0/message/content",
        "/output/0/content/0/text",
        "/candidates/0/content/parts/0/text",
    ];
    texts.into_iter().find_map(|path| answer.pointer(path)?.as_str()).unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn our_own_client_gets_what_the_script_says_over_every_api() {
    let (endpoint, lines) = start().await;
    let schema = RawValue::from_string("{}".to_owned()).expect("JSON");
    let tools = [ToolDefinition::new("read", &schema)];
    let options = GenerationOptions::default();
    for api in Provider::ALL {
        let (base_url, key) = (Some(endpoint.url()), Some(ApiKey::new("sk-secret")));
        let usual = HttpModelOptions::new(api, "any");
        let model = HttpModel::new(HttpModelOptions { base_url, key, retry: RetryPolicy::NEVER, ..usual });
        let model = model.expect("a model");
        for is_streamed in [false, true] {
            let pieces = Mutex::new(String::new());
            let sink = |delta| {
                let (Delta::Text(it) | Delta::Thinking(it)) = delta else { return };
                pieces.lock().expect("no panic").push_str(&it);
            };
            let deltas: Option<DeltaSink<'_>> = if is_streamed { Some(&sink) } else { None };
            let mut messages = vec![Message::user("a round, please")];
            let ask = async |messages: &[Message]| {
                model.generate(&Asked { system: None, messages, tools: &tools, options: &options }, deltas).await
            };
            let first = ask(&messages).await.expect("an answer");
            assert_eq!(first.stop, StopReason::ToolUse);
            assert!(first.usage.input_tokens > 0 && first.usage.output_tokens > 0);
            let [Block::Thinking { text: thought, .. }, rest @ ..] = &first.content[..] else { panic!("{first:?}") };
            assert_eq!((thought.as_str(), &rest[0]), ("I read it.", &Block::text("First I read.")));
            let raw = if api == Anthropic && !is_streamed { r#"{"INVALID_JSON":"{oops"}"# } else { "{oops" };
            let call = |id: &str, arguments: &str| {
                Block::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments: arguments.into() })
            };
            assert_eq!(rest[1..], [call("call_1", r#"{"path":"a file","n":1}"#), call("call_2", raw)], "{api}");
            assert_eq!(*pieces.lock().expect("no panic"), if is_streamed { "I read it.First I read." } else { "" });
            messages.push(Message::Assistant { content: first.content });
            for (id, text) in [("call_1", "+x"), ("call_2", "+y")] {
                let content = vec![Block::text(text)];
                let result = ToolResult { call_id: id.into(), tool: "read".into(), content, is_error: false };
                messages.push(Message::ToolResult(result));
            }
            let second = ask(&messages).await.expect("an answer");
            assert_eq!((&second.content[..], &second.stop), (&[Block::text("It says +y.")][..], &StopReason::EndTurn));
            let long = ask(&[Message::user("long")]).await.expect("an answer");
            assert_eq!(long.stop, StopReason::MaxTokens, "{api}");
            let error = ask(&[Message::user("cut")]).await.expect_err("a broken connection");
            assert!(matches!(error, ModelError::Unreachable { .. }), "{error}");
            let error = ask(&[Message::user("busy")]).await.expect_err("429");
            let ModelError::Rejected { status, message, retry_after, .. } = error else { panic!("{error}") };
            assert_eq!(
                (status, message.as_str(), retry_after),
                (429, "rate limit exceeded", Some(Duration::from_millis(1500)))
            );
        }
    }
    let lines = lines.lock().expect("no panic").join("\n");
    assert!(lines.contains("POST /v1/messages: 200 thinking, text, calls read, calls read, streamed"), "{lines}");
    assert!(lines.contains("POST /v1/responses: connection closed: the wire broke"), "{lines}");
    assert!(!lines.contains("secret"), "{lines}");
    endpoint.stop(Duration::ZERO).await;
}

#[tokio::test]
async fn every_form_of_a_conversation_is_understood() {
    let (endpoint, _) = start().await;
    for [path, expected, body] in table::rows(include_str!("requests.txt"), "understood") {
        let body = serde_json::from_str(&body).expect("JSON");
        let (status, answer) = post(&endpoint, &path, &body).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!(text(&answer), expected, "{path}");
        let model = if answer["candidates"].is_null() { &answer["model"] } else { &answer["modelVersion"] };
        assert_eq!(model, "m");
    }
}

#[tokio::test]
async fn an_answer_that_must_be_json_is_the_smallest_that_the_schema_allows() {
    let (endpoint, _) = start().await;
    for [path, expected, body] in table::rows(include_str!("requests.txt"), "JSON") {
        let (status, answer) = post(&endpoint, &path, &serde_json::from_str(&body).expect("JSON")).await;
        assert_eq!((status, text(&answer)), (200, &*expected), "{path}");
    }
    let schema = json!({ "type": "boolean" });
    let contents = json!([{ "parts": [{ "text": "busy" }] }]);
    let body = json!({ "contents": contents, "generationConfig": { "responseSchema": schema } });
    let (status, answer) = post(&endpoint, "/v1beta/models/m:generateContent", &body).await;
    assert_eq!((status, &answer["error"]["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
}

/// Requests of real hosts, shortened. Each calls `echo` of its server `basic`, or has the result, or asks beside the work.
const HOSTS: [(&str, &str); 10] = [
    ("Claude Code", include_str!("hosts/claude-code.json")),
    ("Cline", include_str!("hosts/cline.json")),
    ("Codex", include_str!("hosts/codex.json")),
    ("Continue", include_str!("hosts/continue.json")),
    ("Copilot CLI", include_str!("hosts/copilot.json")),
    ("fast-agent", include_str!("hosts/fast-agent.json")),
    ("Gemini CLI", include_str!("hosts/gemini-cli.json")),
    ("Kimi Code", include_str!("hosts/kimi-code.json")),
    ("OpenCode", include_str!("hosts/opencode.json")),
    ("Qwen Code", include_str!("hosts/qwen.json")),
];

#[tokio::test]
async fn one_script_serves_every_host() {
    let script = "rules: [{ when: { lacks: [echo] }, reply: Aside. }, { when: { calls: 0 }, reply: { calls: [{ server: basic, tool: echo, args: { text: hi } }] } }, { reply: 'It says {{ result }}' }]";
    let model = ScriptedModel::parse(&Source::new("m", script)).expect("a script");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let note = move |question: &Question| {
        let last = question.messages.last().map(|message| match message {
            Message::ToolResult(result) => format!("{} {}", result.call_id, result.tool),
            other => other.text(),
        });
        let tools = question.tools.iter().filter(|tool| tool.name.contains("basic"));
        let tools: Vec<_> = tools.map(|it| json!([it.name, it.namespace, it.description, it.schema])).collect();
        seen.lock().expect("no panic").push((last.unwrap_or_default(), tools));
    };
    let options = EndpointOptions { asked: Box::new(note), ..EndpointOptions::default() };
    let endpoint = ModelEndpoint::start(model, options).await.expect("binds");
    for (host, requests) in HOSTS {
        let requests: Json = serde_json::from_str(requests).expect("JSON");
        for request in requests["requests"].as_array().expect("requests") {
            let (path, mut body) = (request["path"].as_str().expect("a path"), request["body"].clone());
            let streamed = client().post(format!("{}{path}", endpoint.url())).body(body.to_string()).send().await;
            let streamed = streamed.expect("an answer").text().await.expect("text");
            body["stream"] = false.into();
            let path = path.replace(":streamGenerateContent?alt=sse", ":generateContent");
            let (status, whole) = post(&endpoint, &path, &body).await;
            assert_eq!(status, 200, "{host}: {whole}");
            if let Some(expected) = request["text"].as_str() {
                assert_eq!(text(&whole), expected, "{host}");
                continue;
            }
            let events = streamed.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok());
            let events = Json::Array(events.collect());
            let call = request["call"].as_object().expect("a call");
            assert!(has(&whole, call) && has(&events, call), "{host}: {whole} {streamed}");
        }
    }
    let asked = asked.lock().expect("no panic");
    let codex = json!(["mcp__basic__echo", "mcp__basic", "Returns its input text.", { "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] }]);
    assert!(asked.contains(&("call_1 mcp__basic__echo".to_owned(), vec![codex])), "{asked:?}");
}

/// Whether one of the objects in a value has these members.
fn has(value: &Json, members: &serde_json::Map<String, Json>) -> bool {
    match value {
        Json::Object(object) => {
            members.iter().all(|(name, it)| object.get(name) == Some(it)) || object.values().any(|it| has(it, members))
        }
        Json::Array(items) => items.iter().any(|item| has(item, members)),
        _ => false,
    }
}

#[tokio::test]
async fn a_request_that_a_provider_would_refuse_is_refused_in_its_form() {
    let (endpoint, _) = start().await;
    for [path, expected, body] in table::rows(include_str!("requests.txt"), "refused") {
        let body = serde_json::from_str(&body).expect("JSON");
        let (status, answer) = post(&endpoint, &path, &body).await;
        assert_eq!((status, answer["error"]["message"].as_str()), (400, Some(&*expected)), "{path} {body}");
        let (kind, expected) = match &*path {
            "/v1/messages" => (&answer["type"], "error"),
            path if path.starts_with("/v1beta") => (&answer["error"]["status"], "INVALID_ARGUMENT"),
            _ => (&answer["error"]["type"], "invalid_request_error"),
        };
        assert_eq!(kind, expected);
    }
    let (status, answer) = post(&endpoint, "/v1/embeddings", &json!({})).await;
    assert!(
        status == 404 && answer["error"]["message"].as_str().is_some_and(|it| it.contains("POST /v1/embeddings")),
        "{answer}"
    );
    let (_, answer) = post(&endpoint, "/v1/messages/count_tokens", &json!({ "model": "m" })).await;
    assert_eq!(answer, json!({ "input_tokens": 4 }));
    let (_, answer) = post(&endpoint, "/v1beta/models/m:countTokens", &json!({ "contents": [] })).await;
    assert_eq!(answer, json!({ "totalTokens": 4 }));
    for (path, expected) in
        [("/v1/models", r#""data":[{"id":"scripted""#), ("/v1beta/models", r#""name":"models/scripted""#)]
    {
        let models = client().get(format!("{}{path}", endpoint.url())).send().await.expect("an answer");
        let models = models.text().await.expect("text");
        assert!(models.contains(expected), "{models}");
    }
    let foreign = client().get(format!("{}/v1/models", endpoint.url())).header("host", "evil.example.com").send().await;
    assert_eq!(foreign.expect("an answer").status(), 403);
}

#[tokio::test]
async fn events_have_the_order_of_each_api() {
    let (endpoint, _) = start().await;
    let expected = [
        "message_start ping content_block_start content_block_delta content_block_stop content_block_start content_block_delta \
         content_block_stop content_block_start content_block_delta content_block_stop content_block_start content_block_delta \
         content_block_stop message_delta message_stop",
        "chunk [DONE]",
        "response.created response.in_progress response.output_item.added response.reasoning_summary_part.added \
         response.reasoning_summary_text.delta response.reasoning_summary_text.done response.reasoning_summary_part.done \
         response.output_item.done response.output_item.added response.content_part.added response.output_text.delta \
         response.output_text.done response.content_part.done response.output_item.done response.output_item.added \
         response.function_call_arguments.delta response.function_call_arguments.done response.output_item.done \
         response.output_item.added response.function_call_arguments.delta response.function_call_arguments.done \
         response.output_item.done response.completed",
    ];
    for ((_, path), expected) in PATHS.into_iter().zip(expected) {
        let messages = json!([{ "role": "user", "content": "round" }]);
        let body = json!({ "model": "m", "max_tokens": 9, "messages": messages, "input": messages, "stream": true });
        let response =
            client().post(format!("{}{path}", endpoint.url())).body(body.to_string()).send().await.expect("an answer");
        assert_eq!(response.headers()["content-type"], "text/event-stream; charset=utf-8");
        let (mut decoder, mut events) = (rehearse_protocol::sse::Decoder::default(), Vec::new());
        decoder.push(&response.bytes().await.expect("a body"), &mut events).expect("events");
        let mut order: Vec<String> = Vec::new();
        for (number, event) in events.iter().enumerate() {
            let data: Json =
                serde_json::from_slice(event.data.as_deref().expect("data")).unwrap_or(json!({ "type": "[DONE]" }));
            let name = data["type"].as_str().unwrap_or("chunk").to_owned();
            assert!(path != "/v1/responses" || data["sequence_number"] == number);
            assert_eq!(event.event.as_ref().unwrap_or(&name), &name);
            // Deltas come in any number.
            if order.last() != Some(&name) {
                order.push(name);
            }
        }
        assert_eq!(order.join(" "), expected, "{path}");
    }
}

#[tokio::test]
async fn a_stream_of_gemini_is_events_or_a_list_and_its_last_piece_says_why_it_ends() {
    let (endpoint, _) = start().await;
    let body = json!({ "contents": [{ "parts": [{ "text": "round" }] }] });
    let path = "/v1beta/models/m:streamGenerateContent";
    let (_, list) = post(&endpoint, path, &body).await;
    let chunks = list.as_array().expect("a list");
    let parts: Vec<_> = chunks.iter().map(|chunk| &chunk["candidates"][0]["content"]["parts"][0]).collect();
    let texts: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    assert_eq!(texts, "I read it.First I read.");
    assert_eq!(parts[0], &json!({ "text": "I ", "thought": true }));
    let call = json!({ "functionCall": { "id": "call_1", "name": "read", "args": { "path": "a file", "n": 1 } } });
    assert_eq!(parts[parts.len() - 2], &call);
    let ends: Vec<_> = chunks.iter().filter(|it| it["candidates"][0]["finishReason"] == "STOP").collect();
    assert_eq!(ends, [chunks.last().expect("a chunk")]);
    assert!(ends[0]["usageMetadata"]["totalTokenCount"].as_u64() > Some(0));
    let url = format!("{}{path}?alt=sse", endpoint.url());
    let response = client().post(url).body(body.to_string()).send().await.expect("an answer");
    let events = response.text().await.expect("text");
    assert_eq!(events.matches("data: {").count(), chunks.len(), "{events}");
    assert!(!events.contains("DONE") && !events.contains("event:"), "{events}");
}
