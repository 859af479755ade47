//! Lines come whole however a stream is cut, and every one of them is a message or an error with a code.
//!
//! The first byte is the limit of a line, the second the length of a piece, the rest the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rehearse_protocol::{LineSplitter, Message, TooLong, message};

fn split(limit: usize, stream: &[u8], piece: usize) -> Vec<Result<Bytes, TooLong>> {
    let (mut splitter, mut lines) = (LineSplitter::new(limit), Vec::new());
    for piece in stream.chunks(piece) {
        splitter.buffer().extend_from_slice(piece);
        lines.extend(std::iter::from_fn(|| splitter.next_line()));
    }
    lines.extend(splitter.rest().map(Ok));
    lines
}

fuzz_target!(|data: &[u8]| {
    let [limit, piece, stream @ ..] = data else { return };
    let (limit, piece) = (usize::from(*limit) + 1, usize::from(*piece) + 1);
    assert_eq!(split(limit, stream, piece), split(limit, stream, usize::MAX));
    for line in split(usize::MAX, stream, usize::MAX).into_iter().flatten() {
        assert!(!line.contains(&b'\n') && !line.iter().all(u8::is_ascii_whitespace), "{line:?}");
        let is_json = std::str::from_utf8(&line)
            .is_ok_and(|text| serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok());
        match Message::parse(&line) {
            Ok(parsed) => {
                assert!(is_json, "it is no JSON");
                written_and_read(&parsed);
            }
            Err(error) => {
                let code = if is_json { message::INVALID_REQUEST } else { message::PARSE_ERROR };
                assert_eq!(error.code(), code, "{error}");
            }
        }
    }
});

/// What is written of a message reads back as the same.
fn written_and_read(parsed: &Message<'_>) {
    let written = match parsed {
        Message::Request(it) => message::request(&it.id, "m", it.params.map(|params| params.get())),
        Message::Notification(it) => match it.params {
            Some(params) => message::notification("m", params.get()),
            None => message::bare_notification("m"),
        },
        Message::Response(it) => match (&it.id, &it.outcome) {
            (Some(id), Ok(result)) => message::result(id, result.get()),
            (id, Err(error)) => message::error(id.as_ref(), error),
            (None, Ok(_)) => panic!("a result without an id"),
        },
    };
    let read = Message::parse(&written).unwrap_or_else(|error| panic!("{error}: {written:?}"));
    assert_eq!(read.id(), parsed.id(), "{written:?}");
}
