//! The templates of one file.

use std::{
    io::{self, Write},
    sync::{Arc, LazyLock},
};

use minijinja::{Environment, UndefinedBehavior, syntax::SyntaxConfig};
use serde_json::Value as Json;

use super::{
    data::Data,
    expression::{NativeExpression, RenderError, Text, syntax_error},
    tags,
};
use crate::{ByteCount, Node, Problems, Source, Value, nearest};
use rehearse_protocol::MAX_FRAME;

/// The names that a template of a mock script may use.
pub const SCRIPT_NAMES: &[&str] = &["args", "params", "uri", "id", "headers", "state", "call", "env", "now", "rand"];

/// How many bytes a filled-in text or value may have, unless a file says otherwise.
pub const OUTPUT_LIMIT: usize = 16 << 20;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(environment);

pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default());
    environment.add_filter("repeat", repeat);
    environment.add_filter("replace", replace);
    environment.add_filter("tojson", to_json);
    // Their width is not bounded: an argument could make them allocate without end.
    for filter in ["batch", "center", "format", "indent", "slice"] {
        environment.remove_filter(filter);
    }
    environment.set_fuel(Some(1_000_000));
    environment
}

/// `'ab' | repeat(3)` is `ababab`.
fn repeat(text: &str, times: usize) -> Result<String, minijinja::Error> {
    if text.len().saturating_mul(times) > MAX_FRAME {
        return Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "the repeated text is too long"));
    }
    Ok(text.repeat(times))
}

/// `'a-b' | replace('-', '+')` is `a+b`.
fn replace(text: &str, from: &str, to: &str) -> Result<String, minijinja::Error> {
    let added = text.matches(from).count().saturating_mul(to.len());
    if text.len().saturating_add(added) > MAX_FRAME {
        return Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "the replaced text is too long"));
    }
    Ok(text.replace(from, to))
}

/// `[1, 'a'] | tojson` is `[1,"a"]`.
fn to_json(value: &minijinja::Value) -> Result<String, minijinja::Error> {
    serde_json::to_string(value).map_err(|error| {
        minijinja::Error::new(minijinja::ErrorKind::BadSerialization, "this is not JSON").with_source(error)
    })
}

/// The text templates of one file. Templates refer to it by name.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    source: Arc<Source>,
    names: &'static [&'static str],
    /// Further names, which the templates that are being read may use.
    bound: Vec<String>,
    uses_headers: bool,
    output_limit: usize,
}

