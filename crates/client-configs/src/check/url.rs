//! URLs, and what goes to them.

use std::net::IpAddr;

use url::{Host, Url};

use super::CheckedConfig;
use crate::{
    At, ConfiguredServer, codes,
    dialect::{Dialect, Field},
    placeholder::placeholder,
    secret::is_secret_name,
};
use rehearse_document::{Node, references};
use rehearse_protocol::{Transport, is_protocol_header};
use rehearse_report::findings::Finding;

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    headers(server, findings);
    let Some(url) = &server.url else { return };
    let text = url.value.trim();
    if text.is_empty() {
        let code = if checked.dialect().ignores_empty_url { &codes::PLACEHOLDER } else { &codes::MISSING };
        let finding = code.at(url.span, "the URL is empty").hint("write the URL of the server");
        findings.extend(server.is_enabled().then_some(finding));
        return;
    }
    // What is replaced is not known, and may be the whole URL.
    let replaced = checked.dialect().rule(Field::Url(None)).replaced_in(text);
    let first = references(text).next().map(|it| it.range.start);
    let first = replaced.into_iter().map(|range| range.start).chain(first).min();
    let known = first.map_or(text, |start| &text[..start]);
    if first.is_some() && !known.contains("://") {
        return;
    }
    let placeholder = placeholder(text).map(|range| range.start);
    if placeholder == Some(0) {
        return;
    }
    if !scheme(checked.dialect(), server, url, text, findings) {
        return;
    }
    if let Some(at) = text.find([' ', '\t', '\n']).filter(|_| first.is_none() && placeholder.is_none()) {
        let at = url.value.len() - url.value.trim_start().len() + at;
        let space = checked.source.part(url.span, &url.value, at..at + 1);
        findings.push(codes::INVISIBLE.at(space, "a space in the URL").hint("remove it, or write %20"));
        return;
    }
    if first.or(text.find(['<', '{'])).is_some() {
        return;
    }
    match Url::parse(text) {
        Ok(parsed) if parsed.host().is_some() || !["http", "https", "ws", "wss"].contains(&parsed.scheme()) => {
            host(server, url, &parsed, findings);
            listed(checked, url, &parsed, findings);
        }
        Ok(_) => findings.push(codes::URL.at(url.span, "the URL has no host").hint("https://host/path")),
        Err(error) => {
            let message = format!("not a valid URL: {error}");
            findings.push(codes::URL.at(url.span, message).hint("write a URL such as https://host:8080/path"));
        }
    }
}

/// Whether the transport supports the scheme; if not, that is reported.
fn scheme(
    dialect: &Dialect,
    server: &ConfiguredServer,
    url: &At<String>,
    text: &str,
    findings: &mut Vec<Finding>,
) -> bool {
    let transport = server.transport.value;
    let schemes = match transport.schemes() {
        [] => Transport::Http.schemes(),
        schemes => schemes,
    };
    let Some((scheme, _)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', ' '])) else {
        let finding = codes::URL.at(url.span, "a URL begins with its scheme");
        findings.push(finding.hint(format!("begin it with {}://", schemes[1])));
        return false;
    };
    let scheme = scheme.to_ascii_lowercase();
    if schemes.contains(&&*scheme) || dialect.schemes.contains(&&*scheme) {
        return true;
    }
    let word = |wanted: Transport| dialect.transports.iter().find(|(_, transport)| *transport == wanted).map(|it| it.0);
    let other = match &*scheme {
        "ws" | "wss" => word(Transport::Ws),
        "http" | "https" => word(Transport::Http),
        _ => None,
    };
    let says = dialect.keys.iter().find(|key| key.field == Field::Transport).map_or("type", |key| key.name);
    let hint = match other {
        Some(word) => format!("write {}:// or {}://, or \"{says}\": \"{word}\"", schemes[0], schemes[1]),
        None => format!("write {}:// or {}://", schemes[0], schemes[1]),
    };
    let message = match transport {
        Transport::Stdio => format!("MCP has no transport for {scheme}://"),
        _ => format!("the transport {transport} does not support {scheme}://"),
    };
    findings.push(codes::URL_SCHEME.at(url.span, message).hint(hint));
    false
}

