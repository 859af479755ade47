//! A named pipe, which only the user and the system may open.

use std::{
    io,
    path::{Path, PathBuf},
};

use interprocess::{
    local_socket::{
        GenericFilePath, ListenerOptions, ToFsName,
        tokio::{Listener, Stream},
        traits::tokio::{Listener as _, Stream as _},
    },
    os::windows::{local_socket::ListenerOptionsExt, security_descriptor::SecurityDescriptor},
};
use tokio::io::{ReadHalf, WriteHalf, split};
use windows_permissions::{utilities::current_process_sid, wrappers::ConvertSidToStringSid};

/// The side of a connection that reads.
pub type LocalReader = ReadHalf<Stream>;
/// The side of a connection that writes.
pub type LocalWriter = WriteHalf<Stream>;

/// The address of a pipe that belongs to a folder.
pub fn address_in(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    PathBuf::from(format!(r"\\.\pipe\{name}"))
}

/// Accepts connections.
#[derive(Debug)]
pub struct LocalListener(Listener);

impl LocalListener {
    /// # Errors
    /// There is something at the address, or it cannot be created.
    pub fn bind(address: &Path) -> io::Result<LocalListener> {
        let user = ConvertSidToStringSid(&*current_process_sid()?)?;
        let list = format!("D:P(A;;GA;;;{})(A;;GA;;;SY)", user.to_string_lossy());
        let list = widestring::U16CString::from_str(list).map_err(io::Error::other)?;
        let options = ListenerOptions::new()
            .name(address.to_fs_name::<GenericFilePath>()?)
            .security_descriptor(SecurityDescriptor::deserialize(&list)?);
        options.create_tokio().map(LocalListener)
    }

    /// The next connection. Cancel-safe.
    ///
    /// # Errors
    /// Those of the system.
    pub async fn accept(&self) -> io::Result<(LocalReader, LocalWriter)> {
        Ok(split(self.0.accept().await?))
    }
}

/// Connects to a listener.
///
/// # Errors
/// There is none at the address.
pub async fn connect(address: &Path) -> io::Result<(LocalReader, LocalWriter)> {
    Ok(split(Stream::connect(address.to_fs_name::<GenericFilePath>()?).await?))
}
