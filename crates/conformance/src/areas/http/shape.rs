//! The form of HTTP requests: methods, paths, and the headers that are not MCP's own.

use rehearse_protocol::names::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER};
use url::Url;

use super::super::common::PAGE;
use super::super::discover::is_dual;
use super::{answered, check_accepted, is_client_error, list, success};
use crate::areas::Judge;
use crate::areas::query::Query;
use crate::{Call, Case, CaseGroup, Evidence, HttpExchange, Judgement, Kind, Level, Material};

const SPEAKS_OLDER: &str = "the server speaks older versions as well";
const METHODS: [(&str, &str); 3] = [("shape/put", "PUT"), ("shape/patch", "PATCH"), ("shape/head", "HEAD")];

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.endpoint.get-modern-405", |e, j| earlier(e, j, "earlier/get")),
    ("http.endpoint.delete-modern-405", |e, j| earlier(e, j, "earlier/delete")),
    ("http.endpoint.other-methods", |e, j| {
        for (name, _) in METHODS {
            status(e, j, name, |status| is_client_error(status) || status == 501);
        }
    }),
    ("http.post.response-202", |e, j| {
        for call in e.calls().filter(|call| call.request.kind == Kind::Response && !call.request.is_in_batch) {
            let Some(http) = success(&call) else { continue };
            check_accepted(j, &call, http, !http.body.is_empty() || call.response.is_some());
        }
    }),
    ("http.post.notification-refused-4xx", |e, j| {
        let calls = e.case("malformed/no-method-name").filter(|call| call.status().is_some());
        calls.must_get(j, |call| call.status() >= Some(400));
    }),
    ("http.post.malformed-json-4xx", |e, j| status(e, j, "malformed/truncated", is_client_error)),
    ("http.post.wrong-content-type", |e, j| status(e, j, "shape/text-plain", is_client_error)),
    ("http.post.charset-param", |e, j| served(e, j, "shape/charset")),
    ("http.post.accept-json-only", |e, j| {
        let calls = e.case("shape/accept-json").filter(|call| call.status().is_some());
        calls.must(j, |call| !call.http.is_some_and(HttpExchange::is_stream), |_| "an event stream");
    }),
    ("http.post.accept-wildcard", |e, j| {
        // Nothing in the text says that a server must understand a range in place of the two media types.
        served(e, j, "shape/accept-any");
        j.all_at_level(Level::Info);
        served(e, j, "shape/accept-quality");
    }),
    ("http.post.accept-missing", |e, j| status(e, j, "shape/accept-missing", |status| status < 500)),
    ("http.post.concurrent-streams", |e, j| {
        for call in e.case("concurrent") {
            if call.is_page() {
                j.untested(PAGE);
            } else if matches!(call.status(), Some(401 | 403 | 429 | 503)) {
                j.untested("the server refused requests at the same time");
            } else {
                j.check_call(call.response.is_some(), &call);
            }
        }
    }),
    ("http.post.chunked-body", |e, j| served(e, j, "shape/chunked")),
    ("http.post.header-case", |e, j| served(e, j, "shape/title-case")),
    ("http.post.trailing-slash", |e, j| {
        status(e, j, "shape/slash", |status| status < 500 && !matches!(status, 301..=303))
    }),
    ("http.post.no-redirect", |e, j| {
        for (_, http) in e.exchanges().filter(|(_, http)| http.method == "POST" && http.case.is_none()) {
            if let Some((status, places)) = answered(http) {
                let found = || format!("HTTP {status} to {}", http.header("location").unwrap_or_default());
                j.check_at(!matches!(status, 301..=303), None, places, found);
            }
        }
    }),
    ("http.session.ignored-modern", |e, j| match is_modern_only(e) {
        true => served(e, j, "earlier/session-id"),
        false => j.untested(SPEAKS_OLDER),
    }),
    ("http.stream.no-resume-modern", |e, j| served(e, j, "earlier/last-event-id")),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let list = |name: &str| list(material, name);
    let mut cases = vec![
        list("shape/text-plain").header("content-type", "text/plain"),
        list("shape/charset").header("content-type", "application/json; charset=utf-8"),
        list("shape/accept-json").header("accept", "application/json"),
        list("shape/accept-any").header("accept", "*/*"),
        list("shape/accept-quality").header("accept", "text/event-stream;q=0.5, application/json"),
        list("shape/accept-missing").without_header("accept"),
        list("shape/chunked").header("transfer-encoding", "chunked"),
        list("shape/title-case").title_case(),
        Case::bytes("malformed/no-method-name", CaseGroup::Malformed, r#"{"jsonrpc":"2.0","method":5}"#).unanswered(),
    ];
    cases.extend(METHODS.map(|(name, method)| Case::http(name, CaseGroup::Negative, method).unanswered()));
    if let Ok(endpoint) = Url::parse(&material.endpoint)
        && !endpoint.path().ends_with('/')
    {
        cases.push(list("shape/slash").path(format!("{}/", endpoint.path())));
    }
    if material.is_modern() {
        let earlier = |name: &str, method| {
            Case::http(name, CaseGroup::Negative, method).without_header(VERSION_HEADER).unanswered()
        };
        cases.extend([
            earlier("earlier/get", "GET"),
            earlier("earlier/delete", "DELETE"),
            list("earlier/last-event-id").header(LAST_EVENT_HEADER, "rehearse-1"),
            list("earlier/session-id").header(SESSION_HEADER, "rehearse-1"),
        ]);
    } else {
        let response = r#"{"jsonrpc":"2.0","id":"rehearse-none","result":{}}"#;
        cases.push(Case::bytes("response/unsolicited", CaseGroup::Negative, response).unanswered());
    }
    cases
}

/// Checks that each case is served like any other request.
fn served(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in e.case(case).filter(Call::is_answered) {
        match call.status() {
            _ if call.is_page() => j.untested(PAGE),
            Some(401 | 403 | 429 | 500..) => j.untested("the server refused the request for another reason"),
            _ => j.check_call(call.has_result(), &call),
        }
    }
}

/// Checks the status of each case.
fn status(e: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(u16) -> bool) {
    for (_, http) in e.http_case(case) {
        if let Some((status, places)) = answered(http) {
            j.check_at(holds(status), http.case, places, || format!("HTTP {status}"));
        }
    }
}

/// Whether a modern server says that it speaks no older version, and does not.
fn is_modern_only(evidence: &Evidence<'_>) -> bool {
    let mut versions = evidence.results_of("server/discover").filter_map(|(_, result)| {
        let versions = result.get("supportedVersions")?.as_array()?;
        Some(!versions.is_empty() && versions.iter().all(|it| it.as_str() == Some(evidence.version.as_str())))
    });
    versions.next() == Some(true) && !is_dual(evidence)
}

fn earlier(e: &Evidence<'_>, j: &mut Judgement, case: &str) {
    if !is_modern_only(e) {
        return j.untested(SPEAKS_OLDER);
    }
    status(e, j, case, |status| status == 405);
}
