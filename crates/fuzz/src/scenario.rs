//! A bug as a scenario, which fails until the bug is mended.

use serde_json::{Map, Value as Json, json};

use rehearse_document::yaml;
use rehearse_report::fuzz::{FuzzBug, Oracle};

/// What stack traces have, as far as a scenario has to see it.
const STACK: &str = r"Traceback \(most recent call last\)|\n\s+at .+:\d+|goroutine \d+ \[|panicked at ";

/// The text of a scenario file with the call. `server` is the server as it stands in a scenario, `protocol` the version in
/// which the bug was found. A tool that is mended may answer with a result or with an error of the tool; only arguments
/// that the schema refuses must be an error.
pub fn scenario(bug: &FuzzBug, server: &Json, protocol: &str) -> String {
    let mut step = Map::new();
    step.insert("call".to_owned(), json!({ "tool": bug.tool, "args": bug.arguments }));
    let expect = match bug.oracle {
        Oracle::InvalidAccepted => json!({ "isError": true }),
        Oracle::StackTrace => {
            let text = json!({ "properties": { "text": { "not": { "pattern": STACK } } } });
            json!({ "isError": "any", "content": { "schema": { "type": "array", "items": text } } })
        }
        _ => json!({ "isError": "any" }),
    };
    step.insert("expect".to_owned(), expect);
    let file = Map::from_iter([
        ("servers".to_owned(), json!({ "server": server })),
        ("matrix".to_owned(), json!({ "protocol": protocol })),
        ("steps".to_owned(), json!([step])),
    ]);
    let message = bug.message.replace(['\n', '\r'], " ");
    format!("# {} in {}: {message}\n{}", bug.oracle, bug.tool, yaml::to_text(&file))
}
