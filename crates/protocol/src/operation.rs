//! What a client lets a server do.

use serde_json::{Map, Value, json};

use crate::List;

/// A request without its id.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The method of the request.
    pub method: String,
    /// Its parameters.
    pub params: Map<String, Value>,
}

/// The operations with a step of their own in a scenario: the method, the step, the verb of the title, and the parameter
/// that names what is requested.
const STEPS: [(&str, &str, &str, &str); 6] = [
    (Operation::CALL, "call", "call", "name"),
    (Operation::GET, "get_prompt", "prompt", "name"),
    (Operation::READ, "read_resource", "read", "uri"),
    ("resources/subscribe", "subscribe", "subscribe", "uri"),
    ("resources/unsubscribe", "unsubscribe", "unsubscribe", "uri"),
    ("logging/setLevel", "set_log_level", "level", "level"),
];

impl Operation {
    /// The method that calls a tool (2026-07-28, Tools: Calling Tools).
    pub const CALL: &str = "tools/call";
    /// The method that gets a prompt (2026-07-28, Prompts: Getting a Prompt).
    pub const GET: &str = "prompts/get";
    /// The method that reads a resource (2026-07-28, Resources: Reading Resources).
    pub const READ: &str = "resources/read";
    /// The method of a ping, which 2026-07-28 has no more (2025-11-25, Ping).
    pub const PING: &str = "ping";

    /// A request; what is not an object are no parameters.
    pub fn new(method: &str, params: Value) -> Operation {
        let params = if let Value::Object(params) = params { params } else { Map::new() };
        Operation { method: method.to_owned(), params }
    }

    /// The call of a tool.
    pub fn call(tool: &str, arguments: Option<Map<String, Value>>) -> Operation {
        Operation::new(Operation::CALL, with_arguments("name", tool, "arguments", arguments))
    }

    /// The request for a prompt.
    pub fn get(prompt: &str, arguments: Option<Map<String, Value>>) -> Operation {
        Operation::new(Operation::GET, with_arguments("name", prompt, "arguments", arguments))
    }

    /// The request for a resource.
    pub fn read(uri: &str) -> Operation {
        Operation::new(Operation::READ, json!({ "uri": uri }))
    }

    /// The request for the first page of a list.
    pub fn list(list: List) -> Operation {
        Operation::new(list.method(), json!({}))
    }

    /// A ping.
    pub fn ping() -> Operation {
        Operation::new(Operation::PING, json!({}))
    }

    /// What it is in a report: `call echo`.
    pub fn title(&self) -> String {
        match STEPS.iter().find(|(method, ..)| *method == self.method) {
            Some((_, _, verb, named)) => format!("{verb} {}", self.text(named)),
            None => self.method.clone(),
        }
    }

    /// The key of the step of a scenario that does it, and its value: the request as it is, if no step is for it alone.
    pub fn step(&self) -> (&'static str, Value) {
        // A step for a call has an object of arguments.
        let is_plain = self.params.get("arguments").is_none_or(Value::is_object);
        match STEPS.iter().find(|(method, ..)| is_plain && *method == self.method) {
            Some((Operation::CALL | Operation::GET, step, _, named)) => {
                let key = if *step == "call" { "tool" } else { "name" };
                let arguments = self.params.get("arguments").and_then(Value::as_object).cloned();
                (step, with_arguments(key, self.text(named), "args", arguments))
            }
            Some((_, step, _, named)) => (step, self.text(named).into()),
            None if self.method == Operation::PING => ("ping", json!({})),
            None => {
                let mut request = json!({ "method": self.method });
                if !self.params.is_empty() {
                    request["params"] = self.params.clone().into();
                }
                ("request", request)
            }
        }
    }

    fn text(&self, member: &str) -> &str {
        self.params.get(member).and_then(Value::as_str).unwrap_or_default()
    }
}

fn with_arguments(key: &str, name: &str, of: &str, arguments: Option<Map<String, Value>>) -> Value {
    let mut params = json!({ key: name });
    if let Some(arguments) = arguments {
        params[of] = arguments.into();
    }
    params
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_title_and_a_step() {
        let arguments = || json!({ "a": 1 }).as_object().cloned();
        for (operation, title, step) in [
            (
                Operation::call("echo", arguments()),
                "call echo",
                json!({ "call": { "tool": "echo", "args": { "a": 1 } } }),
            ),
            (Operation::call("echo", None), "call echo", json!({ "call": { "tool": "echo" } })),
            (
                Operation::get("p", arguments()),
                "prompt p",
                json!({ "get_prompt": { "name": "p", "args": { "a": 1 } } }),
            ),
            (Operation::read("a:b"), "read a:b", json!({ "read_resource": "a:b" })),
            (Operation::ping(), "ping", json!({ "ping": {} })),
            (Operation::list(List::Tools), "tools/list", json!({ "request": { "method": "tools/list" } })),
            (
                Operation::new("logging/setLevel", json!({ "level": "debug" })),
                "level debug",
                json!({ "set_log_level": "debug" }),
            ),
            (
                Operation::new("tools/call", json!({ "name": "echo", "arguments": "x" })),
                "call echo",
                json!({ "request": { "method": "tools/call", "params": { "name": "echo", "arguments": "x" } } }),
            ),
            (
                Operation::new("a/b", json!({ "c": 1 })),
                "a/b",
                json!({ "request": { "method": "a/b", "params": { "c": 1 } } }),
            ),
        ] {
            let (key, value) = operation.step();
            assert_eq!((&*operation.title(), json!({ key: value })), (title, step));
        }
    }
}
