//! Converts the text of an element to the type of the schema.
//!
//! Without a type in the schema, valid JSON is converted, and ambiguous text (`00123`, `1e3`, `True`) stays a string. A
//! CDATA section is always a verbatim string.

use serde_json::{Map, Value};

use super::{
    element::{Element, elements_in},
    tag::{CDATA, CDATA_END},
};
use rehearse_document::json_schema::{Type, View};

/// The maximum depth of elements; deeper ones are text.
const MAX_DEPTH: usize = 32;

/// The text of an element.
struct Text {
    text: String,
    /// Whether it is a single CDATA section.
    is_literal: bool,
}

impl Text {
    fn new(raw: &str) -> Text {
        let trimmed = raw.trim();
        let is_section = trimmed.starts_with(CDATA) && trimmed.ends_with(CDATA_END);
        let mut rest = if is_section { trimmed } else { trim_edges(raw) };
        let mut is_literal = is_section;
        let mut text = String::new();
        while let Some((before, section)) = rest.split_once(CDATA) {
            let Some((literal, after)) = section.split_once(CDATA_END) else { break };
            is_literal &= before.is_empty();
            unescape(before, &mut text);
            text.push_str(literal);
            rest = after;
        }
        is_literal &= rest.is_empty();
        unescape(rest, &mut text);
        Text { text, is_literal }
    }
}

/// Trims a single line completely. Of several lines, only the line breaks at the tags are removed, because indentation has
/// a meaning.
fn trim_edges(raw: &str) -> &str {
    let trimmed = raw.trim();
    if !trimmed.contains('\n') {
        return trimmed;
    }
    let is_blank = |text: &str| text.trim().is_empty();
    let text = raw.split_once('\n').filter(|(first, _)| is_blank(first)).map_or(raw, |(_, rest)| rest);
    let Some((text, _)) = text.rsplit_once('\n').filter(|(_, last)| is_blank(last)) else { return text };
    text.strip_suffix('\r').unwrap_or(text)
}

fn unescape(mut raw: &str, text: &mut String) {
    while let Some((before, rest)) = raw.split_once('&') {
        text.push_str(before);
        let entity = rest.split_once(';').and_then(|(name, after)| Some((entity(name)?, after)));
        match entity {
            Some((c, after)) => {
                text.push(c);
                raw = after;
            }
            None => {
                text.push('&');
                raw = rest;
            }
        }
    }
    text.push_str(raw);
}

fn entity(name: &str) -> Option<char> {
    let code = match name {
        "lt" => return Some('<'),
        "gt" => return Some('>'),
        "amp" => return Some('&'),
        "quot" => return Some('"'),
        "apos" => return Some('\''),
        name => name.strip_prefix('#').filter(|code| code.len() <= 8)?,
    };
    let code = match code.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => code.parse(),
    };
    code.ok().and_then(char::from_u32)
}

/// The value of an element's text.
pub(super) fn value(raw: &str, schema: Option<View<'_>>) -> Value {
    read(raw, schema, MAX_DEPTH)
}

/// The text of an element that is not an argument.
pub(super) fn text(raw: &str) -> String {
    Text::new(raw).text
}

/// The members from elements, and the duplicate elements. An element may be repeated if its member is an array.
pub(super) fn members<'e, 't>(
    text: &str,
    elements: &'e [Element<'t>],
    schema: Option<View<'_>>,
) -> (Map<String, Value>, Vec<&'e Element<'t>>) {
    members_at_depth(text, elements, schema, MAX_DEPTH)
}

fn members_at_depth<'e, 't>(
    text: &str,
    elements: &'e [Element<'t>],
    schema: Option<View<'_>>,
    depth: usize,
) -> (Map<String, Value>, Vec<&'e Element<'t>>) {
    let mut members = Map::new();
    let mut repeated = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        if members.contains_key(element.name) {
            continue;
        }
        let schema = schema.and_then(|schema| schema.property(element.name));
        let further = elements[index + 1..].iter().filter(|it| it.name == element.name);
        let raw = &text[element.inner.clone()];
        let types = schema.map(View::types).unwrap_or_default();
        let mut further = further.peekable();
        let value = match further.peek() {
            Some(_) if types.contains(&Type::Array) || types.is_empty() => {
                let all = [element].into_iter().chain(further.by_ref());
                let schema = schema.map(|schema| schema.as_type(Type::Array));
                items(all.map(|element| &text[element.inner.clone()]), schema, depth)
            }
            _ => read(raw, schema, depth),
        };
        repeated.extend(further);
        members.insert(element.name.to_owned(), value);
    }
    (members, repeated)
}

fn items<'r>(raw: impl Iterator<Item = &'r str>, schema: Option<View<'_>>, depth: usize) -> Value {
    let item = |(index, raw)| read(raw, schema.and_then(|schema| schema.item(index)), depth.saturating_sub(1));
    raw.enumerate().map(item).collect()
}

