//! The JSON Schemas of results, of lines of journals and traces, and of the baseline.

use serde_json::Value as Json;

/// The accepted failures of `rehearse check --baseline`.
pub const BASELINE: &str = include_str!("../schemas/baseline.json");
/// The report of `rehearse bench … --format json`.
pub const BENCH: &str = include_str!("../schemas/bench.json");
/// The report of `rehearse diff --format json`.
pub const DIFF: &str = include_str!("../schemas/diff.json");
/// That of a result of fuzzing.
pub const FUZZ: &str = include_str!("../schemas/fuzz.json");
/// A surface file, as `rehearse surface` writes it.
pub const SURFACE: &str = include_str!("../schemas/surface.json");
/// A line of the journal of a mock.
pub const JOURNAL: &str = include_str!("../schemas/journal.json");
/// A line of a trace file.
pub const TRACE: &str = include_str!("../schemas/trace.json");

/// The report of `rehearse check --format json`.
pub fn check() -> String {
    with_definitions(include_str!("../schemas/check.json"))
}

/// The report of `rehearse run --format json`.
pub fn run() -> String {
    with_definitions(include_str!("../schemas/run.json"))
}

/// A schema with the definitions that both reports need.
fn with_definitions(schema: &str) -> String {
    let parse = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_default();
    let mut schema = parse(schema);
    if let (Json::Object(all), Json::Object(definitions)) =
        (&mut schema["$defs"], parse(include_str!("../schemas/definitions.json")))
    {
        all.extend(definitions);
    }
    format!("{schema:#}\n")
}
