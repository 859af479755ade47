//! Parameters of a tool that clients repeat in HTTP headers, for proxies that route requests without reading bodies
//! (2026-07-28, Tools: x-mcp-header; Streamable HTTP: Custom Headers from Tool Parameters).

use std::borrow::Cow;

use base64::Engine as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value as Json;

use crate::{Entry, Node, Problem, Problems, Value};
use rehearse_protocol::{http::encode, names::PARAMETER_HEADER};

/// The keyword of a schema that asks for it.
pub const ANNOTATION: &str = "x-mcp-header";
const TYPES: &[&str] = &["string", "integer", "boolean"];
/// 2⁵³ − 1, the last integer that every implementation of JSON keeps.
const LARGEST: f64 = 9_007_199_254_740_991.0;

/// The mirrored parameters of one tool, in the order of its `inputSchema`.
#[derive(Debug, Default)]
pub struct MirroredParameters(Vec<MirroredParameter>);

/// How the header of a request, under its usual name, does not fit the body.
#[derive(Debug, thiserror::Error)]
pub enum HeaderMismatch {
    #[error("the header {0} occurs twice")]
    Twice(String),
    #[error("the header {header} contains invalid characters")]
    Characters { header: String, source: http::header::ToStrError },
    #[error("the header {header} is missing, but the body has the argument `{path}`")]
    Missing { header: String, path: String },
    #[error("the header {header} is not valid Base64: {text}")]
    Base64 { header: String, text: String },
    #[error("the argument `{path}` is {value}, which no header can mirror exactly")]
    Inexact { path: String, value: String },
    #[error("Header mismatch: {header} is {text}, but the body has no `{path}`")]
    NoArgument { header: String, text: String, path: String },
    #[error("Header mismatch: {header} is {text}, but `{path}` of the body is {value}")]
    Other { header: String, text: String, path: String, value: String },
}

#[derive(Debug)]
struct MirroredParameter {
    /// The names of the properties that lead to the parameter.
    path: Vec<String>,
    /// As the tool writes it, without `Mcp-Param-`.
    name: String,
    header: HeaderName,
}

impl MirroredParameters {
    /// Reads the annotations of an `inputSchema`.
    ///
    /// # Errors
    /// Every constraint on `x-mcp-header` that the schema violates. A client has to reject such a tool.
    pub fn read(schema: &Node) -> Result<MirroredParameters, Problems> {
        let mut reader = Reader::default();
        reader.schema(schema, Some(&[]));
        if reader.problems.is_empty() {
            return Ok(MirroredParameters(reader.parameters));
        }
        reader.problems.sort_by_key(|problem| problem.span.start);
        Err(Problems(reader.problems))
    }

    /// Whether the tool has no mirrored parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers that a client adds to a call with these arguments (Streamable HTTP: Client Behavior for Custom
    /// Headers). An argument that is absent or `null`, or that is neither text, number nor boolean, has none.
    pub fn headers<'p>(&'p self, arguments: &'p Json) -> impl Iterator<Item = (HeaderName, HeaderValue)> + 'p {
        self.0.iter().filter_map(|parameter| {
            let text = match parameter.value_in(arguments) {
                Json::String(text) => encode(text),
                value @ (Json::Bool(_) | Json::Number(_)) => value.to_string().into(),
                _ => return None,
            };
            Some((parameter.header.clone(), HeaderValue::from_str(&text).ok()?))
        })
    }

    /// Compares the headers of a call with its arguments (Streamable HTTP: Server Behavior for Custom Headers).
    ///
    /// # Errors
    /// Why the server must reject the request with 400 and `HeaderMismatch`: a value without its header, a header
    /// without a value, or one that says something else, is not encoded as it should, or occurs twice.
    pub fn check(&self, headers: &HeaderMap, arguments: &Json) -> Result<(), HeaderMismatch> {
        self.0.iter().try_for_each(|parameter| parameter.check(headers, arguments))
    }
}

