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
