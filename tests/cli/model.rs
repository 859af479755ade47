//! `rehearse model`, over HTTP.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::rehearse::{Rehearse, Running};

const SCRIPT: &str =
    "rules: [{ when: { prompt: slow }, reply: { wait: 10min, text: x } }, { reply: 'Hello {{ prompt }}.' }]";

fn model<'a>(args: impl IntoIterator<Item = &'a str>) -> Rehearse {
    Rehearse::new().file("m.yaml", SCRIPT).args(["model", "m.yaml"].into_iter().chain(args))
}

/// Sends a request to the endpoint, and returns the connection.
fn ask(address: &str, prompt: &str) -> TcpStream {
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    let head =
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk-secret\r\nConnection: close";
    let mut stream = TcpStream::connect(address).expect("connects");
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("writes");
    stream
}

fn answer(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("reads");
    text
}

fn address(model: &mut Running) -> String {
    model.address("  ANTHROPIC_BASE_URL=http://", "")
}

#[test]
fn it_answers_until_a_signal_and_shows_no_key() {
    for signal in ["INT", "TERM"] {
        let mut running = model(["--verbose"]).start();
        let address = address(&mut running);
        running.stderr_line(&format!("  OPENAI_BASE_URL=http://{address}/v1"));
        let text = answer(ask(&address, "you"));
        assert!(text.starts_with("HTTP/1.1 200") && text.contains(r#""content":"Hello you.""#), "{text}");
        running.stderr_line("POST /v1/chat/completions: 200 text");
        let slow = ask(&address, "slow");
        running.signal(signal);
        let run = running.end().stdout("").code(0);
        assert!(!run.stderr().contains("secret"), "{}", run.stderr());
        drop(slow);
    }
}

#[test]
fn a_command_gets_the_urls_and_gives_the_exit_code() {
    let command = "echo $ANTHROPIC_BASE_URL $OPENAI_BASE_URL $ANTHROPIC_API_KEY $OPENAI_API_KEY; exit 7";
    let run = model(["--exec", "--", "sh", "-c", command]).env("OPENAI_API_KEY", "mine").run().code(7);
    let words: Vec<_> = run.stdout_text().split_whitespace().collect();
    let [url, with_version, "sk-0", "mine"] = words[..] else { panic!("{words:?}") };
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(with_version, format!("{url}/v1"));
    model(["--exec", "--", "/no/such/program"]).run().stderr_has("cannot run /no/such/program").code(3);
    model(["--exec"]).run().stderr_has("COMMAND").code(2);
}

#[test]
fn our_own_agents_find_the_model_by_the_variables() {
    for spec in ["anthropic:any", "openai:any", "responses:any"] {
        let chat = ["--exec", "--", Rehearse::BINARY, "chat", "--model", spec, "--", Rehearse::BINARY, "mock", "basic"];
        model(chat).stdin("you").run().stdout_has("Hello you.").code(0);
    }
}

#[test]
fn a_script_with_mistakes_is_not_served() {
    let run = Rehearse::new().file("m.yaml", "rules: [{ reply: {} }]").args(["model", "m.yaml"]).run();
    run.stderr_has("a reply needs `text`, `thinking`, `calls` or `error`").stderr_has("m.yaml:1:18").code(2);
    Rehearse::new().args(["model", "none.yaml"]).run().stderr_has("cannot read none.yaml").code(2);
}
