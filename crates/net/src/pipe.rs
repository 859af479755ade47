//! A pipe inside this process with the framing of stdio: an address to connect to, and a listener that accepts.

use tokio::{io::DuplexStream, sync::mpsc};

/// The number of bytes that one side can write before the other side reads.
const CAPACITY: usize = 64 << 10;

/// The address of a server in this process. Clones have the same server.
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

impl Address {
    /// The client's end of a new connection; `None` if the listener is gone.
    pub fn connect(&self) -> Option<DuplexStream> {
        let (client, server) = tokio::io::duplex(CAPACITY);
        self.0.send(server).ok().map(|()| client)
    }
}

impl Listener {
    /// The server's end of the next connection; `None` when every [`Address`] is gone. Cancel-safe.
    pub async fn accept(&mut self) -> Option<DuplexStream> {
        self.0.recv().await
    }
}
