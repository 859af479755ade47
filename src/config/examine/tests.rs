use proptest::{prelude::*, sample::Index};

use super::*;
use crate::config::{dialect, finding::codes};

const SAMPLES: &[(&str, &str)] = &[
    (
        ".mcp.json",
        r#"{
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "@mcp/files", "${ROOT:-/tmp}"], "env": { "TOKEN": "${TOKEN}" } },
    "wéb": { "type": "http", "url": "https://mcp.example.com/mcp", "headers": { "Authorization": "Bearer ${A}" } }
  }
}
"#,
    ),
    (
        ".vscode/mcp.json",
        "{\n  // What to ask for.\n  \"inputs\": [{ \"id\": \"key\", \"type\": \"promptString\", \"description\": \"Key\", \"password\": true }],\n  \
         \"servers\": {\n    \"a\": { \"command\": \"docker\", \"args\": [\"run\", \"-i\", \"--rm\", \"x\"], \"env\": { \"K\": \"${input:key}\", \"N\": 1, \"Z\": null }, },\n  },\n}\n",
    ),
    (
        "cpe.yaml",
        "version: \"1.0\"\nmodels:\n  - &m { ref: one, display_name: One, id: o, type: anthropic }\nsubagent:\n  name: reviewer\n  description: Reviews.\n\
         defaults:\n  model: one\nmcpServers:\n  shell:\n    type: stdio\n    command: sh\n    args: [\"-c\", 'echo \"$HOME\"']\n    enabledTools:\n      - run\n  \
         web: { type: http, url: 'https://x.example', headers: { X-Key: $KEY }, timeout: 60 }\n",
    ),
    (
        ".continue/config.yaml",
        "name: mine\nversion: 0.0.1\nmcpServers:\n  - name: a\n    command: uvx\n    args: [b]\n    env:\n      K: ${{ secrets.K }}\n  - uses: x/y\n",
    ),
    (
        "opencode.json",
        r#"{ "mcp": { "a": { "type": "local", "command": ["bun", "x"], "environment": { "A": "b" }, "enabled": true } } }"#,
    ),
    (
        ".code_agent/config.json",
        r#"{"mcp": {"enabled": true, "globalSettings": {"timeout": 30000}, "servers": {"s": {"type": "http", "httpUrl": "http://127.0.0.1:1/mcp", "includeTools": ["get_*"]}}}}"#,
    ),
];

/// What a slip of the hand or a broken editor leaves behind.
const SLIPS: &[&str] = &[
    "", "\"", "'", "{", "}", "[", "]", ",", ":", "\\", "\n", "\t", "#", "//", "/*", "${", "}", "$", "&a ", "*a", "é",
    "\u{feff}", "\u{200b}", "“", "-", "1e999", "null", "\0", "<<: ", "- ", "  ",
];

fn mutated() -> impl Strategy<Value = (&'static str, String)> {
    let slips = prop::collection::vec((any::<Index>(), 0_usize..6, any::<Index>()), 1..4);
    (any::<Index>(), slips).prop_map(|(sample, slips)| {
        let (name, text) = *sample.get(SAMPLES);
        let mut characters: Vec<char> = text.chars().collect();
        for (at, removed, slip) in slips {
            let at = at.index(characters.len() + 1);
            let end = (at + removed).min(characters.len());
            characters.splice(at..end, slip.get(SLIPS).chars());
        }
        (name, characters.into_iter().collect())
    })
}

/// Everything that holds for whatever a file holds.
fn is_sound(examined: &Examined) {
    let text = &examined.source.text;
    for finding in &examined.findings {
        let Span { start, end } = finding.problem.span;
        assert!(text.get(start..end).is_some(), "{finding:?} in {text:?}");
        assert!(finding.problem.hint.is_some(), "{finding:?} has no hint");
    }
    for Span { start, end } in &examined.secrets {
        assert!(text.get(*start..*end).is_some(), "{start}..{end} in {text:?}");
    }
    assert!(examined.config.is_some() == examined.detected.is_some());
    assert!(examined.detected.is_some() || !examined.findings.is_empty(), "nothing is said of {text:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happened_to_a_config_something_sound_is_said_of_it((name, text) in mutated(), dialect in 0..dialect::ALL.len() * 2) {
        let source = Source::new(name, text);
        let forced = dialect::ALL.get(dialect).copied();
        is_sound(&examine(&source, Some(Path::new(name)), forced, None));
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*", name in prop::sample::select(vec!["x.json", "x.yaml", "x"])) {
        is_sound(&examine(&Source::new(name, text), Some(Path::new(name)), None, None));
    }
}