/// The output of a template, up to a limit.
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    is_over: bool,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_over |= self.bytes.len() + bytes.len() > self.limit;
        if self.is_over {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Templates {
    /// The templates of `source`; `names` are those that a template may use.
    pub fn new(source: &Arc<Source>, names: &'static [&'static str]) -> Self {
        Templates {
            environment: environment(),
            source: source.clone(),
            names,
            bound: Vec::new(),
            uses_headers: false,
            output_limit: OUTPUT_LIMIT,
        }
    }

    /// A filled-in text or value may have this many bytes.
    pub fn limit_output(&mut self, limit: usize) {
        self.output_limit = limit;
    }

    /// Lets the templates that are read from here on use a further name; `false` if there is one of that name already.
    pub fn bind(&mut self, name: &str) -> bool {
        let is_new = !self.bound.iter().any(|bound| bound == name);
        if is_new {
            self.bound.push(name.to_owned());
        }
        is_new
    }

    /// The further names.
    pub fn bound(&self) -> Vec<String> {
        self.bound.clone()
    }

    /// The further names are these.
    pub fn rebind(&mut self, names: Vec<String>) {
        self.bound = names;
    }

    /// There are no further names.
    pub fn unbind(&mut self) {
        self.bound.clear();
    }

    /// The templates that follow are in another source.
    pub fn read_from(&mut self, source: &Arc<Source>) {
        self.source = source.clone();
    }

    fn position(&self, node: &Node) -> String {
        let (line, column) = self.source.position(node.span.start);
        format!("{}:{line}:{column}", self.source.name)
    }

    /// Whether some template reads `headers`; if none does they need not be kept.
    pub fn uses_headers(&self) -> bool {
        self.uses_headers
    }

    /// Reads a string that may be a template.
    ///
    /// # Errors
    /// This is not a string, its syntax is wrong, or it uses a name that no template has.
    pub fn text(&mut self, node: &Node) -> Result<Text, Problems> {
        let source = match &node.value {
            Value::Number(text) => text.as_str(),
            _ => node.str()?,
        };
        if !is_template(source) {
            return Ok(Text::Literal(source.to_owned()));
        }
        tags::check_template(source, node, &self.environment)?;
        let name = self.position(node);
        let invalid = |error: minijinja::Error| node.problem(format!("template: {}", syntax_error(&error)));
        self.environment.add_template_owned(name.clone(), source.to_owned()).map_err(invalid)?;
        let template = self.environment.get_template(&name).map_err(invalid)?;
        let uses_headers = template.undeclared_variables(false).contains("headers");
        self.check_names(template.undeclared_variables(false), node)?;
        self.uses_headers |= uses_headers;
        Ok(match self.lone_expression(source, node) {
            Some(native) => Text::Expression(native),
            None => Text::Template { name },
        })
    }

    /// Reads an expression that is true or false, written without braces.
    ///
    /// # Errors
    /// Its syntax is wrong, or it uses a name that no template has.
    pub fn condition(&mut self, node: &Node) -> Result<Box<NativeExpression>, Problems> {
        let source = node.str()?;
        if is_template(source) {
            let problem = node.problem("a condition must be an expression without braces");
            return Err(problem.hint("for example `if: guest.action == 'accept'`").into());
        }
        tags::check_expression(source, node, &ENVIRONMENT)?;
        let expression = ENVIRONMENT.compile_expression_owned(source.to_owned());
        let expression = expression.map_err(|error| node.problem(format!("expression: {}", syntax_error(&error))))?;
        let names = expression.undeclared_variables(false);
        self.uses_headers |= names.contains("headers");
        self.check_names(names, node)?;
        Ok(Box::new(NativeExpression { expression, position: self.position(node) }))
    }

    /// The data that an expression gives, if it can be compiled.
    pub fn expression(&self, source: &str) -> Option<Data> {
        let expression = ENVIRONMENT.compile_expression_owned(source.to_owned()).ok()?;
        Some(Data::NativeExpression(Box::new(NativeExpression { expression, position: self.source.name.clone() })))
    }

    fn check_names(&self, names: std::collections::HashSet<String>, node: &Node) -> Result<(), Problems> {
        let is_known = |name: &String| {
            self.names.contains(&name.as_str())
                || self.bound.contains(name)
                || self.environment.globals().any(|(global, _)| global == name)
        };
        let Some(name) = names.into_iter().filter(|name| !is_known(name)).min() else { return Ok(()) };
        let known: Vec<_> = self.names.iter().copied().chain(self.bound.iter().map(String::as_str)).collect();
        let problem = node.problem(format!("template: there is no `{name}`"));
        Err(match nearest(&name, &known) {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None => problem.hint(format!("templates can use {}", known.join(", "))),
        }
        .into())
    }

    /// The expression, if the text is one and nothing else.
    fn lone_expression(&self, source: &str, node: &Node) -> Option<Box<NativeExpression>> {
        let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
        let inner = inner.trim_start_matches(['-', '+']).trim_end_matches(['-', '+']);
        let expression = ENVIRONMENT.compile_expression_owned(inner.to_owned()).ok()?;
        Some(Box::new(NativeExpression { expression, position: self.position(node) }))
    }

    /// Reads a string that may be a template, and that stays a string for every value of the template.
    ///
    /// # Errors
    /// Like [`Templates::text`].
    pub fn text_data(&mut self, node: &Node) -> Result<Data, Problems> {
        Ok(match self.text(node)? {
            Text::Literal(text) => Data::Literal(Json::from(text).to_string()),
            template => Data::Text(template),
        })
    }

    /// Reads JSON data whose strings may be templates.
    ///
    /// # Errors
    /// Like [`Templates::text`], for every text in it.
    pub fn data(&mut self, node: &Node) -> Result<Data, Problems> {
        match &node.value {
            Value::String(source) if is_template(source) => Ok(match self.text(node)? {
                Text::Expression(native) => Data::NativeExpression(native),
                text => Data::Text(text),
            }),
            Value::Sequence(items) => {
                let items = Problems::collect(items.iter().map(|item| self.data(item)))?;
                if items.iter().all(|item| matches!(item, Data::Literal(_))) {
                    return Ok(Data::Literal(node.to_json_text()));
                }
                Ok(Data::Sequence(items))
            }
            Value::Mapping(entries) => {
                let entries = entries.iter().map(|entry| Ok((entry.key.clone(), self.data(&entry.node)?)));
                let entries = Problems::collect(entries)?;
                if entries.iter().all(|(_, data)| matches!(data, Data::Literal(_))) {
                    return Ok(Data::Literal(node.to_json_text()));
                }
                Ok(Data::Mapping(entries))
            }
            _ => Ok(Data::Literal(node.to_json_text())),
        }
    }

    /// Reads JSON data into a string that holds it as JSON text.
    ///
    /// # Errors
    /// Like [`Templates::data`].
    pub fn quoted_data(&mut self, node: &Node) -> Result<Data, Problems> {
        Ok(match self.data(node)? {
            Data::Literal(json) => Data::Literal(Json::from(json).to_string()),
            data => Data::Quoted(Box::new(data)),
        })
    }

    /// Reads JSON data of MCP, in which members of these names are strings for every value of their templates, at every
    /// depth but within `_meta` and other data that is not MCP's.
    ///
    /// # Errors
    /// Like [`Templates::data`]; such a member is not a string.
    pub fn mcp_data(&mut self, node: &Node, texts: &[&str]) -> Result<Data, Problems> {
        const OPAQUE: [&str; 4] = ["_meta", "annotations", "input", "structuredContent"];
        match &node.value {
            Value::Sequence(items) => {
                let items = Problems::collect(items.iter().map(|item| self.mcp_data(item, texts)))?;
                Ok(Data::Sequence(items).collapsed())
            }
            Value::Mapping(entries) => {
                let member = |entry: &crate::Entry| {
                    let data = match &*entry.key {
                        key if OPAQUE.contains(&key) => self.data(&entry.node),
                        key if texts.contains(&key) => self.text_data(&entry.node),
                        _ => self.mcp_data(&entry.node, texts),
                    };
                    Ok((entry.key.clone(), data?))
                };
                Ok(Data::Mapping(Problems::collect(entries.iter().map(member))?).collapsed())
            }
            _ => self.data(node),
        }
    }

    /// The text with the context filled in.
    ///
    /// # Errors
    /// A name is undefined, a filter failed, the template ran too long, or its output is too large.
    pub fn render(&self, text: &Text, context: &minijinja::Value) -> Result<String, RenderError> {
        match text {
            Text::Literal(text) => Ok(text.clone()),
            Text::Expression(native) => {
                let value = native.eval(context)?;
                self.write(&native.position, |out| match value.as_str() {
                    Some(text) => out.write_all(text.as_bytes()).map_err(|error| RenderError::new(error.to_string())),
                    None => write!(out, "{value}").map_err(|error| RenderError::new(error.to_string())),
                })
            }
            Text::Template { name } => self.write(name, |out| {
                let template = self.environment.get_template(name);
                let rendered = template.and_then(|it| it.render_captured_to(context.clone(), out).map(drop));
                rendered.map_err(|error| RenderError::at_position(name, &error))
            }),
        }
    }

    /// The text that `write` writes.
    fn write(
        &self,
        position: &str,
        write: impl FnOnce(&mut Output) -> Result<(), RenderError>,
    ) -> Result<String, RenderError> {
        let mut out = Output { bytes: Vec::new(), limit: self.output_limit, is_over: false };
        let written = write(&mut out);
        if out.is_over {
            return Err(RenderError::new(format!("{position}: {}", self.too_large())));
        }
        written?;
        String::from_utf8(out.bytes).map_err(|error| RenderError::new(error.to_string()))
    }

    fn too_large(&self) -> String {
        format!("the output is larger than {} (`limits.output`)", ByteCount(self.output_limit))
    }

    /// Appends the data as JSON text with the context filled in.
    ///
    /// # Errors
    /// Like [`Templates::render`].
    pub fn write_json(&self, data: &Data, context: &minijinja::Value, out: &mut String) -> Result<(), RenderError> {
        match data {
            Data::Literal(json) => {
                out.push_str(json);
                return Ok(());
            }
            Data::Text(text) => write_string(&self.render(text, context)?, out),
            Data::NativeExpression(native) => {
                let value = native.eval(context)?;
                let json = self.write(&native.position, |out| {
                    serde_json::to_writer(out, &value).map_err(|error| RenderError::new(error.to_string()))
                });
                out.push_str(&json?);
            }
            Data::Quoted(data) => {
                let mut json = String::new();
                self.write_json(data, context, &mut json)?;
                write_string(&json, out);
            }
            Data::Sequence(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    self.write_json(item, context, out)?;
                }
                out.push(']');
            }
            Data::Mapping(entries) => {
                out.push('{');
                for (index, (key, value)) in entries.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    write_string(key, out);
                    out.push(':');
                    self.write_json(value, context, out)?;
                }
                out.push('}');
            }
        }
        match out.len() > self.output_limit {
            true => Err(RenderError::new(self.too_large())),
            false => Ok(()),
        }
    }
}

