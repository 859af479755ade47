//! Arguments of tools that a client repeats in headers.

use rehearse_protocol::names::PARAMETER_HEADER;
use std::{borrow::Cow, collections::BTreeMap};

use rehearse_document::json_schema::Subschema;
use serde_json::Value;

use super::super::common::items;
use super::super::tool_schema::{HEADER, headers_in, is_token};
use super::common::{all_modern, header, header_text};
use crate::{Call, Evidence, HttpExchange, Judgement};

const KINDS: [&str; 3] = ["string", "integer", "boolean"];

/// A parameter with a header.
pub(super) struct Parameter {
    /// The name of the header, in lower case.
    header: String,
    /// Where its value is in the arguments.
    pointer: String,
    is_required: bool,
}

/// A parameter in a call.
pub(super) struct Param<'e> {
    pub(super) pointer: &'e str,
    pub(super) value: &'e Value,
    /// Whether the arguments have it, also as null.
    pub(super) is_given: bool,
    pub(super) is_required: bool,
    pub(super) header: Option<Cow<'e, str>>,
}

impl Param<'_> {
    pub(super) fn string(&self) -> Option<&str> {
        self.value.as_str()
    }

    /// The text that its header stands for.
    pub(super) fn text(&self) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) => Some(self.value.to_string()),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
            _ => None,
        }
    }
}

/// The input schema of each tool that was listed; `None` if it was listed with several.
pub(super) fn declared<'e>(evidence: &'e Evidence<'_>) -> BTreeMap<&'e str, Option<&'e Value>> {
    let mut tools = BTreeMap::new();
    for (tool, name, _) in items(evidence, "tools/list") {
        let schema = &tool["inputSchema"];
        let known = tools.entry(name).or_insert(Some(schema));
        *known = known.filter(|known| *known == schema);
    }
    tools
}

/// Whether the client could know the tool when it called it. Which connection was first, is not known.
fn is_known(evidence: &Evidence<'_>, tool: &str, call: &Call<'_>) -> bool {
    let mut listings = items(evidence, "tools/list").filter(|(_, name, _)| *name == tool);
    listings.any(|(.., listing)| {
        let (listed, called) = (listing.response.map(|it| it.place), call.request.place);
        listed.is_some_and(|listed| listed.connection != called.connection || listed < called)
    })
}

/// The parameters with a header in a valid schema; none if a header is not valid.
pub(super) fn params(schema: &Value) -> Vec<Parameter> {
    let mut params = Vec::new();
    let is_valid = |it: &Subschema<'_>| {
        let is_named = it.json[HEADER].as_str().is_some_and(|name| !name.is_empty() && is_token(name));
        is_named && it.is_reachable && KINDS.iter().any(|kind| it.json["type"] == *kind)
    };
    if headers_in(schema).iter().all(is_valid) {
        collect(schema, "", true, &mut params);
    }
    params.sort_by(|one: &Parameter, other| one.header.cmp(&other.header));
    let is_unique = params.windows(2).all(|pair| pair.first().map(|it| &it.header) != pair.last().map(|it| &it.header));
    if is_unique { params } else { Vec::new() }
}

fn collect(schema: &Value, path: &str, is_required: bool, out: &mut Vec<Parameter>) {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let pointer = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
        let is_required = is_required && required.iter().any(|it| it == name);
        if let Some(header) = property[HEADER].as_str() {
            let header = format!("{PARAMETER_HEADER}{}", header.to_ascii_lowercase());
            out.push(Parameter { header, pointer: pointer.clone(), is_required });
        }
        collect(property, &pointer, is_required, out);
    }
}

/// The calls of tools with parameters that the client could know, each with the name of the tool.
fn each_call(evidence: &Evidence<'_>, mut check: impl FnMut(&Call<'_>, &HttpExchange<'_>, &str, &[Parameter])) {
    let tools: BTreeMap<_, _> = declared(evidence).into_iter().map(|(name, it)| (name, it.map(params))).collect();
    for call in all_modern(evidence).filter(|call| call.method() == "tools/call") {
        let tool = call.text("/params/name").unwrap_or_default();
        if let (Some(Some(parameters)), Some(http)) = (tools.get(tool), call.http)
            && is_known(evidence, tool, &call)
        {
            check(&call, http, tool, parameters);
        }
    }
}

/// Checks every such parameter of every call that a judge is about.
pub(super) fn param(
    e: &Evidence<'_>,
    j: &mut Judgement,
    applies: impl Fn(&Param<'_>) -> bool,
    holds: impl Fn(&Param<'_>) -> bool,
) {
    each_call(e, |call, http, tool, parameters| {
        for it in parameters {
            let value = call.request.at("/params/arguments").pointer(&it.pointer);
            let param = Param {
                pointer: &it.pointer,
                value: value.unwrap_or(&Value::Null),
                is_given: value.is_some(),
                is_required: it.is_required,
                header: header(http, &it.header),
            };
            if applies(&param) {
                let subject = format!("{tool}{}", it.pointer);
                let found = || header_text(&it.header, param.header.as_deref());
                j.check_subject(holds(&param), &subject, call.request, found);
            }
        }
    });
}

/// Checks that a call has no headers of parameters that have none.
pub(super) fn unannotated(e: &Evidence<'_>, j: &mut Judgement) {
    each_call(e, |call, http, tool, parameters| {
        let names = http.request_headers.into_iter().flat_map(|headers| headers.keys()).map(|name| name.as_str());
        let mut others =
            names.filter(|name| name.starts_with(PARAMETER_HEADER) && parameters.iter().all(|it| it.header != *name));
        let other = others.next();
        j.check_subject(other.is_none(), tool, call.request, || header_text(other.unwrap_or_default(), Some("…")));
    });
}

/// Checks that no tool with such a fault in its headers is called.
pub(super) fn faulty(e: &Evidence<'_>, j: &mut Judgement, is_faulty: impl Fn(&[Subschema<'_>]) -> bool) {
    let is_call = |call: &Call<'_>| call.method() == "tools/call" && call.http.is_some();
    let calls: Vec<_> = all_modern(e).filter(is_call).collect();
    for (tool, schema) in declared(e) {
        let found = schema.map(headers_in).unwrap_or_default();
        if found.is_empty() || !is_faulty(&found) {
            continue;
        }
        let is_called = |it: &&Call<'_>| it.request.at("/params/name") == tool && is_known(e, tool, it);
        let called = calls.iter().find(is_called);
        match called.or(calls.first()) {
            Some(call) => j.check_subject(called.is_none(), tool, call.request, || "a call of it"),
            None => j.untested("the client called no tool"),
        }
    }
}
