//! A client of rmcp meets a mock.

use rehearse_mock::{HandlerCall, MockServer, Tool};
use rehearse_protocol::{Era, RpcError, Version};
use rehearse_rmcp_bridge::transport;
use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient, ServiceError,
    model::*,
    service::{NotificationContext, PeerRequestOptions, RequestContext, RunningService},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::{VERSIONS, exchanges, has};

/// What answers the requests of [`exchanges`].
const EVERYTHING: &str = r#"
server: { name: everything, version: 1.2.3 }
instructions: Be kind.
capabilities: { logging: {}, resources: { subscribe: true } }
tools:
  - name: show
    description: Shows.
    inputSchema: { type: object }
    reply:
      result:
        content:
          - { type: text, text: a & b }
          - { type: image, data: QQ==, mimeType: image/png }
          - { type: audio, data: QQ==, mimeType: audio/wav }
          - { type: resource_link, uri: "page://1", name: page }
          - { type: resource, resource: { uri: "page://1", text: One } }
        structuredContent: { a: "{{ args.a }}" }
        isError: false
resources: [{ uri: "page://1", name: page, text: One }]
resourceTemplates: [{ uriTemplate: "page://{number}", name: page, text: "{{ args.number }}" }]
prompts:
  - name: greet
    arguments: [{ name: who, required: true }]
    messages: [{ role: user, content: "Greet {{ args.who }}" }]
completions: [{ prompt: greet, argument: who, values: [Ada, Bob] }]
skills:
  - { name: refunds, description: Process refunds., files: { references/policy.md: The customer is right. } }
methods: [{ method: example/visit, reply: { result: { visits: 1 } } }]
"#;

/// What needs more than a request and its answer.
const LIVELY: &str = r#"
requestState: { ttl: 5m }
tools:
  - name: ask
    steps:
      - ask:
          guest:
            elicit:
              message: Who?
              requestedSchema: { type: object, properties: { name: { type: string } }, required: [name] }
          words: { sample: { messages: [{ role: user, content: { type: text, text: Hello } }], maxTokens: 20 } }
          folders: { roots: {} }
      - reply: "{{ guest.content.name }} {{ words.content.text }} {{ folders.roots[0].uri }}"
  - name: work
    steps:
      - progress: { progress: 1, total: 2, message: half }
      - log: { level: warning, logger: oven, data: { celsius: 220 } }
      - notify: { method: notifications/example/edited, params: { page: 1 } }
      - reply: done
  - name: change
    steps:
      - enable: { tool: secret }
      - notify: { method: notifications/resources/updated, params: { uri: "page://1" } }
      - reply: changed
  - { name: secret, enabled: false, reply: oak }
  - name: export
    steps:
      - task: { pollInterval: 1ms }
      - elicit: { as: rows, message: How many?, requestedSchema: { type: object, properties: {} } }
      - reply: "{{ rows.content.rows }} rows"
resources: [{ uri: "page://1", text: One }]
"#;

/// Answers requests of a server, and passes its notifications on.
#[derive(Clone)]
struct Handler(mpsc::UnboundedSender<Value>);

type Client = RunningService<RoleClient, Handler>;

pub(crate) fn parse<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

impl Handler {
    fn pass(&self, method: &str, params: impl serde::Serialize) {
        // The test may have ended.
        let _ = self.0.send(json!({ "method": method, "params": params }));
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        parse(json!({
            "protocolVersion": Version::LATEST_LEGACY.as_str(),
            "capabilities": {
                "elicitation": {}, "sampling": {}, "roots": {}, "extensions": { "io.modelcontextprotocol/tasks": {} },
            },
            "clientInfo": { "name": "witness", "version": "1" },
        }))
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(parse(json!({ "action": "accept", "content": { "name": "Ada" } })))
    }

    async fn create_message(
        &self,
        _request: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Ok(parse(json!({ "role": "assistant", "content": { "type": "text", "text": "Welcome" }, "model": "m" })))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(parse(json!({ "roots": [{ "uri": "file:///home" }] })))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.pass("progress", params);
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.pass("message", params);
    }

