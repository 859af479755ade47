//! The JSON Schemas of the reports and of the baseline.

/// The report of `rehearse check --format json`.
pub const CHECK_REPORT: &str = include_str!("../schemas/check-report.json");
/// The report of `rehearse run --format json`.
pub const RUN_REPORT: &str = include_str!("../schemas/run-report.json");
/// The accepted failures of `rehearse check --baseline`.
pub const BASELINE: &str = include_str!("../schemas/baseline.json");
