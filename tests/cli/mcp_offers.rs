//! `rehearse mcp`: resources, prompts, completion.

use serde_json::json;

use crate::{
    mcp::{json_of, mcp, stdio},
    rehearse::Rehearse,
};

const LIBRARY: &str = r#"
server: { name: library, version: 1.0.0 }
resources:
  - { uri: "file:///readme.md", name: readme, description: What it is., mimeType: text/markdown, text: "Hello\n" }
  - { uri: "file:///logo.png", name: logo, mimeType: image/png, blob: iVBORw0KGgo=, size: 8 }
resourceTemplates:
  - { uriTemplate: "news://{day}", name: news, text: "News of {{ args.day }}" }
prompts:
  - name: greeting
    description: Greets.
    arguments: [{ name: name, description: Who., required: true }, { name: tone }]
    messages: [{ role: user, content: "Greet {{ args.name }}" }, { role: assistant, content: { type: image, data: iVBORw0KGgo=, mimeType: image/png } }]
completions:
  - { prompt: greeting, argument: name, values: [Ada, Alan, Grace] }
  - { resource: "news://{day}", argument: day, values: [monday, tuesday] }
"#;

/// With the script as the server of the command line.
fn library(args: &[&str]) -> Rehearse {
    mcp(args.iter().copied()).args(stdio("library.yaml")).file("library.yaml", LIBRARY)
}

#[test]
fn resources_templates_and_prompts_are_listed() {
    library(&["list-resources"])
        .run()
        .stdout(
            "\
# Resources of server 'rehearse'

- `file:///readme.md` (readme, text/markdown)
  What it is.
- `file:///logo.png` (logo, image/png, 8 bytes)
",
        )
        .code(0);
    let templates = library(&["list-resource-templates"]).run();
    templates.stdout("# Resource templates of server 'rehearse'\n\n- `news://{day}` (news)\n").code(0);
    library(&["list-prompts"])
        .run()
        .stdout(
            "\
# Prompts of server 'rehearse'

- `greeting`
  Greets.
  - `name` (required): Who.
  - `tone` (optional)
",
        )
        .code(0);
    assert_eq!(json_of(library(&["list-resources"]), 0)["servers"][0]["resources"][1]["size"], 8);
    assert_eq!(json_of(library(&["list-resource-templates"]), 0)["servers"][0]["resourceTemplates"][0]["name"], "news");
    assert_eq!(json_of(library(&["list-prompts"]), 0)["servers"][0]["prompts"][0]["name"], "greeting");
    let run = mcp(["list-prompts"]).args(stdio("tools.yaml")).run();
    run.stdout("# Prompts of server 'rehearse'\n\n*No prompts to display.*\n").code(0);
}

#[test]
fn a_resource_is_printed_or_saved() {
    library(&["read-resource", "file:///readme.md"]).run().stdout("Hello\n").code(0);
    library(&["read-resource", "news://today"]).run().stdout("News of today\n").code(0);
    library(&["read-resource", "file:///logo.png"]).run().stdout("[image/png, 8 bytes; --output saves it]\n").code(0);
    let run = library(&["read-resource", "file:///logo.png", "-o", "."]).run();
    let run = run.stdout("[image/png, 8 bytes; saved as ./logo.png]\n").code(0);
    assert_eq!(std::fs::read(run.path("logo.png")).expect("saved"), b"\x89PNG\r\n\x1a\n");
    let run = library(&["read-resource", "file:///readme.md", "-o", "r.md"]).run().code(0);
    assert_eq!(run.read("r.md"), "Hello\n");
    let read = json_of(library(&["read-resource", "file:///readme.md"]), 0);
    assert_eq!(read["result"]["contents"][0]["text"], "Hello\n");
    library(&["read-resource", "file:///x"]).run().stdout("").stderr_has("error: rpc: error -32602").code(1);
    assert_eq!(json_of(library(&["read-resource", "file:///x"]), 1)["failure"]["kind"], "rpc");
}

