//! The items of a mock server, and their answers.

use std::{
    ops::{Range, RangeFrom, RangeInclusive, RangeTo, RangeToInclusive},
    time::Duration,
};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use crate::{
    handler::{Handler, HandlerCall},
    script::CallRange,
};
use rehearse_protocol::RpcError;

macro_rules! described {
    ($($(#[$about:meta])* $name:ident($key:literal)),+) => {$(
        $(#[$about])*
        #[derive(Clone, Debug)]
        #[must_use]
        pub struct $name(pub(super) Map<String, Json>, pub(super) Vec<Handler>);

        impl $name {
            /// Creates the item with this name, URI, URI template or method.
            pub fn new(name: &str) -> Self {
                $name(Map::from_iter([($key.to_owned(), json!(name))]), Vec::new())
            }

            /// Adds a rule after the earlier ones; the first rule that matches answers.
            pub fn rule(mut self, rule: Rule) -> Self {
                let rules = self.0.entry("rules").or_insert_with(|| json!([]));
                if let Json::Array(rules) = rules {
                    rules.push(rule.0.into());
                }
                self.1.extend(rule.1);
                self
            }
        }
    )+};
}

described! {
    /// A tool and its answer.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, Tool};
    ///
    /// let add = Tool::new("add").description("Adds.").reply(serde_json::json!({ "structured": { "sum": 3 } }));
    /// MockServer::builder().tool(add).engine()?;
    /// # Ok::<_, rehearse_document::Diagnostics>(())
    /// ```
    Tool("name"),
    /// A resource and its answer.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, Resource};
    ///
    /// let readme = Resource::new("file:///readme.md").set("text", "# Hello");
    /// MockServer::builder().resource(readme).engine()?;
    /// # Ok::<_, rehearse_document::Diagnostics>(())
    /// ```
    Resource("uri"),
    /// A resource template, created from a URI template (RFC 6570). Templates read its variables from `args`.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, ResourceTemplate};
    ///
    /// let notes = ResourceTemplate::new("notes://{id}").set("text", "Note {{ args.id }}");
    /// MockServer::builder().resource_template(notes).engine()?;
    /// # Ok::<_, rehearse_document::Diagnostics>(())
    /// ```
    ResourceTemplate("uriTemplate"),
    /// A prompt and its answer.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, Prompt};
    ///
    /// let greet = Prompt::new("greet").argument("who", true).message("user", "Hello {{ args.who }}");
    /// MockServer::builder().prompt(greet).engine()?;
    /// # Ok::<_, rehearse_document::Diagnostics>(())
    /// ```
    Prompt("name"),
    /// A custom method, or a custom answer to a method of the protocol.
    ///
    /// ```
    /// use rehearse_mock::{Method, MockServer};
    ///
    /// let time = Method::new("example/time").reply(serde_json::json!({ "result": { "time": "{{ now }}" } }));
    /// MockServer::builder().method(time).engine()?;
    /// # Ok::<_, rehearse_document::Diagnostics>(())
    /// ```
    Method("method")
}

/// A condition and the answer of a tool or another item under it.
///
/// ```
/// use rehearse_mock::{MockServer, Rule, Tool};
///
/// let paris = Rule::when_args(serde_json::json!({ "city": "Paris" })).reply("sunny");
/// let forecast = Tool::new("forecast").rule(paris).rule(Rule::always().error("There is no such city."));
/// MockServer::builder().tool(forecast).engine()?;
/// # Ok::<_, rehearse_document::Diagnostics>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Rule(pub(super) Map<String, Json>, pub(super) Vec<Handler>);

macro_rules! answers {
    ($($name:ident),+) => {$(
        impl $name {
            /// Answers with a string, or with a reply of the script language: `json!({ "structured": { … } })`.
            pub fn reply(self, reply: impl Into<Json>) -> Self {
                self.set("reply", reply)
            }

            /// Sets a sequence of replies, one for each call; the last one repeats.
            pub fn replies<R: Into<Json>>(self, replies: impl IntoIterator<Item = R>) -> Self {
                self.set("replies", replies.into_iter().map(Into::into).collect::<Vec<Json>>())
            }

            /// Sets several steps, of which the last is a reply:
            /// `[json!({ "wait": "1s" }), json!({ "reply": "done" })]`.
            pub fn steps(self, steps: impl IntoIterator<Item = Json>) -> Self {
                self.set("steps", steps.into_iter().collect::<Vec<_>>())
            }

            /// Answers with a JSON-RPC error.
            pub fn rpc_error(self, code: i64, message: &str) -> Self {
                self.reply(json!({ "rpcError": { "code": code, "message": message } }))
            }

            /// Sets the delay before the answer, at most a day.
            pub fn delay(self, time: Duration) -> Self {
                self.set("delay", format!("{}ms", time.as_secs_f64() * 1000.0))
            }

            /// Sets the expected number of uses, for the verification: `1`, `1..=2`, `3..`.
            pub fn expect(self, calls: impl Into<CallRange>) -> Self {
                let CallRange { min, max } = calls.into();
                self.set("expect", json!({ "calls": { "min": min, "max": max } }))
            }

            /// Sets a key of the script language, or an MCP member, without a method of its own.
            pub fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
                self.0.insert(key.into(), value.into());
                self
            }
        }
    )+};
}

answers!(Tool, Resource, ResourceTemplate, Prompt, Method, Rule);

macro_rules! handled {
    ($($name:ident),+) => {$(
        impl $name {
            /// Answers with an async function.
            ///
            /// It returns the whole result of the tool: an object with `content`, and `structuredContent`, `isError` or
            /// `_meta` if you like. An [`RpcError`] is answered as it is, and a panic as an error with its text. The
            /// future runs in the task that answers the call, beside those of other calls. It is dropped when the
            /// client cancels the call or goes away, and when the server stops.
            ///
            /// ```
            /// use rehearse_mock::{HandlerCall, MockServer, Rule, Tool};
            /// use serde_json::json;
            ///
            /// let shout = |call: HandlerCall| async move {
            ///     call.progress(1.0, None, Some("shouting"));
            ///     let text = call.arguments()["text"].as_str().unwrap_or_default().to_uppercase();
            ///     Ok(json!({ "content": [{ "type": "text", "text": text }] }))
            /// };
            /// let schema = json!({ "type": "object", "required": ["text"] });
            /// let tool = Tool::new("shout").input_schema(schema).rule(Rule::always().handle(shout));
            /// MockServer::builder().tool(tool).engine()?;
            /// # Ok::<_, rehearse_document::Diagnostics>(())
            /// ```
            pub fn handle<F, R>(mut self, function: impl Fn(HandlerCall) -> F + Send + Sync + 'static) -> Self
            where
                F: Future<Output = Result<R, RpcError>> + Send + 'static,
                R: Serialize,
            {
                let handler = Handler::new(function);
                let id = handler.id();
                self.1.push(handler);
                self.set("handler", id)
            }
        }
    )+};
}

handled!(Tool, Rule);

impl Rule {
    /// A rule without a condition: it answers every request that no earlier rule answers.
    pub fn always() -> Rule {
        Rule(Map::new(), Vec::new())
    }

    /// A rule for requests with matching arguments. An object matches a subset, any other value must be equal, and
    /// there are matchers such as `{ "matches": REGEX }`.
    pub fn when_args(args: impl Into<Json>) -> Rule {
        Rule::when(json!({ "args": args.into() }))
    }

    /// A rule with a condition of the script language: `json!({ "era": "modern", "call": { "min": 2 } })`.
    pub fn when(condition: impl Into<Json>) -> Rule {
        Rule::always().set("when", condition)
    }

    /// Answers with a tool error.
    pub fn error(self, text: &str) -> Rule {
        self.reply(json!({ "error": text }))
    }
}

impl Tool {
    /// Sets the description of the tool for models.
    pub fn description(self, text: &str) -> Tool {
        self.set("description", text)
    }

    /// Sets the JSON Schema of the arguments. Invalid arguments are refused as the protocol requires.
    pub fn input_schema(self, schema: impl Into<Json>) -> Tool {
        self.set("inputSchema", schema)
    }

    /// Sets the JSON Schema of `structured` replies, which must match it.
    pub fn output_schema(self, schema: impl Into<Json>) -> Tool {
        self.set("outputSchema", schema)
    }

    /// Answers with a tool error.
    pub fn error(self, text: &str) -> Tool {
        self.reply(json!({ "error": text }))
    }
}

impl Prompt {
    /// Adds an argument after the earlier ones.
    pub fn argument(mut self, name: &str, required: bool) -> Prompt {
        if let Json::Array(arguments) = self.0.entry("arguments").or_insert_with(|| json!([])) {
            arguments.push(json!({ "name": name, "required": required }));
        }
        self
    }

    /// Adds a message after the earlier ones; `role` is `user` or `assistant`.
    pub fn message(mut self, role: &str, content: impl Into<Json>) -> Prompt {
        if let Json::Array(messages) = self.0.entry("messages").or_insert_with(|| json!([])) {
            messages.push(json!({ "role": role, "content": content.into() }));
        }
        self
    }
}

impl From<u64> for CallRange {
    fn from(calls: u64) -> CallRange {
        CallRange { min: calls, max: calls }
    }
}

impl From<Range<u64>> for CallRange {
    fn from(calls: Range<u64>) -> CallRange {
        CallRange { min: calls.start, max: calls.end.saturating_sub(1) }
    }
}

impl From<RangeInclusive<u64>> for CallRange {
    fn from(calls: RangeInclusive<u64>) -> CallRange {
        CallRange { min: *calls.start(), max: *calls.end() }
    }
}

impl From<RangeFrom<u64>> for CallRange {
    fn from(calls: RangeFrom<u64>) -> CallRange {
        CallRange { min: calls.start, max: u64::MAX }
    }
}

impl From<RangeTo<u64>> for CallRange {
    fn from(calls: RangeTo<u64>) -> CallRange {
        CallRange { min: 0, max: calls.end.saturating_sub(1) }
    }
}

impl From<RangeToInclusive<u64>> for CallRange {
    fn from(calls: RangeToInclusive<u64>) -> CallRange {
        CallRange { min: 0, max: calls.end }
    }
}
