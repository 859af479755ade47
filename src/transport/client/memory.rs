//! A pipe inside this process, framed like stdio: an address to connect to, and a listener that accepts.

use tokio::{io::DuplexStream, sync::mpsc};

use super::{
    Duplex, OpenError, Opened,
    duplex::{Incoming, Lane, Outgoing, Writer},
};
use crate::transport::{LineReader, LineWriter, Tap};

const PIPE: usize = 64 << 10;

/// Where clients in this process connect to. Clones name the same server.
#[derive(Clone, Debug)]
pub struct Address(mpsc::UnboundedSender<DuplexStream>);

/// The server's side of an [`Address`].
#[derive(Debug)]
pub struct Listener(mpsc::UnboundedReceiver<DuplexStream>);

/// A new address and its listener.
pub fn listen() -> (Address, Listener) {
    let (address, listener) = mpsc::unbounded_channel();
    (Address(address), Listener(listener))
}

impl Listener {
    /// The server's end of the next connection; `None` when every [`Address`] is gone. Cancel-safe.
    pub async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}

/// Connects.
///
/// # Errors
/// [`OpenError::Unreachable`] if the listener is gone.
pub(crate) fn open(address: &Address, tap: Tap) -> Result<Opened, OpenError> {
    let (near, far) = tokio::io::duplex(PIPE);
    address.0.send(far).map_err(|_| OpenError::Unreachable { detail: "the server is gone".to_owned() })?;
    let (reader, writer) = tokio::io::split(near);
    let lane = Lane::new(tap.clone(), Writer::Memory(LineWriter::new(writer)));
    let incoming = Incoming::Memory(LineReader::new(reader));
    Ok(Opened::duplex(Duplex::new(tap, incoming, Outgoing::Lane(lane)), None))
}
