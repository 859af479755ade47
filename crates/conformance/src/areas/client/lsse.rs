//! HTTP with SSE, as a client uses it.

use url::Url;

use super::{
    super::{Judge, lsse::streams},
    common::{header, header_text, heads, sent_in},
};
use crate::{Evidence, Judgement};

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-lsse.get.accept", |e, j| {
        for stream in streams(e) {
            let accepted = header(stream.http, "accept");
            let is_accepted =
                accepted.as_deref().is_some_and(|it| it.to_ascii_lowercase().contains("text/event-stream"));
            j.check_at(is_accepted, None, heads(stream.http), || header_text("Accept", accepted.as_deref()));
        }
    }),
    ("client-lsse.endpoint.used", |e, j| endpoint(e, j, |_| true)),
    ("client-lsse.endpoint.relative", |e, j| {
        endpoint(e, j, |it| !it.starts_with("http:") && !it.starts_with("https:"));
        j.untested("the server sent a whole URL");
    }),
];

/// The path and query to which a client must post, if the stream with this target names an endpoint.
fn resolved(target: &str, endpoint: &str) -> Option<String> {
    let base = Url::parse("http://localhost").ok()?.join(target).ok()?;
    let url = base.join(endpoint.trim()).ok()?;
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

fn endpoint(evidence: &Evidence<'_>, j: &mut Judgement, applies: impl Fn(&str) -> bool) {
    let mut all = Vec::new();
    for stream in streams(evidence) {
        let Some(endpoint) = stream.endpoint().filter(|it| applies(it)) else { continue };
        let Some(wanted) = resolved(stream.http.target, &endpoint) else { continue };
        let posts = stream.connection.exchanges.values().filter(|http| http.method == "POST");
        for http in posts.filter(|http| sent_in(stream.connection, http).is_some()) {
            let is_wanted = is_same_target(http.target, &wanted);
            j.check_at(is_wanted, None, heads(http), || format!("a POST to {}", http.target));
        }
        all.push(wanted);
    }
    // What names no session of the server is not in the trace of one.
    let strays = evidence.exchanges().filter(|(connection, http)| {
        let has_stream = connection.exchanges.values().any(|it| it.method == "GET" && it.is_stream());
        http.method == "POST" && !has_stream && sent_in(connection, http).is_some()
    });
    for (_, http) in strays.filter(|_| !all.is_empty()) {
        let is_wanted = all.iter().any(|wanted| is_same_target(http.target, wanted));
        j.check_at(is_wanted, None, heads(http), || format!("a POST to {}", http.target));
    }
}

/// Whether a target is the wanted one, in whatever form it has its special characters.
fn is_same_target(target: &str, wanted: &str) -> bool {
    target == wanted || resolved("/", target).as_deref() == Some(wanted)
}
