//! stdio: a child process and its pipes.

use super::{
    Child, CommandSpec, Duplex, OpenError, Opened, StderrSink,
    duplex::{Incoming, Lane, Outgoing, Writer},
};
use crate::transport::{LineReader, LineWriter, Tap};

/// Starts the server; must be called within a tokio runtime.
///
/// # Errors
/// [`OpenError::Spawn`] if the command cannot be started.
pub(crate) fn open(spec: &CommandSpec, name: &str, stderr: Option<StderrSink>, tap: Tap) -> Result<Opened, OpenError> {
    let (child, pipes) = Child::spawn(spec, name, stderr)?;
    let lane = Lane::new(tap.clone(), Writer::Stdio(LineWriter::new(pipes.stdin)));
    let incoming = Incoming::Stdio(LineReader::new(pipes.stdout));
    Ok(Opened::duplex(Duplex::new(tap, incoming, Outgoing::Lane(lane)), Some(child)))
}
