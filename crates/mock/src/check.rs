//! What a mock and its clients violate, by the traces.

use rehearse_conformance::{
    Check, CheckOutcome, CheckVerdict, EventRef, Facts, JudgedVersion, Recorded, Role, Violation, judge_recorded,
};
use rehearse_protocol::{Trace, Transport};

use crate::{MockServer, ProtocolViolation, serve::ServerRecorder};

impl MockServer {
    /// The rules of the specification that the clients have violated so far, as the [traces](MockServer::traces) show
    /// it. Empty unless [`record_traces`](crate::MockServerBuilder::record_traces) is set. Judge when the client has
    /// finished: a message that is still missing counts.
    ///
    /// ```
    /// use rehearse_mock::MockServer;
    /// use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = MockServer::builder().record_traces().start().await?;
    /// let mut client = BufReader::new(server.connect());
    /// let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    /// client.write_all(format!("{initialize}\n").as_bytes()).await?;
    /// client.read_line(&mut String::new()).await?;
    /// // The notification `notifications/initialized` is missing.
    /// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}\n").await?;
    /// client.read_line(&mut String::new()).await?;
    /// let violations = server.violations();
    /// assert!(violations.iter().any(|violation| violation.rule == "client-life.initialized.sent"), "{violations:?}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn violations(&self) -> Vec<ProtocolViolation> {
        violations(&self.traces(), Role::Client)
    }

    /// The rules of the specification that the mock itself has violated so far: a script that misbehaves without a fault
    /// in it. What a fault, `raw` or `unchecked` sends is reported as well. Empty unless
    /// [`record_traces`](crate::MockServerBuilder::record_traces) is set.
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
    /// assert!(server.own_violations().iter().any(|violation| violation.rule == "rpc.envelope.version-field"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn own_violations(&self) -> Vec<ProtocolViolation> {
        violations(&self.traces(), Role::Server)
    }
}

impl ServerRecorder {
    /// Like [`MockServer::violations`].
    pub fn violations(&self) -> Vec<ProtocolViolation> {
        violations(&self.traces(), Role::Client)
    }
}

fn violations(traces: &[Trace], role: Role) -> Vec<ProtocolViolation> {
    let facts = Facts { role, is_local: role == Role::Client, ..Facts::default() };
    let mut all = Vec::new();
    for transport in Transport::ALL {
        let own = traces.iter().filter(|trace| trace.transport() == Some(transport));
        let judged = judge_recorded(own.map(|trace| Recorded { trace, asked: None }), transport, &facts);
        for version in &judged.versions {
            let open =
                version.outcomes.iter().filter(|(_, it)| matches!(it.verdict, CheckVerdict::Fail | CheckVerdict::Warn));
            all.extend(open.flat_map(|(check, outcome)| of_check(check, outcome, version, transport)));
        }
    }
    all
}

fn of_check<'a>(
    check: &'static Check,
    outcome: &'a CheckOutcome,
    judged: &'a JudgedVersion<'_>,
    transport: Transport,
) -> impl Iterator<Item = ProtocolViolation> + 'a {
    let (version, is_must) = (judged.version, outcome.verdict == CheckVerdict::Fail);
    outcome.judgement.violations.iter().map(move |Violation { subject, found, places, .. }| {
        let event = |place: &EventRef| judged.traces.get(place.connection)?.since(place.event).next();
        let message = places.iter().filter_map(event).find_map(|(_, event)| Some(event.frame()?.bytes.clone()));
        let found = subject.as_ref().map_or_else(|| found.clone(), |subject| format!("{subject}: {found}"));
        ProtocolViolation { rule: &check.id, text: &check.rule, is_must, version, transport, found, message }
    })
}