#[test]
fn the_samples_are_good_as_they_are() {
    for (name, text) in SAMPLES {
        let examined = examine(&Source::new(*name, *text), Some(Path::new(name)), None, None);
        assert_eq!(
            examined.count(Severity::Error) + examined.count(Severity::Warning),
            0,
            "{name}: {:#?}",
            examined.findings
        );
        is_sound(&examined);
    }
}

#[test]
fn large_files_and_bombs_come_to_an_end() {
    let servers: Vec<_> =
        (0..100_000).map(|n| format!("\"s{n}\":{{\"command\":\"npx\",\"args\":[\"-y\",\"${{V}}\"]}}")).collect();
    let open = "{\"a\":".repeat(10_000);
    let aliases: String =
        ('b'..='z').map(|c| format!("{c}: &{c} [*{p}, *{p}, *{p}, *{p}]\n", p = char::from(c as u8 - 1))).collect();
    let same = "\"a\":{\"command\":\"x\"},".repeat(50_000);
    let unknown: String = (0..50_000).map(|n| format!(",\"comand{n}\":1")).collect();
    for (name, text, servers) in [
        ("a.json", format!("{{\"mcpServers\":{{{}}}}}", servers.join(",")), 100_000),
        ("b.json", format!("{{\"mcpServers\":{open}1{}}}", "}".repeat(10_000)), 0),
        ("c.yaml", format!("mcpServers: {}{}", "[".repeat(10_000), "]".repeat(10_000)), 0),
        ("d.yaml", format!("a: &a [x]\n{aliases}mcpServers: {{}}\n"), 0),
        ("e.json", format!("{{\"mcpServers\":{{{same}}}}}"), 1),
        ("f.json", format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\"{unknown}}}}}}}"), 1),
        (
            "g.json",
            format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[\"{}\"]}}}}}}", "$A é ".repeat(100_000)),
            1,
        ),
        ("h.json", format!("[{}]", ",".repeat(500_000)), 0),
        ("j.yaml", format!("mcpServers:\n  s:\n    type: stdio\n    command: \"{}\"\n", "${".repeat(100_000)), 1),
        ("k.json", format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"{}}}\"}}}}}}", "${A:-".repeat(50_000)), 1),
        ("l.json", format!("\"a\": {}", "://a:token=[\\\"".repeat(30_000)), 0),
        ("i.json", format!("\"token\": {}", "token: token: ".repeat(30_000)), 0),
        (
            "m.json",
            format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[{}1]}}}}}}", "nil,".repeat(60_000)),
            1,
        ),
        ("o.json", format!("{{\"mcpServers\":{{\"a\":{}", "[]},".repeat(100_000)), 0),
        ("p.json", format!("{{\"mcpServers\":{{\"a\":[{}}}}}", "{]".repeat(100_000)), 0),
        ("q.json", format!("[{}", "{\"a\":[[1}}".repeat(50_000)), 0),
        (
            "r.json",
            format!("{{\"mcpServers\":{{\"a\":{{\"command\":\"x\",\"args\":[{}1]}}}}}}", "\"C:\\new\",".repeat(50_000)),
            1,
        ),
        ("n.json", format!("{{\"mcpServers\":{{}}}} {}", "/*".repeat(100_000)), 0),
    ] {
        let examined = examine(&Source::new(name, text), Some(Path::new(name)), None, None);
        is_sound(&examined);
        assert_eq!(examined.config.map_or(0, |config| config.servers.len()), servers, "{name}");
    }
}