    async fn on_resource_updated(
        &self,
        params: ResourceUpdatedNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.pass("resources/updated", params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.pass("tools/list_changed", ());
    }

    async fn on_custom_notification(
        &self,
        notification: CustomNotification,
        _context: NotificationContext<RoleClient>,
    ) {
        self.pass(&notification.method, notification.params);
    }
}

/// A client in one version, and the notifications that it gets.
async fn connect(mock: &MockServer, version: Version) -> (Client, mpsc::UnboundedReceiver<Value>) {
    let (sender, notifications) = mpsc::unbounded_channel();
    let lifecycle = match version.era() {
        Era::Legacy => ClientLifecycleMode::Initialize,
        Era::Modern => ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] },
    };
    let client = Handler(sender).serve_with_lifecycle(transport(mock), lifecycle).await.expect("a connection");
    (client, notifications)
}

pub(crate) async fn connect_in(mock: &MockServer, version: Version) -> RunningService<RoleClient, impl ClientHandler> {
    connect(mock, version).await.0
}

fn request(method: &str, params: &Value) -> ClientRequest {
    let request: ClientRequest = parse(json!({ "method": method, "params": params }));
    let is_custom = matches!(request, ClientRequest::CustomRequest(_));
    assert_eq!(is_custom, method.starts_with("example/"), "rmcp does not know {method} with {params}");
    request
}

fn call(tool: &str) -> CallToolRequestParams {
    CallToolRequestParams::new(tool.to_owned())
}

#[tokio::test]
async fn a_mock_says_what_it_is() {
    let mock = MockServer::from_script(EVERYTHING).start().await.expect("a mock");
    for version in VERSIONS {
        let (client, _) = connect(&mock, version).await;
        let info = serde_json::to_value(client.peer_info().expect("its name").as_ref()).expect("JSON");
        let expected = json!({
            "protocolVersion": version.as_str(),
            "serverInfo": { "name": "everything", "version": "1.2.3" },
            "instructions": "Be kind.",
            "capabilities": { "tools": {}, "prompts": {}, "resources": {}, "completions": {} },
        });
        assert!(has(&info, &expected), "{version}: {info}");
    }
}

#[tokio::test]
async fn rmcp_reads_what_a_mock_answers_to_every_method() {
    let mock = MockServer::from_script(EVERYTHING).start().await.expect("a mock");
    for version in VERSIONS {
        let (client, _) = connect(&mock, version).await;
        for exchange in exchanges() {
            let sent = client.send_request(request(&exchange.method, &exchange.params)).await;
            let at = format!("{version} {}: {sent:?}", exchange.method);
            if exchange.era.is_some_and(|era| era != version.era()) {
                assert!(matches!(sent, Err(ServiceError::McpError(error)) if error.code.0 == -32601), "{at}");
                continue;
            }
            let result = sent.expect(&at);
            let kind = format!("{result:?}");
            assert!(kind.starts_with(&format!("{}(", exchange.kind)), "{at}");
            assert!(has(&serde_json::to_value(result).expect("JSON"), &exchange.result), "{at}");
        }
    }
}

#[tokio::test]
async fn rmcp_answers_what_a_mock_asks_for() {
    let mock = MockServer::from_script(LIVELY).start().await.expect("a mock");
    for version in VERSIONS {
        let (client, _) = connect(&mock, version).await;
        let result = client.call_tool(call("ask")).await.expect("a result");
        let result = serde_json::to_value(result).expect("JSON");
        assert_eq!(result["content"][0]["text"], "Ada Welcome file:///home", "{version}");
    }
}

#[tokio::test]
async fn rmcp_gets_the_notifications_of_a_call() {
    let mock = MockServer::from_script(LIVELY).start().await.expect("a mock");
    for version in VERSIONS {
        let (client, mut notifications) = connect(&mock, version).await;
        let meta = json!({ "io.modelcontextprotocol/logLevel": "info" });
        let mut options = PeerRequestOptions::no_options();
        options.meta = Some(parse(meta));
        let request = request("tools/call", &json!({ "name": "work", "arguments": {} }));
        let called = client.send_request_with_option(request, options).await.expect("it is sent");
        called.await_response().await.expect("a result");
        for expected in [
            json!({ "method": "progress", "params": { "progress": 1.0, "total": 2.0, "message": "half" } }),
            json!({ "method": "message", "params": { "level": "warning", "logger": "oven", "data": { "celsius": 220 } } }),
            json!({ "method": "notifications/example/edited", "params": { "page": 1 } }),
        ] {
            let notification = notifications.recv().await.expect("a notification");
            assert!(has(&notification, &expected), "{version}: {notification}");
        }
    }
}

