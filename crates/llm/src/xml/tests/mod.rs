mod generated;

use rehearse_testing::table;
use serde_json::{json, value::RawValue};

use super::*;
use crate::{Origin, validate::Code};

pub(super) fn raw(schema: &Value) -> Box<RawValue> {
    serde_json::value::to_raw_value(schema).expect("serialises")
}

pub(super) fn parser_with(tools: &[(&str, Value)], options: Options) -> Parser {
    let schemas: Vec<_> = tools.iter().map(|(name, schema)| (*name, raw(schema))).collect();
    Parser::new(schemas.iter().map(|(name, schema)| ToolDefinition::new(name, schema)), options)
}

fn read_file() -> Value {
    json!({ "type": "object", "required": ["path"], "properties": {
        "path": { "type": "string" }, "limit": { "type": "integer", "minimum": 1 } } })
}

pub(super) fn many() -> Options {
    Options { max_calls_per_message: 10, ..Options::default() }
}

/// The requests for `read_file` and `ping`, which needs nothing.
fn parse(message: &str) -> Requests {
    let ping = json!({ "type": "object", "properties": { "note": { "type": "string" } } });
    parser_with(&[("read_file", read_file()), ("ping", ping)], many()).parse(message)
}

/// The arguments of all calls, and the messages of all errors.
pub(super) fn calls_and_errors(requests: &Requests) -> (Vec<Value>, Vec<String>) {
    let calls = requests.calls.iter().map(|call| Value::Object(call.arguments.clone())).collect();
    (calls, requests.errors.iter().map(ToString::to_string).collect())
}

fn calls(message: &str) -> Vec<Value> {
    let (calls, errors) = calls_and_errors(&parse(message));
    assert_eq!(errors, [""; 0], "{message}");
    calls
}

fn errors(message: &str) -> Vec<String> {
    let (calls, errors) = calls_and_errors(&parse(message));
    assert!(calls.is_empty(), "{message}: {calls:?}");
    errors
}

/// A value that a table has as JSON.
fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The value of the text in `<p>` with this schema.
fn argument(schema: Value, text: &str) -> Result<Value, String> {
    let schema = json!({ "type": "object", "properties": { "p": schema } });
    let requests = parser_with(&[("t", schema)], many()).parse(&format!("<t><p>{text}</p></t>"));
    match (requests.calls.first(), requests.errors.first()) {
        (Some(call), None) => Ok(call.arguments["p"].clone()),
        (_, Some(error)) => Err(error.to_string()),
        (None, None) => panic!("no request"),
    }
}

#[test]
fn a_request_is_read_wherever_it_is() {
    let call = "<read_file>\n<path>a.txt</path>\n</read_file>";
    let one = [json!({ "path": "a.txt" })];
    for message in [
        call.to_owned(),
        format!("I read it. {call} Then I answer."),
        format!("I read it:{call}."),
        format!("({call})"),
        call.replace('\n', "\r\n"),
        call.replace('\n', ""),
        call.replace("</read_file>", "<!-- done --></read_file >"),
    ] {
        assert_eq!(calls(&message), one, "{message}");
    }
    let requests = parse(&format!("ä {call} b"));
    assert_eq!((&*requests.calls[0].name, requests.calls[0].range.clone()), ("read_file", 3..3 + call.len()));
}

#[test]
fn requests_that_follow_each_other_are_all_read() {
    let (one, two) = ("<read_file><path>1</path></read_file>", "<read_file><path>2</path></read_file>");
    for between in ["", " ", "\n", ".", " and "] {
        let found = calls(&format!("{one}{between}{two}"));
        assert_eq!(found, [json!({ "path": "1" }), json!({ "path": "2" })], "{between:?}");
    }
}

#[test]
fn requests_beyond_the_maximum_are_reported() {
    let parser = parser_with(&[("read_file", read_file())], Options::default());
    let call = |path: &str| format!("<read_file><path>{path}</path></read_file>");
    let (found, errors) = calls_and_errors(&parser.parse(&(call("1") + &call("2") + &call("3"))));
    assert_eq!(found, [json!({ "path": "1" })]);
    assert_eq!(errors, ["Too many tool requests: read_file was not run; a message may have at most 1"; 2]);
    let requests = parser.parse(&("<read_file></read_file>".to_owned() + &call("2")));
    let codes: Vec<_> = requests.errors.iter().map(|error| error.kind.code()).collect();
    assert_eq!((requests.calls.len(), codes), (0, vec!["VALIDATION_ERROR", "TOO_MANY_CALLS"]));
}

