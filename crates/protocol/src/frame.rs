//! A message's bytes with direction and time; and the newline framing of stdio.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};

use super::message::{Message, MessageHead, ParseError, split_batch};

/// The largest message that either side of ours accepts, in bytes (32 MiB).
pub const MAX_FRAME: usize = 32 << 20;

/// Who sent a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    ClientToServer,
    ServerToClient,
}

/// One message as it went over the wire: its true bytes, who sent it, and when.
#[derive(Clone, Debug)]
pub struct Frame {
    pub direction: Direction,
    /// Time since the connection was opened.
    pub at: Duration,
    /// The JSON text of the message without the framing of its transport.
    pub bytes: Bytes,
    head: OnceLock<Arc<Result<MessageHead, ParseError>>>,
}

impl Frame {
    /// A frame of these bytes, which are not parsed yet.
    pub fn new(direction: Direction, at: Duration, bytes: Bytes) -> Frame {
        Frame { direction, at, bytes, head: OnceLock::new() }
    }

    /// Parses the bytes; a frame that is only forwarded is never parsed.
    ///
    /// # Errors
    /// Like [`Message::parse`].
    pub fn message(&self) -> Result<Message<'_>, ParseError> {
        Message::parse(&self.bytes)
    }

    /// What the message is. The bytes are parsed once for it, when it is first needed.
    ///
    /// # Errors
    /// Like [`Message::parse`].
    pub fn head(&self) -> Result<&MessageHead, &ParseError> {
        let head = self.head.get_or_init(|| Arc::new(self.message().map(|message| message.head())));
        Result::as_ref(head)
    }

    /// The messages of a batch, as frames of the same time.
    ///
    /// # Errors
    /// Like [`split_batch`].
    pub fn parts(&self) -> Result<Vec<Frame>, ParseError> {
        let frame = |part| Frame::new(self.direction, self.at, part);
        Ok(split_batch(&self.bytes)?.into_iter().map(frame).collect())
    }
}

/// Cuts a byte stream into lines (2026-07-28, stdio: messages are delimited by newlines).
///
/// Empty lines are skipped unless they are kept, and a carriage return before the newline is not part of a line.
#[derive(Debug)]
pub struct LineSplitter {
    buffer: BytesMut,
    searched: usize,
    limit: usize,
    overflowing: bool,
    keeps_blank: bool,
}

/// A line exceeds the limit, whether or not it has an end; its bytes are dropped and the next line can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line of more than {0} bytes")]
pub struct TooLong(pub usize);

impl Default for LineSplitter {
    fn default() -> Self {
        LineSplitter::new(MAX_FRAME)
    }
}

impl LineSplitter {
    /// `limit` is the length in bytes of the longest line to accept.
    pub fn new(limit: usize) -> Self {
        LineSplitter { buffer: BytesMut::new(), searched: 0, limit, overflowing: false, keeps_blank: false }
    }

    /// Keeps lines without any text, for a recording of all that came.
    #[must_use]
    pub fn with_blank_lines(mut self) -> Self {
        self.keeps_blank = true;
        self
    }

    /// Where the reader of the stream puts the next bytes.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, if one is buffered.
    pub fn next_line(&mut self) -> Option<Result<Bytes, TooLong>> {
        loop {
            let newline = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n');
            let Some(length) = newline.map(|offset| self.searched + offset) else {
                self.searched = self.buffer.len();
                if !self.overflowing && self.searched <= self.limit {
                    return None;
                }
                self.buffer.clear();
                self.searched = 0;
                let is_told = std::mem::replace(&mut self.overflowing, true);
                return (!is_told).then_some(Err(TooLong(self.limit)));
            };
            self.searched = 0;
            let line = self.buffer.split_to(length).freeze();
            self.buffer.advance(1);
            if std::mem::take(&mut self.overflowing) {
                continue;
            }
            if line.len() > self.limit {
                return Some(Err(TooLong(self.limit)));
            }
            let line = line.strip_suffix(b"\r").map(|kept| line.slice_ref(kept)).unwrap_or(line);
            if self.keeps_blank || !line.iter().all(u8::is_ascii_whitespace) {
                return Some(Ok(line));
            }
        }
    }

    /// The bytes after the last newline, once the stream has ended.
    pub fn rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        (!self.overflowing && !rest.iter().all(u8::is_ascii_whitespace)).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(splitter: &mut LineSplitter, chunks: &[&[u8]]) -> Vec<Result<Bytes, TooLong>> {
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.buffer().extend_from_slice(chunk);
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        lines
    }

    #[test]
    fn lines_come_whole_however_the_stream_was_cut() {
        let mut splitter = LineSplitter::default();
        let lines = split(&mut splitter, &[b"{\"a\"", b":1}\r\n\n  \n[2]", b"\nrest"]);
        assert_eq!(lines, [Ok(Bytes::from_static(b"{\"a\":1}")), Ok(Bytes::from_static(b"[2]"))]);
        assert_eq!(splitter.rest(), Some(Bytes::from_static(b"rest")));
        assert_eq!(splitter.rest(), None);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_the_next_is_read() {
        let mut splitter = LineSplitter::new(4);
        let lines = split(&mut splitter, &[b"123456", b"789\n1234\n", b"12345\n1\n"]);
        let (ok, long) = (|text: &'static str| Ok(Bytes::from(text)), Err(TooLong(4)));
        assert_eq!(lines, [long.clone(), ok("1234"), long.clone(), ok("1")]);
        assert_eq!(split(&mut splitter, &[b"12", b"345", b"67", b"8"]), [long], "before it ends");
        assert_eq!(splitter.rest(), None);
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_lines(
            lines in proptest::collection::vec("[a-z{}\" ]*[a-z]", 0..8),
            cuts in proptest::collection::vec(1usize..7, 1..40),
        ) {
            let stream: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
            let mut splitter = LineSplitter::default();
            let (mut seen, mut rest, mut cuts) = (Vec::new(), &stream[..], cuts.into_iter().cycle());
            while !rest.is_empty() {
                let (chunk, tail) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                splitter.buffer().extend_from_slice(chunk);
                while let Some(line) = splitter.next_line() {
                    seen.push(line.expect("below the limit"));
                }
                rest = tail;
            }
            prop_assert_eq!(seen, lines);
        }
    }
}
