//! Runs with scripted models and mock servers.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use rehearse_client::{Endpoint, ServerParams, Target};
use rehearse_client_configs::policy::Policy;
use rehearse_document::Source;
use rehearse_hub::{Hub, HubOptions, HubServer, projection::Projection};
use rehearse_llm::{
    final_answer::AnswerSchema,
    model::{Block, Message, Model, ScriptedModel, Usage},
};
use rehearse_mock::{MockServer, MockServerBuilder, Rule, Tool};
use rehearse_protocol::Transport;

/// Keeps the names of all events, with their main text.
#[derive(Default)]
struct Log {
    lines: Mutex<Vec<String>>,
    /// The name of the event that cannot be delivered.
    broken: Option<&'static str>,
}

impl EventSink for Log {
    fn emit<'a>(&'a self, run: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let line = match event {
            Event::Message(message) => format!("message {}", message.text()),
            Event::MessageSaved(saved) => format!("message_saved {}", saved.role),
            Event::Thought { text, .. } | Event::Response(text) | Event::Warning(text) => {
                format!("{} {text}", event.name())
            }
            Event::ToolCall { call, .. } => format!("tool_call {} {}", call.name, call.arguments),
            Event::ToolResult(result) => format!("tool_result {} {}", result.tool, result.is_error),
            Event::Started => format!("subagent_start {}/{}", run.agent, run.run_id),
            Event::Ended { error, .. } => format!("subagent_end {}", error.unwrap_or("-")),
        };
        self.lines.lock().push(line);
        let done = match self.broken == Some(event.name()) {
            true => Err(EmitError { event: event.name(), why: "no listener".into() }),
            false => Ok(()),
        };
        Box::pin(async { done })
    }
}

impl Log {
    fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }
}

struct Fixture {
    agent: Agent,
    log: Arc<Log>,
    _servers: Vec<MockServer>,
}

async fn fixture(script: &str, servers: Vec<MockServerBuilder>, options: AgentOptions) -> Fixture {
    let mut started = Vec::new();
    let mut members = Vec::new();
    for (index, builder) in servers.into_iter().enumerate() {
        let server = builder.start().await.expect("valid");
        let url = server.url(Transport::Http).expect("an endpoint");
        let target = Target::Http(Endpoint { url, headers: Vec::new() });
        members.push(HubServer::new(ServerParams::new(format!("s{index}"), target)));
        started.push(server);
    }
    let hub = Hub::new(members, HubOptions::default());
    hub.discover().await.expect("reachable");
    let model = ScriptedModel::parse(&Source::new("m", script)).unwrap_or_else(|error| panic!("{error}"));
    let log = Arc::new(Log::default());
    let agent = Agent::new(Arc::new(Model::Scripted(model)), hub, options).with_sink(log.clone());
    Fixture { agent, log, _servers: started }
}

fn label() -> RunLabel {
    RunLabel { agent: "a".into(), run_id: "r".into() }
}

impl Fixture {
    async fn run(&self, prompt: &str) -> (Conversation, Result<Run, AgentError>) {
        run(&self.agent, vec![Block::text(prompt)], &CancellationToken::new()).await
    }
}

async fn run(agent: &Agent, prompt: Vec<Block>, cancel: &CancellationToken) -> (Conversation, Result<Run, AgentError>) {
    let mut conversation = Conversation::default();
    let done = agent.run(&mut conversation, prompt, &label(), cancel, None).await;
    (conversation, done)
}

async fn go(agent: &Agent) -> (Conversation, Result<Run, AgentError>) {
    run(agent, vec![Block::text("Go")], &CancellationToken::new()).await
}

fn schema() -> Option<Arc<AnswerSchema>> {
    let text =
        r#"{ "type": "object", "required": ["verdict"], "properties": { "verdict": { "enum": ["yes", "no"] } } }"#;
    Some(Arc::new(AnswerSchema::parse(&Source::new("answer.json", text)).expect("valid")))
}

fn echo() -> MockServerBuilder {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let echo = Tool::new("echo").set("inputSchema", schema).rule(Rule::always().reply("{{ args.text }}"));
    MockServer::builder().tool(echo).tool(Tool::new("fail").rule(Rule::always().error("It broke.")))
}

