//! What takes an input: a tool, a prompt, a template, the resources, completions, a list.

use serde_json::{Map, Value as Json, json};

use rehearse_document::{
    json_schema::{self, Validator},
    uri_template::UriTemplate,
};
use rehearse_protocol::{List, Operation};
use rehearse_report::fuzz::{FuzzTarget, InputKind, TargetKind};

/// A target, with what its inputs are made from. An input is an object, but for what a tool must refuse.
#[derive(Debug)]
pub struct Target {
    /// Its name.
    pub id: FuzzTarget,
    /// The schema of its inputs: that of the tool, or one that says which texts there are.
    pub schema: Json,
    /// Why it is not tried.
    pub reason: Option<&'static str>,
    /// Inputs that are known or likely to work.
    pub(crate) usual: Vec<Json>,
    /// Inputs that only such a target has.
    pub(crate) own: Vec<(InputKind, Json)>,
    /// The schema of the structured content.
    pub(crate) output: Option<Validator>,
    /// Whether it is a tool that says that a further call with the same arguments has no effect.
    pub(crate) is_idempotent: bool,
    template: Option<UriTemplate>,
}

impl Target {
    /// A target with texts as its inputs.
    fn with_texts(kind: TargetKind, name: &str, schema: Json, usual: Vec<Json>) -> Target {
        let id = FuzzTarget { kind, name: name.to_owned() };
        Target { id, schema, reason: None, usual, own: Vec::new(), output: None, is_idempotent: false, template: None }
    }

    /// A tool as it is listed. `usual`: arguments with which it is known or likely to work.
    pub(crate) fn tool(definition: &Json, usual: Json, reason: Option<&'static str>) -> Target {
        let schema = &definition["inputSchema"];
        let name = definition["name"].as_str().unwrap_or_default();
        let output = definition.get("outputSchema").and_then(|schema| json_schema::compile(schema).ok());
        let is_idempotent = definition["annotations"]["idempotentHint"] == true;
        Target {
            reason,
            output,
            is_idempotent,
            own: vec![(InputKind::Broken, json!("x")), (InputKind::Broken, json!([1]))],
            ..Target::with_texts(TargetKind::Tool, name, schema.clone(), vec![usual])
        }
    }

