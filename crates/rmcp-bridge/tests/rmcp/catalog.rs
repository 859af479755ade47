//! Tools and results by chance.

use proptest::{
    collection::{btree_map, vec},
    option,
    prelude::*,
};
use serde_json::{Map, Value, json};

/// A tool of a server, and what a call of it brings.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedTool {
    /// As in `tools/list`.
    pub(crate) definition: Value,
    /// The result, or the error.
    pub(crate) outcome: Result<Value, Value>,
}

impl GeneratedTool {
    pub(crate) fn name(&self) -> &str {
        self.definition["name"].as_str().unwrap_or_default()
    }
}

/// Tools with different names.
pub(crate) fn catalogs() -> impl Strategy<Value = Vec<GeneratedTool>> {
    let tools = btree_map("[a-zA-Z0-9_.-]{1,30}", (definitions(), outcomes()), 1..5);
    tools.prop_map(|tools| {
        let tool = |(name, (mut definition, outcome)): (String, (Map<String, Value>, _))| {
            definition.insert("name".to_owned(), name.into());
            GeneratedTool { definition: definition.into(), outcome }
        };
        tools.into_iter().map(tool).collect()
    })
}

fn texts() -> impl Strategy<Value = Value> {
    ".{0,40}".prop_map(Value::String)
}

fn numbers() -> impl Strategy<Value = Value> {
    prop_oneof![any::<i64>().prop_map(Value::from), (-1e9..1e9).prop_map(|number: f64| json!(number))]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::Bool), numbers(), texts()];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::Array), objects_of(inner).prop_map(Value::Object)]
    })
}

fn objects_of(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    btree_map("[a-zA-Z_$ä☃]{1,8}", values, 0..4).prop_map(|members| members.into_iter().collect())
}

/// An object of these members, without those that are `None`.
fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn definitions() -> impl Strategy<Value = Map<String, Value>> {
    let hints = option::of(any::<bool>().prop_map(Value::Bool));
    let annotations = (option::of(texts()), hints.clone(), hints).prop_map(|(title, reads, destroys)| {
        object([("title", title), ("readOnlyHint", reads), ("destructiveHint", destroys)]).into()
    });
    let types = prop::sample::select(vec!["string", "integer", "boolean", "array"]);
    let properties = btree_map("[a-z]{1,6}", (types, option::of(texts())), 0..4).prop_map(|properties| {
        let schema = |(kind, description)| object([("type", Some(json!(kind))), ("description", description)]);
        properties.into_iter().map(|(name, property)| (name, schema(property).into())).collect::<Map<_, Value>>()
    });
    (option::of(texts()), option::of(texts()), option::of(annotations), properties).prop_map(
        |(title, description, annotations, properties)| {
            object([
                ("title", title),
                ("description", description),
                ("annotations", annotations),
                ("inputSchema", Some(json!({ "type": "object", "properties": properties }))),
            ])
        },
    )
}

fn blocks() -> impl Strategy<Value = Value> {
    let data = || prop::sample::select(vec!["", "QQ==", "aGVsbG8="]);
    let kinds = || prop::sample::select(vec!["image/png", "audio/wav", "text/plain"]);
    let uris = || "[a-z]{1,5}://[a-z0-9/]{0,12}";
    let resource =
        (uris(), option::of(kinds()), texts(), data(), any::<bool>()).prop_map(|(uri, kind, text, data, is_text)| {
            let text = is_text.then_some(text);
            let blob = (!is_text).then(|| json!(data));
            let kind = kind.map(Value::from);
            object([("uri", Some(json!(uri))), ("mimeType", kind), ("text", text), ("blob", blob)])
        });
    let block = prop_oneof![
        texts().prop_map(|text| object([("type", Some(json!("text"))), ("text", Some(text))])),
        (prop::sample::select(vec!["image", "audio"]), data(), kinds()).prop_map(|(block, data, kind)| object([
            ("type", Some(json!(block))),
            ("data", Some(json!(data))),
            ("mimeType", Some(json!(kind))),
        ])),
        (uris(), texts(), option::of(texts())).prop_map(|(uri, name, description)| object([
            ("type", Some(json!("resource_link"))),
            ("uri", Some(json!(uri))),
            ("name", Some(name)),
            ("description", description),
        ])),
        resource.prop_map(|resource| object([("type", Some(json!("resource"))), ("resource", Some(resource.into()))])),
    ];
    (block, option::of(objects_of(values()))).prop_map(|(mut block, meta)| {
        block.extend(object([("_meta", meta.map(Value::Object))]));
        block.into()
    })
}

fn outcomes() -> impl Strategy<Value = Result<Value, Value>> {
    let results = (vec(blocks(), 0..4), option::of(objects_of(values())), any::<bool>());
    let results = results.prop_map(|(content, structured, is_error)| {
        let structured = structured.map(Value::Object);
        let members =
            [("content", Some(content.into())), ("structuredContent", structured), ("isError", Some(json!(is_error)))];
        Ok(object(members).into())
    });
    // rmcp leaves out data that is null.
    let data = values().prop_filter("no data", |data| !data.is_null());
    let errors = (any::<i32>(), texts(), option::of(data));
    let errors = errors.prop_map(|(code, message, data)| {
        Err(object([("code", Some(json!(code))), ("message", Some(message)), ("data", data)]).into())
    });
    prop_oneof![3 => results, 1 => errors]
}
