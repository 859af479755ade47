use serde_json::value::RawValue;

use super::*;
use crate::{
    ToolDefinition,
    model::{GenerationOptions, ToolResult},
};

fn model(script: &str) -> ScriptedModel {
    ScriptedModel::parse(&Source::new("m", script)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_line_of_the_keys_is_read() {
    assert_eq!(KEYS.unread(), [""; 0]);
}

async fn ask(model: &ScriptedModel, messages: &[Message]) -> Result<Response, ModelError> {
    let options = GenerationOptions::default();
    model.generate(&Request { system: Some("Be brief."), messages, tools: &[], options: &options }, None).await
}

fn result(tool: &str, text: &str) -> Message {
    let content = vec![Block::text(text)];
    Message::ToolResult(ToolResult { call_id: "call_1".into(), tool: tool.into(), content, is_error: false })
}

#[tokio::test]
async fn a_rule_with_turns_plays_a_conversation_and_depends_on_nothing_else() {
    let model = model(
        "rules:\n- when: { prompt: { contains: diff } }\n  turns:\n  - { thinking: First, calls: [{ tool: read, args: { path: a } }] }\n  - 'It says {{ result }} in {{ results.read }}.'\n- reply: '{{ prompt }}?'",
    );
    let mut messages = vec![Message::user("Look at the diff")];
    let first = ask(&model, &messages).await.expect("an answer");
    assert_eq!(first.stop, StopReason::ToolUse);
    let call = ToolCall { id: "call_1".into(), name: "read".into(), arguments: r#"{"path":"a"}"#.into() };
    let thought = Block::Thinking { text: "First".into(), signature: Some("scripted".into()) };
    assert_eq!(first.content, [thought, Block::ToolCall(call)]);
    messages.push(Message::Assistant { content: first.content });
    messages.push(result("read", "+x"));
    for _ in 0..2 {
        let second = ask(&model, &messages).await.expect("an answer");
        assert_eq!(second.content, [Block::text("It says +x in +x.")]);
        assert_eq!(second.stop, StopReason::EndTurn);
        assert!(second.usage.input_tokens > 0 && second.usage.output_tokens > 0);
    }
    assert_eq!(ask(&model, &[Message::user("Hi")]).await.expect("an answer").content, [Block::text("Hi?")]);
}

#[tokio::test]
async fn results_of_several_calls_of_a_tool_are_in_the_order_of_the_calls() {
    let model = model("rules: [{ reply: '{{ results.read }}; {{ results.list }}; {{ result }}' }]");
    let mut messages = vec![Message::user("x"), Message::Assistant { content: vec![Block::text("a")] }];
    messages.extend([result("read", "1"), result("list", "2"), result("read", "3"), result("read", "4")]);
    assert_eq!(ask(&model, &messages).await.expect("an answer").content, [Block::text("1\n3\n4; 2; 4")]);
}

#[tokio::test]
async fn a_script_names_tools_as_their_server_does_and_counts_the_calls_of_a_conversation() {
    let model = model(
        "rules: [{ when: { lacks: [forecast, alerts] }, reply: a title }, { when: { calls: 0 }, reply: { calls: [{ tool: forecast }, { server: b, tool: time }] } }, { reply: '{{ calls }} calls' }]",
    );
    let ask = async |names: &[&'static str], messages: &[Message]| {
        let tools: Vec<_> = names.iter().map(|name| ToolDefinition::new(name, RawValue::NULL)).collect();
        let options = GenerationOptions::default();
        model.generate(&Request { system: None, messages, tools: &tools, options: &options }, None).await
    };
    let mut messages = vec![Message::user("x")];
    let names = ["read", "mcp__a__forecast", "mcp__a__time", "mcp__b__time"];
    let first = ask(&names, &messages).await.expect("an answer").content;
    let called: Vec<_> = first.iter().map(|block| format!("{block:?}")).collect();
    assert!(called[0].contains("mcp__a__forecast") && called[1].contains("mcp__b__time"), "{called:?}");
    // A message of the user, such as a reminder, begins a turn, but not the count of calls.
    messages.extend([Message::Assistant { content: first }, result("x", "r"), Message::user("(reminder)")]);
    assert_eq!(ask(&names, &messages).await.expect("an answer").content, [Block::text("2 calls")]);
    assert_eq!(ask(&["read"], &messages).await.expect("an answer").content, [Block::text("a title")]);
}

#[tokio::test]
async fn a_walk_calls_every_tool_by_the_name_that_the_agent_gives_it() {
    let tool = |name: &str, arguments: Json| WalkedTool { server: String::new(), name: name.to_owned(), arguments };
    let text = json!({ "text": "x" });
    let model = walk(&[tool("it's", json!({})), tool("for-apps", text.clone()), tool("echo", text)]).expect("a model");
    let options = GenerationOptions::default();
    let offered = ["mcp__act__echo", "mcp__act__it's"].map(|name| ToolDefinition::new(name, RawValue::NULL));
    let mut messages = vec![Message::user("Work.")];
    // One that is not offered has another one in its place.
    for expected in ["mcp__act__it's {}", "mcp__act__it's {}", r#"mcp__act__echo {"text":"x"}"#] {
        let request = Request { system: None, messages: &messages, tools: &offered, options: &options };
        let content = model.generate(&request, None).await.expect("an answer").content;
        let Block::ToolCall(call) = &content[0] else { panic!("{content:?}") };
        assert_eq!(format!("{} {}", call.name, call.arguments), expected);
        messages.push(Message::Assistant { content });
    }
    let request = Request { system: None, messages: &messages, tools: &offered, options: &options };
    assert_eq!(model.generate(&request, None).await.expect("an answer").content, [Block::text("done")]);
    assert_eq!(ask(&model, &messages[..1]).await.expect("an answer").content, [Block::text("ok")]);
}

#[tokio::test]
async fn a_conversation_that_no_rule_matches_is_an_error() {
    let model = model("rules: [{ when: { turn: 1, failed: false }, reply: a }]");
    let messages = [Message::user("x"), Message::Assistant { content: vec![Block::text("a")] }, result("t", "r")];
    let error = ask(&model, &messages).await.expect_err("no rule");
    assert_eq!(error.to_string(), "m: no rule matches turn 2 (the last message is \"r\")");
    assert!(!error.is_temporary());
}

#[tokio::test(start_paused = true)]
async fn errors_come_as_often_as_the_script_says_and_answers_take_their_time() {
    let model = model("rules: [{ reply: { error: { status: 429, retryAfter: 3s, times: 1 }, text: late, wait: 5s } }]");
    let start = tokio::time::Instant::now();
    let error = ask(&model, &[Message::user("x")]).await.expect_err("429");
    assert!(error.is_temporary());
    assert_eq!(error.to_string(), "m: HTTP 429: rate limit exceeded");
    assert_eq!(ask(&model, &[Message::user("x")]).await.expect("an answer").content, [Block::text("late")]);
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn the_message_of_an_error_is_a_template() {
    for (error, expected) in
        [("{ status: 400, message: 'no {{ prompt }}' }", "m: HTTP 400: no x"), ("'lost at {{ turn }}'", "lost at 1")]
    {
        let model = model(&format!("rules: [{{ reply: {{ error: {error} }} }}]"));
        let error = ask(&model, &[Message::user("x")]).await.expect_err("an error").to_string();
        assert!(error.ends_with(expected), "{error}");
    }
    let script = Source::new("m", "rules: [{ reply: { error: { message: '{{ nothing }}' } } }]");
    assert!(ScriptedModel::parse(&script).is_err());
}

#[tokio::test]
async fn pieces_of_a_streamed_answer_make_up_the_answer() {
    let model = model("rules: [{ reply: { thinking: so so, text: one two three } }]");
    let options = GenerationOptions::default();
    let messages = [Message::user("x")];
    let request = Request { system: None, messages: &messages, tools: &[], options: &options };
    let pieces = std::sync::Mutex::new(Vec::new());
    model.generate(&request, Some(&|delta| pieces.lock().expect("no panic").push(delta))).await.expect("an answer");
    let thinking = ["so ", "so"].map(|word| Delta::Thinking(word.into()));
    let text = ["one ", "two ", "three"].map(|word| Delta::Text(word.into()));
    assert_eq!(pieces.into_inner().expect("no panic"), [&thinking[..], &text[..]].concat());
}

#[test]
fn mistakes_have_a_position_and_a_hint() {
    let error = |script: &str| ScriptedModel::parse(&Source::new("m", script)).expect_err(script).to_string();
    assert_eq!(
        error("rules: [{ when: { promt: x }, reply: a }]"),
        "m:1:19: `when` has no key `promt` (did you mean `prompt`?)"
    );
    assert_eq!(
        error("rules: [{ reply: '{{ results_ }}' }]"),
        "m:1:18: template: there is no `results_` (did you mean `results`?)"
    );
    assert_eq!(error("rules: [{ reply: {} }]"), "m:1:18: a reply needs `text`, `thinking`, `calls` or `error`");
    assert_eq!(error("rules: [{ when: {} }]"), "m:1:9: a rule needs one of `reply` or `turns`");
    assert!(error("rules: [{ reply: { error: { status: 200 } } }]").contains("from 400 to 599"));
}
