//! `rehearse chat`: the turn loop at a prompt.

use crate::{
    mcp::stdio,
    rehearse::{Rehearse, Run},
    terminal::Terminal,
};

const MODEL: &str = "\
rules:
- when: { prompt: { contains: look } }
  turns: [{ text: I look., calls: [{ tool: look, args: { at: sea } }] }, 'It is {{ result }}.']
- { when: { prompt: { contains: \"one\\ntwo\" } }, reply: Both lines. }
- when: { prompt: { contains: busy } }
  reply: { error: { status: 429, retryAfter: 1ms, times: 1 }, text: Now. }
- when: { prompt: { contains: fail } }
  reply: { error: { status: 400, message: no } }
- reply: 'You said: {{ prompt }}'
";

const TOOLS: &str = "\
server: { name: tools }
tools:
- { name: look, inputSchema: { type: object, properties: { at: { type: string } } }, steps: [{ progress: { progress: 1, total: 2 } }, { reply: 'at {{ args.at }}' }] }
";

fn chat(lines: &str, options: &[String]) -> Run {
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("model.yaml", MODEL);
    let story = story.file("tools.yaml", TOOLS).args(["chat", "--model", "scripted:model.yaml"]).args(options.to_vec());
    story.stdin(lines).run()
}

#[test]
fn a_model_uses_the_tools_of_the_servers_and_keeps_the_conversation() {
    let run = chat("hello\nlook around\n", &stdio("tools.yaml")).code(0);
    let run = run.stdout_has("I look.\nIt is at sea.\n").stderr_has(": progress 1 of 2\n");
    let run = run.stderr_has("#### [tool call]\n```json\n{\n  \"name\": \"look\",");
    run.stderr_has("#### Tool \"look\" result:\n```\nat sea\n```");
}

#[test]
fn a_long_conversation_is_shortened_to_fit_the_context() {
    let at = "x".repeat(600);
    let model =
        format!("rules: [{{ turns: [{{ calls: [{{ tool: look, args: {{ at: {at} }} }}] }}, '{{{{ result }}}}'] }}]");
    let config = format!(
        "version: '1.0'\nmodels: [{{ ref: m, display_name: M, id: m.yaml, type: scripted, context_window: 10 }}]\ndefaults: {{ model: m }}\nmcpServers: {{ one: {{ type: stdio, command: {}, args: [mock, tools.yaml] }} }}\n",
        Rehearse::BINARY
    );
    let story = |args: &[&str]| {
        let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "").file("tools.yaml", TOOLS);
        let story = story.file("m.yaml", &model).file("c.cpe.yaml", &config).args(["chat"]).args(args.iter().copied());
        story.stdin("Go").run().code(0)
    };
    let [flag, command] = stdio("tools.yaml");
    for args in
        [&["--model", "scripted:m.yaml", "--max-context", "10", &flag, &command][..], &["--mcp-config", "c.cpe.yaml"]]
    {
        let run = story(args).stdout_has(&format!("at {}\n[shortened: ", "x".repeat(397)));
        run.stderr_has("warning: the oldest result of a tool was shortened, to fit 10 tokens of context\n");
    }
    story(&["--model", "scripted:m.yaml", &flag, &command]).stdout_has(&format!("at {at}\n"));
}

#[test]
fn a_lazy_chat_connects_with_its_first_message() {
    let [flag, command] = stdio("tools.yaml");
    let lazy = [flag, command, "--lazy".to_owned()];
    chat("look around\n", &lazy).code(0).stdout_has("I look.\nIt is at sea.\n");
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
fn a_chat_needs_no_servers_and_the_whole_pipe_is_one_message() {
    chat("please fail\n", &[]).stderr_has("HTTP 400: no").code(1);
    chat("/etc is\n\nexit\n", &[]).stdout("You said: /etc is\n\nexit\n").code(0);
    chat(" \n", &[]).stdout("").code(0);
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

#[test]
fn a_model_that_cannot_be_used_is_an_error_at_once() {
    let fails = |model: &str, expected: &str| {
        let story = Rehearse::new().env("HOME", "home").env("OPENAI_API_KEY", "");
        story.args(["chat", "--model", model]).run().stdout("").stderr_has(expected).code(2);
    };
    fails("scripted:none.yaml", "cannot read none.yaml");
    fails("openai:gpt", "API key missing: OPENAI_API_KEY not set");
    fails("gpt", "write TYPE:ID");
    let url = "--base-url=127.0.0.1:1".to_owned();
    chat("x", std::slice::from_ref(&url))
        .stdout("")
        .stderr_has("--base-url and --api-key-env need a --model of a provider")
        .code(2);
    let story = Rehearse::new().env("HOME", "home").args(["chat", "--model", "openai:gpt", &url]);
    story.run().stdout("").stderr_has(": write http://127.0.0.1:1\n").code(2);
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
    let args = ["chat", "--model", "scripted:model.yaml", "--mcp-config", "parent.cpe.yaml"];
    let run = |more: &[&str]| {
        let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "");
        let story = story.file("model.yaml", models).file("child.model.yaml", of_child).file("tools.yaml", TOOLS);
        let story = story.file("coder.cpe.yaml", &child).file("parent.cpe.yaml", &parent);
        let run = story.args(args).args(more.iter().copied()).stdin("go\n").run();
        run.stdout_has("It says at sea.").code(0)
    };
    run(&["--show-run-id"]).stderr_has("#### coder [").stderr_has("] → look\n");
    run(&[])
        .stderr_has("#### coder thought trace\nHm.\n")
        .stderr_has("#### coder → look\n")
        .stderr_has("#### coder ✓ look\n");
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
    let run = run.stderr_has("continuing 2 messages; the last: You said: hello\n");
    let last = run.stderr().split("--resume ").nth(1).expect("an id")[..6].to_owned();
    let args = ["conversation", "print", &last, "--file", &file];
    Rehearse::new().args(args).run().stdout_has("You said: hello").stdout_has("It is at sea.").code(0);
    let options = ["--resume".to_owned(), "none00".to_owned(), format!("--conversations={file}")];
    chat("x\n", &options).stderr_has("there is no message none00").code(2);
}

#[test]
fn a_config_names_the_model_its_system_prompt_and_code_mode() {
    let config = "\
models:
- { ref: plain, id: system.yaml, type: scripted }
- { ref: coder, id: coder.yaml, type: scripted, codeMode: { enabled: true } }
defaults: { model: plain, systemPromptPath: prompt.md }
";
    let servers = format!(
        "mcpServers: {{ tools: {{ type: stdio, command: {}, args: [mock, tools.yaml] }} }}\n",
        Rehearse::BINARY
    );
    let coder = "\
rules:
- turns:
  - calls: [{ tool: execute_code, args: { code: \"return await look({ at: 'sea' });\", executionTimeout: 20 } }]
  - '{{ result }} / {{ tools }}'
";
    let chat = |options: &[&str]| {
        let story = Rehearse::new().env("HOME", "home").env("PATH", "/nonexistent").file("tools.yaml", TOOLS);
        let story = story.file("a.cpe.yaml", &format!("{config}{servers}")).file("prompt.md", "Be kind.");
        let story = story.file("system.yaml", "rules: [{ reply: 'System: {{ system }}' }]").file("coder.yaml", coder);
        story.args(["chat", "--mcp-config", "a.cpe.yaml"]).args(options.to_vec()).stdin("go\n").run()
    };
    chat(&[]).stdout("System: Be kind.\n").stderr_has("model: plain (scripted:system.yaml)\n").code(0);
    let run = chat(&["--model", "coder"]).stdout_has("at sea").stdout_has("execute_code").code(0);
    assert!(!run.stdout_text().contains("look"), "{}", run.stdout_text());
    chat(&["--model", "scripted:system.yaml"]).stdout("System: \n").code(0);
    chat(&["--model", "plan"]).stderr_has("no model has the ref `plan`").stderr_has("did you mean `plain`?").code(2);
    let run = Rehearse::new().env("HOME", "home").args(["chat"]).stdin("go\n").run();
    run.stderr_has("no model is chosen: use --model TYPE:ID").code(2);
}

#[test]
fn a_request_that_is_sent_again_is_reported() {
    let mut endpoint = Rehearse::new().file("model.yaml", MODEL).args(["model", "model.yaml"]).start();
    let url = format!("http://{}", endpoint.address("  ANTHROPIC_BASE_URL=http://", ""));
    let story = Rehearse::new().env("HOME", "home").env("XDG_CONFIG_HOME", "");
    let run = story.args(["chat", "--model", "openai:any", "--base-url", &url]).stdin("busy?\n").run();
    run.stdout("Now.\n")
        .stderr_has("/v1/chat/completions: HTTP 429: rate limit exceeded; asking again in 0.0 s\n")
        .code(0);
    endpoint.signal("INT");
    endpoint.end().code(0);
}
