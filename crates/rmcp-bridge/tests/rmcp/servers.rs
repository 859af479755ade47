//! A session meets a server of rmcp.

use rehearse_check::{CheckOptions, check};
use rehearse_client::{Answer, AnswerScript, Answers, CallOptions, Failure, ServerParams, Session, SubscriptionFilter};
use rehearse_protocol::{Era, List, Protocol, Version};
use rehearse_rmcp_bridge::RmcpServer;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::*,
    service::{RequestContext, SubscriptionContext},
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{VERSIONS, clients::parse, exchanges, has};

/// Answers the requests of [`exchanges`], and passes on what it gets.
#[derive(Clone)]
struct Everything(mpsc::UnboundedSender<(&'static str, Value)>);

impl Everything {
    fn answer<T: serde::de::DeserializeOwned>(
        &self,
        method: &'static str,
        params: impl serde::Serialize,
    ) -> Result<T, ErrorData> {
        let _ = self.0.send((method, serde_json::to_value(params).expect("JSON")));
        let exchange = exchanges().into_iter().find(|exchange| exchange.method == method).expect(method);
        Ok(parse(exchange.result))
    }
}

macro_rules! answered {
    ($($name:ident($params:ty) -> $result:ty: $method:literal;)+) => {$(
        async fn $name(&self, params: $params, _: RequestContext<RoleServer>) -> Result<$result, ErrorData> {
            self.answer($method, params)
        }
    )+};
}

/// The answer of a tool with this text.
fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

impl ServerHandler for Everything {
    fn get_info(&self) -> ServerConfig {
        parse(json!({
            "protocolVersion": Version::LATEST_LEGACY.as_str(),
            "serverInfo": { "name": "everything", "version": "1.2.3" },
            "instructions": "Be kind.",
            "capabilities": {
                "tools": { "listChanged": true }, "resources": { "subscribe": true }, "prompts": {}, "completions": {},
                "logging": {}, "extensions": { "io.modelcontextprotocol/skills": { "directoryRead": true } },
            },
        }))
    }

    async fn ping(&self, _context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.answer::<Value>("ping", json!({})).map(drop)
    }

    answered! {
        list_tools(Option<PaginatedRequestParams>) -> ListToolsResult: "tools/list";
        list_resources(Option<PaginatedRequestParams>) -> ListResourcesResult: "resources/list";
        list_resource_templates(Option<PaginatedRequestParams>) -> ListResourceTemplatesResult: "resources/templates/list";
        list_prompts(Option<PaginatedRequestParams>) -> ListPromptsResult: "prompts/list";
        list_skills(Option<PaginatedRequestParams>) -> ListSkillsResult: "skills/list";
        get_skill(GetSkillRequestParams) -> GetSkillResult: "skills/get";
        read_resource_directory(ReadResourceDirectoryRequestParams) -> ReadResourceDirectoryResult: "resources/directory/read";
        complete(CompleteRequestParams) -> CompleteResult: "completion/complete";
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.answer::<ReadResourceResult>("resources/read", params).map(Into::into)
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.answer::<GetPromptResult>("prompts/get", params).map(Into::into)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // 2026-07-28 has no such request; rmcp leaves it to the handler.
        match context.protocol_version() {
            Some(version) if version >= ProtocolVersion::V_2026_07_28 => {
                Err(ErrorData::method_not_found::<SetLevelRequestMethod>())
            }
            _ => self.answer::<Value>("logging/setLevel", params).map(drop),
        }
    }

    async fn subscribe(
        &self,
        params: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let updated = ResourceUpdatedNotificationParam::new(params.uri.clone());
        context.peer.notify_resource_updated(updated).await.expect("it is sent");
        self.answer::<Value>("resources/subscribe", params).map(drop)
    }

    async fn unsubscribe(
        &self,
        params: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.answer::<Value>("resources/unsubscribe", params).map(drop)
    }

    fn accepted_subscription_filter(
        &self,
        requested: &rmcp::model::SubscriptionFilter,
    ) -> Option<rmcp::model::SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        context.sink().notify_tool_list_changed().await.expect("it is accepted");
        context.sink().notify_resource_updated("page://1").await.expect("it is accepted");
        context.cancelled().await;
        let _ = self.0.send(("subscriptions/listen", json!("cancelled")));
        Ok(())
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match &*params.name {
            "ask" => ask(&params, &context).await,
            "work" => {
                let token = context.meta.get_progress_token().expect("a token");
                let progress = ProgressNotificationParam::new(token, 1.0).with_total(2.0).with_message("half");
                context.peer.notify_progress(progress).await.expect("it is sent");
                let log = json!({ "level": "warning", "logger": "oven", "data": { "celsius": 220 } });
                let log = json!({ "method": "notifications/message", "params": log });
                context.peer.send_notification(parse(log)).await.expect("it is sent");
                Ok(text("done"))
            }
            "endless" => {
                let _ = self.0.send(("tools/call", json!("called")));
                context.ct.cancelled().await;
                let _ = self.0.send(("tools/call", json!("cancelled")));
                Ok(text("late"))
            }
            _ => self.answer::<CallToolResult>("tools/call", params).map(Into::into),
        }
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match request.method.as_str() {
            "example/visit" => self.answer("example/visit", request.params),
            _ => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None)),
        }
    }
}

