//! `rehearse model`, over HTTP. The rest is in `tests/console/model.md`.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use crate::rehearse::{Rehearse, Running};

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
        let mut running = Rehearse::new().files_of("model").args(["model", "m.yaml", "--verbose"]).start();
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
