//! Processes that stand for a server on stdio. A client starts one, and it forwards its standard streams through a local
//! pipe to the program that has the server.
//!
//! Both directions have length-prefixed frames: pieces of the stream, then an empty frame at its end. Another one follows in
//! the direction to the process: one byte, its exit code.

use std::{future::ready, io};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use rehearse_system::local_pipe::{LocalReader, LocalWriter};
use tokio::io::AsyncRead;
use tokio_util::{
    codec::{FramedRead, FramedWrite, LengthDelimitedCodec},
    io::{CopyToBytes, SinkWriter, StreamReader},
};

/// What the client writes to the process.
pub type ProcessInput = Box<dyn AsyncRead + Send + Unpin>;

/// What the client reads from the process.
pub struct ProcessOutput(pub SinkWriter<CopyToBytes<FramedWrite<LocalWriter, LengthDelimitedCodec>>>);

/// The frames of a process.
pub fn process_codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder().max_frame_length(u32::MAX as usize).new_codec()
}

/// The streams of a process that has connected.
pub fn process_streams(reader: LocalReader, writer: LocalWriter) -> (ProcessInput, ProcessOutput) {
    let frames = FramedRead::new(reader, process_codec());
    let pieces = frames.take_while(|piece| ready(piece.as_ref().is_ok_and(|piece| !piece.is_empty())));
    let output = SinkWriter::new(CopyToBytes::new(FramedWrite::new(writer, process_codec())));
    (Box::new(StreamReader::new(pieces)), ProcessOutput(output))
}

impl ProcessOutput {
    /// Ends the process with an exit code.
    ///
    /// # Errors
    /// It has ended already.
    pub async fn end(self, code: u8) -> io::Result<()> {
        let mut frames = self.0.into_inner().into_inner();
        frames.feed(Bytes::new()).await?;
        frames.send(Bytes::copy_from_slice(&[code])).await
    }
}