#[test]
fn quotations_and_reasoning_are_not_requests() {
    let call = "<read_file><path>a</path></read_file>";
    for message in [
        format!("```xml\n{call}\n```"),
        format!("- so:\n  ~~~\n  {call}\n  ~~~\n"),
        format!("````\n```\n{call}\n```\n````"),
        format!("```\n{call}"),
        format!("write `{call}` for it"),
        format!("write ``{call}`` for it"),
        format!("<thinking>\nI could {call}\n</thinking>"),
        format!("<think>{call}"),
        format!("<!-- {call} -->"),
        "The <read_file> tool reads.".to_owned(),
        "a < b > c, <>, </>, < read_file>".to_owned(),
    ] {
        assert_eq!(parse(&message), Requests::default(), "{message}");
    }
    for message in [
        format!("```\ncode\n```\n{call}"),
        format!("`x` {call} `y`"),
        format!("it`s {call}"),
        format!("<thinking>a <path>b</path></thinking>{call}"),
        format!("write `<![CDATA[` for it: {call}"),
    ] {
        assert_eq!(calls(&message), [json!({ "path": "a" })], "{message}");
    }
    assert_eq!(calls("it`s <read_file><path>a`b</path></read_file>"), [json!({ "path": "a`b" })]);
}

#[test]
fn a_code_block_in_a_value_hides_no_later_request() {
    let message = "<ping><note>\n```\nopen\n</note></ping>\n<ping><note>b</note></ping>";
    assert_eq!(calls(message), [json!({ "note": "```\nopen" }), json!({ "note": "b" })]);
}

#[test]
fn a_tool_without_required_parameters_needs_none() {
    for message in ["<ping></ping>", "<ping/>", "<ping />", "<ping>\n</ping>"] {
        assert_eq!(calls(message), [json!({})], "{message}");
    }
    assert_eq!(
        errors("<read_file/>"),
        ["Invalid parameters: path (MISSING_REQUIRED): Missing required parameter: path"]
    );
}

#[test]
fn any_name_of_a_tool_or_parameter_can_be_written() {
    for name in ["read-file", "readFile", "read@files", "files::read", "files.read", "Read", "read file"] {
        let schema = json!({ "properties": { "filePath": { "type": "string" }, "max-size": { "type": "integer" } } });
        let parser = parser_with(&[(name, schema)], many());
        let message = format!("<{name}><filePath>a</filePath><max-size>5</max-size></{name}>");
        let (found, errors) = calls_and_errors(&parser.parse(&message));
        assert_eq!((found, errors), (vec![json!({ "filePath": "a", "max-size": 5 })], vec![]), "{name}");
    }
}

#[test]
fn a_value_keeps_its_markup() {
    for [text, expected] in table::rows(include_str!("values.txt"), "texts with markup") {
        let found = calls(&format!("<read_file><path>{text}</path></read_file>"));
        assert_eq!(found, [json!({ "path": expected })], "{text}");
        let found =
            calls(&format!("<read_file><limit>1</limit><path>{text}</path><limit>1</limit></read_file>").replacen(
                "<limit>1</limit>",
                "",
                1,
            ));
        assert_eq!(found, [json!({ "path": expected, "limit": 1 })], "{text}");
    }
}

#[test]
fn a_text_of_several_lines_keeps_its_indentation() {
    for (text, expected) in [
        ("\n  a.txt\n", "a.txt"),
        ("\n    fn a() {\n    }\n", "    fn a() {\n    }"),
        ("\r\n  a\r\n  b\r\n", "  a\r\n  b"),
        ("\n\na\nb\n\n  ", "\na\nb\n"),
        ("a\n  b", "a\n  b"),
        ("", ""),
    ] {
        assert_eq!(argument(json!({ "type": "string" }), text), Ok(expected.into()), "{text:?}");
    }
}

#[test]
fn a_value_has_the_type_of_the_schema() {
    for [schema, text, expected] in table::rows(include_str!("values.txt"), "a value has the type of the schema") {
        assert_eq!(argument(parsed(&schema), &text), Ok(parsed(&expected)), "{schema} {text}");
    }
}