impl MirroredParameter {
    fn value_in<'a>(&self, arguments: &'a Json) -> &'a Json {
        self.path.iter().try_fold(arguments, |value, name| value.get(name)).unwrap_or(&Json::Null)
    }

    fn check(&self, headers: &HeaderMap, arguments: &Json) -> Result<(), HeaderMismatch> {
        let value = self.value_in(arguments);
        let header = format!("Mcp-Param-{}", self.name);
        let path = self.path.join(".");
        let Some(written) = single_header(headers, &self.header, &header)? else {
            // Only text, numbers and booleans can be mirrored. Other types are reported as violations of the schema.
            return match value {
                Json::Null | Json::Array(_) | Json::Object(_) => Ok(()),
                _ => Err(HeaderMismatch::Missing { header, path }),
            };
        };
        let Some(text) = decode(written) else {
            return Err(HeaderMismatch::Base64 { header, text: written.to_owned() });
        };
        if is_too_large(value) {
            return Err(HeaderMismatch::Inexact { path, value: value.to_string() });
        }
        let equal = match value {
            Json::Null => return Err(HeaderMismatch::NoArgument { header, text: text.into_owned(), path }),
            Json::String(value) => *value == text,
            Json::Bool(value) => text == value.to_string(),
            // `42` and `42.0` are the same number (Server Validation, the note on integers).
            Json::Number(value) => {
                serde_json::from_str::<serde_json::Number>(&text).is_ok_and(|text| text.as_f64() == value.as_f64())
            }
            Json::Array(_) | Json::Object(_) => false,
        };
        if equal {
            Ok(())
        } else {
            Err(HeaderMismatch::Other { header, text: text.into_owned(), path, value: value.to_string() })
        }
    }
}

fn is_too_large(value: &Json) -> bool {
    value.as_f64().is_some_and(|number| number.abs() > LARGEST)
}

/// The value of a header that may occur once, without the white space around it; `shown` is its name in messages.
///
/// # Errors
/// It occurs twice, or has characters that no header has (RFC 9110, section 5.5: visible ASCII, spaces and tabs).
pub fn single_header<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    shown: &str,
) -> Result<Option<&'h str>, HeaderMismatch> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(HeaderMismatch::Twice(shown.to_owned()));
    }
    let invalid = |source| HeaderMismatch::Characters { header: shown.to_owned(), source };
    let text = value.to_str().map_err(invalid)?;
    Ok(Some(text.trim_matches([' ', '\t'])))
}

