//! An HTTP status comes instead of the answer.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::{Fault, FaultInfo, FaultState, ResponsePart, StatusResponse, Stop, options};
use rehearse_document::{Entry, Node, Problem, Problems, Value};
use rehearse_protocol::{RpcError, Transport, message};

pub(super) const INFO: FaultInfo = FaultInfo {
    name: "status",
    summary: "The HTTP request is answered with this status instead; on HTTP+SSE the POST, and nothing on the stream",
    options: &[
        ("code", "the status; `status: 503` is short for `status: { code: 503 }`"),
        ("headers", "headers of the response, such as Retry-After"),
        ("text", "the body is this text; by default there is none"),
        ("json", "the body is this data"),
        ("rpcError", "the body is a JSON-RPC error for the request: { code, message, data }"),
    ],
    example: "status: { code: 429, headers: { Retry-After: 1 }, rpcError: { code: -32000, message: Slow down } }",
    transports: &[Transport::Http, Transport::Sse],
    read: |node| Status::read(node).map(Fault::Status),
};

#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    code: StatusCode,
    headers: Arc<[(HeaderName, HeaderValue)]>,
    body: Body,
}

#[derive(Clone, Debug, PartialEq)]
enum Body {
    None,
    Text(Bytes),
    Json(Bytes),
    RpcError(Box<RpcError>),
}

impl Status {
    fn read(node: &Node) -> Result<Status, Problems> {
        if options::is_scalar(node) {
            return Ok(Status { code: read_code(node)?, headers: [].into(), body: Body::None });
        }
        let options = options::read(&INFO, node)?;
        let body = match options.at_most_one(&["text", "json", "rpcError"])? {
            None => Body::None,
            Some(Entry { key, node, .. }) if key == "text" => Body::Text(node.str()?.to_owned().into()),
            Some(Entry { key, node, .. }) if key == "json" => Body::Json(node.to_json_text().into()),
            Some(Entry { node, .. }) => {
                let error = node.fields("`rpcError`", &["code", "message", "data"])?;
                let bare = RpcError::new(error.required("code")?.integer()?, error.required("message")?.str()?);
                Body::RpcError(Box::new(RpcError { data: error.get("data").map(Node::to_raw), ..bare }))
            }
        };
        let headers = options.get("headers").map_or(Ok(&[][..]), Node::entries)?;
        let code = options.required("code")?;
        let status = read_code(code)?;
        if body != Body::None && matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) {
            return Err(code.problem(format!("a response with {} has no body", status.as_u16())).into());
        }
        Ok(Status { code: status, headers: Problems::collect(headers.iter().map(read_header))?.into(), body })
    }

    pub(super) fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        if part != ResponsePart::Begin {
            return out.push(part);
        }
        let (content_type, body) = match &self.body {
            Body::None => (None, Bytes::new()),
            Body::Text(text) => (Some("text/plain; charset=utf-8"), text.clone()),
            Body::Json(json) => (Some("application/json"), json.clone()),
            Body::RpcError(error) => (Some("application/json"), message::error(state.id.as_ref(), error)),
        };
        out.push(ResponsePart::Replace(StatusResponse {
            code: self.code,
            content_type,
            headers: self.headers.clone(),
            body,
        }));
        out.push(ResponsePart::Stop(Stop::Finish));
    }
}

fn read_code(node: &Node) -> Result<StatusCode, Problems> {
    let code = node.integer().ok().and_then(|code| StatusCode::from_u16(code).ok());
    let code = code.filter(|code| (200..=599).contains(&code.as_u16()));
    code.ok_or_else(|| node.problem("an HTTP status must be a whole number from 200 to 599").into())
}

/// Headers that say where the response ends. A wrong value would corrupt the next response.
const FRAMING: [HeaderName; 4] =
    [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE];

fn read_header(Entry { key, key_span, node }: &Entry) -> Result<(HeaderName, HeaderValue), Problems> {
    let problem = |message: &str| Problem::new(*key_span, format!("`{key}` {message}"));
    let name = key.parse().map_err(|_| problem("is not a name of an HTTP header"))?;
    if FRAMING.contains(&name) {
        let problem = problem("follows from the body");
        return Err(problem.hint("a response that ends too early is the fault `truncate`, `close` or `hang`").into());
    }
    let text = match &node.value {
        Value::Number(text) => text,
        _ => node.str()?,
    };
    let value = HeaderValue::from_str(text).map_err(|_| node.problem("not a value of an HTTP header"))?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::{
        super::tests::{error, parts},
        *,
    };
    use rehearse_testing::table;

    fn refusal(text: &str) -> StatusResponse {
        match &parts(text, 1)[..] {
            [ResponsePart::Replace(refusal), ResponsePart::Stop(Stop::Finish)] => refusal.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_answer_is_replaced_by_a_status_with_or_without_a_body() {
        let bare = refusal("status: 503");
        assert_eq!((bare.code.as_u16(), bare.content_type, &bare.body[..]), (503, None, &b""[..]));
        let json = refusal("status: { code: 400, json: { a: 1.0 } }");
        assert_eq!((json.content_type, &json.body[..]), (Some("application/json"), &b"{\"a\":1.0}"[..]));
        let text =
            refusal("status: { code: 502, text: Bad Gateway, headers: { Content-Type: text/html, Retry-After: 1 } }");
        assert_eq!(&text.body[..], b"Bad Gateway");
        let headers: Vec<_> = text.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        assert_eq!(headers, ["content-type: \"text/html\"", "retry-after: \"1\""]);
    }

    #[test]
    fn a_json_rpc_error_has_the_id_of_the_request() {
        let refused = refusal("status: { code: 429, rpcError: { code: -32000, message: Slow down, data: { s: 1 } } }");
        let expected = br#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"Slow down","data":{"s":1}}}"#;
        assert_eq!(&refused.body[..], expected);
    }

    #[test]
    fn an_invalid_status_is_a_mistake() {
        for [text, expected] in table::rows(include_str!("mistakes.txt"), "a status") {
            assert_eq!(error(&text), expected);
        }
    }
}
