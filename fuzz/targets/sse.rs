//! Any cut of a stream gives the same events, and an event that is written reads back.
//!
//! The first byte is the limit of an event, the second the length of a piece, the rest the stream.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use rehearse_protocol::{sse::Decoder, sse::Event};

/// The events up to the first that is too large, and whether there is one.
fn decode(limit: usize, stream: &[u8], piece: usize) -> (Vec<Event>, bool) {
    let (mut decoder, mut events) = (Decoder::new(limit), Vec::new());
    let too_large = stream.chunks(piece).any(|piece| decoder.push(piece, &mut events).is_err());
    (events, too_large)
}

fuzz_target!(|data: &[u8]| {
    let [limit, piece, stream @ ..] = data else { return };
    let (limit, piece) = (usize::from(*limit), usize::from(*piece) + 1);
    assert_eq!(decode(limit, stream, piece), decode(limit, stream, usize::MAX));
    let (events, _) = decode(usize::MAX, stream, piece);
    for event in &events {
        // What a stream says of an event can be said again: a carriage return ends a line, so no value has one.
        assert_eq!(decode(usize::MAX, &event.encode(), piece), (vec![event.clone()], false));
    }
    let text = String::from_utf8_lossy(stream);
    let data = text.replace("\r\n", "\n").replace('\r', "\n");
    let name = text.split(['\n', '\r', '\0']).next().unwrap_or_default().to_owned();
    let retry = Some(u64::try_from(stream.len()).unwrap_or_default());
    let event = Event { id: Some(name.clone()), event: Some(name), retry, data: Some(Bytes::from(data)) };
    let written = [event.encode(), event.encode()].concat();
    assert_eq!(decode(usize::MAX, &written, piece), (vec![event.clone(), event], false));
});