#[test]
fn a_prompt_is_printed_with_its_roles() {
    let prompt = "Greets.\n\n## user\nGreet Ada\n\n## assistant\n[image/png, 8 bytes; --output saves it]\n";
    library(&["get-prompt", "greeting", "name=Ada"]).run().stdout(prompt).code(0);
    library(&["get-prompt", "greeting", "--args", r#"{"name": "Ada"}"#]).run().stdout(prompt).code(0);
    let got = json_of(library(&["get-prompt", "greeting", "name=5"]), 0);
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Greet 5");
    library(&["get-prompt", "greeting", "name:=5"]).run().stderr_has("prompt arguments must be strings").code(2);
    library(&["get-prompt", "greeting"]).run().stderr_has("error: rpc: ").code(1);
}

#[test]
fn an_argument_is_completed() {
    let story = |args: &[&str]| library(&[&["complete"], args].concat());
    story(&["--prompt", "greeting", "name", "A"]).run().stdout("Ada\nAlan\n").code(0);
    story(&["--resource", "news://{day}", "day"]).run().stdout("monday\ntuesday\n").code(0);
    let completed = json_of(story(&["--prompt", "greeting", "name", "G", "--context", "tone=warm"]), 0);
    assert_eq!(completed["result"]["completion"]["values"], json!(["Grace"]));
    story(&["--prompt", "nobody", "x"]).run().stderr_has("error: rpc: ").code(1);
    story(&["name"]).run().stderr_has("--prompt").code(2);
}

#[test]
fn an_unknown_name_suggests_a_listed_one() {
    let run = library(&["get-prompt", "greting"]).run().stdout("").code(1);
    run.stderr_has("info: server 'rehearse' lists no prompt \"greting\"; did you mean \"greeting\"?\n");
    let run = library(&["read-resource", "file:///redme.md"]).run().stdout("").code(1);
    run.stderr_has("did you mean \"file:///readme.md\"?\nerror: rpc: ");
    let commands = "prompt greting name=Ada\nread file:///redme.md\n";
    let run = Rehearse::new().args(["repl"]).args(stdio("library.yaml")).file("library.yaml", LIBRARY);
    let run = run.env("HOME", "home").stdin(commands).run().code(1);
    run.stderr_has("did you mean \"greeting\"?").stderr_has("did you mean \"file:///readme.md\"?");
}

#[test]
fn the_cost_of_tools_is_that_of_what_a_model_reads() {
    let tools =
        "tools: [{ name: a, title: Not for models, reply: x }, { name: b, description: Long enough., reply: x }]";
    let list = |args: &[&str]| mcp(["list-tools", "--cost"]).args(args.iter().copied()).args(stdio("t.yaml"));
    let found = json_of(list(&[]).file("t.yaml", tools), 0);
    let server = &found["servers"][0];
    let definition = |name: &str, description: &str| {
        let schema = &server["tools"][usize::from(name == "b")]["definition"]["inputSchema"];
        format!("{{\"name\":\"{name}\"{description},\"input_schema\":{schema}}}").len()
    };
    let [a, b] = [definition("a", ""), definition("b", ",\"description\":\"Long enough.\"")];
    assert_eq!([&server["tools"][0]["cost"]["bytes"], &server["tools"][1]["cost"]["bytes"]], [a, b]);
    assert_eq!((&found["cost"]["bytes"], &found["cost"]), (&json!(a + b), &server["cost"]));
    assert_eq!(found["cost"]["encoding"], "o200k");
    let tokens = |index: usize| server["tools"][index]["cost"]["tokens"].as_u64().expect("a number");
    assert_eq!(found["cost"]["tokens"], tokens(0) + tokens(1));
    // The dearest first, also without JSON; a tool that is filtered out costs nothing.
    let config = json!({ "mcpServers": { "one": { "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "t.yaml"], "enabledTools": ["b"] } } });
    let all = list(&[]).file("t.yaml", tools).run().code(0);
    assert!(all.stdout_text().find("│ b ") < all.stdout_text().find("│ a "), "{}", all.stdout_text());
    let filtered = mcp(["list-tools", "--cost", "--mcp-config", "cpe.config.json", "--dialect", "cpe"]);
    let filtered = filtered.file("t.yaml", tools).file("cpe.config.json", &config.to_string()).run().code(0);
    assert!(!filtered.stdout_text().contains("│ a "), "{}", filtered.stdout_text());
}
