//! A first look at a server: the version that it speaks, and what may be requested of it.

use rehearse_client::{
    CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, PeerVersion, ServerParams, Session, example,
};
use rehearse_protocol::{
    Era, Protocol, Version,
    span::{TRACEPARENT, TraceContext},
};
use serde_json::{Value, json};

use crate::{
    connection::OpenError,
    operation::Operation,
    options::{BenchCall, BenchOptions, BenchRequest},
    request::OPEN_SPAN,
};

/// How many events of the session are kept: a server may send without end before it answers.
const KEPT_EVENTS: usize = 1000;

/// Why a server cannot be measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SurveyError {
    #[error(transparent)]
    Connect(#[from] ConnectError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the tools cannot be listed: {0}")]
    Tools(#[from] Failure),
    #[error("the server speaks {0}, which was never released")]
    Version(PeerVersion),
    #[error("the server has no tools; --ping or --resource can be measured")]
    NoTools,
    #[error("no tool has readOnlyHint; allow one with --allow-tool NAME")]
    NoneAllowed,
    #[error("there is no tool {name:?}; tools are {}", .known.join(", "))]
    UnknownTool { name: String, known: Vec<String> },
    #[error("the tool {0:?} has no readOnlyHint, so it is not called; allow it with --allow-tool {0}")]
    NotAllowed(String),
    #[error("{0} has no ping; --protocol 2025-11-25 has one")]
    NoPing(Version),
}

/// What a server speaks and has.
pub(crate) struct Survey {
    pub(crate) version: Version,
    tools: Vec<Value>,
    trace: Option<u128>,
}

/// Opens a session and lists the tools.
///
/// # Errors
/// There is no session, or it speaks a version that does not exist.
pub(crate) async fn survey(params: &ServerParams, protocol: Protocol) -> Result<Survey, SurveyError> {
    let options = ConnectOptions { recorder: ClientRecorder::with_limit(KEPT_EVENTS), ..ConnectOptions::default() };
    let session = Session::connect_with(params, protocol, options).await?;
    let version = session.info().version.clone();
    let mut tools = Vec::new();
    let listed = match session.info().declares("tools") {
        true => session.list_tools(CallOptions::default()).await.map(|listing| {
            tools = listing.valid().filter_map(|item| serde_json::from_str(item.get()).ok()).collect();
        }),
        false => Ok(()),
    };
    session.close().await;
    listed?;
    let version = version.known().ok_or(SurveyError::Version(version))?;
    Ok(Survey { version, tools, trace: params.trace })
}

impl Survey {
    /// What to send: the calls that were asked for, or each tool that may be called.
    ///
    /// # Errors
    /// A tool does not exist or may not be called; or there is nothing to send.
    pub(crate) fn operations(
        &self,
        calls: &[BenchCall],
        options: &BenchOptions,
    ) -> Result<Vec<Operation>, SurveyError> {
        if !calls.is_empty() {
            return calls.iter().map(|call| self.operation(call, options)).collect();
        }
        let name = |tool: &Value| tool["name"].as_str().map(str::to_owned);
        let allowed = self.tools.iter().filter(|tool| options.tools.allows(tool)).filter_map(name);
        let each = allowed.map(|name| {
            let call = BenchCall { request: BenchRequest::Tool { name, arguments: None }, weight: 1 };
            self.operation(&call, options)
        });
        let operations = each.collect::<Result<Vec<_>, _>>()?;
        match operations.is_empty() {
            false => Ok(operations),
            true if self.tools.is_empty() => Err(SurveyError::NoTools),
            true => Err(SurveyError::NoneAllowed),
        }
    }

    fn operation(&self, call: &BenchCall, options: &BenchOptions) -> Result<Operation, SurveyError> {
        let (method, mut params) = match &call.request {
            BenchRequest::Tool { name, arguments } => {
                let Some(tool) = self.tools.iter().find(|tool| tool["name"] == **name) else {
                    let names = self.tools.iter().filter_map(|tool| tool["name"].as_str());
                    let known = names.map(str::to_owned).collect();
                    return Err(SurveyError::UnknownTool { name: name.clone(), known });
                };
                if !options.tools.allows(tool) {
                    return Err(SurveyError::NotAllowed(name.clone()));
                }
                let given = options.tools.arguments.iter().find(|(tool, _)| tool == name).map(|(_, it)| it.clone());
                let given = arguments.clone().map(Value::Object).or(given);
                let arguments = given.unwrap_or_else(|| example::object(&tool["inputSchema"]).into());
                ("tools/call", json!({ "name": name, "arguments": arguments }))
            }
            BenchRequest::Resource { uri } => ("resources/read", json!({ "uri": uri })),
            BenchRequest::Prompt { name, arguments } => {
                ("prompts/get", json!({ "name": name, "arguments": arguments }))
            }
            BenchRequest::ToolsList => ("tools/list", json!({})),
            BenchRequest::Ping if self.version.era() == Era::Modern => {
                return Err(SurveyError::NoPing(self.version));
            }
            BenchRequest::Ping => ("ping", json!({})),
        };
        if let Some(trace) = self.trace {
            let context = TraceContext { trace, span: OPEN_SPAN };
            params["_meta"] = json!({ TRACEPARENT: context.to_string() });
        }
        Ok(Operation::new(call.request.title(), method, params, call.weight, self.version))
    }
}
