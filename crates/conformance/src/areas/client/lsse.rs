//! HTTP with SSE, as a client uses it.

use url::Url;

use super::super::Judge;
use super::super::lsse::streams;
use super::common::{header, headers, sent_in};
use super::{completes, reinitializes};
use crate::areas::query::Query;
use crate::{Evidence, HttpExchange, Judgement};

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-lsse.get.accept", |e, j| {
        headers(streams(e).map(|it| (it.connection, it.http)), j, ("accept", "Accept"), |accepted| {
            accepted.is_some_and(|it| it.to_ascii_lowercase().contains("text/event-stream"))
        })
    }),
    ("client-lsse.endpoint.used", |e, j| endpoint(e, j, |_| true)),
    ("client-lsse.endpoint.waits", |e, j| {
        let paths: Vec<_> = streams(e).filter_map(|it| it.http.target.split('?').next()).collect();
        if e.facts.is_in("sse-late") && !paths.is_empty() {
            // A POST to the URL of the stream asks whether the server speaks streamable HTTP.
            let is_early = |http: &HttpExchange<'_>| {
                let path = http.target.split('?').next().unwrap_or_default();
                http.method == "POST" && !http.target.contains("sessionId=") && !paths.contains(&path)
            };
            let early = e.exchanges().map(|(_, http)| http).find(|http| is_early(http));
            let places = early
                .map(HttpExchange::places)
                .or_else(|| streams(e).next().map(|it| it.http.places()))
                .unwrap_or_default();
            j.check_at(early.is_none(), None, places, || format!("a POST to {}", early.map_or("", |it| it.target)));
        }
    }),
    ("client-lsse.endpoint.cross-origin-refused", |e, j| {
        for stream in streams(e) {
            let Some(own) = header(stream.http, "host") else { continue };
            let Some(endpoint) = stream.endpoint().and_then(|it| Url::parse(it.trim()).ok()) else { continue };
            let named = endpoint[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
            if named == own {
                continue;
            }
            let mut posts = stream.connection.exchanges.values().filter(|http| http.method == "POST");
            let post = posts.find(|http| header(http, "host").is_some_and(|host| host == named));
            let places = stream.http.places_with(post.map(|http| http.request));
            j.check_at(post.is_none(), None, places, || format!("a POST to {named}"));
        }
    }),
    ("client-lsse.message.event-type", |e, j| completes(e, j, "event-types")),
    ("client-lsse.post.2xx-ok", |e, j| {
        if e.exchanges().any(|(_, http)| http.method == "POST" && http.status == Some(200)) {
            completes(e, j, "sse-late");
        }
    }),
    ("client-lsse.reconnect.reinitializes", |e, j| {
        for stream in streams(e).skip(1) {
            reinitializes(stream.connection, j);
        }
    }),
    ("client-lsse.endpoint.relative", |e, j| {
        endpoint(e, j, |it| !it.starts_with("http:") && !it.starts_with("https:"))
    }),
];

/// The path and query to which a client must post, if the stream with this target names an endpoint.
fn resolved(target: &str, endpoint: &str) -> Option<String> {
    let base = Url::parse("http://localhost").ok()?.join(target).ok()?;
    let url = base.join(endpoint.trim()).ok()?;
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

fn endpoint(e: &Evidence<'_>, j: &mut Judgement, applies: impl Fn(&str) -> bool) {
    let mut all = Vec::new();
    for stream in streams(e) {
        let Some(endpoint) = stream.endpoint().filter(|it| applies(it)) else { continue };
        let Some(wanted) = resolved(stream.http.target, &endpoint) else { continue };
        let posts = stream.connection.exchanges.values().filter(|http| http.method == "POST");
        let exchanges = posts.filter(|http| sent_in(stream.connection, http).is_some());
        exchanges.must(j, |http| is_same_target(http.target, &wanted), |http| format!("a POST to {}", http.target));
        all.push(wanted);
    }
    // What names no session of the server is not in the trace of one.
    let strays = e.exchanges().filter(|(connection, http)| {
        let has_stream = connection.exchanges.values().any(|it| it.method == "GET" && it.is_stream());
        http.method == "POST" && !has_stream && sent_in(connection, http).is_some()
    });
    strays.filter(|_| !all.is_empty()).must(
        j,
        |http| all.iter().any(|wanted| is_same_target(http.target, wanted)),
        |http| format!("a POST to {}", http.target),
    );
}

/// Whether a target is the wanted one, in whatever form it has its special characters.
fn is_same_target(target: &str, wanted: &str) -> bool {
    target == wanted || resolved("/", target).as_deref() == Some(wanted)
}
