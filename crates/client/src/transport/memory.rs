//! A server in this process, at the other end of a [`pipe`](rehearse_net::pipe).

use super::{
    Link, OpenError,
    duplex::{Incoming, OrderedWriter, Outgoing, Writer},
};
use crate::recorder::ClientRecorder;
use rehearse_net::{LineReader, LineWriter, pipe::Address};

/// Connects.
///
/// # Errors
/// [`OpenError::Unreachable`] if the listener is gone.
pub(crate) fn open(address: &Address, recorder: ClientRecorder) -> Result<Link, OpenError> {
    let stream = address.connect();
    let stream = stream.ok_or_else(|| OpenError::Unreachable { detail: "the server is gone".to_owned() })?;
    let (reader, writer) = tokio::io::split(stream);
    let writer = OrderedWriter::new(recorder.clone(), Writer::Memory(LineWriter::new(writer)));
    let incoming = Incoming::Memory(LineReader::new(reader));
    Ok(Link { incoming, outgoing: Outgoing::Ordered(writer), child: None })
}