#[tokio::test]
async fn a_model_uses_tools_until_it_has_an_answer() {
    let script = "rules: [{ turns: [
        { thinking: Hm, text: I look., calls: [{ tool: echo, args: { text: '1' } }, { tool: fail }] },
        'The results: {{ results.echo }}, {{ result }}'] }]";
    let run = fixture(script, vec![echo()], AgentOptions::default()).await;
    let (conversation, done) = run.run("Go").await;
    let done = done.expect("an answer");
    assert_eq!(done.answer.text, "The results: 1, It broke.");
    assert_eq!((done.statistics.turns, done.statistics.tool_calls, done.statistics.failed_calls), (2, 2, 1));
    assert!(done.statistics.usage.total() > 0 && done.statistics.time > Duration::ZERO);
    let mut twice = RunStatistics { time: Duration::from_millis(1250), usage: Usage::default(), ..done.statistics };
    assert_eq!(twice.to_string(), "2 turns, 2 tool calls (1 failed), 0 input and 0 output tokens, 1.2 s");
    twice += twice;
    assert_eq!((twice.turns, twice.tool_calls, twice.failed_calls, twice.time.as_millis()), (4, 4, 2, 2500));
    assert_eq!(conversation.messages.len(), 5);
    let expected = [
        "subagent_start a/r",
        "message Go",
        "thought_trace Hm",
        "response I look.",
        "message I look.",
        r#"tool_call echo {"text":"1"}"#,
        "tool_result echo false",
        "message 1",
        "tool_call fail {}",
        "tool_result fail true",
        "message It broke.",
        "response The results: 1, It broke.",
        "message The results: 1, It broke.",
        "subagent_end -",
    ];
    assert_eq!(run.log.lines(), expected);
}

#[tokio::test]
async fn the_oldest_results_are_shortened_to_fit_the_context() {
    let long = "é".repeat(500);
    let call = format!("{{ calls: [{{ tool: echo, args: {{ text: '{long}' }} }}] }}");
    let script = format!("rules: [{{ turns: [{call}, {call}, done] }}]");
    // Each result has 1,000 bytes, as each call: 4,000 of both are 1,000 tokens.
    let options = AgentOptions { max_context: Some(1_000), ..AgentOptions::default() };
    let run = fixture(&script, vec![echo()], options).await;
    let (conversation, done) = run.run("Go").await;
    assert_eq!(done.expect("an answer").answer.text, "done");
    let shortened = format!("{}\n[shortened: the rest was left out to fit the context]", "é".repeat(200));
    assert_eq!((conversation.messages[2].text(), conversation.messages[4].text()), (shortened, long));
    let warnings: Vec<_> = run.log.lines().into_iter().filter(|line| line.starts_with("warning")).collect();
    assert_eq!(warnings, ["warning the oldest result of a tool was shortened, to fit 1000 tokens of context"]);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_goes_back_to_the_model() {
    let script = "rules: [{ turns: [
        { calls: [{ tool: echo, raw: '{\"text\": ' }, { tool: echo, args: { text: 1 } }, { tool: gone }] },
        done] }]";
    let run =
        fixture(script, vec![echo()], AgentOptions { projection: Some(Projection::Cpe), ..AgentOptions::default() })
            .await;
    let (conversation, done) = run.run("Go").await;
    assert_eq!(done.expect("an answer").statistics.failed_calls, 3);
    let texts: Vec<_> = conversation.messages.iter().map(Message::text).collect();
    assert_eq!(texts[2], "Error parsing parameters: EOF while parsing a value at line 1 column 9");
    assert!(texts[3].starts_with("Error parsing parameters: text (INVALID_TYPE): "), "{}", texts[3]);
    assert_eq!(texts[4], "tool 'gone' not found");
}

