//! The server-sent events codec (WHATWG HTML, section 9.2), both directions.

use bytes::{BufMut, Bytes, BytesMut};

/// One event. An event without `data` still carries an id or a retry time, as priming events do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    pub id: Option<String>,
    /// The event's type; absent means `message`.
    pub event: Option<String>,
    /// Milliseconds to wait before reconnecting.
    pub retry: Option<u64>,
    pub data: Option<Bytes>,
}

impl Event {
    /// An event of the default type.
    pub fn message(data: Bytes) -> Self {
        Event { data: Some(data), ..Event::default() }
    }

    /// The bytes of the event, with its empty line. Every line of `data` becomes a `data:` line; a carriage
    /// return ends a line as well.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.data.as_ref().map_or(0, Bytes::len) + 48);
        let mut field = |name: &str, value: &[u8]| {
            out.put_slice(name.as_bytes());
            out.put_slice(b": ");
            out.put_slice(value);
            out.put_u8(b'\n');
        };
        if let Some(id) = &self.id {
            field("id", id.as_bytes());
        }
        if let Some(event) = &self.event {
            field("event", event.as_bytes());
        }
        if let Some(retry) = self.retry {
            field("retry", retry.to_string().as_bytes());
        }
        if let Some(data) = &self.data {
            for line in data.split(|byte| matches!(byte, b'\n' | b'\r')) {
                field("data", line);
            }
        }
        out.put_u8(b'\n');
        out.freeze()
    }
}

/// Reads events from a byte stream that arrives in arbitrary pieces. Line ends may be LF, CR or CRLF.
#[derive(Debug)]
pub struct Decoder {
    line: BytesMut,
    event: Event,
    data: BytesMut,
    pending: bool,
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

/// An event is larger than the limit. The stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event of more than {0} bytes")]
pub struct TooLarge(pub usize);

impl Default for Decoder {
    fn default() -> Self {
        Decoder::new(super::MAX_FRAME)
    }
}

impl Decoder {
    /// `limit` is the size in bytes of the largest event to accept.
    pub fn new(limit: usize) -> Self {
        Decoder {
            line: BytesMut::new(),
            event: Event::default(),
            data: BytesMut::new(),
            pending: false,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Takes the next bytes of the stream and appends the events that they complete to `events`.
    ///
    /// # Errors
    /// [`TooLarge`] if an event grows over the limit.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Event>) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
                self.line.extend_from_slice(bytes);
                return self.check();
            };
            self.line.extend_from_slice(&bytes[..end]);
            self.check()?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            let mut line = self.line.split();
            if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
                let _ = line.split_to(3);
            }
            self.take_line(line, events);
        }
        Ok(())
    }

    fn check(&self) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() > self.limit { Err(TooLarge(self.limit)) } else { Ok(()) }
    }

    fn take_line(&mut self, mut line: BytesMut, events: &mut Vec<Event>) {
        if line.is_empty() {
            if std::mem::take(&mut self.pending) {
                let mut event = std::mem::take(&mut self.event);
                if event.data.is_some() {
                    event.data = Some(self.data.split().freeze());
                }
                events.push(event);
            }
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(0) => return,
            Some(colon) => {
                let name = line.split_to(colon);
                let _ = line.split_to(if line.get(1) == Some(&b' ') { 2 } else { 1 });
                (name, line)
            }
            None => (line.split(), line),
        };
        let text = || String::from_utf8_lossy(&value).into_owned();
        match &name[..] {
            b"data" => {
                if self.event.data.is_some() {
                    self.data.put_u8(b'\n');
                }
                self.event.data = Some(Bytes::new());
                self.data.extend_from_slice(&value);
            }
            b"event" => self.event.event = Some(text()),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => match text().parse() {
                Ok(milliseconds) => self.event.retry = Some(milliseconds),
                Err(_) => return,
            },
            _ => return,
        }
        self.pending = true;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<Event> {
        let (mut decoder, mut events) = (Decoder::default(), Vec::new());
        for chunk in chunks {
            decoder.push(chunk, &mut events).expect("below the limit");
        }
        events
    }

    #[test]
    fn an_event_reads_back_with_all_its_fields() {
        let event = Event {
            id: Some("3-1".into()),
            event: Some("endpoint".into()),
            retry: Some(250),
            data: Some(Bytes::from_static(b"{\"a\":1}\n2")),
        };
        assert_eq!(decode(&[&event.encode()]), [event]);
    }

    #[test]
    fn all_line_ends_comments_and_the_byte_order_mark_are_understood() {
        let stream = b"\xef\xbb\xbf: keep-alive\r\n\r\ndata:one\rdata: two\r\r\nid\ndata\n\nunknown: x\n\n";
        let events = decode(&[&stream[..20], &stream[20..]]);
        assert_eq!(events.len(), 2, "{events:?}");
        assert_eq!(events[0].data.as_deref(), Some(&b"one\ntwo"[..]));
        assert_eq!((events[1].id.as_deref(), events[1].data.as_deref()), (Some(""), Some(&b""[..])));
    }

    #[test]
    fn an_event_cut_off_by_the_end_of_the_stream_is_not_delivered() {
        assert_eq!(decode(&[b"data: half\n"]), []);
    }

    #[test]
    fn an_event_over_the_limit_is_an_error() {
        let mut decoder = Decoder::new(8);
        assert_eq!(decoder.push(b"data: 123456789", &mut Vec::new()), Err(TooLarge(8)));
        let mut decoder = Decoder::new(8);
        assert_eq!(decoder.push(b"data: 1\ndata: 2\ndata: 3\ndata: 4\n", &mut Vec::new()), Err(TooLarge(8)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_decoder_panic(chunks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..10)) {
            let mut decoder = Decoder::new(64);
            for chunk in &chunks {
                if decoder.push(chunk, &mut Vec::new()).is_err() {
                    break;
                }
            }
        }

        #[test]
        fn any_cut_gives_the_same_events(
            data in proptest::collection::vec("[^\r\n]{0,20}", 1..5), id in proptest::option::of("[0-9]{1,4}"), cut in 1usize..9,
        ) {
            let event = Event { id, data: Some(Bytes::from(data.join("\n"))), ..Event::default() };
            let stream = [event.encode(), event.encode()].concat();
            let chunks: Vec<_> = stream.chunks(cut).collect();
            prop_assert_eq!(decode(&chunks), [event.clone(), event]);
        }
    }
}
