//! `rehearse chat` at a terminal. The rest is in `tests/console/chat.md`.

use crate::{rehearse::Rehearse, terminal::Terminal};

const MODEL: &str = "\
rules:
- when: { prompt: { contains: look } }
  turns: [{ text: I look., calls: [{ tool: look, args: { at: sea } }] }, 'It is {{ result }}.']
- { when: { prompt: { contains: \"one\\ntwo\" } }, reply: Both lines. }
- when: { prompt: { contains: fail } }
  reply: { error: { status: 400, message: no } }
";

const TOOLS: &str = "\
server: { name: tools }
tools:
- { name: look, reply: 'at {{ args.at }}' }
";

#[test]
fn calls_of_the_model_take_turns_among_servers_if_that_is_wanted() {
    let look = |name: &str| TOOLS.replace("at {{ args.at }}", name);
    let mock = |script: &str| serde_json::json!({ "command": Rehearse::BINARY, "args": ["mock", script] });
    let config = serde_json::json!({ "mcpServers": { "one": mock("one.yaml"), "two": mock("two.yaml") } });
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("model.yaml", MODEL);
    let story = story.file("c.json", &config.to_string()).file("one.yaml", &look("one")).file("two.yaml", &look("two"));
    let story =
        story.args(["chat", "--model", "scripted:model.yaml", "--mcp-config", "c.json", "--dialect", "mcpilot"]);
    let mut terminal = Terminal::start(story.args(["--yes", "--routing", "round-robin"]));
    for server in ["one", "two", "one"] {
        let result = format!(r#"It is {{"content":[{{"type":"text","text":"{server}"}}]"#);
        terminal.shows("chat> ").types("look\r").shows(&result);
    }
    terminal.shows("chat> ").types("/usage\r").shows("Model: 6 turns, 3 tool calls, ");
    terminal.shows("│ two    │ look │ 1     │").shows("chat> ").types("exit\r");
    terminal.end(0);
}

#[test]
fn at_a_terminal_a_pasted_text_is_one_message_and_an_error_does_not_end_the_conversation() {
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("model.yaml", MODEL);
    let mut terminal = Terminal::start(story.args(["chat", "--model", "scripted:model.yaml"]));
    terminal.shows("\u{1b}[?2004h").shows("chat> ").types("please fail\r").shows("HTTP 400: no");
    terminal.shows("chat> ").types("\x1b[200~one\ntwo\x1b[201~\r").shows("Both lines.");
    terminal.shows("chat> ").types("/status\r").shows("Use '/list-tools' to see");
    terminal.shows("chat> ").types("exit\r");
    terminal.end(0);
}
