//! `rehearse codegen`.

use crate::{
    mcp::stdio,
    rehearse::{Rehearse, Run},
};

fn codegen(args: &[&str]) -> Rehearse {
    let schema = "{ type: object, properties: { text: { type: string } }, required: [text] }";
    let script = format!(
        "server: {{ name: s, version: 1.0.0 }}\ntools:\n- {{ name: say-it, description: Says it., inputSchema: {schema}, reply: said }}\n"
    );
    Rehearse::new().file("s.yaml", &script).args(["codegen"]).args(args.iter().copied()).args(stdio("s.yaml"))
}

#[test]
fn bindings_go_to_standard_output_or_to_a_file() {
    let has_all = |run: Run, parts: &[&str]| drop(parts.iter().fold(run, |run, part| run.stdout_has(part)).code(0));
    has_all(
        codegen(&["--lang", "typescript"]).run(),
        &[
            "export type SayItInput = {\n  text: string;\n};",
            "  /** Says it. */\n  say_it(input: SayItInput): Promise<SayItOutput>;",
            "\"say-it\"",
        ],
    );
    has_all(
        codegen(&["--lang", "go"]).run(),
        &[
            "type SayItInput struct {\n\tText string `json:\"text\"`\n}",
            "func (t Tools) SayIt(ctx context.Context, input SayItInput) (SayItOutput, error)",
        ],
    );
    let story = codegen(&["--lang", "go", "--out", "new/tools/tools.go"]);
    let path = story.folder().join("new/tools/tools.go");
    let command = story.command().output().expect("it runs");
    assert_eq!((command.status.code(), &*command.stdout), (Some(0), &b""[..]));
    assert!(std::fs::read_to_string(path).expect("it is written").contains("package tools\n"));
}

#[test]
fn wrong_usage_and_missing_servers_are_errors() {
    codegen(&["--lang", "rust"]).run().stdout("").stderr_has("'rust'").code(2);
    codegen(&[]).run().stdout("").stderr_has("--lang <LANGUAGE>").code(2);
    codegen(&["--lang", "go", "--json"]).run().stdout("").stderr_has("no JSON output").code(2);
    let broken = Rehearse::new().args(["codegen", "--lang", "go", "--stdio", "false"]);
    broken.run().stdout("").code(3);
}
