//! The least that an MCP server over HTTP can do: it reads the body, looks for the id and a word, and answers with
//! constants.

use std::convert::Infallible;

use http_body_util::{BodyExt, Full};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// The results by a word in the body, the first that is there.
const RESULTS: [(&str, &str); 4] = [
    (
        "tools/call",
        r#"{"resultType":"complete","content":[{"type":"text","text":"test"}],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"basic","version":"1.0.0"}}}"#,
    ),
    (
        "tools/list",
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}}]}"#,
    ),
    (
        "server/discover",
        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"bare","version":"1.0.0"}}}"#,
    ),
    (
        "initialize\"",
        r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bare","version":"1.0.0"}}"#,
    ),
];

pub async fn serve(listener: TcpListener) -> Result<(), Box<dyn std::error::Error>> {
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service_fn(answer)));
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = match request.into_body().collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let has = |word: &str| body.windows(word.len()).any(|part| part == word.as_bytes());
    let id = body.windows(5).position(|part| part == b"\"id\":").map(|at| {
        let digits = body[at + 5..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.map(|byte| *byte as char).collect::<String>()
    });
    let (Some(id), Some((_, result))) = (id, RESULTS.iter().find(|(word, _)| has(word))) else {
        let mut accepted = Response::new(Full::default());
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return Ok(accepted);
    };
    let reply = ["{\"jsonrpc\":\"2.0\",\"id\":", &id, ",\"result\":", result, "}"].concat();
    let mut response = Response::new(Full::new(reply.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}