#[tokio::test]
async fn a_result_has_the_form_of_the_client_that_its_server_is_configured_for() {
    let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "a" });
    let image = json!({ "type": "image", "data": "QUJD", "mimeType": "image/png" });
    let result = json!({ "content": [link, image] });
    let script = "rules: [{ turns: [{ calls: [{ tool: look }, { tool: gone }] }, done] }]";
    for (projection, is_error, expected) in [
        (Projection::Canonical, false, link.to_string()),
        (
            Projection::Cpe,
            true,
            "Error calling MCP tool s0/look: cannot handle resource links in tool call result".into(),
        ),
        (Projection::CodeAgent, false, String::new()),
    ] {
        let look = Tool::new("look").rule(Rule::always().reply(result.clone()));
        let run = fixture(script, vec![MockServer::builder().tool(look)], AgentOptions::default()).await;
        let mut member = (*run.agent.hub().server("s0").expect("a server")).clone();
        member.policy = Box::leak(Box::new(Policy { projection, ..Policy::USUAL }));
        let hub = Hub::new(vec![member], HubOptions::default());
        hub.discover().await.expect("reachable");
        let model = ScriptedModel::parse(&Source::new("m", script)).expect("valid");
        let agent = Agent::new(Arc::new(Model::Scripted(model)), hub, AgentOptions::default());
        let (conversation, done) = go(&agent).await;
        assert_eq!(done.expect("an answer").statistics.failed_calls, 1 + u32::from(is_error), "{projection}");
        let Message::ToolResult(result) = &conversation.messages[2] else { panic!("{conversation:?}") };
        assert!(conversation.messages[2].text().contains(&expected), "{projection}: {result:?}");
        let has_image = result.content.iter().any(|block| matches!(block, Block::Media(_)));
        assert_eq!(has_image, projection != Projection::CodeAgent, "{result:?}");
        assert_eq!(conversation.messages[3].text(), "there is no such tool");
    }
}

#[tokio::test]
async fn a_native_tool_takes_the_same_way_and_wins() {
    let script = "rules: [{ turns: [{ calls: [{ tool: echo, args: { text: a } }, { tool: echo, args: {} }] }, '{{ result }}'] }]";
    let run = fixture(script, vec![echo()], AgentOptions::default()).await;
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    let native = NativeTool::new("echo", "Ours.", &schema, |arguments, _| {
        Box::pin(async move { Ok(vec![Block::text(format!("native {}", arguments["text"]))]) })
    });
    let agent = run.agent.clone().with_tool(native);
    let toolbox = agent.toolbox();
    assert_eq!(toolbox.kind("echo"), Some(ToolKind::Native));
    assert_eq!(toolbox.kind("fail"), Some(ToolKind::Mcp));
    assert_eq!(toolbox.dropped().len(), 1);
    let (conversation, done) = go(&agent).await;
    done.expect("an answer");
    assert_eq!(conversation.messages[2].text(), "native \"a\"");
    assert!(conversation.messages[3].text().contains("MISSING_REQUIRED"), "{:?}", conversation.messages[3]);
}

#[tokio::test]
async fn a_call_of_final_answer_ends_the_run_after_the_calls_before_it() {
    let script = "rules: [{ reply: { calls: [
        { tool: echo, args: { text: a } }, { tool: final_answer, args: { verdict: yes } }, { tool: fail }] } }]";
    let script = script.replace("yes", "'yes'");
    let run = fixture(&script, vec![echo()], AgentOptions { answer: schema(), ..AgentOptions::default() }).await;
    let (conversation, done) = run.run("Go").await;
    let answer = done.expect("an answer").answer;
    assert_eq!(answer.text, r#"{"verdict":"yes"}"#);
    assert!(answer.structured.is_some());
    assert_eq!(conversation.messages.len(), 3);
    assert!(!run.log.lines().iter().any(|line| line.contains("final_answer") || line.contains("tool_call fail")));
}

#[tokio::test]
async fn a_wrong_answer_is_an_error_unless_the_model_may_correct_it() {
    let script = "rules: [{ turns: [
        { calls: [{ tool: final_answer, args: { verdict: maybe } }] }, I say no.,
        { calls: [{ tool: final_answer, args: { verdict: 'no' } }] }] }]";
    let options = AgentOptions { answer: schema(), ..AgentOptions::default() };
    let run = fixture(script, vec![], options.clone()).await;
    let error = run.run("Go").await.1.expect_err("wrong").to_string();
    assert!(error.starts_with("the arguments of final_answer do not match the schema:\n  /verdict"), "{error}");
    let run = fixture(script, vec![], AgentOptions { answer_retries: 1, ..options.clone() }).await;
    let error = run.run("Go").await.1.expect_err("one retry is not enough").to_string();
    assert_eq!(error, "subagent did not call final_answer tool");
    // A message of the user begins new turns, so the script needs another rule there.
    let script = "rules: [
        { when: { prompt: { contains: final_answer } }, reply: { calls: [{ tool: final_answer, args: { verdict: 'no' } }] } },
        { turns: [{ calls: [{ tool: final_answer, args: { verdict: maybe } }] }, I say no.] }]";
    let run = fixture(script, vec![], AgentOptions { answer_retries: 2, ..options }).await;
    let (conversation, done) = run.run("Go").await;
    assert_eq!(done.expect("an answer").answer.text, r#"{"verdict":"no"}"#);
    let Message::ToolResult(result) = &conversation.messages[2] else { panic!("{conversation:?}") };
    assert!(result.is_error && conversation.messages[2].text().contains("/verdict"));
}