/// Appends a JSON string.
fn write_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%") || text.contains("{#")
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{super::Context, *};
    use crate::{Source, parse_yaml};

    fn render(template: &str, params: &str) -> Result<String, String> {
        let source = Source::new("t", template);
        let mut templates = Templates::new(&source, SCRIPT_NAMES);
        let data = parse_yaml(&source).and_then(|node| templates.data(&node));
        let data = data.map_err(|problems| problems.in_source(&source).to_string())?;
        let context = Context {
            params: Some(Bytes::copy_from_slice(params.as_bytes())),
            id: "r-1".into(),
            headers: vec![("x-tenant".into(), "acme".into())],
            call: 3,
            repetition: None,
            seed: 7,
            now: std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_784_548_800_123),
            state: None,
            args: None,
            bound: None,
        };
        let mut out = String::new();
        templates.write_json(&data, &context.into_value(), &mut out).map_err(|error| error.to_string())?;
        Ok(out)
    }

    #[test]
    fn a_single_expression_keeps_its_type_and_text_around_it_makes_a_string() {
        let params = r#"{"arguments":{"n":12345678901234567,"list":[1,2.5,null],"text":"a\"b"},"uri":"file:///x"}"#;
        assert_eq!(render("'{{ args.n }}'", params), Ok("12345678901234567".into()));
        assert_eq!(
            render("{ a: '{{ args.list }}', b: [1.0, x] }", params),
            Ok(r#"{"a":[1,2.5,null],"b":[1.0,"x"]}"#.into())
        );
        assert_eq!(
            render("['{{- args.n -}}', '{{ -args.n }}']", params),
            Ok("[12345678901234567,-12345678901234567]".into())
        );
        assert_eq!(render("'n={{ args.n }} {{ args.text }}'", params), Ok(r#""n=12345678901234567 a\"b""#.into()));
        assert_eq!(
            render("'{{ call }}/{{ id }}/{{ uri }}/{{ headers[\"x-tenant\"] }}'", params),
            Ok(r#""3/r-1/file:///x/acme""#.into())
        );
        assert_eq!(render("'{% if args.n > 1 %}many{% endif %}'", params), Ok(r#""many""#.into()));
        assert_eq!(render("\"{{ 'ab' | repeat(3) }}\"", params), Ok(r#""ababab""#.into()));
        assert!(render("\"{{ 'ab' | repeat(99999999999) }}\"", params).is_err());
    }

    #[test]
    fn a_string_of_mcp_stays_a_string_for_any_template_result() {
        let read = |text: &str| {
            let source = Source::new("t", text);
            let mut templates = Templates::new(&source, SCRIPT_NAMES);
            let node = parse_yaml(&source).expect("YAML");
            let data =
                templates.mcp_data(&node, &["text", "name"]).map_err(|error| error.in_source(&source).to_string());
            let mut out = String::new();
            let context = minijinja::context! { call => 3 };
            data.map(|data| templates.write_json(&data, &context, &mut out).expect("renders")).map(|()| out)
        };
        assert_eq!(
            read("[{ text: '{{ call }}', n: '{{ call }}', _meta: { text: '{{ call }}' }, of: { name: 5, x: 1.0 } }]"),
            Ok(r#"[{"text":"3","n":3,"_meta":{"text":3},"of":{"name":"5","x":1.0}}]"#.into())
        );
        assert_eq!(read("[{ text: 5, x: 1.0 }, []]"), Ok(r#"[{"text":"5","x":1.0},[]]"#.into()));
        assert!(read("[{ text: [a] }]").expect_err("no text").contains("expected a string"));
    }

    #[test]
    fn undefined_names_are_errors_when_parsed_or_when_rendered() {
        let error = render("a: '{{ arg.text }}'", "{}").expect_err("a typo");
        assert_eq!(error, "t:1:4: template: there is no `arg` (did you mean `args`?)");
        let error = render("[1, '{{ args.missing }}']", "{}").expect_err("no value");
        assert_eq!(error, "a template failed: t:1:5: `args.missing` has no value");
        let error = render("[1, 'x{{ args.missing }}']", "{}").expect_err("undefined");
        assert_eq!(error, "a template failed: t:1:5: `args.missing` is undefined in `args.missing`");
        assert!(render("'{{ args.'", "{}").expect_err("a syntax error").starts_with("t:1:1: template:"));
        assert_eq!(render("'{{ args.missing | default(5) }}'", "{}"), Ok("5".into()));
    }

    #[test]
    fn arguments_that_cannot_be_read_are_an_error_and_not_missing() {
        let params = r#"{"arguments":{"x":"here","y":"\ud800"}}"#;
        let error = render("'{{ args.x | default(1) }}'", params).expect_err("a lone surrogate");
        assert!(error.contains("the request cannot be read"), "{error}");
    }

    #[test]
    fn random_numbers_repeat_with_the_seed_and_stay_in_range() {
        let first = render("['{{ rand(1, 6) }}', '{{ rand() }}']", "{}").expect("renders");
        assert_eq!(render("['{{ rand(1, 6) }}', '{{ rand() }}']", "{}"), Ok(first));
        assert!(render("'{{ rand(2, 1) }}'", "{}").is_err());
    }

    #[test]
    fn no_filter_allocates_without_bound() {
        assert_eq!(render("\"{{ [1, 'a<b'] | tojson }}\"", "{}"), Ok(r#""[1,\"a<b\"]""#.into()));
        assert_eq!(render("\"{{ 'a-b' | replace('-', '+') }}\"", "{}"), Ok(r#""a+b""#.into()));
        for text in [
            "{{ ('x' | repeat(9999)) | replace('x', 'y' | repeat(9999)) }}",
            "{{ [1] | batch(99999999) | list }}",
            "{{ [1] | slice(99999999) | list }}",
            "{{ [1] | tojson(indent=99999999) }}",
        ] {
            assert!(render(&format!("\"{text}\""), "{}").is_err(), "{text}");
        }
    }

    #[test]
    fn output_beyond_the_limit_is_an_error_that_names_it() {
        let source = Source::new("t", "{ a: '{{ x }}', b: 'x{{ x }}', c: ['{{ [x, x] }}'], d: '{{ x[:50] }}' }");
        let mut templates = Templates::new(&source, &["x"]);
        templates.limit_output(100);
        let node = parse_yaml(&source).expect("YAML");
        let context = minijinja::context! { x => "y".repeat(101) };
        let write = |key: &str| {
            let mut templates = Templates::new(&source, &["x"]);
            templates.limit_output(100);
            let data = templates.data(node.get(key).expect("there")).expect("valid");
            templates.write_json(&data, &context, &mut String::new()).map_err(|error| error.to_string())
        };
        for (key, column) in [("a", 6), ("b", 20), ("c", 36)] {
            let what = "the output is larger than 100 bytes (`limits.output`)";
            assert_eq!(write(key), Err(format!("a template failed: t:1:{column}: {what}")));
        }
        assert_eq!(write("d"), Ok(()));
        let all =
            templates.data(&crate::parse_yaml(&Source::new("t", "['{{ x[:60] }}', '{{ x[:60] }}']")).expect("YAML"));
        assert!(templates.write_json(&all.expect("valid"), &context, &mut String::new()).is_err(), "together");
    }

    #[test]
    fn a_template_cannot_run_forever() {
        assert!(
            render("'{% for x in range(9999) %}{% for y in range(9999) %}{% endfor %}{% endfor %}'", "{}").is_err()
        );
    }
}
