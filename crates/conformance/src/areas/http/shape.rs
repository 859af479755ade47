//! The form of HTTP requests: methods, paths, and the headers that are not MCP's own.

use rehearse_protocol::names::{LAST_EVENT_HEADER, SESSION_HEADER, VERSION_HEADER};
use url::Url;

use super::{
    super::{
        common::{PAGE, is_page},
        discover::is_dual,
    },
    answered, list,
};
use crate::{Call, Case, CaseGroup, Evidence, Judgement, Kind, Level, Material};

const SPEAKS_OLDER: &str = "the server speaks older versions as well";
const METHODS: [(&str, &str); 3] = [("shape/put", "PUT"), ("shape/patch", "PATCH"), ("shape/head", "HEAD")];

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
pub(super) fn served(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    for call in evidence.case(case).filter(Call::is_answered) {
        match call.status() {
            _ if is_page(&call) => j.untested(PAGE),
            Some(401 | 403 | 429 | 500..) => j.untested("the server refused the request for another reason"),
            _ => j.check_call(call.result().is_some(), &call),
        }
    }
}

/// Nothing in the text says that a server must understand a range in place of the two media types.
pub(super) fn accept(evidence: &Evidence<'_>, j: &mut Judgement) {
    served(evidence, j, "shape/accept-any");
    for violation in &mut j.violations {
        violation.level = Some(Level::Info);
    }
    served(evidence, j, "shape/accept-quality");
}

pub(super) fn accept_json(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("shape/accept-json") {
        if let Some(http) = call.http.filter(|http| http.status.is_some()) {
            j.check_answer(!http.is_stream(), &call, || "an event stream".to_owned());
        }
    }
}

/// Checks the status of each case.
pub(super) fn status(evidence: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(u16) -> bool) {
    for (_, http) in evidence.http_case(case) {
        if let Some((status, places)) = answered(http) {
            let subject = http.case.map(ToOwned::to_owned);
            j.check_at(holds(status), subject, places, || format!("HTTP {status}"));
        }
    }
}

pub(super) fn other_methods(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (name, _) in METHODS {
        status(evidence, j, name, |status| (400..500).contains(&status) || status == 501);
    }
}

pub(super) fn redirects(evidence: &Evidence<'_>, j: &mut Judgement) {
    for (_, http) in evidence.exchanges().filter(|(_, http)| http.method == "POST" && http.case.is_none()) {
        if let Some((status, places)) = answered(http) {
            j.check_at(!matches!(status, 301..=303), None, places, || {
                format!("HTTP {status} to {}", http.header("location").unwrap_or_default())
            });
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

pub(super) fn earlier(evidence: &Evidence<'_>, j: &mut Judgement, case: &str) {
    if !is_modern_only(evidence) {
        return j.untested(SPEAKS_OLDER);
    }
    status(evidence, j, case, |status| status == 405);
}

pub(super) fn session_ignored(evidence: &Evidence<'_>, j: &mut Judgement) {
    match is_modern_only(evidence) {
        true => served(evidence, j, "earlier/session-id"),
        false => j.untested(SPEAKS_OLDER),
    }
}

pub(super) fn concurrent(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("concurrent") {
        if is_page(&call) {
            j.untested(PAGE);
        } else if matches!(call.status(), Some(401 | 403 | 429 | 503)) {
            j.untested("the server refused requests at the same time");
        } else {
            j.check_call(call.response.is_some(), &call);
        }
    }
}

pub(super) fn refused_notification(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.case("malformed/no-method-name").filter(|call| call.status().is_some()) {
        j.check_call(call.status() >= Some(400), &call);
    }
}

pub(super) fn response_accepted(evidence: &Evidence<'_>, j: &mut Judgement) {
    for call in evidence.calls().filter(|call| call.request.kind == Kind::Response && !call.request.is_in_batch) {
        let Some(http) = call.http.filter(|http| http.status.is_some_and(|it| (200..300).contains(&it))) else {
            continue;
        };
        let has_body = !http.body.is_empty() || call.response.is_some();
        j.check_answer(http.status == Some(202) && !has_body, &call, || {
            let body = if has_body { " with a body" } else { "" };
            format!("HTTP {}{body}", http.status.unwrap_or_default())
        });
    }
    j.untested("the server accepted no response");
}
