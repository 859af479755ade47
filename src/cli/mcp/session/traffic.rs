//! `--check` and `--trace-file`: the traffic of a command.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;

use crate::cli::{Exit, Failure, mcp::args::TrafficArgs, secrets::Secrets, style, trace_file::TraceFileWriter};
use rehearse_check::judge_traffic;
use rehearse_client::ClientRecorder;
use rehearse_hub::{HubServer, RecordSink};
use rehearse_protocol::{Protocol, Trace, Transport, Version, trace_file::ConnectionInfo};
use rehearse_report::{check::CheckVerdict, violation_text};

/// The connections of a command, if someone wants to see them.
#[derive(Clone)]
pub(crate) struct Traffic(Arc<Inner>);

struct Inner {
    file: Option<TraceFileWriter>,
    is_checked: bool,
    /// Without secrets nothing is masked.
    secrets: Option<Secrets>,
    servers: Vec<WatchedServer>,
}

struct WatchedServer {
    name: String,
    transport: Transport,
    /// The version that the client asks for.
    asked: Option<Version>,
    connections: Mutex<Vec<ClientRecorder>>,
}

impl Traffic {
    /// `None` if it is not to be seen.
    ///
    /// # Errors
    /// The trace file cannot be written.
    pub(crate) fn new(
        args: &TrafficArgs,
        members: &[HubServer],
        secrets: Option<Secrets>,
    ) -> Result<Option<Traffic>, Failure> {
        if !args.check && args.trace_file.is_none() {
            return Ok(None);
        }
        let file = args.trace_file.as_deref().map(TraceFileWriter::create).transpose()?;
        let servers = members.iter().map(|member| WatchedServer {
            name: member.config.name.clone(),
            transport: member.config.target.transport(),
            asked: match member.protocol {
                Some(Protocol::Exact(version)) => Some(version),
                _ => None,
            },
            connections: Mutex::default(),
        });
        let servers = servers.collect();
        Ok(Some(Traffic(Arc::new(Inner { file, is_checked: args.check, secrets, servers }))))
    }

    /// For [`HubOptions::record_sink`](rehearse_hub::HubOptions::record_sink).
    pub(crate) fn records(&self) -> RecordSink {
        let inner = self.0.clone();
        Arc::new(move |name, recorder| {
            let Some(server) = inner.servers.iter().find(|server| *server.name == **name) else { return };
            if let Some(file) = &inner.file {
                let info = ConnectionInfo {
                    protocol: server.asked,
                    ..ConnectionInfo::new(server.name.clone(), server.transport)
                };
                file.follow(&info, recorder, inner.secrets.clone());
            }
            if inner.is_checked {
                server.connections.lock().push(recorder.clone());
            }
        })
    }

    /// Prints the violated checks, when all connections are closed. A violated MUST fails a command that succeeded.
    ///
    /// # Errors
    /// That of the command; or the trace file could not be written.
    pub(crate) fn finish(&self, done: Result<Exit, Failure>) -> Result<Exit, Failure> {
        let mut has_failed = false;
        for server in self.0.servers.iter().filter(|_| self.0.is_checked) {
            has_failed |= self.print_violations(server)?;
        }
        self.0.file.as_ref().map_or(Ok(()), TraceFileWriter::check)?;
        match done {
            Ok(Exit::Success) if has_failed => Ok(Exit::Violation),
            done => done,
        }
    }

    /// Prints the violated checks of a server. Returns whether a MUST is among them.
    ///
    /// # Errors
    /// One cannot be masked.
    fn print_violations(&self, server: &WatchedServer) -> Result<bool, Failure> {
        let traces: Vec<Trace> = server.connections.lock().iter().map(ClientRecorder::trace).collect();
        let mut judged = judge_traffic(&traces, server.asked, server.transport);
        if judged.left_out > 0 {
            style::warn(&format!("{} connections with '{}' could not be checked", judged.left_out, server.name));
        }
        if let Some(secrets) = &self.0.secrets {
            judged.violations = secrets.hidden_in(judged.violations)?;
        }
        for check in &judged.violations {
            style::print(&violation_text(check, &server.name, style::width()));
        }
        Ok(judged.violations.iter().any(|check| check.verdict == CheckVerdict::Fail))
    }
}

impl fmt::Debug for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic").field("is_checked", &self.0.is_checked).finish_non_exhaustive()
    }
}
