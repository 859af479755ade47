//! Outputs that cannot be written, such as to a full disk.

use std::fs::OpenOptions;

use crate::rehearse::Rehearse;

const SCENARIO: &str = "
servers: { s: { mock: mock.yaml } }
matrix: { transport: [stdio], protocol: [2025-11-25] }
steps: [{ call: { tool: hello }, snapshot: hello }]
";
const MOCK: &str = "tools: [{ name: hello, reply: hello }]";
const CONFIG: &str = r#"{"mcpServers": {"s": {"command": "true"}}}"#;

fn story() -> Rehearse {
    Rehearse::new().file("mock.yaml", MOCK).file("demo.yaml", SCENARIO).file(".mcp.json", CONFIG).env("CI", "")
}

/// Runs with a limit of 0 bytes for each file.
fn without_space(args: &str) -> Rehearse {
    let command = format!("trap '' XFSZ; ulimit -f 0; exec {} {args}", Rehearse::BINARY);
    story().program("sh").args(["-c", &command])
}

#[test]
fn a_full_standard_output_is_an_error() {
    for args in [
        &["run", "demo.yaml"][..],
        &["run", "demo.yaml", "--list"],
        &["run", "demo.yaml", "--format", "json"],
        &["mock", "--list"],
        &["mock", "--faults", "--format", "json"],
        &["mock", "--validate", "mock.yaml"],
        &["validate-config", ".mcp.json", "--portable"],
        &["validate-config", "--list-dialects"],
        &["config", "convert", ".mcp.json", "--to", "cursor"],
        &["config", "show", "--mcp-config", ".mcp.json"],
        &["mcp", "list-servers", "--mcp-config", ".mcp.json"],
        &["schema", "script"],
        &["--help"],
        &["mcp", "--help"],
        &["--version"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").expect("opens");
        let story = story().env("HOME", "home").args(args.iter().copied());
        let output = story.command().stdout(full).output().expect("runs");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(3) && stderr.contains("error: cannot write the result: "),
            "{args:?}: {stderr}"
        );
    }
}

#[test]
fn a_mock_that_cannot_answer_fails() {
    let full = OpenOptions::new().write(true).open("/dev/full").expect("opens");
    let story = story().file("in", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").args(["mock", "mock.yaml"]);
    let requests = std::fs::File::open(story.folder().join("in")).expect("opens");
    assert_eq!(story.status(requests, full).code(), Some(3));
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_not_left_behind() {
    for (args, file) in [
        ("run demo.yaml --output report.xml --format junit", "report.xml"),
        ("run demo.yaml --update", "snapshots/demo/hello.snap"),
        ("run demo.yaml --trace-file trace.jsonl", "trace.jsonl"),
        ("init new", "new/mocks/weather.yaml"),
        ("validate-config .mcp.json --portable --output report.txt", "report.txt"),
        ("config convert .mcp.json --to cursor --output new.json", "new.json"),
    ] {
        let run = without_space(args).run().code(3);
        let text = format!("{}{}", run.stdout_text(), run.stderr());
        assert!(text.contains(&format!("{file}: File too large")), "{args}: {text}");
        let mut folders = vec![run.path("")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("reads") {
                let (path, kind) =
                    entry.map(|entry| (entry.path(), entry.file_type().expect("a type"))).expect("reads");
                assert!(!kind.is_file() || path.metadata().expect("there").len() > 0, "{args}: {}", path.display());
                assert!(path.extension().is_none_or(|it| it != "tmp"), "{args}: {}", path.display());
                folders.extend(kind.is_dir().then_some(path));
            }
        }
    }
}

#[test]
fn a_config_that_cannot_be_replaced_is_kept() {
    let run = without_space("config convert .mcp.json --to cursor --output .mcp.json --force").run().code(3);
    assert_eq!(run.read(".mcp.json"), CONFIG);
}
