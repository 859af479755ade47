//! `rehearse mcp` with faulty servers: messages, exit codes, and no processes left behind.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ServerConfig, ServerConnection, Stream,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::{
    mcp::{listening, mcp, stdio},
    rehearse::{Rehearse, Run},
};

/// A tool for each fault.
const FAULTY: &str = r#"
server: { name: faulty }
tools:
  - { name: dies, reply: x }
  - { name: dies_midway, reply: x }
  - { name: hangs, reply: x }
  - { name: hangs_midway, reply: x }
  - { name: noisy, reply: of use }
  - { name: truncated, reply: x }
  - { name: resets, reply: x }
  - { name: closes, reply: x }
  - { name: closes_midway, reply: x }
  - { name: wrong_id, reply: x }
  - { name: long, reply: "{{ 'x' * 300000 }}" }
  - { name: slow_headers, reply: of use }
  - { name: unavailable, reply: x }
  - { name: broken, reply: x }
  - { name: expires, reply: of use }
  - { name: expires_again, reply: x }
  - { name: unauthorized, reply: x }
  - { name: html, reply: x }
  - { name: redirects, reply: x }
  - { name: accepted, reply: x }
  - { name: empty, reply: x }
faults:
  - { on: { tool: dies }, do: { exit: 3 } }
  - { on: { tool: dies_midway }, do: { exit: { code: 3, after: 20 } } }
  - { on: { tool: hangs }, do: { hang: {} } }
  - { on: { tool: hangs_midway }, do: { hang: { after: 20 } } }
  - { on: { tool: noisy }, do: { noise: npm warn deprecated } }
  - { on: { tool: truncated }, do: { truncate: { after: 20 } } }
  - { on: { tool: resets }, do: { reset: {} } }
  - { on: { tool: closes }, do: { close: {} } }
  - { on: { tool: closes_midway }, do: { close: { after: 20 } } }
  - { on: { tool: wrong_id }, do: { wrong_id: type } }
  - { on: { tool: slow_headers }, do: { delay: 300ms } }
  - { on: { tool: unavailable }, do: { status: 503 } }
  - { on: { tool: broken }, do: { status: { code: 500, text: oops } } }
  - { on: { tool: expires, call: 1 }, do: { status: 404 } }
  - { on: { tool: expires_again }, do: { status: 404 } }
  - { on: { tool: unauthorized }, do: { status: 401 } }
  - { on: { tool: html }, do: { content_type: text/html } }
  - { on: { tool: accepted }, do: { status: 202 } }
  - { on: { tool: empty }, do: { status: 204 } }
  - { on: { tool: redirects }, do: { status: { code: 307, headers: { Location: 'http://127.0.0.1:1/' } } } }
"#;

/// For faults without a response.
const SHORT: [&str; 4] = ["--timeout", "1s", "--protocol", "2025-11-25"];

/// The processes with this working folder.
fn processes_in(folder: &Path) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("lists").flatten().map(|process| process.path());
    processes.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder)).collect()
}

