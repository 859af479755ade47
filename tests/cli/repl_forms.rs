//! `rehearse repl` at a terminal: withdrawn questions of servers, and completion.

use serde_json::{Value as Json, json};

use crate::{rehearse::Rehearse, terminal::Terminal};

/// A tool that asks the user.
const ASKING: &str = r#"
server: { name: asking, version: 1.0.0 }
tools:
  - { name: never, delay: 60s, reply: never }
  - name: ask
    steps:
      - elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: { name: { type: string }, age: { type: integer } } } }
      - reply: "Hello {{ guest.content.name | default('stranger') }}"
"#;

/// A server that cancels its questions. The tool `back` withdraws its question; both calls can be cancelled.
const GIVING_UP: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  result() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*) result '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"tools/list"'*) result '{"tools":[{"name":"back","inputSchema":{"type":"object"}},{"name":"late","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*)
      call=$id
      echo '{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}}}}}'
      case "$line" in
        *'"back"'*)
          until [ -e back ]; do sleep 0.01; done
          echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}' ;;
      esac
      until [ -e done ]; do sleep 0.01; done
      id=$call; result '{"content":[{"type":"text","text":"the result"}]}' ;;
  esac
done
"#;

fn at_terminal<'a>(servers: &Json, args: impl IntoIterator<Item = &'a str>) -> Terminal {
    Terminal::start(story(servers).args(args))
}

fn story(servers: &Json) -> Rehearse {
    let story = Rehearse::new().file("asking.yaml", ASKING).file("giving-up.sh", GIVING_UP);
    let story = story.file("mcp.json", &json!({ "mcpServers": servers }).to_string());
    story.env("HOME", "home").env("XDG_STATE_HOME", "").env("XDG_CONFIG_HOME", "")
}

fn mock() -> Json {
    json!({ "command": Rehearse::BINARY, "args": ["mock", "asking.yaml"] })
}

fn giving_up() -> Json {
    json!({ "command": "sh", "args": ["giving-up.sh"] })
}

const REPL: [&str; 6] = ["repl", "--mcp-config", "mcp.json", "--yes", "--protocol", "2025-11-25"];

fn repl(servers: &Json) -> Terminal {
    let mut terminal = at_terminal(servers, REPL);
    terminal.shows("connected to MCP server 'one'");
    terminal
}

#[test]
fn the_end_of_a_call_restores_the_terminal() {
    let call = ["mcp", "call-tool", "--mcp-config", "mcp.json", "late", "--protocol", "2025-11-25"];
    let mut terminal = at_terminal(&json!({ "one": giving_up() }), call);
    terminal.shows("name> ").create_file("done");
    let screen = terminal.end(0);
    assert!(screen.contains("the result"), "{screen}");
}

#[test]
fn an_interrupted_question_restores_the_terminal() {
    for protocol in ["2025-11-25", "2026-07-28"] {
        let call = ["mcp", "call-tool", "--mcp-config", "mcp.json", "ask", "--protocol", protocol];
        let mut terminal = at_terminal(&json!({ "one": mock() }), call);
        terminal.shows("name> ").signal("TERM");
        let screen = terminal.end(3);
        assert!(screen.contains("interrupted: closing connections"), "{screen}");
    }
}

#[test]
fn a_question_ends_with_its_call() {
    let mut terminal = repl(&json!({ "one": giving_up() }));
    terminal.types("call late\r").shows("name> ").types("Ad").create_file("done");
    terminal.shows_all(["the question was withdrawn", "the result"]).shows("mcp> ").types("quit\r");
    let screen = terminal.end(0);
    assert!(!screen.contains("age> "), "{screen}");
}

#[test]
fn a_question_ends_when_its_server_cancels_it() {
    let mut terminal = repl(&json!({ "one": giving_up() }));
    terminal.types("call back\r").shows("name> ").create_file("back");
    terminal.shows("the question was withdrawn").create_file("done");
    terminal.shows("the result").shows("mcp> ").types("quit\r");
    terminal.end(0);
}

#[test]
fn a_question_ends_with_the_connection() {
    let starting = format!("echo $$ > pid; exec {} mock asking.yaml", Rehearse::BINARY);
    for protocol in ["2025-11-25", "2026-07-28"] {
        let one = json!({ "command": "sh", "args": ["-c", starting] });
        let args = ["repl", "--mcp-config", "mcp.json", "--yes", "--protocol", protocol];
        let mut terminal = at_terminal(&json!({ "one": one }), args);
        terminal.shows("connected to MCP server 'one'").types("call ask\r").shows("name> ");
        let pid = std::fs::read_to_string(terminal.path("pid")).expect("reads");
        let kill = std::process::Command::new("kill").args(["-KILL", pid.trim()]).status();
        assert!(kill.expect("kill runs").success());
        terminal.shows("the question was withdrawn").shows("mcp> ").types("quit\r");
        terminal.end(0);
    }
}

