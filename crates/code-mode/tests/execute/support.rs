//! What the tests share.

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use libtest_mimic::Failed;
use rehearse_code_mode::{CallError, Execution, Limits, ProgramEnd, Tool, ToolCall, quickjs};
use serde_json::{Value, json};

pub(crate) type Test = (&'static str, fn() -> Pin<Box<dyn Future<Output = ()>>>);

pub(crate) fn run(test: impl Future<Output = ()>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.expect("a runtime").block_on(test);
    Ok(())
}

pub(crate) fn limits() -> Limits {
    Limits::new(Duration::from_secs(60))
}

pub(crate) fn worker() -> quickjs::Worker {
    quickjs::Worker {
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::new()),
        args: vec!["worker".to_owned()],
    }
}

/// `echo` says its input, `add-one` has structured output, `fail` and `die` fail, `wait` never ends, `both` ends when it was
/// called twice at once.
pub(crate) fn tools() -> Vec<Tool> {
    let object = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = |name: &str, output_schema: Option<Value>| Tool {
        name: name.to_owned(),
        description: Some(format!("The tool {name}.")),
        input_schema: object.clone(),
        output_schema,
    };
    let mut tools = vec![tool("add-one", Some(object.clone()))];
    tools.extend(["echo", "fail", "die", "wait", "both"].map(|name| tool(name, None)));
    tools
}

/// The server of the tools.
pub(crate) struct Server {
    meeting: tokio::sync::Barrier,
    /// How many calls have not been dropped.
    pub(crate) open: AtomicUsize,
    pub(crate) called: tokio::sync::Notify,
}

impl Server {
    pub(crate) fn new() -> Server {
        Server { meeting: tokio::sync::Barrier::new(2), open: AtomicUsize::new(0), called: tokio::sync::Notify::new() }
    }

    pub(crate) async fn call(&self, call: ToolCall) -> Result<Value, CallError> {
        struct Open<'s>(&'s AtomicUsize);
        impl Drop for Open<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(&self.open);
        self.called.notify_one();
        let text = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
        match &*call.tool {
            "echo" => Ok(text(Value::Object(call.arguments).to_string())),
            "add-one" => Ok(
                json!({ "content": [], "structuredContent": { "n": call.arguments["n"].as_i64().unwrap_or(0) + 1 } }),
            ),
            "fail" => Ok(json!({ "content": [{ "type": "text", "text": "It is broken." }], "isError": true })),
            "die" => Err(CallError::Fatal("cannot connect to files".to_owned())),
            "both" => {
                self.meeting.wait().await;
                Ok(text("met".to_owned()))
            }
            "wait" => std::future::pending().await,
            _ => Err(CallError::Failed("refused".to_owned())),
        }
    }
}

pub(crate) fn text(execution: &Execution) -> String {
    let blocks = execution.blocks();
    let texts = blocks.iter().map(|block| block["text"].as_str().map_or_else(|| block.to_string(), str::to_owned));
    texts.collect::<Vec<_>>().join("|")
}

pub(crate) fn is_success(execution: &Execution) -> bool {
    execution.outcome == ProgramEnd::Success
}