fn host(server: &ConfiguredServer, url: &At<String>, parsed: &Url, findings: &mut Vec<Finding>) {
    let address = address(parsed);
    if address.is_some_and(|address| address.is_unspecified()) {
        let message = "0.0.0.0 and [::] are listen addresses, not the address of a server";
        findings.push(codes::URL_HOST.at(url.span, message).hint("write 127.0.0.1 or localhost"));
        return;
    }
    let secret =
        server.headers.iter().find(|pair| is_secret_name(&pair.name.value)).map(|pair| pair.name.value.as_str());
    let secret =
        secret.or(server.auth.bearer.as_ref().map(|_| "a token")).or(server.auth.api_key.as_ref().map(|_| "a key"));
    if let (Some(secret), "http" | "ws", false) = (secret, parsed.scheme(), is_near(parsed)) {
        let message = format!("{secret} is sent to {} unencrypted", parsed.host_str().unwrap_or_default());
        findings.push(codes::PLAIN_HTTP.at(url.span, message).hint(format!("write {}s://", parsed.scheme())));
    }
}

/// Whether the list of allowed hosts in the file has this one; an empty list allows all.
fn listed(checked: &CheckedConfig<'_>, url: &At<String>, parsed: &Url, findings: &mut Vec<Finding>) {
    let list = checked.dialect().url_list.and_then(|keys| checked.root.get_path(keys)?.as_items());
    let entries: Vec<_> = list.unwrap_or_default().iter().filter_map(Node::as_str).collect();
    // A reference may be any host.
    if !entries.is_empty() && !entries.iter().any(|entry| entry.contains("${") || allows(entry, parsed)) {
        let place = checked.dialect().url_list.unwrap_or_default().join(".");
        let host = parsed.host_str().unwrap_or_default();
        let message =
            format!("{} does not connect to {host}, which `{place}` does not list", checked.dialect().program);
        findings.push(codes::URL_UNLISTED.at(url.span, message).hint(format!("add `{host}` to `{place}`")));
    }
}

/// Whether an entry of a list is this host: `example.com`, `*.example.com`, `https://example.com:8443` (read in
/// danny-avila/LibreChat `packages/api/src/auth/domain.ts` @0268c82).
fn allows(entry: &str, url: &Url) -> bool {
    let entry = entry.trim().to_lowercase();
    let (scheme, rest) = entry.split_once("://").map_or((None, &*entry), |(scheme, rest)| (Some(scheme), rest));
    let rest = rest.split(['/', '?']).next().unwrap_or_default();
    let port = rest.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (name, port) = port.map_or((rest, None), |(host, port)| (host, Some(port)));
    let plain = |name: &str| name.strip_prefix("www.").unwrap_or(name).to_owned();
    let host = plain(url.host_str().unwrap_or_default());
    let is_host = match name.strip_prefix("*.") {
        Some(domain) => host == domain || host.ends_with(&format!(".{domain}")),
        None => host == plain(name),
    };
    // A port that is the usual one of its scheme is not part of what the list is compared with.
    is_host && scheme.is_none_or(|scheme| scheme == url.scheme()) && (port.is_none() || port == url.port())
}

/// The address in a URL, if it has one and no name.
fn address(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        _ => None,
    }
}

/// Whether a URL leads to this machine or a container on it: names without a dot, and those of Docker for the machine.
fn is_near(url: &Url) -> bool {
    let is_of_containers = |name: &str| !name.contains('.') || name.ends_with(".docker.internal");
    is_loopback(url) || matches!(url.host(), Some(Host::Domain(name)) if is_of_containers(name))
}

/// Whether a URL leads to this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        _ => address(url).is_none_or(|address| address.is_loopback()),
    }
}

/// RFC 9110, 5.1 and 5.5: names are tokens, and values have no line breaks.
fn headers(server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    for pair in &server.headers {
        let name = &pair.name.value;
        if name.is_empty() || !name.chars().all(|c| is_token(c) || c == '{' || c == '}') {
            let message = "not a valid header name";
            let hint = match name.split_once(':') {
                Some((before, _)) => format!("the name is `{before}`; move the rest to its value"),
                None => "use letters, digits and -".into(),
            };
            findings.push(codes::HEADER.at(pair.name.span, message).hint(hint));
        }
        if ["accept", "content-type"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            let message = format!("{name} is sent anyway, as the protocol requires it");
            findings.push(codes::HEADER_NEEDLESS.at(pair.name.span, message).hint("remove it"));
        } else if is_protocol_header(name) {
            let message = format!("{name} belongs to the protocol, which sets it itself");
            findings.push(codes::HEADER_OVERRIDDEN.at(pair.name.span, message).hint("remove it"));
        }
        if pair.value.value.contains(['\r', '\n', '\0']) {
            let message = format!("the value of {name} has a line break");
            findings.push(codes::HEADER.at(pair.value.span, message).hint("write it in one line"));
        }
    }
}
