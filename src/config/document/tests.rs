use std::path::Path;

use crate::config::{Source, examine};

/// What is found in a config of Claude Code: code, place and hint.
fn found(name: &str, text: &str) -> Vec<String> {
    let source = Source::new(name, text);
    let findings = examine(&source, Some(Path::new(name)), None, None).findings;
    let told = findings.iter().map(|it| {
        let (line, column) = source.position(it.problem.span.start);
        let hint = it.problem.hint.as_deref().unwrap_or_default();
        format!("{} {line}:{column} {hint}", it.code.name)
    });
    told.collect()
}

#[test]
fn a_slip_is_told_once_with_where_to_type_what() {
    for (members, expected) in [
        (r#""command" "npx""#, "E-JSON-FORM 2:11 add a colon"),
        (r#""command": : "npx""#, "E-JSON-FORM 2:12 remove it"),
        (r#""command" = "npx""#, "E-JSON-FORM 2:11 write `:` instead"),
        (r#""command": "npx"; "args": []"#, "E-JSON-COMMA 2:17 write `,` instead"),
        (r#""command": "x", "args": "#, "E-JSON-FORM 2:17 write its value, after a colon, or remove the key"),
        (r#""command": "x", ..."#, "E-JSON-FORM 2:17 remove them with their comma, or write what belongs there"),
        (r#""command": , "npx""#, "E-JSON-COMMA 2:12 remove one comma"),
        (r#""command": `x`"#, "E-JSON-FORM 2:12 use double quotes"),
        (r#""command: "npx""#, "E-JSON-FORM 2:1 add a double quote before the `:` at 2:9"),
        (
            r#""args": [], "command": "npx"#,
            "E-JSON-FORM 2:24 add a double quote at the end of the line; a newline is written \\n",
        ),
        (r#""command": npx", "args": []"#, "E-JSON-FORM 2:12 add a double quote before this"),
        (r#""command": "npx"", "args": []"#, "E-JSON-FORM 2:17 remove it"),
        (r#""command": "x", "args": ["say "hi""]"#, r#"E-JSON-FORM 2:31 write each of them as \""#),
        (r#""command": "x", "args": "a", "b"]"#, "E-JSON-UNCLOSED 2:25 add `[` before this"),
        (r#""command": "x", "env": "A": "b"}"#, "E-JSON-UNCLOSED 2:24 add `{` before this"),
        (r#""command": "x", "args": ("a")"#, "E-JSON-UNCLOSED 2:25 write `[` here and `]` at 2:29"),
        (r#""command": "x", "args": {"a", "b"}"#, "E-JSON-UNCLOSED 2:25 write `[` here and `]` at 2:34"),
        (r#"{ "command": "x" }"#, "E-JSON-AFTER 2:1 remove this `{` and the `}` at 2:18"),
        (
            "\"command\": \"x\",\n+\"args\": []",
            "E-JSON-FORM 3:1 remove each + at the beginning of a line, and each line with a -",
        ),
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {{\n{members}\n}}}}}}");
        assert_eq!(found(".mcp.json", &text), [expected], "{members}");
    }
}

#[test]
fn of_names_that_stand_twice_as_many_are_told_as_somebody_reads() {
    for (name, text) in [
        (".mcp.json", format!(r#"{{"mcpServers": {{"a": {{{} "args": []}}}}}}"#, r#""command": "x","#.repeat(1501))),
        ("cpe.yaml", format!("mcpServers:\n  a:\n    type: stdio\n{}", "    command: x\n".repeat(1501))),
    ] {
        let source = Source::new(name, text);
        let findings = examine(&source, Some(Path::new(name)), None, None).findings;
        let messages: Vec<_> =
            findings.iter().map(|it| &it.problem.message).filter(|it| it.contains("already")).collect();
        assert_eq!(messages.len(), 1000, "{name}");
        assert!(messages[999].ends_with("; 500 more follow"), "{}", messages[999]);
    }
}

#[test]
fn what_is_no_config_is_told_where_it_begins() {
    let conflict = "resolve the merge: keep one side and remove the lines with <<<<<<<, ======= and >>>>>>>";
    let before = "remove what stands before the `{` at";
    for (name, text, expected) in [
        (".mcp.json", "{\n<<<<<<< a\n}\n=======\n}\n>>>>>>> b\n", format!("2:1 {conflict}")),
        ("cpe.yaml", "<<<<<<< a\nb: 1\n=======\nb: 2\n>>>>>>> b\n", format!("1:1 {conflict}")),
        (".mcp.json", "claude mcp add x\n{}\n", format!("1:1 {before} 2:1, and what belongs to it at the end")),
        (".mcp.json", "// x\nmodule.exports = {}", format!("2:1 {before} 2:18, and what belongs to it at the end")),
        (".mcp.json", "export default {}", format!("1:1 {before} 1:16, and what belongs to it at the end")),
        (
            ".mcp.json",
            "mcpServers:\n  a:\n",
            "1:1 write it as JSON, or name the file *.yaml if its program reads that".into(),
        ),
        (".mcp.json", "\n<html>", "2:1 write the config itself into the file, as JSON or YAML".into()),
        (".mcp.json", "{\n &quot;a&quot;: 1}", "2:2 write \" for each &quot;".into()),
    ] {
        assert_eq!(found(name, text), [format!("E-SYNTAX {expected}")], "{text}");
    }
}
