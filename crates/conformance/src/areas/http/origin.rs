//! `Origin` and `Host`: what keeps web pages from using a local server.

use rehearse_protocol::names::SESSION_HEADER;
use serde_json::json;
use url::Url;

use super::{answered, hello, is_client_error, list};
use crate::areas::Judge;
use crate::{Case, CaseGroup, Evidence, HttpExchange, Judgement, Material};

const EVIL: &str = "http://evil.example";
const NOT_LOCAL: &str = "the server is not local, and may accept any origin";

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("http.origin.invalid-403", |e, j| judge(e, j, "origin", |_, status| status == 403)),
    ("http.origin.validated", |e, j| judge(e, j, "origin", |_, status| is_client_error(status))),
    ("http.origin.null", |e, j| judge(e, j, "origin-null", |_, status| is_client_error(status))),
    ("http.origin.absent-ok", |e, j| {
        for call in e.calls().filter(|call| matches!(call.method(), "initialize" | "server/discover")) {
            let Some(http) = call.http.filter(|_| call.request.case.is_none()) else { continue };
            let is_challenge = http.header("www-authenticate").is_some();
            if http.status.is_some() && http.request_header("origin").is_none() && !is_challenge {
                j.check_call(http.status != Some(403), &call);
            }
        }
    }),
    ("http.origin.same-ok", |e, j| judge(e, j, "origin-own", |_, status| (200..300).contains(&status))),
    ("http.origin.suffix-trick", |e, j| {
        // Says something only of a server that refuses the plain foreign origin.
        let mut plain = e.http_case("origin/list").filter_map(|(_, http)| http.status);
        if plain.any(is_client_error) {
            judge(e, j, "origin-suffix", |_, status| is_client_error(status));
        }
    }),
    ("http.origin.port-mismatch", |e, j| judge(e, j, "origin-port", |_, status| (200..300).contains(&status))),
    ("http.host.rebinding", host),
    ("http.cors.no-wildcard-credentials", |e, j| {
        // No answer may allow any page to send credentials, or name a foreign page as allowed.
        for (_, http) in e.exchanges() {
            let (Some(allowed), Some(place)) = (http.header("access-control-allow-origin"), http.response) else {
                continue;
            };
            let has_credentials = http.header("access-control-allow-credentials") == Some("true");
            j.check_at(
                allowed != EVIL && !(allowed == "*" && has_credentials),
                None,
                vec![http.request, place],
                || {
                    let credentials = if has_credentials { " with credentials" } else { "" };
                    format!("`Access-Control-Allow-Origin: {allowed}`{credentials}")
                },
            );
        }
    }),
    ("http.cors.expose-session", |e, j| {
        // A page that may call the server, and cannot read the id that it must send back.
        for (_, http) in e.exchanges() {
            let is_read = http.header("access-control-allow-origin").is_some() && http.header(SESSION_HEADER).is_some();
            let Some(place) = http.response.filter(|_| is_read) else { continue };
            let lines = http.headers.into_iter().flat_map(|headers| headers.get_all("access-control-expose-headers"));
            let shown = lines.filter_map(|line| line.to_str().ok()).collect::<Vec<_>>().join(", ");
            let mut names = shown.split(',').map(str::trim);
            let holds = names.any(|name| name == "*" || name.eq_ignore_ascii_case(SESSION_HEADER));
            j.check_at(holds, None, vec![http.request, place], || format!("`Access-Control-Expose-Headers: {shown}`"));
        }
    }),
];

pub(super) fn cases(material: &Material) -> Vec<Case> {
    let foreign = |case: Case| case.header("origin", EVIL);
    let mut cases = vec![foreign(hello(material, "origin/hello")), foreign(list(material, "origin/list"))];
    if !material.is_modern() {
        let params = json!({ "requestId": "rehearse-none" });
        cases.push(foreign(Case::notification(
            "origin/notification",
            CaseGroup::Negative,
            "notifications/cancelled",
            params,
        )));
        cases.push(foreign(Case::http("origin/get", CaseGroup::Negative, "GET").unanswered()));
    }
    for (name, origin) in [
        ("origin-null/list", "null"),
        ("origin-suffix/name", "http://localhost.evil.example"),
        ("origin-suffix/address", "http://127.0.0.1.evil.example"),
        ("origin-port/list", "http://localhost:1"),
    ] {
        cases.push(list(material, name).header("origin", origin));
    }
    let Ok(endpoint) = Url::parse(&material.endpoint) else { return cases };
    let own = endpoint.origin().ascii_serialization();
    cases.extend(
        [hello(material, "origin-own/hello"), list(material, "origin-own/list")].map(|it| it.header("origin", &own)),
    );
    if is_loopback(&endpoint) {
        cases.push(list(material, "host/list").header("host", "evil.example"));
    }
    cases
}

fn is_loopback(endpoint: &Url) -> bool {
    match endpoint.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Checks the status of each case on a local server.
fn judge(e: &Evidence<'_>, j: &mut Judgement, case: &str, holds: impl Fn(&HttpExchange<'_>, u16) -> bool) {
    if !e.facts.is_local {
        return j.untested(NOT_LOCAL);
    }
    for (_, http) in e.http_case(case) {
        let Some((status, places)) = answered(http) else { continue };
        if status >= 500 {
            j.untested("the server failed for another reason");
            continue;
        }
        // What the server does not offer at all needs no check.
        if !is_missing(e, http, status) {
            j.check_at(holds(http, status), http.case, places, || match case {
                "host" => format!("HTTP {status}: DNS rebinding makes a page of that host one of this server"),
                _ => format!("HTTP {status}"),
            });
        }
    }
}

/// Whether the server has no such method: it answers the same to one from nowhere.
fn is_missing(evidence: &Evidence<'_>, http: &HttpExchange<'_>, status: u16) -> bool {
    let plain = match http.method {
        "GET" => "get-stream/get",
        "DELETE" => "session/delete",
        _ => return false,
    };
    status == 405 || (status >= 400 && evidence.http_case(plain).any(|(_, plain)| plain.status == Some(status)))
}

fn host(e: &Evidence<'_>, j: &mut Judgement) {
    judge(e, j, "host", |_, status| is_client_error(status));
    let endpoint = e.facts.endpoint.as_deref().and_then(|url| Url::parse(url).ok());
    j.untested(match endpoint.is_some_and(|url| is_loopback(&url)) {
        true => "the server did not answer",
        false => "the server is not on a loopback address",
    });
}
