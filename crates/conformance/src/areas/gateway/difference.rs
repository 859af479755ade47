//! What was lost or changed on the way, in words.

use rehearse_document::text::quoted;
use serde_json::{Map, Value};

use crate::areas::common::shown;

/// What begins the keys of `_meta` that belong to the protocol, so to one connection.
const OWN_META: &str = "io.modelcontextprotocol/";

/// The first place in which two values differ, in words.
pub(super) fn difference(at: &str, sent: &Value, got: &Value) -> Option<String> {
    compared(at, sent, got, true)
}

/// As [`difference`], but members may be added, such as those that are there by default.
pub(super) fn loss(at: &str, sent: &Value, got: &Value) -> Option<String> {
    compared(at, sent, got, false)
}

pub(super) fn compared(at: &str, sent: &Value, got: &Value, counts_added: bool) -> Option<String> {
    match (sent, got) {
        (Value::Object(sent), Value::Object(got)) => {
            let keys = sent.keys().chain(got.keys().filter(|key| !sent.contains_key(*key)));
            let member = |object: &Map<String, Value>, key: &str| object.get(key).cloned();
            first(keys.map(|key| {
                let at = format!("{at}.{key}");
                match (member(sent, key), member(got, key)) {
                    (Some(sent), Some(got)) => compared(&at, &sent, &got, counts_added),
                    (Some(sent), None) => Some(format!("`{at}` is gone, it was {}", shown(&sent))),
                    (None, got) => got.filter(|_| counts_added).map(|got| format!("`{at}` was added: {}", shown(&got))),
                }
            }))
        }
        (Value::Array(sent), Value::Array(got)) if sent.len() == got.len() => first(
            sent.iter()
                .zip(got)
                .enumerate()
                .map(|(n, (sent, got))| compared(&format!("{at}[{n}]"), sent, got, counts_added)),
        ),
        (Value::Number(one), Value::Number(other)) if whole(one).is_some() && whole(one) == whole(other) => None,
        (Value::String(sent), Value::String(got)) => changed_text(sent, got).map(|wrong| format!("`{at}`: {wrong}")),
        _ if sent == got => None,
        _ => Some(format!("`{at}`: {} became {}", shown(sent), shown(got))),
    }
}

/// A whole number, however it is written.
pub(super) fn whole(number: &serde_json::Number) -> Option<i128> {
    let float = || number.as_f64().filter(|it| it.fract() == 0.0 && it.abs() < 1e30).map(|it| it as i128);
    number.as_i128().or_else(float)
}

pub(super) fn changed_text(sent: &str, got: &str) -> Option<String> {
    if sent == got {
        return None;
    }
    let at = sent.chars().zip(got.chars()).take_while(|(one, other)| one == other).count();
    let rest = |text: &str| quoted(&text.chars().skip(at.saturating_sub(10)).take(60).collect::<String>(), 80);
    Some(format!(
        "{} characters became {}, from {at} on: {} became {}",
        sent.chars().count(),
        got.chars().count(),
        rest(sent),
        rest(got)
    ))
}

pub(super) fn first<T>(mut all: impl Iterator<Item = Option<T>>) -> Option<T> {
    all.find_map(|it| it)
}

/// The keys of `_meta` that are another's, and were lost or changed; `None` if there were none.
pub(super) fn lost_meta(sent: &Value, got: &Value) -> Option<String> {
    let is_own = |key: &str| key.starts_with(OWN_META) || key == "progressToken";
    lost_members(sent, got, is_own)
}

/// The members that were lost or changed, but for some, in words; `None` if there were none.
pub(super) fn lost_members(sent: &Value, got: &Value, is_left_out: impl Fn(&str) -> bool) -> Option<String> {
    let mut members = sent.as_object()?.iter().filter(|(key, _)| !is_left_out(key)).peekable();
    members.peek()?;
    let wrong = members.map(|(key, value)| match got.get(key) {
        None => Some(format!("`{key}` is gone, it was {}", shown(value))),
        Some(other) => loss(key, value, other),
    });
    Some(first(wrong).unwrap_or_default())
}