#[test]
fn without_a_type_in_the_schema_only_unambiguous_json_is_converted() {
    for [text, expected] in table::rows(include_str!("values.txt"), "values without a type") {
        assert_eq!(argument(json!({}), &text), Ok(parsed(&expected)), "{text}");
    }
}

#[test]
fn a_value_of_another_type_is_an_error_with_a_code() {
    let expected =
        |kind: &str| Err(format!("Invalid parameters: p (INVALID_TYPE): Invalid type for p: expected {kind}"));
    for [kind, text] in table::rows(include_str!("values.txt"), "values of another type") {
        assert_eq!(argument(json!({ "type": kind }), &text), expected(&kind), "{text}");
    }
}

#[test]
fn a_wrong_parameter_is_found_in_the_message() {
    let message = "<read_file><path>a</path> <limit>0</limit><lines>1</lines></read_file>";
    let requests = parse(message);
    let RequestErrorKind::Parameters(errors) = &requests.errors[0].kind else { panic!("{requests:?}") };
    let found: Vec<_> = errors.iter().map(|it| (it.violation.code, &message[it.range.clone()])).collect();
    assert_eq!(found, [(Code::OutOfRange, "<limit>0</limit>"), (Code::UnknownParameter, "<lines>1</lines>")]);
    assert_eq!(&message[requests.errors[0].range.clone()], message);
    let expected = json!({ "code": "VALIDATION_ERROR", "message": "Invalid parameters", "details": [
        { "parameter": "limit", "code": "OUT_OF_RANGE", "message": "Value 0 is below minimum 1" },
        { "parameter": "lines", "code": "UNKNOWN_PARAMETER", "message": "Unknown parameter: lines" } ] });
    assert_eq!(requests.errors[0].to_json(), expected);
}

#[test]
fn an_invalid_request_is_an_error_and_does_not_affect_others() {
    for [message, expected] in
        table::rows(include_str!("values.txt"), "an invalid request is an error and does not affect others")
    {
        assert_eq!(errors(&message), [&*expected], "{message}");
        let (found, errors) = calls_and_errors(&parse(&format!("{message}\n<ping><note>n</note></ping>")));
        assert_eq!((found, errors), (vec![json!({ "note": "n" })], vec![expected]), "{message}");
    }
    let cut_off = errors("I do it:\n  <read_file>\n<path>a.t");
    assert_eq!(cut_off, ["Invalid tool request format: <read_file> has no closing tag </read_file>"]);
}