#[test]
fn an_interrupted_approval_ends_the_command_or_the_call_in_the_repl() {
    let servers = json!({ "one": { "command": Rehearse::BINARY, "args": ["mock", "calm.yaml"] } });
    let at_terminal = |args: &[&str]| {
        let story = Rehearse::new().file("calm.yaml", "tools: [{ name: calm, reply: done }]");
        let story = story.file("mcp.json", &json!({ "mcpServers": servers }).to_string());
        let story = story.file("message.txt", "<mcp__one__calm/>\n<mcp__one__calm/>").env("HOME", "home");
        Terminal::start(story.args(args.iter().copied()).args(["--mcp-config", "mcp.json", "--approve", "ask"]))
    };
    for key in ["\u{3}", "y\r"] {
        let mut terminal = at_terminal(&["mcp", "call-tool", "--xml", "message.txt", "--max-calls", "2"]);
        terminal.shows("Do you want to run tool 'calm'").types(key);
        if key == "y\r" {
            terminal.shows("done").shows("Do you want to run tool 'calm'").types("\u{3}");
        }
        let screen = terminal.end(3);
        assert!(screen.contains("interrupted: closing connections"), "{screen}");
        assert!(!screen.contains("denied"), "{screen}");
        assert_eq!(screen.matches("calling 'mcp__one__calm'").count(), if key == "y\r" { 2 } else { 1 }, "{screen}");
    }
    let mut terminal = at_terminal(&["repl"]);
    terminal.shows("connected to MCP server 'one'").types("call calm\r").shows("Do you want to run").types("\u{3}");
    terminal.shows("cancelled").shows("mcp> ").types("call calm\r").shows("Do you want to run").types("y\r");
    terminal.shows("done").shows("mcp> ").types("quit\r");
    terminal.end(0);
}

#[test]
fn an_interruption_of_a_call_does_not_count_for_exiting() {
    let mut terminal = at_terminal(&json!({ "one": mock() }), [&REPL[..], &["--debug"]].concat());
    terminal.shows("connected to MCP server 'one'").types("call never\r").shows("\"method\":\"tools/call\"");
    terminal.signal("INT").shows("cancelled").shows("mcp> ");
    terminal.types("\u{3}").shows("press Ctrl-C again or Ctrl-D to exit").shows("mcp> ").types("\u{3}");
    terminal.end(0);
}

#[test]
fn a_terminal_that_does_not_tell_its_cursor_is_read_without_an_editor() {
    let mut terminal = Terminal::answering(story(&json!({ "one": mock() })).args(REPL), 0);
    // Typed before the first prompt.
    terminal.types("call ask\r").shows("lines cannot be edited").shows("mcp> ").shows("name> ");
    terminal
        .types("Ada\r")
        .shows("age> ")
        .types("\r")
        .shows("Send ")
        .types("y\r")
        .shows("Hello Ada")
        .shows("mcp> ")
        .types("quit\r");
    let screen = terminal.end(0);
    assert_eq!(screen.matches("\u{1b}[6n").count(), 1, "{screen}");
}

#[test]
fn a_signal_restores_a_terminal_that_stops_telling_its_cursor() {
    for answers in [0, 1] {
        let mut terminal = Terminal::answering(story(&json!({ "one": mock() })).args(REPL), answers);
        // Waiting for the answer.
        for _ in 0..=answers {
            terminal.shows("\u{1b}[6n");
        }
        terminal.signal("TERM");
        terminal.end(3);
    }
}

#[test]
fn resources_and_prompts_are_completed_without_a_listing_before() {
    let script = "resources: [{ uri: 'docs://index', name: index, text: x }]\nprompts: [{ name: greet, messages: [{ role: user, content: { type: text, text: Hi } }] }]";
    let servers = json!({ "one": { "command": Rehearse::BINARY, "args": ["mock", "docs.yaml"] } });
    let mut terminal = Terminal::start(story(&servers).file("docs.yaml", script).args(REPL));
    terminal.shows("connected to MCP server 'one'").types("read d\t").shows("read docs://index");
    terminal.types("\x15prompt gr\t").shows("prompt greet ");
}
