//! How long `rehearse validate-config` takes, from start to exit, on files that are large or full of one fault.
//!
//! The budget is 100 ms for each MB, which criterion shows as 9.5 MiB/s.

use std::{
    fs::write,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tempfile::tempdir;

/// So long is each file, in bytes, about.
const SIZE: usize = 1_000_000;

/// Many servers, each with something; `#` is the number of the server.
const SERVERS: &[(&str, &str)] = &[
    ("ordinary", r##""command": "npx", "args": ["-y", "package-#"], "env": {"A": "${A}"}"##),
    ("unknown keys", r##""comand": "npx", "arg": ["-y", "package-#"], "enviroment": {"A": "b"}"##),
    ("nothing in it", ""),
    ("wrong types", r##""command": 1, "args": "-y package-#", "env": ["A=b"]"##),
    ("a command line", r##""command": "npx -y package-# && true""##),
    ("two transports", r##""command": "npx", "url": "https://example.com/#", "type": "http""##),
    ("unknown transport", r##""type": "carrier-pigeon", "url": "https://example.com/#""##),
    ("wrong scheme", r##""type": "http", "url": "ftp://example.com/#""##),
    ("no URL at all", r##""type": "http", "url": "example dot com / #""##),
    ("a secret in the URL", r##""type": "http", "url": "https://u#:Pq83hfDk29@example.com/?token=hR82kdP0sk#""##),
    (
        "a bearer token",
        r##""type": "http", "url": "http://example.com/", "headers": {"Authorization": "Bearer kd83JsP0z#"}"##,
    ),
    ("a secret argument", r##""command": "curl", "args": ["-u", "a:b#", "--token", "Zk83hfDk29#", "--api-key=Pq8#"]"##),
    ("secret variables", r##""command": "a", "env": {"API_TOKEN": "ghp_83hfDk29sk0aP#", "PASSWORD": "Zk83hfDk29#"}"##),
    ("placeholders", r##""command": "a", "env": {"A": "<your-key-#>", "B": "YOUR_API_KEY", "C": "/path/to/#"}"##),
    ("invisible characters", "\"command\": \"a\u{200b}\u{feff}b#\u{a0}\""),
    ("a machine's paths", r##""command": "C:\\Users\\a\\#.exe", "args": ["/home/a/#", "~/b/#"], "cwd": "/Users/a/#""##),
];

/// One server with many references of this kind, each in a text of its own.
const REFERENCES: &[(&str, &str)] = &[
    ("set nowhere", "${A#}"),
    ("with a default", "${A#:-b}"),
    ("of another program", "${env:A#}"),
    ("of an input", "${input:a#}"),
    ("empty", "${env:}"),
    ("open", "${A#"),
    ("of a shell", "$(cat #)"),
    ("of a secret", "${{ secrets.A# }}"),
    ("of Windows", "%A#%"),
    ("bare", "$A#"),
];

/// What may stand between the brackets of a list of arguments.
const ARGUMENTS: &[(&str, &str)] = &[
    ("numbers", "1,"),
    ("objects", "{},"),
    ("texts without quotes", "a#,"),
    ("surplus commas", ",,"),
    ("no commas", "\"a\" "),
    ("single quotes", "'a#',"),
    ("curly quotes", "“a”,"),
    ("other blanks", "\"a\",\u{a0}"),
    ("comments", "/* password: Zk83hfDk29 */ \"a\",\n"),
    ("line breaks within texts", "\"a\nb\","),
    ("unknown escapes", r#""a\qb","#),
    ("single backslashes", r#""C:\pqr\tmp","#),
    ("objects never closed", "{"),
    ("lists never closed", "["),
    ("wrong brackets", "{]"),
    ("wrong brackets of lists", "[}"),
    ("surplus brackets", "]"),
    ("colons", ":"),
    ("quotes", "\""),
    ("backslashes", "\"\\"),
    ("quotes that do not begin", "a\", "),
    ("quotes that do not end", "\"a, "),
    ("quotes within texts", "\"say \"hi\"\", "),
    ("quotes that stand twice", "\"\"a\", "),
    ("lines that do not end", "\"a\n"),
    ("numbers of other forms", "0x1F,"),
    ("words of Python", "None, True,"),
    ("keys without quotes", "{a#: 1},"),
    ("keys without values", "{\"a\"},"),
    ("assignments", "{\"a\" = \"b\"},"),
    ("parentheses", "(\"a\"),"),
];

/// Other files: name, what is before, what is repeated, what is after.
const FILES: &[(&str, &str, &str, &str, &str)] = &[
    (
        "variables that are numbers",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "env": {"#,
        r##""A#": 1, "##,
        r#""B": 2}}}}"#,
    ),
    ("one server, again and again", ".mcp.json", r#"{"mcpServers": {"#, r#""a": {"command": "a"}, "#, r#""a": {}}}"#),
    ("one key, again and again", ".mcp.json", r#"{"mcpServers": {"a": {"#, r#""command": "a", "#, r#""args": []}}}"#),
    (
        "unknown keys of one server",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "#,
        r##""key#": 1, "##,
        r#""key": 2}}}"#,
    ),
    ("servers that are numbers", ".mcp.json", r#"{"mcpServers": {"#, r##""a#": 1, "##, r#""a": 2}}"#),
    (
        "unused inputs",
        ".vscode/mcp.json",
        r#"{"servers": {}, "inputs": ["#,
        r##"{"type": "promptString", "id": "a#"}, "##,
        r#"{"type": "promptString", "id": "a"}]}"#,
    ),
    (
        "wrong inputs",
        ".vscode/mcp.json",
        r#"{"servers": {}, "inputs": ["#,
        r##"{"type": "prompt", "idd": "a#"}, "##,
        "1]}",
    ),
    (
        "tools in both lists",
        ".gemini/settings.json",
        r##"{"mcpServers": {"a": {"command": "a", "includeTools": ["a#"##,
        r##"", "b#"##,
        r#""], "excludeTools": ["b1", "b2"]}}}"#,
    ),
    ("one long text", ".mcp.json", r#"{"mcpServers": {"a": {"command": ""#, "abc def ", r#""}}}"#),
    (
        "one long text of references",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "args": [""#,
        "${env:A} ",
        r#""]}}}"#,
    ),
    (
        "one long text of open references",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "args": [""#,
        "${",
        r#""]}}}"#,
    ),
    (
        "one long text of secrets",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "args": [""#,
        "token=Zk83hfDk29 ",
        r#""]}}}"#,
    ),
    (
        "one long text of addresses",
        ".mcp.json",
        r#"{"mcpServers": {"a": {"command": "a", "args": [""#,
        "https://a:b@c/?token=d ",
        r#""]}}}"#,
    ),
    ("one long key", ".mcp.json", r#"{"mcpServers": {""#, "abc def ", r#"": {"command": "a"}}}"#),
    ("one long comment", ".vscode/mcp.json", "{\"servers\": {}\n/*", " token: Zk83hfDk29", "*/}"),
    ("short comments", ".mcp.json", "{\"mcpServers\": {\n", "// a\n", "}}"),
    ("blank lines", ".mcp.json", "{\"mcpServers\": {", "\r\n", "}}"),
    ("digits", ".mcp.json", r#"{"mcpServers": "#, "1234567890", "}"),
    ("zero bytes", ".mcp.json", "{", "\0", "}"),
    ("lists of lists", ".mcp.json", r#"{"mcpServers": {"a": "#, "[[[[[[],[]],[]],[]],[]],[]],", "}}"),
    (
        "OpenCode",
        "opencode.json",
        r#"{"mcp": {"#,
        r##""a#": {"type": "local", "command": ["a", "{env:A#}"], "environment": {"A": "b"}}, "##,
        r#""a": {}}}"#,
    ),
    (
        "code_agent",
        "config.json",
        r#"{"mcp": {"globalSettings": {"timeout": 1}, "servers": {"#,
        r##""a#": {"type": "stdio", "command": "a", "timeout": 5}, "##,
        r#""a": {}}}}"#,
    ),
    (
        "YAML",
        "mcp.yaml",
        "mcpServers:\n",
        "  a#:\n    type: stdio\n    command: npx\n    args: [-y, package-#]\n    env:\n      A: ${A#}\n",
        "",
    ),
    (
        "YAML with wrong types",
        "mcp.yaml",
        "mcpServers:\n  a:\n    type: stdio\n    command: a\n    args:\n",
        "    - 1\n",
        "",
    ),
    ("YAML with one key, again and again", "mcp.yaml", "mcpServers:\n  a:\n", "    command: a\n", ""),
    ("YAML with unknown keys", "mcp.yaml", "mcpServers:\n", "  a#: {comand: a, arg: [b]}\n", ""),
    ("YAML with tabs", "mcp.yaml", "mcpServers:\n", "\ta#:\n\t\tcommand: a\n", ""),
    (
        "YAML with comments",
        "mcp.yaml",
        "mcpServers:\n",
        "  # password: Zk83hfDk29\n",
        "  a: {type: stdio, command: a}\n",
    ),
    ("YAML of one text", "mcp.yaml", "", "abc def\n", ""),
    ("YAML never closed", "mcp.yaml", "mcpServers: ", "[", ""),
    ("YAML with aliases", "mcp.yaml", "mcpServers:\n  a: &a {type: stdio, command: a}\n", "  a#: *a\n", ""),
    (
        "YAML with a list of servers",
        ".continue/config.yaml",
        "name: a\nversion: 1.0.0\nschema: v1\nmcpServers:\n",
        "  - name: a#\n    command: npx\n    args: [\"${{ secrets.A# }}\"]\n",
        "",
    ),
    (
        "LibreChat",
        "librechat.yaml",
        "version: 1.2.1\nmcpServers:\n",
        "  a#:\n    url: http://example.com/#\n    headers: {A: \"${A#}\"}\n",
        "",
    ),
];

/// What is before, then as often as it takes what is repeated with its number in the place of each `#`, then what is after.
fn file(before: &str, repeated: &str, after: &str) -> String {
    let mut text = before.to_owned();
    let mut number = 0;
    while text.len() < SIZE {
        text.push_str(&repeated.replace('#', &number.to_string()));
        number += 1;
    }
    text + after
}

fn files() -> impl Iterator<Item = (String, &'static str, String)> {
    let claude = ".mcp.json";
    let servers = SERVERS.iter().map(move |(name, keys)| {
        let server = format!("\"a#\": {{{keys}}},\n");
        (format!("servers, {name}"), claude, file("{\"mcpServers\": {\n", &server, "\"a\": {\"command\": \"a\"}}}\n"))
    });
    let references = REFERENCES.iter().map(move |(name, reference)| {
        let before = "{\"mcpServers\": {\"a\": {\"command\": \"a\", \"args\": [\n";
        (format!("references, {name}"), claude, file(before, &format!("\"{reference}\",\n"), "\"a\"]}}}\n"))
    });
    let arguments = ARGUMENTS.iter().map(move |(name, argument)| {
        let before = "{\"mcpServers\": {\"a\": {\"command\": \"a\", \"args\": [\n";
        (format!("arguments, {name}"), claude, file(before, argument, "\"a\"]}}}\n"))
    });
    let others = FILES
        .iter()
        .map(|(name, path, before, repeated, after)| ((*name).to_owned(), *path, file(before, repeated, after)));
    servers.chain(references).chain(arguments).chain(others)
}

fn validate(path: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rehearse"));
    let status = command.arg("validate-config").arg(path).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let code = status.expect("the program starts").code();
    assert!(matches!(code, Some(0..=2)), "{}: ended with {code:?}", path.display());
}

fn validation(c: &mut Criterion) {
    let mut group = c.benchmark_group("validate-config");
    group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
    for (name, path, text) in files() {
        let folder = tempdir().expect("a folder");
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("in the folder")).expect("a folder in it");
        write(&path, &text).expect("the file is written");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.bench_function(name, |b| b.iter(|| validate(&path)));
    }
    group.finish();
}

criterion_group!(benches, validation);
criterion_main!(benches);
