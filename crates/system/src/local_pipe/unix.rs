//! A socket with a path.

use std::{
    io,
    path::{Path, PathBuf},
};

use tokio::net::{
    UnixListener, UnixStream,
    unix::{OwnedReadHalf, OwnedWriteHalf},
};

/// The side of a connection that reads.
pub type LocalReader = OwnedReadHalf;
/// The side of a connection that writes.
pub type LocalWriter = OwnedWriteHalf;

/// The address of a pipe that belongs to a folder. Who cannot enter the folder cannot connect.
pub fn address_in(folder: &Path) -> PathBuf {
    folder.join("stdio")
}

/// Accepts connections.
#[derive(Debug)]
pub struct LocalListener(UnixListener);

impl LocalListener {
    /// # Errors
    /// There is something at the address, or it cannot be created.
    pub fn bind(address: &Path) -> io::Result<LocalListener> {
        UnixListener::bind(address).map(LocalListener)
    }

    /// The next connection. Cancel-safe.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn accept(&self) -> io::Result<(LocalReader, LocalWriter)> {
        Ok(self.0.accept().await?.0.into_split())
    }
}

/// Connects to a listener.
///
/// # Errors
/// There is none at the address.
pub async fn connect(address: &Path) -> io::Result<(LocalReader, LocalWriter)> {
    Ok(UnixStream::connect(address).await?.into_split())
}
