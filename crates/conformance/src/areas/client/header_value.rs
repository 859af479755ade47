//! How a text stands in a header of 2026-07-28.

use base64::Engine;

const START: &str = "=?base64?";
const END: &str = "?=";

/// Whether a value has the form of one that is encoded.
pub(super) fn is_encoded(value: &str) -> bool {
    value.strip_prefix(START).is_some_and(|rest| rest.ends_with(END))
}

/// What a value of a header stands for. What cannot be decoded stands for itself.
pub(super) fn decoded(value: &str) -> String {
    let encoded = value.strip_prefix(START).and_then(|rest| rest.strip_suffix(END));
    let bytes = encoded.and_then(|it| base64::prelude::BASE64_STANDARD.decode(it).ok());
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| value.to_owned())
}

/// Whether a text can stand in a header as it is.
pub(super) fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.trim() == text && text.bytes().all(|it| (0x20..0x7f).contains(&it)) && !is_encoded(text)
}