/// Asks the client for all that a server can ask for, in the way of its era.
async fn ask(
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let questions = json!({
        "guest": {
            "method": "elicitation/create",
            "params": { "mode": "form", "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } },
        },
        "words": { "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 20 } },
        "folders": { "method": "roots/list" },
    });
    let is_modern = context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28);
    let answers = match &params.input_responses {
        Some(answers) => serde_json::to_value(answers).expect("JSON"),
        None if is_modern => {
            let result = json!({ "resultType": "input_required", "inputRequests": questions, "requestState": "s" });
            return Ok(CallToolResponse::InputRequired(parse(result)));
        }
        None => {
            let mut answers = Map::new();
            for (name, question) in questions.as_object().into_iter().flatten() {
                let answer = context.peer.send_request(parse(question.clone())).await.expect("an answer");
                answers.insert(name.clone(), serde_json::to_value(answer).expect("JSON"));
            }
            answers.into()
        }
    };
    Ok(text(answers.to_string()))
}

/// A server, and what it gets.
fn everything() -> (RmcpServer, mpsc::UnboundedReceiver<(&'static str, Value)>) {
    let (sender, received) = mpsc::unbounded_channel();
    (RmcpServer::start(move || Everything(sender.clone())), received)
}

async fn connect(server: &RmcpServer, version: Version, answers: Answers) -> Session {
    let params = ServerParams { answers, ..ServerParams::new("everything", server.target()) };
    Session::connect(&params, Protocol::Exact(version)).await.expect("a session")
}

fn members(value: &Value) -> Option<Map<String, Value>> {
    value.as_object().cloned()
}

#[tokio::test]
async fn a_server_of_rmcp_says_what_it_is() {
    let (server, _received) = everything();
    for version in VERSIONS {
        let session = connect(&server, version, Answers::default()).await;
        let info = session.info();
        assert_eq!(info.version.known(), Some(version));
        assert_eq!(info.instructions.as_deref(), Some("Be kind."));
        let name: Value = serde_json::from_str(info.server_info.as_ref().expect("a name").get()).expect("JSON");
        assert!(has(&name, &json!({ "name": "everything", "version": "1.2.3" })), "{name}");
        assert!(["tools", "resources", "prompts", "completions"].iter().all(|name| info.declares(name)), "{info:?}");
    }
}

#[tokio::test]
async fn a_client_that_lets_the_server_choose_gets_the_newest_version() {
    let (server, _received) = everything();
    let session = Session::connect(&ServerParams::new("everything", server.target()), Protocol::Auto).await;
    assert_eq!(session.expect("a session").info().version.known(), Some(Version::LATEST));
}

#[tokio::test]
async fn a_session_reads_what_rmcp_answers_to_every_method() {
    let (server, mut received) = everything();
    for version in VERSIONS {
        let session = connect(&server, version, Answers::default()).await;
        for exchange in exchanges() {
            let sent = session.request(&exchange.method, members(&exchange.params), CallOptions::default()).await;
            let at = format!("{version} {}: {sent:?}", exchange.method);
            // rmcp has skills in every version.
            let is_legacy_only = exchange.era == Some(Era::Legacy);
            if is_legacy_only && version.era() == Era::Modern {
                assert!(matches!(sent, Err(Failure::Rpc(error)) if error.code == -32601), "{at}");
                continue;
            }
            let result = serde_json::from_str(sent.expect(&at).get()).expect("JSON");
            assert!(has(&result, &exchange.result), "{at}");
            let (method, params) = received.recv().await.expect("a request");
            let is_paged = params.is_null() && exchange.params == json!({});
            assert!(
                method == exchange.method && (is_paged || has(&params, &exchange.params)),
                "{at}: {method} {params}"
            );
        }
    }
}

#[tokio::test]
async fn a_session_answers_what_rmcp_asks_for() {
    let (server, _received) = everything();
    let expected = json!({
        "guest": { "action": "accept", "content": { "name": "Ada" } },
        "words": { "role": "assistant", "content": { "type": "text", "text": "Welcome" }, "model": "m" },
        "folders": { "roots": [{ "uri": "file:///home" }] },
    });
    for version in VERSIONS {
        let answer = |name: &str| vec![Answer::Result(expected[name].clone())];
        let script = AnswerScript { elicitation: answer("guest"), sampling: answer("words"), roots: answer("folders") };
        let session = connect(&server, version, Answers::from_script(script, [])).await;
        let outcome = session.call_tool("ask", None, CallOptions::default()).await.expect("a result");
        let answers: Value = serde_json::from_str(&outcome.text()).expect("JSON");
        assert!(has(&answers, &expected), "{version}: {answers}");
    }
}

/// The params of the next notification of the server.
async fn notification(session: &Session, method: &str) -> Value {
    let of = |frame: &rehearse_protocol::Frame| {
        serde_json::from_slice::<Value>(&frame.bytes).is_ok_and(|message| message["method"] == method)
    };
    let (_, frame) = session.recorder().wait_for(session.recorder().start(), of).await.expect(method);
    serde_json::from_slice::<Value>(&frame.bytes).expect("JSON")["params"].take()
}

#[tokio::test]
async fn a_session_gets_the_notifications_of_rmcp() {
    let (server, mut received) = everything();
    for version in VERSIONS {
        let session = connect(&server, version, Answers::default()).await;
        let meta = members(&json!({ "progressToken": 7, "io.modelcontextprotocol/logLevel": "info" }));
        let options = CallOptions { meta, ..CallOptions::default() };
        assert_eq!(session.call_tool("work", None, options).await.expect("a result").text(), "done");
        let progress = notification(&session, "notifications/progress").await;
        assert!(has(&progress, &json!({ "progress": 1.0, "total": 2.0, "message": "half" })), "{progress}");
        let log = notification(&session, "notifications/message").await;
        assert!(has(&log, &json!({ "level": "warning", "data": { "celsius": 220 } })), "{log}");

        let lists = Vec::from_iter((version.era() == Era::Modern).then_some(List::Tools));
        let filter = SubscriptionFilter { lists, ..SubscriptionFilter::for_resource("page://1") };
        session.listen(&filter, CallOptions::default()).await.expect("a subscription");
        let updated = notification(&session, "notifications/resources/updated").await;
        assert_eq!(updated["uri"], "page://1", "{version}");
        if !filter.lists.is_empty() {
            notification(&session, "notifications/tools/list_changed").await;
        }
        session.unsubscribe("page://1", CallOptions::default()).await.expect("it ends");
        let ends: &[_] = match version.era() {
            Era::Legacy => &["resources/subscribe", "resources/unsubscribe"],
            Era::Modern => &["subscriptions/listen"],
        };
        for end in ends {
            assert_eq!(received.recv().await.map(|(method, _)| method), Some(*end), "{version}");
        }
    }
}

#[tokio::test]
async fn a_call_that_a_session_cancels_ends_at_rmcp() {
    let (server, mut received) = everything();
    for version in VERSIONS {
        let session = connect(&server, version, Answers::default()).await;
        let cancel = CancellationToken::new();
        let options = CallOptions { cancel: Some(cancel.clone()), ..CallOptions::default() };
        let (called, ()) = tokio::join!(session.call_tool("endless", None, options), async {
            assert_eq!(received.recv().await, Some(("tools/call", json!("called"))), "{version}");
            cancel.cancel();
        });
        assert!(matches!(called, Err(Failure::Cancelled)), "{version}: {called:?}");
        assert_eq!(received.recv().await, Some(("tools/call", json!("cancelled"))), "{version}");
    }
}

#[tokio::test]
async fn a_check_finds_what_rmcp_is_known_to_violate() {
    let (server, _received) = everything();
    let (versions, checks) = (vec![Version::V2025_03_26], vec!["rpc.*".to_owned()]);
    let options = CheckOptions { versions, checks, counts_sdk: true, ..CheckOptions::default() };
    let failures = check(&ServerParams::new("everything", server.target()), &options).await.checked.failures();
    // rmcp takes a batch for a message that it cannot read.
    let is_known = |failure: &String| failure.starts_with("2025-03-26 rpc.batch.receive: ");
    assert!(!failures.is_empty() && failures.iter().all(is_known), "{failures:#?}");
}

#[tokio::test]
async fn a_server_that_is_stopped_or_dropped_ends_its_connections_and_takes_no_more() {
    for is_dropped in [false, true] {
        let (server, _received) = everything();
        let target = server.target();
        let session = connect(&server, Version::LATEST_LEGACY, Answers::default()).await;
        if is_dropped {
            drop(server);
        } else {
            server.stop().await;
        }
        assert!(!session.recorder().has_more(usize::MAX).await, "the connection is closed");
        let params = ServerParams::new("everything", target);
        Session::connect(&params, Protocol::Auto).await.expect_err("it is gone");
    }
}