#[test]
fn words_of_other_languages_hide_nothing_of_what_else_is_wrong() {
    let text = "{\n// c\nmcpServers: {\n'x': {\"command\": \"npx\", \"args\": [\"-y\", \"x\",], \"env\": {\"A\": undefined, \"B\": True}},\n}}";
    let examined = examine(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
    let found: Vec<_> = examined
        .findings
        .iter()
        .map(|it| (it.code.name, &text[it.problem.span.start..it.problem.span.end], it.problem.hint.as_deref()))
        .collect();
    let form = |at, hint| ("E-JSON-FORM", at, Some(hint));
    assert_eq!(
        found,
        [
            ("E-JSON-COMMENT", "// c", Some("remove it, or put it under a key such as \"_comment\"")),
            form("mcpServers", "put it in double quotes"),
            form("'x'", "use double quotes"),
            ("E-JSON-COMMA", ",", Some("remove the comma")),
            form("undefined", "write null, or remove the key"),
            form("True", "write \"true\""),
            ("E-JSON-COMMA", ",", Some("remove the comma")),
        ]
    );
    let toml = Source::new("x.json", "[mcp_servers.x]\ncommand = \"npx\"\n");
    let examined = examine(&toml, Some(Path::new("x.json")), None, None);
    assert!(examined.findings[0].problem.message.contains("TOML"), "{:?}", examined.findings);
}

#[test]
fn a_hint_says_what_mends_it() {
    let claude = |server: &str| (".mcp.json", format!("{{\"mcpServers\": {{\"a\": {server}}}}}"));
    let command = |line: &str| claude(&format!("{{\"command\": {line:?}}}"));
    let code = |word: &str| {
        (
            ".vscode/mcp.json",
            format!("{{\"servers\": {{\"a\": {{\"command\": \"npx\", \"args\": [\"-y\", {word:?}]}}}}}}"),
        )
    };
    let other = |name, word: &str| {
        (name, format!("{{\"mcpServers\": {{\"a\": {{\"command\": \"x\", \"env\": {{\"A\": {word:?}}}}}}}}}"))
    };
    let cursor = |word: &str| other(".cursor/mcp.json", word);
    let roo = |word: &str| other(".roo/mcp.json", word);
    let opencode = |text: &str| ("opencode.json", format!("{{\"mcp\": {text}}}"));
    let has_servers = "put them one level higher, in the place of this key";
    for ((name, text), code, hint) in [
        (
            opencode(r#"{"a": {"type": "local", "command": "npx -y \"a b\""}}"#),
            "E-VALUE-TYPE",
            r#"write ["npx", "-y", "a b"]"#,
        ),
        (
            opencode(r#"{"a": {"type": "local", "command": "npx --token geheim12"}}"#),
            "E-VALUE-TYPE",
            r#"write each word as a text of its own: ["npx", "-y", …]"#,
        ),
        (opencode(r#"{"a": {"type": "local", "command": "npx"}}"#), "E-VALUE-TYPE", r#"write ["npx"]"#),
        (claude(r#"{"command": "npx", "args": "-y pkg"}"#), "E-VALUE-TYPE", r#"write ["-y", "pkg"]"#),
        (claude(r#"{"command": "node", "args": "server.js"}"#), "E-VALUE-TYPE", r#"write ["server.js"]"#),
        (
            claude(r#"{"command": "npx", "args": "--token=ghp_0123456789abcdefghij"}"#),
            "E-VALUE-TYPE",
            r#"put it into brackets: ["…"]"#,
        ),
        (
            claude(r#"{"command": "node", "args": "[\"a\"]"}"#),
            "E-VALUE-TYPE",
            "write it without the quotes around the brackets",
        ),
        (claude(r#"{"command": true}"#), "E-VALUE-TYPE", "name the program to start"),
        (claude(r#"{"type": "http", "url": "http//h"}"#), "E-URL", "write a colon before the slashes: http://"),
        (
            (".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x", "args": [{}]}}}"#.into()),
            "E-VALUE-TYPE",
            "write one text in its place",
        ),
        (opencode(r#"{"servers": {"a": {"type": "local", "command": ["npx"]}}}"#), "E-MISSING", has_servers),
        (
            ("x.json", r#"{"mcp": {"mcpServers": {"b": {"command": "npx", "args": []}}}}"#.into()),
            "E-MISSING",
            has_servers,
        ),
        (("mcp.json", r#"{"mcpServers": {"mcpServers": {"x": {"command": "npx"}}}}"#.into()), "E-MISSING", has_servers),
        (
            command("FOO=bar X=1 npx -y x"),
            "W-COMMAND-LINE",
            r#"write "command": "npx", "args": ["-y", "x"], "env": {"FOO": "bar", "X": "1"}"#,
        ),
        (
            command("API_KEY=SECRETxxxx2345 npx -y x"),
            "W-COMMAND-LINE",
            "put `API_KEY` into `env`, the next word into `command`, and the others into `args`",
        ),
        (
            command("cd /x && npx -y y"),
            "W-COMMAND-LINE",
            r#"write "command": "sh", "args": ["-c", "cd /x && npx -y y"]"#,
        ),
        (command("npx -y \"a b\" 'c'"), "W-COMMAND-LINE", r#"write "command": "npx", "args": ["-y", "a b", "c"]"#),
        (code("${env.HOME}"), "W-VARIABLE-FORM", "write ${env:HOME}"),
        (code("${workspacefolder}/x"), "W-VARIABLE-FORM", "write ${workspaceFolder}"),
        (code("${input}"), "W-VARIABLE-FORM", "write ${input:id}, with the `id` of one of the `inputs`"),
        (code("${input.token}"), "W-VARIABLE-FORM", "write ${input:token}"),
        (code("${env}"), "W-VARIABLE-FORM", "write ${env:NAME}"),
        (code("${HOME}"), "W-VARIABLE-FORM", "write ${env:HOME}"),
        (code("${inputs:my-token}"), "W-VARIABLE-FORM", "write ${input:my-token}"),
        (code("${env:FOO:-x}"), "W-VARIABLE-FORM", "Visual Studio Code has no defaults: write ${env:FOO}"),
        (code("${env:FOO:x}"), "W-VARIABLE-FORM", "Visual Studio Code has no defaults: write ${env:FOO}"),
        (code("${input:my-tok"), "W-VARIABLE-FORM", "close it with }"),
        (code("${env:my_tok"), "W-VARIABLE-FORM", "close it with }"),
        (code("${workspaceFolder/x"), "W-VARIABLE-FORM", "close it with }"),
        (cursor("${workspaceRoot}/x"), "W-VARIABLE-FORM", "write ${workspaceFolder}"),
        (cursor("${file}"), "W-VARIABLE-FORM", "write the value itself"),
        (cursor("${ENV:FOO}"), "W-VARIABLE-FORM", "write ${env:FOO}"),
        (roo("${userHome}/x"), "W-VARIABLE-FORM", "write ${env:HOME}"),
        (roo("${workspaceFolderBasename}"), "W-VARIABLE-FORM", "write the value itself"),
        (command("${userHome}/x"), "W-VARIABLE-FORM", "write ${HOME}"),
        (command("${FOO-x}"), "W-VARIABLE-FORM", "write ${FOO:-default}"),
        (command("${env:FOO:-x}"), "W-VARIABLE-FORM", "write ${FOO:-default}"),
        (claude(r#"{"type": "htttp", "url": "https://h"}"#), "E-TRANSPORT", "write `http`"),
        ((".mcp.json", "```json\n{\"mcpServers\": {}}\n```\n".into()), "E-SYNTAX", "remove the lines with ```"),
        (("cpe.yaml", "```yaml\nmcpServers: {}\n```\n".into()), "E-SYNTAX", "remove the lines with ```"),
        (
            ("mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}, "mcpServers": {"b": {"command": "x"}}}"#.into()),
            "W-DUPLICATE-KEY",
            "put the servers of both into one",
        ),
        (
            (".gemini/settings.json", r#"{"mcpServers": {"a": {"command": "x", "trust": "maybe"}}}"#.into()),
            "E-VALUE-TYPE",
            "write true or false, without quotes",
        ),
        (
            ("opencode.json", r#"{"mcp": {"a": {"type": "local", "command": ["x"], "enabled": "True"}}}"#.into()),
            "E-VALUE-TYPE",
            "write it without quotes, in small letters",
        ),
        (
            ("opencode.json", r#"{"mcp": {"a": {"type": "local", "command": ["x"], "enabled": "true"}}}"#.into()),
            "E-VALUE-TYPE",
            "write it without quotes",
        ),
    ] {
        let examined = examine(&Source::new(name, text.clone()), Some(Path::new(name)), None, None);
        let found: Vec<_> =
            examined.findings.iter().map(|it| (it.code.name, it.problem.hint.as_deref().unwrap_or_default())).collect();
        assert!(found.contains(&(code, hint)), "{text}: {found:?}");
    }
    for (name, text) in
        [command("${MY-VAR}"), code("${env:my-var}"), roo("${workspaceFolder}/x"), cursor("${userHome}")]
    {
        let examined = examine(&Source::new(name, text.clone()), Some(Path::new(name)), None, None);
        assert_eq!(examined.findings, [], "{text}");
    }
    for word in ["inputs:t", "input:t"] {
        let text =
            format!("{{\"servers\": {{\"a\": {{\"command\": \"${{{word}\"}}}}, \"inputs\": [{{\"id\": \"t\"}}]}}");
        let text = if word == "inputs:t" { text.replace("s:t\"", "s:t}\"") } else { text };
        let examined =
            examine(&Source::new(".vscode/mcp.json", text.clone()), Some(Path::new(".vscode/mcp.json")), None, None);
        assert_eq!(examined.findings.iter().map(|it| it.code.name).collect::<Vec<_>>(), ["W-VARIABLE-FORM"], "{text}");
    }
    let text = r#"{"servers": {"a": {"command": "${input:t}"}}, "inputs": [{"id": "t", "type": "picString", "options": "a", "description": "d"}]}"#;
    let examined = examine(&Source::new(".vscode/mcp.json", text), Some(Path::new(".vscode/mcp.json")), None, None);
    let found: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
    assert_eq!(found, ["E-INPUT", "E-VALUE-TYPE"]);
    let inputs = Source::new(".vscode/mcp.json", r#"{"servers": {"a": {"command": "x"}}, "inputs": {}}"#);
    let examined = examine(&inputs, Some(Path::new(".vscode/mcp.json")), None, None);
    assert_eq!(examined.findings[0].problem.message, "`inputs` must be a list, found an object");
}

#[test]
fn keys_that_are_not_indented_below_their_server_are_told_once() {
    let text = "mcpServers:\n  a:\n  type: stdio\n  command: npx\n  b:\n    type: stdio\n    command: npx\n";
    let examined = examine(&Source::new("cpe.yaml", text), Some(Path::new("cpe.yaml")), None, None);
    let found: Vec<_> = examined.findings.iter().filter(|it| it.code == &codes::VALUE_TYPE).collect();
    let [found] = found[..] else { panic!("{:?}", examined.findings) };
    assert_eq!(&text[found.problem.span.start..found.problem.span.end], "type");
    assert_eq!(found.problem.message, "this is a server of its own, and no part of `a`");
    assert_eq!(found.problem.hint.as_deref(), Some("indent everything that belongs to `a` below it"));
    assert_eq!(examined.config.expect("cpe").servers.len(), 1);
}

#[test]
fn a_missing_bracket_and_single_backslashes_hide_nothing_of_what_else_is_wrong() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"C:\\new\\ide.exe\",\n      \"args\": [\"-y\" \"x\"\n    },\n    \"b\": { \"comand\": \"x\" }\n  }\n}";
    let source = Source::new(".mcp.json", text);
    let examined = examine(&source, Some(Path::new(".mcp.json")), None, None);
    let found: Vec<_> = examined
        .findings
        .iter()
        .map(|it| {
            (it.code.name, source.position(it.problem.span.start), it.problem.hint.as_deref().unwrap_or_default())
        })
        .collect();
    let expected = [
        ("E-JSON-FORM", (4, 25), "write each backslash twice"),
        ("E-JSON-UNCLOSED", (5, 15), "add the missing `]` before 6:5"),
        ("E-JSON-COMMA", (5, 21), "add a comma"),
        ("E-JSON-UNCLOSED", (6, 5), "add `]` before this"),
    ];
    assert_eq!(found[..4], expected);
    assert!(found[4..].iter().any(|(code, place, _)| *code == "E-MISSING" && *place == (7, 12)), "{found:?}");
    let text = text.replace("\"x\"\n    },", "\"x\"\n      \"env\": {}\n    },");
    let examined = examine(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
    let hints: Vec<_> = examined.findings.iter().filter_map(|it| it.problem.hint.as_deref()).collect();
    assert_eq!(hints[1..4], ["add the missing `]` before 6:7", "add a comma", "add `],` before this"]);
}

#[test]
fn files_that_no_dialect_is_for_are_known_by_their_names_and_keys() {
    let of = |path: &str, text: &str| {
        let examined = examine(&Source::new(path, text), Some(Path::new(path)), None, None);
        let told: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
        (examined.detected.map(|it| it.dialect.name), told.join(" "))
    };
    let none = |codes: &str| (None, codes.to_owned());
    for (path, text) in [
        ("mcp_agent.config.yaml", "mcp:\n  servers:\n    a: {transport: sse, url: 'http://localhost:1'}\n"),
        ("c.yaml", "execution_engine: asyncio\nmcp:\n  servers:\n    a: {command: x}\n"),
        ("manifest.json", r#"{"manifest_version": "0.2", "server": {"mcp_config": {"command": "x"}}}"#),
        ("server.json", r#"{"$schema": "https://a.example/2025-07-09/server.schema.json", "packages": []}"#),
        ("s.json", r#"{"$schema": "https://json.schemastore.org/claude-code-settings.json", "hooks": {}}"#),
    ] {
        assert_eq!(of(path, text), none("A-NO-SERVERS"), "{path}");
    }
    let mine = r#"{"manifest_version": "0.2", "mcpServers": {"a": {"command": "x"}}}"#;
    assert_eq!(of(".mcp.json", mine).0, Some("claude-code"));
    // A version is in files of all kinds.
    let servers = r#"{"version": "1", "servers": {"a": {"command": "x"}}}"#;
    let examined = examine(&Source::new("s.json", servers), Some(Path::new("s.json")), None, None);
    assert!(examined.detected.is_some_and(|it| it.is_guess()));
}

#[test]
fn of_servers_in_a_file_in_which_nobody_looks_only_their_secrets_are_told() {
    let text = r#"{"mcpServers": {"a": {"url": "https://a.example", "timeoutt": 1, "headers": {"Authorization": "Bearer ghp_0123456789abcdefghij"}}}}"#;
    let path = ".claude/settings.json";
    let examined = examine(&Source::new(path, text), Some(Path::new(path)), None, None);
    let told: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
    assert_eq!(told, ["W-UNKNOWN-KEY", "W-SECRET"]);
}

#[test]
fn a_file_of_a_program_that_is_not_known_is_not_taken_for_anothers() {
    let text = r#"{"$schema": "https://charm.land/crush.json", "mcp": {"a": {"type": "stdio", "command": "node"}}}"#;
    let source = Source::new(".crush.json", text);
    let examined = examine(&source, Some(Path::new(".crush.json")), None, None);
    let found: Vec<_> = examined.findings.iter().map(|it| it.code.name).collect();
    assert_eq!((found, examined.detected.map(|it| it.dialect.name)), (vec!["A-NO-SERVERS"], None));
    let forced = dialect::named("opencode");
    let examined = examine(&source, Some(Path::new(".crush.json")), forced, None);
    assert_eq!(examined.count(Severity::Error), 2, "{:?}", examined.findings);
}

#[test]
fn what_nobody_promises_to_read_is_a_warning() {
    let text = "{\n// mine\n// too\n\"mcpServers\": {\"a\": {\"command\": \"x\",}}}";
    for (name, dialect, expected) in [
        (
            ".cursor/mcp.json",
            "cursor",
            &[
                "a comment: nobody says that Cursor reads it; 1 more follow",
                "a comma after the last value: nobody says that Cursor reads it",
            ][..],
        ),
        (
            "servers.json",
            "cursor",
            &[
                "a comment: most programs do not read it; 1 more follow",
                "a comma after the last value: most programs do not read it",
            ],
        ),
    ] {
        let examined = examine(&Source::new(name, text), Some(Path::new(name)), None, None);
        let found: Vec<_> = examined.findings.iter().map(|it| (it.code.name, &*it.problem.message)).collect();
        assert_eq!(found, expected.iter().map(|it| ("W-JSON-FORM", *it)).collect::<Vec<_>>());
        assert_eq!(examined.detected.map(|it| it.dialect.name), Some(dialect));
    }
    let text = text.replace("mcpServers", "servers");
    let examined = examine(&Source::new("servers.json", text), Some(Path::new("servers.json")), None, None);
    assert_eq!(examined.findings, [], "Visual Studio Code reads both");
}

#[test]
fn of_what_is_wrong_thousands_of_times_there_is_told_as_much_as_anybody_reads() {
    for (code, argument) in [(&codes::JSON_COMMA, r#" "a""#), (&codes::VALUE_TYPE, ", 1")] {
        let arguments = argument.repeat(3000);
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", "args": ["a"{arguments}]}}}}}}"#);
        let findings = examine(&Source::new(".mcp.json", text), None, None, None).findings;
        let (told, rest): (Vec<_>, Vec<_>) = findings.iter().partition(|it| it.code == code);
        assert_eq!((told.len(), rest.len()), (1000, 0), "{argument}");
        let more = |at: usize| told[at].problem.message.ends_with("; 2000 more follow");
        assert!(more(999) && !more(998), "{}", told[999].problem.message);
    }
}

#[test]
fn the_secrets_of_a_large_file_are_those_of_a_small_one() {
    let file = |servers: usize| {
        let server = |at: usize| format!(r#""s{at}": {{"command": "x", "env": {{"API_KEY": "k7Gd92hQpL4x{at}"}}}}"#);
        let text = format!(r#"{{"mcpServers": {{{}}}}}"#, (0..servers).map(server).collect::<Vec<_>>().join(", "));
        examine(&Source::new(".mcp.json", text), None, None, None)
    };
    let (small, large) = (file(10), file(2000));
    assert!(small.source.text.len() < LARGE && large.source.text.len() > LARGE);
    assert_eq!((small.secrets.len(), large.secrets.len()), (10, 2000));
    assert_eq!(large.secrets[..10], small.secrets[..]);
    assert_eq!((small.findings.len(), large.findings.len()), (10, 2000));
}

#[test]
fn an_object_ends_before_a_key_that_is_no_further_in_if_its_end_is_missing() {
    let told = |text: &str| {
        let examined = examine(&Source::new(".mcp.json", text), None, None, None);
        let place = |it: &Finding| (it.code.name, examined.source.position(it.problem.span.start));
        let servers = examined.config.as_ref().map_or(0, |config| config.servers.len());
        (servers, examined.findings.iter().map(place).collect::<Vec<_>>())
    };
    let server = "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\"\n";
    let with_comma = server.replace("\"x\"\n", "\"x\",\n");
    let rest = "    \"b\": { \"command\": \"y\" }\n  }\n}\n";
    assert_eq!(told(&format!("{server}    }},\n{rest}")), (2, vec![]));
    let unclosed = "E-JSON-UNCLOSED";
    assert_eq!(told(&format!("{server}{rest}")), (2, vec![(unclosed, (3, 10)), (unclosed, (5, 5))]));
    assert_eq!(told(&format!("{with_comma}{rest}")), (2, vec![(unclosed, (3, 10)), (unclosed, (4, 21))]));
    let twice =
        "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"env\": {\n        \"A\": \"b\"\n";
    assert_eq!(told(&format!("{twice}{rest}")).0, 2);
    let inner = format!("{with_comma}      \"env\": {{ \"A\": \"b\"\n    }},\n{rest}");
    assert_eq!(told(&inner), (2, vec![(unclosed, (5, 14)), (unclosed, (6, 5))]));
    let list = format!("{with_comma}      \"args\": [\n        \"y\"\n    }},\n{rest}");
    assert_eq!(told(&list), (2, vec![(unclosed, (5, 15)), (unclosed, (7, 5))]));
    let sloppy = "{\n\"mcpServers\": {\n\"a\": {\n\"command\": \"x\",\n\"args\": []\n}\n}\n}";
    assert_eq!(told(sloppy), (1, vec![]));
}

#[test]
fn a_blank_of_any_width_parts_a_command() {
    for blank in ['\u{a0}', '\u{3000}', '\u{2028}'] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "npx{blank}-y pkg"}}}}}}"#);
        let examined = examine(&Source::new(".mcp.json", text), None, None, None);
        assert!(examined.findings.iter().any(|it| it.code == &codes::COMMAND_LINE), "{blank:?}");
    }
}
