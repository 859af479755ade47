//! The newline framing of stdio (2026-07-28, stdio) over any byte stream.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use rehearse_protocol::{LineSplitter, TooLong};

const CHUNK: usize = 16 << 10;

/// Reads frames, one per line.
#[derive(Debug)]
pub struct LineReader<R> {
    reader: R,
    splitter: LineSplitter,
    ended: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    pub fn new(reader: R) -> Self {
        LineReader::with_splitter(reader, LineSplitter::default())
    }

    /// A reader with another line limit than [`MAX_FRAME`](rehearse_protocol::MAX_FRAME).
    pub fn with_splitter(reader: R, splitter: LineSplitter) -> Self {
        LineReader { reader, splitter, ended: false }
    }

    /// The next line; `None` at the end of the stream, where the bytes after the last newline are a line.
    /// Cancel-safe.
    ///
    /// # Errors
    /// Those of the stream. A [`TooLong`] line is skipped, and the next call reads on after it.
    pub async fn next(&mut self) -> io::Result<Option<Result<Bytes, TooLong>>> {
        loop {
            if let Some(line) = self.splitter.next_line() {
                return Ok(Some(line));
            }
            if self.ended {
                return Ok(self.splitter.rest().map(Ok));
            }
            self.splitter.buffer().reserve(CHUNK);
            self.ended = self.reader.read_buf(self.splitter.buffer()).await? == 0;
        }
    }
}

/// Writes frames, one per line, each with a single write.
#[derive(Debug)]
pub struct LineWriter<W> {
    writer: W,
    line: BytesMut,
}

impl<W: AsyncWrite + Unpin> LineWriter<W> {
    pub fn new(writer: W) -> Self {
        LineWriter { writer, line: BytesMut::new() }
    }

    /// The stream.
    pub fn get_ref(&self) -> &W {
        &self.writer
    }

    /// Writes and flushes one frame as it is, even one that contains a newline. Not cancel-safe: a dropped write may
    /// leave half a line.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn write(&mut self, frame: &[u8]) -> io::Result<()> {
        self.line.clear();
        self.line.reserve(frame.len() + 1);
        self.line.extend_from_slice(frame);
        self.line.extend_from_slice(b"\n");
        self.writer.write_all(&self.line).await?;
        self.writer.flush().await
    }

    /// Writes and flushes bytes that may be less or more than a line. Not cancel-safe.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await?;
        self.writer.flush().await
    }

    /// Ends the stream.
    ///
    /// # Errors
    /// Those of the stream.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn frames_come_out_as_they_went_in() {
        let (near, far) = tokio::io::duplex(8);
        let writing = async {
            let mut writer = LineWriter::new(near);
            writer.write(b"{\"a\":1}").await.expect("an open pipe");
            writer.write(b"second, longer than the pipe").await.expect("an open pipe");
            writer.shutdown().await.expect("an open pipe");
        };
        let reading = async {
            let (mut reader, mut lines) = (LineReader::new(far), Vec::new());
            while let Some(line) = reader.next().await.expect("an open pipe") {
                lines.push(line.expect("below the limit"));
            }
            lines
        };
        let (lines, ()) = tokio::join!(reading, writing);
        assert_eq!(lines, [&b"{\"a\":1}"[..], b"second, longer than the pipe"]);
    }

    #[tokio::test]
    async fn a_cancelled_read_loses_nothing() {
        let (mut near, far) = tokio::io::duplex(64);
        let mut reader = LineReader::new(far);
        near.write_all(b"half").await.expect("an open pipe");
        assert!(pin!(reader.next()).now_or_never().is_none());
        near.write_all(b" and half\nrest").await.expect("an open pipe");
        drop(near);
        let mut next = async || reader.next().await.expect("an open pipe");
        assert_eq!(next().await, Some(Ok(Bytes::from_static(b"half and half"))));
        assert_eq!(next().await, Some(Ok(Bytes::from_static(b"rest"))));
        assert_eq!((next().await, next().await), (None, None));
    }

    #[tokio::test]
    async fn a_line_over_the_limit_does_not_end_the_stream() {
        let mut reader = LineReader::with_splitter(&b"123456\n12\n"[..], LineSplitter::new(4));
        assert_eq!(reader.next().await.expect("bytes"), Some(Err(TooLong(4))));
        assert_eq!(reader.next().await.expect("bytes"), Some(Ok(Bytes::from_static(b"12"))));
    }
}