#[tokio::test]
async fn a_legacy_client_of_rmcp_is_told_of_changes() {
    let mock = MockServer::from_script(LIVELY).start().await.expect("a mock");
    let (client, mut notifications) = connect(&mock, Version::LATEST_LEGACY).await;
    client.send_request(request("resources/subscribe", &json!({ "uri": "page://1" }))).await.expect("a subscription");
    client.call_tool(call("change")).await.expect("a result");
    let mut methods = Vec::new();
    while methods.len() < 2 {
        methods.push(notifications.recv().await.expect("a notification")["method"].clone());
    }
    methods.sort_by_key(Value::to_string);
    assert_eq!(methods, ["resources/updated", "tools/list_changed"]);
}

#[tokio::test]
async fn a_modern_client_of_rmcp_is_told_of_the_changes_that_it_listens_to() {
    let mock = MockServer::from_script(LIVELY).start().await.expect("a mock");
    let (client, _) = connect(&mock, Version::LATEST).await;
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["page://1"] });
    let mut subscription = client.listen(parse(filter.clone())).await.expect("a subscription");
    assert_eq!(serde_json::to_value(subscription.acknowledged()).expect("JSON"), filter);
    client.call_tool(call("change")).await.expect("a result");
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        kinds.push(match subscription.next().await.expect("open").expect("a notification") {
            ServerNotification::ToolListChangedNotification(_) => "tools".to_owned(),
            ServerNotification::ResourceUpdatedNotification(updated) => updated.params.uri,
            other => format!("{other:?}"),
        });
    }
    kinds.sort();
    assert_eq!(kinds, ["page://1", "tools"]);
    subscription.cancel().await.expect("it ends");
}

#[tokio::test]
async fn a_task_asks_a_client_of_rmcp_and_is_completed_or_cancelled() {
    let mock = MockServer::from_script(LIVELY).start().await.expect("a mock");
    let (client, _) = connect(&mock, Version::LATEST).await;
    let mut statuses = Vec::new();
    for is_answered in [true, false] {
        let created = client.call_tool_once(call("export")).await.expect("a task");
        let CallToolResponse::Task(created) = created else { panic!("{created:?}") };
        let id = created.task.task_id;
        let end = loop {
            let task = client.get_task(parse(json!({ "taskId": id }))).await.expect("a task");
            let task = serde_json::to_value(task).expect("JSON");
            match task["status"].as_str() {
                Some("working") => {}
                Some("input_required") if is_answered => {
                    let answer = json!({ "action": "accept", "content": { "rows": 5 } });
                    let update = json!({ "taskId": id, "inputResponses": { "rows": answer } });
                    client.update_task(parse(update)).await.expect("it takes the answer");
                }
                Some("input_required") => {
                    client.cancel_task(parse(json!({ "taskId": id }))).await.expect("it is cancelled");
                }
                _ => break task,
            }
        };
        statuses.push((end["status"].clone(), end["result"]["content"][0]["text"].clone()));
    }
    assert_eq!(statuses, [(json!("completed"), json!("5 rows")), (json!("cancelled"), Value::Null)]);
}

#[tokio::test]
async fn a_call_that_rmcp_cancels_ends_at_the_mock() {
    /// Tells that it is dropped.
    struct Dropped(mpsc::UnboundedSender<&'static str>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }

    for version in VERSIONS {
        let (sender, mut seen) = mpsc::unbounded_channel();
        let endless = move |_: HandlerCall| {
            let sender = sender.clone();
            async move {
                let _ = sender.send("called");
                let _dropped = Dropped(sender);
                std::future::pending::<Result<Value, RpcError>>().await
            }
        };
        let mock = MockServer::builder().tool(Tool::new("endless").handle(endless)).start().await.expect("a mock");
        let (client, _) = connect(&mock, version).await;
        let request = request("tools/call", &json!({ "name": "endless", "arguments": {} }));
        let sent = client.send_cancellable_request(request, PeerRequestOptions::no_options()).await.expect("sent");
        assert_eq!(seen.recv().await, Some("called"), "{version}");
        sent.cancel(Some("enough".to_owned())).await.expect("cancelled");
        assert_eq!(seen.recv().await, Some("dropped"), "{version}");
    }
}
