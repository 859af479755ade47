//! `rehearse mcp` with TLS that does not fit, and no processes left behind. The rest is in `tests/console/mcp-faults.md`.

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

use crate::mcp::{listening, mcp};

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