#[tokio::test]
async fn limits_end_a_run_with_an_error_that_says_which() {
    let script = "rules: [{ reply: { calls: [{ tool: echo, args: { text: again } }] } }]";
    let run = fixture(script, vec![echo()], AgentOptions { max_turns: 3, ..AgentOptions::default() }).await;
    assert_eq!(run.run("Go").await.1.expect_err("no end").to_string(), "no answer after 3 turns (`maxTurns`)");
    assert_eq!(run.log.lines().last().expect("events"), "subagent_end no answer after 3 turns (`maxTurns`)");
    let run = fixture(script, vec![echo()], AgentOptions { max_tokens: Some(5), ..AgentOptions::default() }).await;
    let error = run.run("Go").await.1.expect_err("no budget");
    assert!(matches!(error, AgentError::Budget { limit: 5, used } if used >= 5), "{error}");
    let (_, done) = super::tests::run(&run.agent, vec![], &CancellationToken::new()).await;
    assert!(matches!(done, Err(AgentError::EmptyInput)));
}

#[tokio::test]
async fn calls_of_one_turn_can_run_at_once_and_their_results_stay_in_order() {
    let barrier = Arc::new(tokio::sync::Barrier::new(3));
    let script = "rules: [{ turns: [{ calls: [{ tool: meet, args: { n: 1 } }, { tool: meet, args: { n: 2 } }, { tool: meet, args: { n: 3 } }] }, done] }]";
    let options = AgentOptions { order: CallOrder::Parallel, ..AgentOptions::default() };
    let run = fixture(script, vec![], options).await;
    let schema = json!({ "type": "object", "properties": { "n": {} } });
    let meet = NativeTool::new("meet", "Waits for the others.", &schema, move |arguments, _| {
        let barrier = barrier.clone();
        Box::pin(async move {
            barrier.wait().await;
            Ok(vec![Block::text(arguments["n"].to_string())])
        })
    });
    let agent = run.agent.clone().with_tool(meet);
    let (conversation, done) = go(&agent).await;
    done.expect("ends");
    let results: Vec<_> = conversation.messages[2..5].iter().map(Message::text).collect();
    assert_eq!(results, ["1", "2", "3"]);
}

#[tokio::test]
async fn a_cancelled_run_ends_and_so_does_its_tool() {
    let script = "rules:
    - { when: { prompt: { contains: again } }, reply: hello }
    - { reply: { calls: [{ tool: hang }, { tool: hang }] } }";
    let run = fixture(script, vec![], AgentOptions::default()).await;
    let cancel = CancellationToken::new();
    let from_tool = cancel.clone();
    let hang = NativeTool::new("hang", "Never ends.", &json!({ "type": "object" }), move |_, cancelled| {
        let from_tool = from_tool.clone();
        Box::pin(async move {
            from_tool.cancel();
            cancelled.cancelled().await;
            Err("cancelled".to_owned().into())
        })
    });
    let agent = run.agent.clone().with_tool(hang);
    let (conversation, done) = super::tests::run(&agent, vec![Block::text("Go")], &cancel).await;
    assert!(matches!(done, Err(AgentError::Cancelled)), "{done:?}");
    assert_eq!(conversation.messages.len(), 2, "what was said stays");
    assert_eq!(run.log.lines().last().expect("events"), "subagent_end execution cancelled");
    // Also if the file of a killed process has a message after the calls.
    for later in [vec![], vec![Message::user("Still?")]] {
        let mut continued = Conversation { messages: [conversation.messages.clone(), later].concat() };
        let prompt = vec![Block::text("hello again")];
        agent.run(&mut continued, prompt, &label(), &CancellationToken::new(), None).await.expect("an answer");
        let calls: Vec<_> = continued.messages[1].tool_calls().map(|call| call.id.clone()).collect();
        let results = continued.messages.iter().enumerate().filter_map(|(index, message)| match message {
            Message::ToolResult(result) if result.is_error => Some((index, result.call_id.clone())),
            _ => None,
        });
        assert_eq!(results.collect::<Vec<_>>(), [(2, calls[0].clone()), (3, calls[1].clone())], "{continued:?}");
    }
}