/// A header's value, which may be wrapped as `=?base64?…?=` (Streamable HTTP: Value Encoding). `None` if what is
/// wrapped is not Base64 of UTF-8.
pub fn decode(value: &str) -> Option<Cow<'_, str>> {
    let Some(encoded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Some(value.into());
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

#[derive(Default)]
struct Reader {
    parameters: Vec<MirroredParameter>,
    problems: Vec<Problem>,
}

impl Reader {
    /// `path` has the names of the properties that lead here from the root, if nothing but `properties` does.
    fn schema(&mut self, node: &Node, path: Option<&[&str]>) {
        match &node.value {
            Value::Mapping(entries) => entries.iter().for_each(|entry| self.keyword(node, entry, path)),
            Value::Sequence(items) => items.iter().for_each(|item| self.schema(item, None)),
            _ => {}
        }
    }

    fn keyword(&mut self, schema: &Node, entry: &Entry, path: Option<&[&str]>) {
        match entry.key.as_str() {
            ANNOTATION => self.annotation(schema, entry, path),
            "properties" => {
                for property in entry.node.as_entries().unwrap_or_default() {
                    let path = path.map(|path| [path, &[&property.key]].concat());
                    self.schema(&property.node, path.as_deref());
                }
            }
            // Their keys are names and no keywords.
            "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => {
                for named in entry.node.as_entries().unwrap_or_default() {
                    self.schema(&named.node, None);
                }
            }
            // Data and no schemas.
            "const" | "default" | "dependentRequired" | "enum" | "examples" => {}
            _ => self.schema(&entry.node, None),
        }
    }

    fn annotation(&mut self, schema: &Node, entry: &Entry, path: Option<&[&str]>) {
        let path = match path {
            Some([]) => {
                let problem = Problem::new(entry.key_span, "an x-mcp-header annotates a property, not the inputSchema");
                return self.problems.push(problem.hint("move it into one of the `properties`"));
            }
            Some(path) => path,
            None => {
                let message = "an x-mcp-header annotates a property that is reached through `properties` only";
                let hint = "mirror another property, or move this one out of arrays, `$defs`, `oneOf` and the like";
                return self.problems.push(Problem::new(entry.key_span, message).hint(hint));
            }
        };
        self.check_type(schema, entry);
        let node = &entry.node;
        let hint = "write what follows `Mcp-Param-` in the header's name, in letters, digits and hyphens";
        let Some(name) = node.as_str() else {
            return self.problems.push(node.problem("an x-mcp-header must be a string").hint(hint));
        };
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let problem = match name.chars().find(|c| !is_token(*c)) {
            Some(character) => format!("{character:?} cannot be in the name of a header"),
            None if name.is_empty() => "an x-mcp-header must not be empty".into(),
            None => match HeaderName::from_bytes(format!("{PARAMETER_HEADER}{name}").as_bytes()) {
                Ok(header) if self.parameters.iter().any(|known| known.header == header) => {
                    let problem = node.problem(format!("the header Mcp-Param-{name} has two parameters"));
                    return self.problems.push(problem.hint("names that differ in case only are the same"));
                }
                Ok(header) => {
                    let path = path.iter().map(ToString::to_string).collect();
                    return self.parameters.push(MirroredParameter { path, name: name.into(), header });
                }
                Err(_) => "the name of a header is not as long as this".into(),
            },
        };
        self.problems.push(node.problem(problem).hint(hint));
    }

    fn check_type(&mut self, schema: &Node, annotation: &Entry) {
        let kind = schema.get("type");
        if !kind.and_then(|kind| kind.as_str()).is_some_and(|kind| TYPES.contains(&kind)) {
            let span = kind.map_or(annotation.key_span, |kind| kind.span);
            let problem = Problem::new(span, "a mirrored property has the `type` string, integer or boolean");
            self.problems.push(problem.hint("numbers that may have a fraction and arrays of types cannot be mirrored"));
        }
        let items = schema.get("enum").and_then(|list| list.as_items()).unwrap_or_default();
        for node in ["const", "default"].iter().filter_map(|key| schema.get(key)).chain(items) {
            if is_too_large(&node.to_json()) {
                let problem = node.problem("this integer cannot be mirrored exactly");
                self.problems.push(problem.hint("it is at most 9007199254740991 either way; use a string"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Source, parse_yaml};
    use rehearse_testing::table;

    fn read(schema: &str) -> Result<MirroredParameters, String> {
        let source = Source::new("t", schema);
        let root = parse_yaml(&source).expect("valid YAML");
        MirroredParameters::read(&root).map_err(|problems| problems.in_source(&source).to_string())
    }

    fn problems(schema: &str) -> String {
        read(schema).expect_err(schema)
    }

    const SCHEMA: &str = "type: object
properties:
  region: { type: string, x-mcp-header: Region }
  query: { type: string }
  count: { type: integer, x-mcp-header: Count }
  where: { type: object, properties: { dry: { type: boolean, x-mcp-header: Dry-Run } } }
";

    fn check(headers: &[(&'static str, &[u8])], arguments: &Json) -> Result<(), String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            map.append(name, HeaderValue::from_bytes(value).expect("a value"));
        }
        read(SCHEMA).expect("valid").check(&map, arguments).map_err(|mismatch| mismatch.to_string())
    }

    fn mismatch(headers: &[(&'static str, &[u8])], arguments: &Json) -> String {
        check(headers, arguments).expect_err("a mismatch")
    }

    #[test]
    fn a_call_has_a_header_for_each_argument_that_can_be_in_one() {
        let arguments = json!({ "region": "é", "query": "q", "count": 1.0, "where": { "dry": false } });
        let parameters = read(SCHEMA).expect("valid");
        let headers: HeaderMap = parameters.headers(&arguments).collect();
        assert_eq!(
            (&headers["mcp-param-count"], &headers["mcp-param-dry-run"]),
            (&"1.0".parse().expect("a value"), &"false".parse().expect("a value"))
        );
        assert_eq!(headers.len(), 3);
        parameters.check(&headers, &arguments).expect("they fit");
        assert_eq!(parameters.headers(&json!({ "region": null, "count": [] })).count(), 0);
    }

    #[test]
    fn annotations_are_found_at_any_depth_of_properties() {
        let found = read(SCHEMA).expect("valid");
        let found: Vec<_> =
            found.0.iter().map(|it| (it.path.join("."), it.header.as_str(), it.name.as_str())).collect();
        let expected = [
            ("region", "mcp-param-region", "Region"),
            ("count", "mcp-param-count", "Count"),
            ("where.dry", "mcp-param-dry-run", "Dry-Run"),
        ];
        assert_eq!(found, expected.map(|(path, header, name)| (path.to_owned(), header, name)));
        assert!(!read(SCHEMA).expect("valid").is_empty());
        assert!(read("type: object").expect("valid").is_empty());
    }

    #[test]
    fn every_violated_constraint_is_reported_where_it_is() {
        let text = "type: object
x-mcp-header: Root
properties:
  a: { type: string, x-mcp-header: '' }
  b: { type: string, x-mcp-header: 'a b' }
  c: { x-mcp-header: '', type: number }
  d: { x-mcp-header: D }
  e: { type: [string, 'null'], x-mcp-header: E }
  f: { type: string, x-mcp-header: 1 }
  g: { type: string, x-mcp-header: Region }
  h: { type: object, properties: { i: { type: string, x-mcp-header: REGION } } }
  j: { type: integer, x-mcp-header: J, enum: [1, 9007199254740992], default: -9007199254740991 }
  k: { type: object, x-mcp-header: K }
";
        let lines: Vec<_> =
            problems(text).lines().map(|line| line.split(" (").next().unwrap_or(line).to_owned()).collect();
        let kind = "a mirrored property has the `type` string, integer or boolean";
        let expected = [
            "t:2:1: an x-mcp-header annotates a property, not the inputSchema".to_owned(),
            "t:4:36: an x-mcp-header must not be empty".to_owned(),
            "t:5:36: ' ' cannot be in the name of a header".to_owned(),
            "t:6:22: an x-mcp-header must not be empty".to_owned(),
            format!("t:6:32: {kind}"),
            format!("t:7:8: {kind}"),
            format!("t:8:14: {kind}"),
            "t:9:36: an x-mcp-header must be a string".to_owned(),
            "t:11:69: the header Mcp-Param-REGION has two parameters".to_owned(),
            "t:12:50: this integer cannot be mirrored exactly".to_owned(),
            format!("t:13:14: {kind}"),
        ];
        assert_eq!(lines, expected);
        assert!(problems(text).lines().all(|line| line.ends_with(')')), "each has a hint");
    }

    #[test]
    fn an_annotation_off_the_chain_of_properties_is_a_mistake() {
        let annotated = "{ type: string, x-mcp-header: X }";
        for schema in [
            format!("items: {annotated}"),
            format!("properties: {{ a: {{ type: array, items: {annotated} }} }}"),
            format!("properties: {{ a: {{ items: {{ properties: {{ b: {annotated} }} }} }} }}"),
            format!("properties: {{ a: {{ prefixItems: [{annotated}] }} }}"),
            format!("oneOf: [{{ properties: {{ a: {annotated} }} }}]"),
            format!("properties: {{ a: {{ anyOf: [{annotated}] }} }}"),
            format!("if: {{ properties: {{ a: {annotated} }} }}"),
            format!("not: {annotated}"),
            format!("$defs: {{ default: {annotated} }}"),
            format!("$defs: {{ a: {{ properties: {{ b: {annotated} }} }} }}"),
            format!("patternProperties: {{ properties: {annotated} }}"),
            format!("dependentSchemas: {{ enum: {annotated} }}"),
            format!("additionalProperties: {annotated}"),
            format!("x-vendor: [[{annotated}]]"),
        ] {
            assert!(problems(&schema).contains("reached through `properties` only"), "{schema}");
        }
    }

    #[test]
    fn names_and_data_that_look_like_an_annotation_are_none() {
        for schema in [
            "properties: { x-mcp-header: { type: string } }",
            "$defs: { x-mcp-header: { type: string } }",
            "patternProperties: { x-mcp-header: { type: string } }",
            "dependentRequired: { x-mcp-header: [a] }",
            "properties: { a: { default: { x-mcp-header: X }, examples: [{ x-mcp-header: X }] } }",
            "properties: { a: { const: { x-mcp-header: X }, enum: [{ x-mcp-header: X }] } }",
        ] {
            assert!(read(schema).expect(schema).is_empty(), "{schema}");
        }
        let both = read("properties: { properties: { type: string, x-mcp-header: P } }").expect("valid");
        assert_eq!(both.0[0].path, ["properties"]);
    }

    #[test]
    fn the_name_of_a_header_is_a_token() {
        for byte in 1..=255_u8 {
            let character = char::from(byte);
            let schema = format!("properties: {{ a: {{ type: string, x-mcp-header: \"a\\x{byte:02x}\" }} }}");
            let is_token = character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character);
            assert_eq!(read(&schema).is_ok(), is_token, "{character:?}");
        }
    }

    #[test]
    fn a_value_and_its_header_must_agree() {
        let arguments = json!({ "region": "us-west1", "query": "q", "count": 42, "where": { "dry": true } });
        let rest: [(&str, &[u8]); 2] = [("mcp-param-count", b"42"), ("Mcp-Param-Dry-Run", b"true")];
        let with = |name, value| [&[(name, value)], &rest[..]].concat();
        assert_eq!(check(&with("MCP-PARAM-REGION", b"us-west1"), &arguments), Ok(()));
        assert_eq!(check(&with("mcp-param-region", b" \tus-west1\t "), &arguments), Ok(()));
        assert_eq!(check(&with("mcp-param-region", b"=?base64?dXMtd2VzdDE=?="), &arguments), Ok(()));
        assert_eq!(
            mismatch(&with("mcp-param-region", b"us-east1"), &arguments),
            "Header mismatch: Mcp-Param-Region is us-east1, but `region` of the body is \"us-west1\""
        );
        assert!(mismatch(&with("mcp-param-region", b"US-WEST1"), &arguments).starts_with("Header mismatch"));
        assert_eq!(
            mismatch(&rest, &arguments),
            "the header Mcp-Param-Region is missing, but the body has the argument `region`"
        );
        let twice = [&with("mcp-param-region", b"us-west1")[..], &[("mcp-param-region", b"us-west1")]].concat();
        assert_eq!(mismatch(&twice, &arguments), "the header Mcp-Param-Region occurs twice");
        assert_eq!(
            mismatch(&with("mcp-param-region", "us-wést1".as_bytes()), &arguments),
            "the header Mcp-Param-Region contains invalid characters"
        );
        for broken in [&b"=?base64?dXMtd2VzdDE?="[..], b"=?base64?dXMt!!!d2VzdDE=?=", b"=?base64?/////w==?="] {
            assert!(mismatch(&with("mcp-param-region", broken), &arguments).contains("is not valid Base64: =?base64?"));
        }
    }

    #[test]
    fn without_a_value_there_is_no_header() {
        for arguments in [json!(null), json!({}), json!({ "region": null, "where": null }), json!({ "where": 1 })] {
            assert_eq!(check(&[], &arguments), Ok(()));
            assert_eq!(check(&[("mcp-param-unknown", b"x")], &arguments), Ok(()));
            assert_eq!(
                mismatch(&[("mcp-param-region", b"x")], &arguments),
                "Header mismatch: Mcp-Param-Region is x, but the body has no `region`"
            );
            assert!(mismatch(&[("mcp-param-dry-run", b"")], &arguments).ends_with("the body has no `where.dry`"));
        }
        assert_eq!(check(&[("mcp-param-region", b"")], &json!({ "region": "" })), Ok(()));
        assert!(mismatch(&[], &json!({ "region": "" })).contains("is missing"));
        assert_eq!(check(&[], &json!({ "region": ["a"] })), Ok(()), "the schema says that this is wrong");
        assert!(check(&[("mcp-param-region", b"[\"a\"]")], &json!({ "region": ["a"] })).is_err());
    }

    #[test]
    fn numbers_agree_by_value_and_booleans_by_their_word() {
        let count = |header: &'static str, value: Json| {
            check(&[("mcp-param-count", header.as_bytes())], &json!({ "count": value })).is_ok()
        };
        for header in ["42", "42.0", "4.2e1", "=?base64?NDI=?="] {
            assert!(count(header, json!(42)) && count(header, json!(42.0)), "{header}");
        }
        for header in ["43", "42.5", "042", "+42", "0x2A", "", "NaN", "inf", "forty-two", "\"42\"", "42 "] {
            assert_eq!(count(header, json!(42)), header.trim() == "42", "{header}");
        }
        assert!(count("-9007199254740991", json!(-9_007_199_254_740_991_i64)));
        assert!(!count("9007199254740992", json!(9_007_199_254_740_992_i64)));
        assert!(!count("-9007199254740992", json!(-9_007_199_254_740_992_i64)));
        assert!(count("true", json!(true)) && count("false", json!(false)));
        assert!(!count("True", json!(true)) && !count("1", json!(true)) && !count("false", json!(true)));
    }

    #[test]
    fn only_a_whole_sentinel_is_decoded() {
        for [value, decoded] in table::rows(include_str!("mirrored.txt"), "decoded values") {
            assert_eq!(decode(&value).as_deref().unwrap_or("-"), decoded, "{value}");
        }
    }
}
