//! Writes requests in the form that the prompt describes.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{
    tag::{CDATA, CDATA_END},
    value,
};
use rehearse_document::json_schema::View;

/// Writes a request for a tool with this input schema. Valid arguments are read back unchanged.
pub fn write(name: &str, arguments: &Map<String, Value>, input_schema: &Value) -> String {
    let schema = View::new(input_schema);
    let mut text = format!("<{name}>\n");
    for (parameter, value) in arguments {
        let value = content(value, schema.property(parameter));
        _ = writeln!(text, "<{parameter}>{value}</{parameter}>");
    }
    text + &format!("</{name}>")
}

/// Plain text if it is read back unchanged, else a CDATA section.
fn content(value: &Value, schema: Option<View<'_>>) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let plain = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    if value::value(&plain, schema) == *value {
        return plain;
    }
    let sections = text.replace(CDATA_END, &format!("]]{CDATA_END}{CDATA}>"));
    format!("{CDATA}{sections}{CDATA_END}")
}
