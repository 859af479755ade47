//! `rehearse chat`: the turn loop at a prompt.

use crate::{
    mcp::stdio,
    rehearse::{Rehearse, Run},
};

const MODEL: &str = "\
rules:
- when: { prompt: { contains: look } }
  turns: [{ text: I look., calls: [{ tool: look, args: { at: sea } }] }, 'It is {{ result }}.']
- when: { prompt: { contains: fail } }
  reply: { error: { status: 400, message: no } }
- reply: 'You said: {{ prompt }}'
";

const TOOLS: &str = "\
server: { name: tools }
tools:
- { name: look, inputSchema: { type: object, properties: { at: { type: string } } }, reply: 'at {{ args.at }}' }
";

fn chat(lines: &str, options: &[String]) -> Run {
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("model.yaml", MODEL);
    let story = story.file("tools.yaml", TOOLS).args(["chat", "--model", "scripted:model.yaml"]).args(options.to_vec());
    story.stdin(lines).run()
}

#[test]
fn a_model_uses_the_tools_of_the_servers_and_keeps_the_conversation() {
    let run = chat("hello\nlook around\n/list-tools\n", &stdio("tools.yaml")).code(0);
    let run = run.stdout_has("You said: hello\n").stdout_has("It is at sea.\n").stdout_has("look");
    let run = run.stderr_has("#### [tool call]\n```json\n{\n  \"name\": \"look\",");
    run.stderr_has("#### Tool \"look\" result:\n```\nat sea\n```");
}

#[test]
fn calls_of_the_model_take_turns_among_servers_if_that_is_wanted() {
    let look = |name: &str| TOOLS.replace("at {{ args.at }}", name);
    let mock = |script: &str| serde_json::json!({ "command": Rehearse::BINARY, "args": ["mock", script] });
    let config = serde_json::json!({ "mcpServers": { "one": mock("one.yaml"), "two": mock("two.yaml") } });
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("model.yaml", MODEL);
    let story = story.file("c.json", &config.to_string()).file("one.yaml", &look("one")).file("two.yaml", &look("two"));
    let story =
        story.args(["chat", "--model", "scripted:model.yaml", "--mcp-config", "c.json", "--dialect", "mcpilot"]);
    let run = story.args(["--yes", "--routing", "round-robin"]).stdin("look\nlook\nlook\n/usage\n").run().code(0);
    let run = run.stdout_has("It is one.\nI look.\nIt is two.\nI look.\nIt is one.\n");
    let usage = run.stdout_text().split("Model: ").nth(1).expect("the usage");
    assert!(usage.starts_with("6 turns, 3 tool calls, ") && usage.contains("│ two    │ look │ 1     │"), "{usage}");
}

#[test]
fn a_chat_needs_no_servers_and_an_error_of_the_model_does_not_end_it() {
    let run = chat("please fail\nhello\n", &[]);
    run.stderr_has("HTTP 400: no").stdout_has("You said: hello\n").code(1);
}

#[test]
fn a_model_that_cannot_be_used_is_an_error_at_once() {
    let fails = |model: &str, expected: &str| {
        let story = Rehearse::new().env("HOME", "home").env("OPENAI_API_KEY", "");
        story.args(["chat", "--model", model]).run().stdout("").stderr_has(expected).code(2);
    };
    fails("scripted:none.yaml", "cannot read none.yaml");
    fails("openai:gpt", "API key missing: OPENAI_API_KEY not set");
    fails("gpt", "write TYPE:ID");
}

#[test]
fn the_events_of_subagents_are_printed_with_their_names() {
    let child = "models: [{ ref: m, id: child.model.yaml, type: scripted }]\ndefaults: { model: m }\nsubagent: { name: coder-subagent, description: d }\n";
    let child = format!(
        "{child}mcpServers: {{ tools: {{ type: stdio, command: {}, args: [mock, tools.yaml] }} }}\n",
        Rehearse::BINARY
    );
    let parent = format!(
        "mcpServers: {{ coder: {{ type: stdio, command: {}, args: [serve, --quiet, --config, coder.cpe.yaml], env: {{ CPE_SUBAGENT_LOGGING_ADDRESS: elsewhere }} }} }}\nmodels: [{{ ref: m, id: x, type: scripted }}]\n",
        Rehearse::BINARY
    );
    let models =
        "rules: [{ turns: [{ calls: [{ tool: coder-subagent, args: { prompt: go } }] }, 'It says {{ result }}.'] }]\n";
    let of_child =
        "rules: [{ turns: [{ thinking: Hm., calls: [{ tool: look, args: { at: sea } }] }, '{{ result }}'] }]\n";
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "");
    let story = story.file("model.yaml", models).file("child.model.yaml", of_child).file("tools.yaml", TOOLS);
    let story = story.file("coder.cpe.yaml", &child).file("parent.cpe.yaml", &parent);
    let args = ["chat", "--model", "scripted:model.yaml", "--mcp-config", "parent.cpe.yaml"];
    let run = story.args(args).stdin("go\n").run().stdout_has("It says at sea.").code(0);
    run.stderr_has("#### coder thought trace\nHm.\n#### coder → look\n#### coder ✓ look\n");
}

#[test]
fn a_saved_conversation_can_be_continued() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("talks").display().to_string();
    let options = ["--save".to_owned(), format!("--conversations={file}")];
    let run = chat("hello\n", &options).code(0);
    let id = run.stderr().split("--resume ").nth(1).expect("an id")[..6].to_owned();
    let mut options = vec!["--resume".to_owned(), id, format!("--conversations={file}")];
    options.extend(stdio("tools.yaml"));
    let run = chat("look again\n", &options).stdout_has("It is at sea.").code(0);
    let last = run.stderr().split("--resume ").nth(1).expect("an id")[..6].to_owned();
    let args = ["conversation", "print", &last, "--file", &file];
    Rehearse::new().args(args).run().stdout_has("You said: hello").stdout_has("It is at sea.").code(0);
    let options = ["--resume".to_owned(), "none00".to_owned(), format!("--conversations={file}")];
    chat("x\n", &options).stderr_has("there is no message none00").code(2);
}