fn read(raw: &str, schema: Option<View<'_>>, depth: usize) -> Value {
    let content = Text::new(raw);
    let types = schema.map(View::types).unwrap_or_default();
    if let Some(choice) = schema.and_then(|schema| choice(&content, schema)) {
        return choice;
    }
    let Some(schema) = schema.filter(|_| !types.is_empty()) else {
        return guess(raw, content, depth);
    };
    if types.contains(&Type::String) {
        let other = types.iter().filter(|it| **it != Type::String && !content.is_literal);
        let json = json(&content.text).filter(|value| other.clone().any(|it| it.matches(value)));
        return json.unwrap_or(Value::String(content.text));
    }
    let typed = types.iter().find_map(|kind| match kind {
        Type::Array => array(raw, content.text.trim(), schema.as_type(Type::Array), depth),
        Type::Object => object(raw, content.text.trim(), schema.as_type(Type::Object), depth),
        kind => scalar(content.text.trim(), *kind),
    });
    typed.unwrap_or(Value::String(content.text))
}

/// The matching value of an `enum`.
fn choice(content: &Text, schema: View<'_>) -> Option<Value> {
    let choices = schema.choices()?;
    let text = choices.iter().find(|value| value.as_str() == Some(&content.text));
    let value = || {
        let meant = json(content.text.trim()).filter(|_| !content.is_literal)?;
        choices.iter().find(|value| **value == meant)
    };
    text.or_else(value).cloned()
}

fn guess(raw: &str, content: Text, depth: usize) -> Value {
    if content.is_literal {
        return Value::String(content.text);
    }
    if let Some(elements) = elements(raw, None, depth) {
        if elements.iter().all(|element| element.name == "item") {
            return items(elements.iter().map(|element| &raw[element.inner.clone()]), None, depth);
        }
        return Value::Object(members_at_depth(raw, &elements, None, depth - 1).0);
    }
    json(&content.text).unwrap_or(Value::String(content.text))
}

/// The JSON value of a text, if it converts back to the same text.
fn json(text: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    match &value {
        Value::String(_) => None,
        Value::Number(number) if number.to_string() != text => None,
        _ => Some(value),
    }
}

fn scalar(text: &str, kind: Type) -> Option<Value> {
    match kind {
        Type::Null => (text.is_empty() || text == "null").then_some(Value::Null),
        Type::Boolean if text.eq_ignore_ascii_case("true") => Some(true.into()),
        Type::Boolean if text.eq_ignore_ascii_case("false") => Some(false.into()),
        Type::Integer => number(text).and_then(whole),
        Type::Number => number(text),
        _ => None,
    }
}

/// A number, if its value can be represented.
fn number(text: &str) -> Option<Value> {
    if let Ok(number) = text.parse::<i64>() {
        return Some(number.into());
    }
    if let Ok(number) = text.parse::<u64>() {
        return Some(number.into());
    }
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e' | b'E'));
    let number = text.parse::<f64>().ok().filter(|number| is_decimal && number.is_finite())?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text).trim_start_matches('0');
    let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
    (!is_whole || format!("{:.0}", number.abs()) == digits).then(|| number.into())
}

/// A number as an integer, if it has the same value.
fn whole(number: Value) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64().filter(|_| number.is_f64()) {
        None => Some(number),
        Some(float) if float.fract() == 0.0 && float.abs() < EXACT => Some((float as i64).into()),
        Some(_) => None,
    }
}

fn array(raw: &str, text: &str, schema: View<'_>, depth: usize) -> Option<Value> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Array(_)) => return Some(value),
        _ if text.starts_with('[') => return None,
        _ => {}
    }
    if let Some(elements) = elements(raw, None, depth) {
        let is_list = elements.iter().all(|element| element.name == elements[0].name);
        let texts = elements.iter().map(|element| &raw[element.inner.clone()]);
        return is_list.then(|| items(texts, Some(schema), depth));
    }
    if text.is_empty() {
        return Some(Value::Array(Vec::new()));
    }
    let item = |(index, text): (usize, &str)| {
        let types = schema.item(index).map(View::types).unwrap_or_default();
        match types.iter().find_map(|kind| scalar(text.trim(), *kind)) {
            Some(value) => Some(value),
            None if types.is_empty() => Some(json(text.trim()).unwrap_or_else(|| text.trim().into())),
            None => types.contains(&Type::String).then(|| text.trim().into()),
        }
    };
    text.split(',').enumerate().map(item).collect()
}

fn object(raw: &str, text: &str, schema: View<'_>, depth: usize) -> Option<Value> {
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(text) {
        return Some(value);
    }
    if let Some(elements) = elements(raw, Some(schema), depth) {
        let (members, repeated) = members_at_depth(raw, &elements, Some(schema), depth - 1);
        return repeated.is_empty().then_some(Value::Object(members));
    }
    text.is_empty().then(|| Value::Object(Map::new()))
}

/// The elements of a text that consists only of elements.
fn elements<'t>(raw: &'t str, schema: Option<View<'_>>, depth: usize) -> Option<Vec<Element<'t>>> {
    if depth == 0 || !raw.contains('<') {
        return None;
    }
    let is_known = |name: &str| schema.is_none_or(|schema| schema.has_property(name));
    elements_in(raw, 0..raw.len(), &is_known).ok().filter(|elements| !elements.is_empty())
}