    /// A prompt as it is listed. Its arguments are texts (2026-07-28, Prompts: Getting a Prompt).
    pub(crate) fn prompt(definition: &Json) -> Target {
        let arguments = definition["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
        let names = |is_wanted: &dyn Fn(&&Json) -> bool| {
            let wanted = arguments.iter().filter(is_wanted);
            wanted.filter_map(|it| it["name"].as_str().map(ToOwned::to_owned)).collect::<Vec<_>>()
        };
        let all = names(&|_| true);
        let schema = texts(&all, &names(&|it| it["required"] == true));
        let usual = all.iter().map(|name| (name.clone(), "a".into())).collect::<Map<_, _>>();
        Target::with_texts(
            TargetKind::Prompt,
            definition["name"].as_str().unwrap_or_default(),
            schema,
            vec![usual.into()],
        )
    }

    /// A resource template as it is listed; `None` if it is no template, or has no variable.
    pub(crate) fn template(definition: &Json) -> Option<Target> {
        let text = definition["uriTemplate"].as_str()?;
        let template = UriTemplate::parse(text).ok()?;
        let names: Vec<_> = template.variables().into_iter().map(ToOwned::to_owned).collect();
        if names.is_empty() {
            return None;
        }
        let value = |value: &str| Json::from_iter(names.iter().map(|name| (name.clone(), Json::from(value))));
        let usual = vec![value("a"), value("1")];
        let target = Target::with_texts(TargetKind::Template, text, texts(&names, &[]), usual);
        Some(Target { template: Some(template), ..target })
    }

    /// Resources, also unknown ones.
    pub(crate) fn resources(uris: &[String]) -> Target {
        let usual = uris.iter().map(|uri| json!({ "uri": uri })).collect();
        let uri = ["uri".to_owned()];
        let mut target = Target::with_texts(TargetKind::Resource, Operation::READ, texts(&uri, &uri), usual);
        let known = uris.first().map_or("unknown://host/path", |uri| uri);
        let scheme = known.split(':').next().unwrap_or(known);
        let odd = [
            "unknown://host/path".to_owned(),
            format!("{known}x"),
            format!("{known}/../x"),
            format!("{known}/%2e%2e%2fx"),
            format!("{known}?a=b#c"),
            format!("{known}%"),
            format!("{known}%00"),
            format!("{scheme}:"),
            format!("{scheme}://"),
            format!("{scheme}:///../../a"),
            format!("{scheme}://{}", "a/".repeat(2_000)),
            String::new(),
        ];
        target.own = odd.into_iter().map(|uri| (InputKind::Broken, json!({ "uri": uri }))).collect();
        target
    }

    /// Completions of the arguments of a prompt, or of the variables of a template.
    pub(crate) fn completion(of: &Target) -> Option<Target> {
        if !matches!(of.id.kind, TargetKind::Prompt | TargetKind::Template) {
            return None;
        }
        let names: Vec<_> = of.schema["properties"].as_object()?.keys().cloned().collect();
        let first = names.first()?.clone();
        let schema = json!({
            "type": "object",
            "properties": { "ref": { "enum": [of.id.name] }, "argument": { "enum": names }, "value": { "type": "string" } },
            "required": ["ref", "argument", "value"],
        });
        let input = |reference: &str, argument: &str, value: &str| json!({ "ref": reference, "argument": argument, "value": value });
        let usual = names.iter().map(|name| input(&of.id.name, name, "")).collect();
        let mut target = Target::with_texts(TargetKind::Completion, &of.id.name, schema, usual);
        target.own = vec![
            (InputKind::Broken, input("unknown", &first, "")),
            (InputKind::Broken, input(&of.id.name, "unknown", "")),
            (InputKind::Border, input(&of.id.name, &first, "a")),
        ];
        // The reference of a template is a URI, that of a prompt a name (2026-07-28, Completion: Reference Types).
        target.template = of.template.as_ref().and_then(|it| UriTemplate::parse(it.as_str()).ok());
        Some(target)
    }

    /// A list, with the cursors of its pages and those of other lists.
    pub(crate) fn list(list: List, cursors: &[String], others: &[String]) -> Target {
        let with = |cursor: &str| json!({ "cursor": cursor });
        let usual = std::iter::once(json!({})).chain(cursors.iter().map(|it| with(it))).collect();
        let mut target = Target::with_texts(TargetKind::List, list.method(), texts(&["cursor".to_owned()], &[]), usual);
        let known = cursors.first().map_or("1", |cursor| cursor);
        let shorter: String = known.chars().skip(1).collect();
        let odd = [format!("{known}a"), format!("a{known}"), known.to_uppercase(), known.repeat(2), shorter];
        let numbers = ["", "-1", "0", "99999999999999999999", "1.5", "NaN", "null", "e30=", "LTE=", "{\"offset\":-1}"];
        let odd = odd.iter().map(String::as_str).chain(numbers).chain(others.iter().map(String::as_str));
        let odd = odd.filter(|cursor| !cursors.iter().any(|known| known == cursor));
        target.own = odd.map(|cursor| (InputKind::Broken, with(cursor))).collect();
        target
    }

    /// Whether the input can be sent at all: what the protocol defines as a text is one.
    pub(crate) fn can_send(&self, input: &Json) -> bool {
        let is_whole = self.id.kind != TargetKind::Completion
            || ["ref", "argument", "value"].iter().all(|name| input.get(name).is_some());
        let is_uri = self.id.kind != TargetKind::Resource || input.get("uri").is_some();
        let are_texts = || input.as_object().is_some_and(|it| it.values().all(Json::is_string));
        self.id.kind == TargetKind::Tool || (input.is_object() && is_whole && is_uri && are_texts())
    }

    /// The request with this input.
    pub(crate) fn request(&self, input: &Json) -> Operation {
        let (name, text) = (&self.id.name, |key: &str| input[key].as_str().unwrap_or_default());
        match self.id.kind {
            TargetKind::Tool => Operation::new(Operation::CALL, json!({ "name": name, "arguments": input })),
            TargetKind::Prompt => Operation::get(name, input.as_object().cloned()),
            TargetKind::Template => Operation::read(&self.uri(input)),
            TargetKind::Resource => Operation::read(text("uri")),
            TargetKind::Completion => {
                let (kind, key) =
                    if self.template.is_some() { ("ref/resource", "uri") } else { ("ref/prompt", "name") };
                let argument = json!({ "name": text("argument"), "value": text("value") });
                let params = json!({ "ref": { "type": kind, key: text("ref") }, "argument": argument });
                Operation::new("completion/complete", params)
            }
            TargetKind::List => Operation::new(name, input.clone()),
        }
    }

    /// The URI with these values of the variables, which are encoded (RFC 6570, section 3.2).
    fn uri(&self, input: &Json) -> String {
        let values = input.as_object().cloned().unwrap_or_default();
        self.template.as_ref().map(|template| template.expand(&values)).unwrap_or_default()
    }
}

/// The schema of an object of texts.
fn texts(names: &[String], required: &[String]) -> Json {
    let properties = names.iter().map(|name| (name.clone(), json!({ "type": "string" })));
    json!({ "type": "object", "properties": Map::from_iter(properties), "required": required })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_target_has_its_request() {
        let request = |target: &Target, input: Json| {
            let Operation { method, params } = target.request(&input);
            format!("{method} {}", Json::from(params))
        };
        let prompt = Target::prompt(&json!({ "name": "greet", "arguments": [{ "name": "who", "required": true }] }));
        assert_eq!(request(&prompt, json!({ "who": "a" })), r#"prompts/get {"name":"greet","arguments":{"who":"a"}}"#);
        let template = Target::template(&json!({ "uriTemplate": "file:///{path}" })).expect("a template");
        assert_eq!(request(&template, json!({ "path": "../a\0" })), r#"resources/read {"uri":"file:///..%2Fa%00"}"#);
        let completion = Target::completion(&template).expect("a variable");
        assert_eq!(
            request(&completion, completion.usual[0].clone()),
            r#"completion/complete {"ref":{"type":"ref/resource","uri":"file:///{path}"},"argument":{"name":"path","value":""}}"#
        );
        let list = Target::list(List::Tools, &["abc".to_owned()], &[]);
        assert_eq!(request(&list, list.usual[1].clone()), r#"tools/list {"cursor":"abc"}"#);
        assert!(Target::template(&json!({ "uriTemplate": "file:///a" })).is_none());
        assert!(!prompt.can_send(&json!({ "who": 1 })) && !completion.can_send(&json!({ "value": "a" })));
    }
}
