//! rmcp as an independent witness: its clients meet our mocks, our sessions meet its servers, in both eras.

#![expect(deprecated, reason = "rmcp marks what 2026-07-28 is about to remove")]

// The example uses the facade, of which this is the part that it needs.
extern crate self as mcp_rehearsal;

mod catalog;
mod clients;
#[expect(dead_code, unreachable_pub, reason = "it is the root of its own program")]
#[path = "../../../../examples/rmcp_test.rs"]
mod example;
mod generated;
mod servers;

use rehearse_check as check;
use rehearse_client as client;
use rehearse_document as document;
use rehearse_fuzz as fuzz;
use rehearse_mock as mock;
use rehearse_protocol as protocol;
use rehearse_rmcp_bridge as rmcp_bridge;
use rehearse_scenario as scenario;

use rehearse_protocol::{Era, Version};
use rehearse_testing::table::rows;
use serde_json::Value;

/// The newest version of each era.
const VERSIONS: [Version; 2] = [Version::LATEST_LEGACY, Version::LATEST];

/// Whether `found` has everything that `expected` has: further members of objects do not count.
fn has(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| found.get(key).is_some_and(|it| has(it, value)))
        }
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len() && found.iter().zip(expected).all(|(found, expected)| has(found, expected))
        }
        _ => found == expected,
    }
}

/// A request, and what comes back.
struct Exchange {
    method: String,
    params: Value,
    /// The type of rmcp that has the result.
    kind: String,
    result: Value,
    /// The only era that has the method.
    era: Option<Era>,
}

fn exchanges() -> Vec<Exchange> {
    let parsed = |text: String| serde_json::from_str(&text).expect("JSON");
    let exchange = |[method, eras, kind, params, result]: [String; 5]| {
        let era = [Era::Legacy, Era::Modern].into_iter().find(|era| era.to_string() == eras);
        Exchange { method, params: parsed(params), kind, result: parsed(result), era }
    };
    rows(include_str!("exchanges.txt"), "exchanges").into_iter().map(exchange).collect()
}