#[track_caller]
pub(crate) fn assert_no_processes_in(folder: &Path) {
    let left = processes_in(folder);
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_remaining_process_is_detected() {
    let (running, _) = listening("tools.yaml");
    assert_eq!(processes_in(&running.path("")).len(), 1);
}

fn over_stdio(tool: &str, options: &[&str]) -> Run {
    let story = mcp(["call-tool"]).file("faulty.yaml", FAULTY).args(stdio("faulty.yaml"));
    let run = story.args([tool]).args(options.iter().copied()).run();
    assert_no_processes_in(&run.path(""));
    run
}

/// One call in each era, each with a new server.
fn over_http(tool: &str, options: &[&str]) -> Vec<Run> {
    let call = |protocol: &str| {
        let mut mock = Rehearse::new()
            .file("faulty.yaml", FAULTY)
            .args(["mock", "faulty.yaml", "--listen", "127.0.0.1:0"])
            .start();
        let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
        mcp(["call-tool", "--http", &url, "--protocol", protocol, tool]).args(options.iter().copied()).run()
    };
    ["2025-11-25", "2026-07-28"].map(call).into()
}

#[test]
fn a_faulty_process_is_reported_and_stopped() {
    for (tool, said) in [
        ("dies", "disconnected: the server closed its standard output; the process ended with exit status: 3"),
        ("resets", "disconnected: the server closed its standard output"),
        ("closes", "disconnected: the server closed its standard output"),
        ("wrong_id", "malformed: a response with the id \"2\", which no request has"),
    ] {
        over_stdio(tool, &[]).stderr_has(said).stdout("").code(1);
    }
    for tool in ["hangs", "hangs_midway"] {
        over_stdio(tool, &SHORT).stderr_has("timeout: no answer within 1s").code(1);
    }
    for tool in ["dies_midway", "closes_midway"] {
        over_stdio(tool, &[]).stderr_has("disconnected: ").code(1);
    }
}

#[test]
fn lines_that_are_not_messages_are_ignored_and_reported() {
    let run = over_stdio("noisy", &[]).stdout("of use\n").code(0);
    run.stderr_has("warning: MCP server 'rehearse' sent unexpected output").stderr_has("npm warn deprecated");
    let cut = over_stdio("truncated", &SHORT).stderr_has("timeout: no answer within 1s").code(1);
    cut.stderr_has("sent unexpected output");
    let run = over_stdio("long", &[]).code(0);
    assert_eq!(run.stdout_text().len(), 300_001);
}

#[test]
fn an_invalid_response_over_http_is_reported() {
    for (tool, said) in [
        ("resets", "disconnected: "),
        ("closes", "disconnected: "),
        ("closes_midway", "disconnected: "),
        ("truncated", "malformed: the body is not a message"),
        ("wrong_id", "malformed: a response with the id \"2\", which no request has"),
        ("unavailable", "http: status 503"),
        ("broken", "http: status 500"),
        ("html", "malformed: HTTP 200 with a body of type \"text/html\""),
        ("redirects", "http: status 307"),
        ("accepted", "malformed: HTTP 202 without an answer to the request"),
        ("empty", "malformed: HTTP 204 without an answer to the request"),
    ] {
        // The trace says what came, should it be something else.
        for run in over_http(tool, &["--trace"]) {
            run.stderr_has(said).stdout("").code(1);
        }
    }
    for tool in ["hangs", "hangs_midway"] {
        for run in over_http(tool, &["--timeout", "1s"]) {
            run.stderr_has("timeout: no answer within 1s").code(1);
        }
    }
    for run in over_http("html", &["--trace"]) {
        run.stderr_has("← HTTP 200 OK | content-type: text/html")
            .stderr_has("← {\"jsonrpc\":\"2.0\",\"id\":2,")
            .code(1);
    }
    for run in over_http("slow_headers", &[]) {
        run.stdout("of use\n").code(0);
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_reported_with_the_reason() {
    for (options, said) in [
        (["--stdio", "no-such-program"], "could not be started: No such file or directory"),
        (["--stdio", "false"], "exit status: 1"),
        (["--http", "http://127.0.0.1:1/mcp"], "Connection refused"),
        (["--sse", "http://127.0.0.1:1/sse"], "Connection refused"),
        (["--ws", "ws://127.0.0.1:1/ws"], "Connection refused"),
        (["--http", "http://no-such-host.invalid/mcp"], "cannot reach http://no-such-host.invalid/mcp"),
    ] {
        let run = mcp(["call-tool", "echo"]).args(options).run();
        assert_no_processes_in(&run.path(""));
        run.stderr_has(said).stdout("").code(3);
    }
    // The port does not use TLS.
    let (_mock, address) = listening("tools.yaml");
    mcp(["call-tool", "echo", "--http", &format!("https://{address}/mcp")]).run().stderr_has("cannot reach").code(3);
}

#[test]
fn a_busy_server_works_on_the_next_call() {
    let script =
        "tools: [{ name: busy, reply: of use }]\nfaults: [{ on: { tool: busy, call: 1 }, do: { status: 503 } }]";
    for protocol in ["2025-11-25", "2026-07-28"] {
        let story = Rehearse::new().file("busy.yaml", script);
        let mut mock = story.args(["mock", "busy.yaml", "--listen", "127.0.0.1:0"]).start();
        let url = format!("http://{}/mcp", mock.address("http://", "/mcp"));
        let call = || mcp(["call-tool", "busy", "--http", &url, "--protocol", protocol]).run();
        call().stdout("").stderr_has("error: http: status 503\n").code(1);
        call().stdout("of use\n").code(0);
    }
}

#[test]
fn a_lost_session_is_restarted() {
    let run = |tool: &str| over_http(tool, &["--trace"]).into_iter().next().expect("the legacy one");
    let sent = |run: &Run, what: &str| run.stderr().lines().filter(|line| line.contains(what)).count();
    let renewed = "warning: MCP server '127.0.0.1' lost the session; a new one was opened\n";
    let well = run("expires").stdout("of use\n").stderr_has("← HTTP 404 Not Found").stderr_has(renewed).code(0);
    assert_eq!((sent(&well, "\"method\":\"initialize\""), sent(&well, "\"method\":\"tools/call\"")), (2, 2));
    assert_eq!(sent(&well, "→ HTTP DELETE"), 2, "{}", well.stderr());
    let ill = run("expires_again").stdout("").stderr_has(renewed).stderr_has("error: http: status 404\n").code(1);
    assert_eq!((sent(&ill, "\"method\":\"initialize\""), sent(&ill, "\"method\":\"tools/call\"")), (2, 2));
    // 2026-07-28 has no sessions.
    let modern = over_http("expires", &["--trace"]).pop().expect("the modern one");
    let modern = modern.stdout("").stderr_has("error: http: status 404\n").code(1);
    assert_eq!(sent(&modern, "\"method\":\"tools/call\""), 1);
}

#[test]
fn a_rejected_authorization_is_reported() {
    for run in over_http("unauthorized", &[]) {
        let run = run.stdout("").stderr_has("error: unauthorized: ").code(3);
        run.stderr_has("hint: ");
    }
}

/// Starts a TLS server with a self-signed certificate, which responds 404 to clients that trust it.
fn self_signed() -> u16 {
    let certificate = CertificateDer::from_pem_slice(include_bytes!("self_signed/certificate.pem"));
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("self_signed/key.pem")).expect("a key");
    let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let config = config.with_safe_default_protocol_versions().expect("versions").with_no_client_auth();
    let config = config.with_single_cert(vec![certificate.expect("a certificate")], key).expect("they fit");
    let (config, listener) = (Arc::new(config), TcpListener::bind("127.0.0.1:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut tls = ServerConnection::new(config.clone()).expect("a connection");
            let mut stream = Stream::new(&mut tls, &mut socket);
            if stream.read(&mut [0; 4096]).is_ok() {
                let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        }
    });
    port
}

#[test]
fn system_certificates_are_loaded_only_for_tls() {
    let (_mock, address) = listening("tools.yaml");
    let nothing =
        |url: &str| mcp(["info", "--http", url]).env("SSL_CERT_FILE", "/no/file").env("SSL_CERT_DIR", "/no/folder");
    nothing(&format!("http://{address}/mcp")).run().stdout_has("Name: tools").code(0);
    let run = nothing(&format!("https://localhost:{}/mcp", self_signed())).run().code(3);
    run.stderr_has("No CA certificates were loaded from the system");
}

#[test]
fn a_server_without_a_trusted_certificate_is_not_contacted() {
    let port = self_signed();
    let call = |flag: &str, url: &str| {
        mcp(["call-tool", "echo", flag, &url.replace("PORT", &port.to_string()), "--trace", "--protocol", "2025-11-25"])
    };
    let urls = [
        ("--http", "https://localhost:PORT/mcp"),
        ("--sse", "https://localhost:PORT/sse"),
        ("--ws", "wss://localhost:PORT/ws"),
    ];
    const CERTIFICATE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/self_signed/certificate.pem");
    for (flag, url) in urls {
        let run = call(flag, url).run().stdout("").stderr_has("cannot reach ").code(3);
        assert_no_processes_in(&run.path(""));
        let run = run.stderr_has("invalid peer certificate: UnknownIssuer; ");
        run.stderr_has("this machine does not trust the issuer of the certificate: set SSL_CERT_FILE to a file with");
        // Only the certificate is wrong.
        call(flag, url).env("SSL_CERT_FILE", CERTIFICATE).run().stderr_has("answered with HTTP 404").code(3);
    }
}