#[tokio::test]
async fn an_event_that_must_be_delivered_ends_the_run_but_its_end_does_not() {
    for (event, is_fatal) in [("subagent_start", true), ("response", true), ("subagent_end", false)] {
        let run = fixture("rules: [{ reply: hello }]", vec![], AgentOptions::default()).await;
        let log = Arc::new(Log { broken: Some(event), ..Log::default() });
        let agent = run.agent.clone().with_sink(log.clone());
        let error = go(&agent).await.1.err().map(|error| error.to_string());
        assert_eq!(error, is_fatal.then(|| format!("failed to emit {event} event: no listener")));
        let last = log.lines().pop().expect("events");
        let warning = "warning failed to emit subagent_end event: no listener";
        assert_eq!(last == warning, !is_fatal, "{last}");
    }
}

#[tokio::test]
async fn a_model_without_tool_calls_writes_them_and_gets_results_as_messages() {
    let script = "rules:
    - { when: { prompt: { contains: Go }, system: { contains: '### echo' } }, reply: 'I call it. <echo><txt>a</txt></echo>' }
    - { when: { prompt: { contains: VALIDATION_ERROR } }, reply: '<echo><text>b</text></echo>' }
    - { reply: 'The record: {{ prompt }}' }";
    let format = ToolFormat::Xml(rehearse_llm::xml::Options::default());
    let options = AgentOptions { format, projection: Some(Projection::Mcpilot), ..AgentOptions::default() };
    let run = fixture(script, vec![echo()], options).await;
    let (conversation, done) = run.run("Go").await;
    let done = done.expect("an answer");
    let record = r#"{"content":[{"type":"text","text":"b"}],"isError":false,"success":true}"#;
    assert_eq!(done.answer.text, format!("The record: {record}"));
    assert_eq!((done.statistics.turns, done.statistics.tool_calls), (3, 1));
    assert!(conversation.messages.iter().all(|message| !matches!(message, Message::ToolResult(_))));
    let script = "rules: [{ reply: '<final_answer><verdict>no</verdict></final_answer>' }]";
    let run = fixture(script, vec![], AgentOptions { format, answer: schema(), ..AgentOptions::default() }).await;
    assert_eq!(run.run("Go").await.1.expect("an answer").answer.text, r#"{"verdict":"no"}"#);
}

mod any {
    use proptest::prelude::*;

    use super::*;

    fn turn() -> impl Strategy<Value = serde_json::Value> {
        let tool = prop_oneof!["echo", "fail", "gone", "final_answer", "[a-z@. -]{0,8}"];
        let call = (
            tool,
            prop_oneof![
                Just(json!("{\"text\":\"x\"}")),
                Just(json!("[1]")),
                Just(json!("")),
                Just(json!("{\"verdict\":\"no\"}"))
            ],
        )
            .prop_map(|(tool, raw)| json!({ "tool": tool, "raw": raw }));
        (prop::collection::vec(call, 0..4), "[a-z ]{0,12}")
            .prop_map(|(calls, text)| json!({ "text": text, "calls": calls }))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_turns_end_within_the_limits(turns in prop::collection::vec(turn(), 1..6), has_answer in any::<bool>(), parallel in any::<bool>()) {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let options = AgentOptions {
                    max_turns: 4,
                    answer: if has_answer { schema() } else { None },
                    answer_retries: 1,
                    order: if parallel { CallOrder::Parallel } else { CallOrder::Sequential },
                    ..AgentOptions::default()
                };
                let script = json!({ "rules": [{ "turns": turns }] }).to_string();
                let run = fixture(&script, vec![], options).await;
                let (conversation, done) = run.run("Go").await;
                if let Ok(run) = &done {
                    assert!(run.statistics.turns <= 4);
                    assert_eq!(run.answer.structured.is_some(), has_answer);
                }
                // Providers want a result for every call; only the last turn of a failed run, or `final_answer`, has none.
                let calls = conversation.messages.iter().flat_map(Message::tool_calls).count();
                let results = conversation.messages.iter().filter(|message| matches!(message, Message::ToolResult(_))).count();
                assert!(results <= calls);
                if done.is_ok() && !has_answer {
                    assert_eq!(results, calls);
                }
            });
        }
    }
}
