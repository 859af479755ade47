//! A first look at a server: the version that it speaks, and what may be requested of it.

use rehearse_client::{
    CallOptions, ClientRecorder, ConnectError, ConnectOptions, Failure, Listing, PeerVersion, ServerParams, Session,
};
use rehearse_protocol::{
    Era, Operation, Protocol, Version,
    span::{TRACEPARENT, TraceContext},
};
use serde_json::{Value, json};

use crate::{
    connection::OpenError,
    operation::MeasuredOperation,
    options::{BenchCall, BenchOptions},
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
    let listed = match session.info().declares("tools") {
        true => session.list_tools(CallOptions::default()).await,
        false => Ok(Listing::default()),
    };
    session.close().await;
    let tools = listed?.values().collect();
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
    ) -> Result<Vec<MeasuredOperation>, SurveyError> {
        if !calls.is_empty() {
            return calls.iter().map(|call| self.operation(call, options)).collect();
        }
        let allowed = self.tools.iter().filter(|tool| options.tools.allows(tool));
        let each = allowed.filter_map(|tool| tool["name"].as_str()).map(|name| {
            let call = BenchCall { request: Operation::call(name, None), weight: 1 };
            self.operation(&call, options)
        });
        let operations = each.collect::<Result<Vec<_>, _>>()?;
        match operations.is_empty() {
            false => Ok(operations),
            true if self.tools.is_empty() => Err(SurveyError::NoTools),
            true => Err(SurveyError::NoneAllowed),
        }
    }

    fn operation(&self, call: &BenchCall, options: &BenchOptions) -> Result<MeasuredOperation, SurveyError> {
        let mut request = call.request.clone();
        let name = request.params.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        match &*request.method {
            Operation::CALL => {
                let Some(tool) = self.tools.iter().find(|tool| tool["name"] == name) else {
                    let names = self.tools.iter().filter_map(|tool| tool["name"].as_str());
                    return Err(SurveyError::UnknownTool { name, known: names.map(str::to_owned).collect() });
                };
                if !options.tools.allows(tool) {
                    return Err(SurveyError::NotAllowed(name));
                }
                request.params.entry("arguments").or_insert_with(|| options.tools.arguments_of(tool));
            }
            Operation::PING if self.version.era() == Era::Modern => return Err(SurveyError::NoPing(self.version)),
            _ => {}
        }
        if let Some(trace) = self.trace {
            let context = TraceContext { trace, span: OPEN_SPAN };
            request.params.insert("_meta".to_owned(), json!({ TRACEPARENT: context.to_string() }));
        }
        Ok(MeasuredOperation::new(request, call.weight, self.version))
    }
}
