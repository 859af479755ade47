//! What a mock violates, by its traces.

use rehearse_conformance::{Facts, Judged, Recorded, Verdict, judge_recorded};
use rehearse_protocol::{EventKind, Trace, Transport, Version};

use crate::MockServer;

/// A rule of the specification that was violated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolViolation {
    /// The id of the rule; `rehearse check --explain ID` explains it.
    pub rule: &'static str,
    /// The rule, in one sentence.
    pub text: &'static str,
    /// Whether it is a MUST.
    pub is_must: bool,
    /// The version by which it was judged.
    pub version: Version,
    /// The transport.
    pub transport: Transport,
    /// What was found, and where: each time.
    pub found: Vec<String>,
}

impl MockServer {
    /// The rules of the specification that the mock itself has violated so far, as its [traces](MockServer::traces) show
    /// it: a script that misbehaves without a fault in it. What a fault, `raw` or `unchecked` sends is reported as well.
    /// Empty unless [`record_traces`](crate::MockServerBuilder::record_traces) is set.
    ///
    /// ```
    /// use rehearse_mock::{MockServer, Tool};
    /// use serde_json::json;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let broken = Tool::new("broken").reply(json!({ "raw": "{\"id\":2,\"result\":{}}" }));
    /// let server = MockServer::builder().record_traces().tool(broken).start().await?;
    /// let mut client = BufReader::new(server.connect());
    /// for request in [
    ///     r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    ///     r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"broken"}}"#,
    /// ] {
    ///     client.write_all(format!("{request}\n").as_bytes()).await?;
    ///     client.read_line(&mut String::new()).await?;
    /// }
    /// assert!(server.violations().iter().any(|violation| violation.rule == "rpc.envelope.version-field"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn violations(&self) -> Vec<ProtocolViolation> {
        let traces = self.traces();
        let of = |transport| {
            let own = traces.iter().filter(move |trace| opened(trace) == Some(transport));
            judge_recorded(own.map(|trace| Recorded { trace, asked: None }), transport, &Facts::default())
        };
        Transport::ALL.into_iter().flat_map(|transport| violations(transport, &of(transport))).collect()
    }
}

fn opened(trace: &Trace) -> Option<Transport> {
    trace.events().find_map(|event| match event.kind {
        EventKind::Opened(transport) => Some(transport),
        _ => None,
    })
}

fn violations(transport: Transport, judged: &Judged<'_>) -> Vec<ProtocolViolation> {
    let mut all = Vec::new();
    for version in &judged.versions {
        let outcomes = version.outcomes.iter();
        for (row, outcome) in outcomes.filter(|(_, it)| matches!(it.verdict, Verdict::Fail | Verdict::Warn)) {
            let found = outcome.judgement.violations.iter().map(|violation| match &violation.subject {
                Some(subject) => format!("{subject}: {}", violation.found),
                None => violation.found.clone(),
            });
            all.push(ProtocolViolation {
                rule: &row.id,
                text: &row.rule,
                is_must: outcome.verdict == Verdict::Fail,
                version: version.version,
                transport,
                found: found.collect(),
            });
        }
    }
    all
}