#[test]
fn a_body_may_be_one_json_object() {
    assert_eq!(calls(r#"<read_file>{"path": "a", "limit": 2}</read_file>"#), [json!({ "path": "a", "limit": 2 })]);
    assert_eq!(calls("<read_file>\n{\"path\": \"</read_file>\"}\n</read_file>"), [json!({ "path": "</read_file>" })]);
    assert_eq!(calls("<read_file><![CDATA[{\"path\": \"&lt;\"}]]></read_file>"), [json!({ "path": "&lt;" })]);
}

#[test]
fn an_unknown_tool_is_an_error_if_the_element_is_clearly_a_request() {
    assert_eq!(errors("<read_fle>\n<path>a</path>\n</read_fle>"), ["Unknown tool: read_fle; did you mean read_file?"]);
    assert_eq!(errors("<delete_all><path>a</path></delete_all>"), ["Unknown tool: delete_all"]);
    for message in [
        "<div><p>a</p></div>",
        "<delete_all>the text</delete_all>",
        "say <delete_all></delete_all>",
        "<ul>\n<li>a</li>\n</ul>",
    ] {
        assert_eq!(parse(message), Requests::default(), "{message}");
    }
    for message in
        ["<nosuch>", "Now:\n<nosuch/>", "<nosuch></nosuch>", "<nosuch>\n<a>1</a>\n</nosuch>\n", "<nosuch>{}</nosuch>"]
    {
        assert_eq!(errors(message), ["Unknown tool: nosuch"], "{message}");
        assert_eq!(parse(&format!("{message} and more")), Requests::default(), "{message}");
    }
    assert_eq!(parse("<delete_all></delete_all>").errors[0].kind.code(), "UNKNOWN_TOOL");
}

#[test]
fn the_form_of_newer_programs_names_server_and_tool() {
    let schema = raw(&read_file());
    let origin = |server| Some(Origin { server, tool: "read" });
    let tools = [("a_read", "a"), ("b_read", "b")]
        .map(|(name, server)| ToolDefinition { origin: origin(server), ..ToolDefinition::new(name, &schema) });
    let parser = Parser::new(tools, many());
    let form = |server: &str, tool: &str, arguments: &str| {
        let server = if server.is_empty() { String::new() } else { format!("<server_name>{server}</server_name>") };
        let message = format!("<use_mcp_tool>{server}<tool_name>{tool}</tool_name>{arguments}</use_mcp_tool>");
        let requests = parser.parse(&message);
        let name = requests.calls.first().map(|call| (call.name.clone(), Value::Object(call.arguments.clone())));
        (name, requests.errors.first().map(ToString::to_string))
    };
    let called = |name: &str, arguments| (Some((name.to_owned(), arguments)), None);
    let path = json!({ "path": "x" });
    assert_eq!(form("b", "read", "<arguments>{\"path\": \"x\"}</arguments>"), called("b_read", path.clone()));
    assert_eq!(form("b", "b_read", "<arguments><path>x</path></arguments>"), called("b_read", path.clone()));
    assert_eq!(form("", "b_read", "<parameters><path>x</path></parameters>"), called("b_read", path));
    let text = json!({ "path": "</arguments>", "limit": 2 });
    let arguments = "<arguments><path></arguments></path><limit>2</limit></arguments>";
    assert_eq!(form("a", "read", arguments), called("a_read", text));
    let wrong = "Unknown tool: server \"c\" has no read; it is a tool of a, b";
    assert_eq!(form("c", "read", "").1.as_deref(), Some(wrong));
    let unclear = "Unknown tool: several servers have a tool read; write one of them in <server_name>: a, b";
    assert_eq!(form("", "read", "").1.as_deref(), Some(unclear));
    assert_eq!(form("a", "write", "").1.as_deref(), Some("Unknown tool: write"));
    assert_eq!(form("a", "", "").1.as_deref(), Some("Missing tool name: <use_mcp_tool> needs a <tool_name>"));
    let missing = "Invalid parameters: path (MISSING_REQUIRED): Missing required parameter: path";
    assert_eq!(form("a", "read", "").1.as_deref(), Some(missing));
    assert_eq!(form("a", "read", "<arguments>{]</arguments>").1.map(|it| it.contains("not a JSON object")), Some(true));
}

#[test]
fn the_strict_grammar_is_that_of_the_first_mcpilot() {
    let strict = Options { grammar: Grammar::Strict, ..many() };
    let schema = json!({ "properties": { "path": { "type": "string" }, "maxSize": {} } });
    let parser = parser_with(&[("read_file", schema.clone()), ("read-file", schema)], strict);
    let error = |message: &str| calls_and_errors(&parser.parse(message)).1;
    assert_eq!(error("<read-file><path>a</path></read-file>"), ["Invalid tool name: read-file"]);
    assert_eq!(error("<read_file></read_file>"), ["No parameters found in tool request"]);
    assert_eq!(error("<read_file><maxSize>1</maxSize></read_file>"), ["Invalid parameter name: maxSize"]);
    let call = "<read_file><path>a</path></read_file>";
    for apart in ["x", "("] {
        assert_eq!(parser.parse(&format!("{apart}{call}")), Requests::default());
        assert_eq!(parser.parse(&format!("{call}{apart}")), Requests::default());
    }
    assert_eq!(parser.parse(&format!("a {call} {call} b")).calls.len(), 2);
    assert_eq!(parser.parse("<use_mcp_tool><tool_name>read_file</tool_name></use_mcp_tool>").calls.len(), 0);
}

#[test]
fn a_mentioned_tag_does_not_affect_requests() {
    let call = "<read_file><path>a</path></read_file>";
    for before in ["I use the <read_file> tool:\n", "The form <read_file><path> it is:\n", "<read_file>\n"] {
        assert_eq!(calls(&format!("{before}{call}")), [json!({ "path": "a" })], "{before}");
    }
}

#[test]
fn a_long_message_of_invalid_requests_is_read_completely() {
    let tags = |tag: &str| tag.repeat(5_000);
    assert_eq!(parse(&("x ".to_owned() + &tags("<read_file> "))), Requests::default());
    assert_eq!(parse(&tags("<a_b>\n")), Requests::default());
    let broken = tags("<read_file>x ") + &tags("<read_file><path></read_file>\n") + &tags("<a_b>\n") + "</a_b>";
    assert_eq!(parse(&broken).errors.len(), 5_000);
}
