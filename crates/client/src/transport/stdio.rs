//! stdio: a child process and its pipes.

use super::{
    Child, CommandSpec, Link, OpenError, StderrSink,
    duplex::{Incoming, OrderedWriter, Outgoing, Writer},
};
use crate::recorder::ClientRecorder;
use rehearse_net::{LineReader, LineWriter};
use rehearse_protocol::LineSplitter;

/// Starts the server, and reads its lines with a splitter; must be called within a tokio runtime.
///
/// # Errors
/// [`OpenError::Spawn`] if the command cannot be started.
pub(crate) fn open(
    spec: &CommandSpec,
    name: &str,
    stderr: Option<StderrSink>,
    recorder: ClientRecorder,
    splitter: LineSplitter,
) -> Result<Link, OpenError> {
    let (child, pipes) = Child::spawn(spec, name, stderr, recorder.clone())?;
    let ordered = OrderedWriter::new(recorder.clone(), Writer::Stdio(LineWriter::new(pipes.stdin)));
    let incoming = Incoming::Stdio(LineReader::with_splitter(pipes.stdout, splitter));
    Ok(Link { incoming, outgoing: Outgoing::Ordered(ordered), child: Some(child) })
}
