//! URLs, and what goes to them.

use std::net::IpAddr;

use url::{Host, Url};

use super::Subject;
use crate::{
    config::{
        dialect::{Dialect, Field},
        finding::{Finding, codes},
        lookalike::lookalikes_in,
        placeholder::placeholder,
        references,
        secret::is_secret_name,
        server::{At, ServerConfig},
    },
    transport::Transport,
};

pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    headers(server, findings);
    metadata(server, findings);
    let Some(url) = &server.url else { return };
    let text = url.value.trim();
    if text.is_empty() {
        // Who takes it for one cannot reach it all the same.
        let code = if subject.dialect().empty_url { &codes::PLACEHOLDER } else { &codes::MISSING };
        let finding = code.at(url.span, "the URL is empty").hint("write where the server is");
        findings.extend(server.is_enabled().then_some(finding));
        return;
    }
    // What is replaced is not known, and may be all of it.
    let replaced = subject.dialect().rule(Field::Url(None)).replaced_in(text);
    let first = references(text).next().map(|it| it.range.start);
    let first = replaced.into_iter().map(|range| range.start).chain(first).min();
    let known = first.map_or(text, |start| &text[..start]);
    if first.is_some() && !known.contains("://") {
        return;
    }
    // Such a beginning is told as what it is.
    let to_be_filled_in = placeholder(text).map(|range| range.start);
    if to_be_filled_in == Some(0) || lookalikes_in(text).next().is_some_and(|(range, _)| range.start == 0) {
        return;
    }
    if !scheme(subject.dialect(), server, url, text, findings) {
        return;
    }
    if let Some(at) = text.find([' ', '\t', '\n']).filter(|_| first.is_none() && to_be_filled_in.is_none()) {
        let at = url.value.len() - url.value.trim_start().len() + at;
        let blank = subject.source.part(url.span, &url.value, at..at + 1);
        findings.push(codes::INVISIBLE.at(blank, "there is a blank in the URL").hint("remove it, or write %20"));
        return;
    }
    let unknown = first.or(text.find(['<', '{']));
    if let Some(parsed) = unknown.and_then(|unknown| with_whole_host(text, unknown)) {
        host(server, url, &parsed, findings);
    }
    if unknown.is_some() {
        return;
    }
    match Url::parse(text) {
        Ok(parsed) if parsed.host().is_some() || !["http", "https", "ws", "wss"].contains(&parsed.scheme()) => {
            host(server, url, &parsed, findings);
        }
        Ok(_) => findings.push(codes::URL.at(url.span, "the URL has no host").hint("https://host/path")),
        Err(error) => {
            let message = format!("this is no URL: {error}");
            findings.push(codes::URL.at(url.span, message).hint("a URL is like https://host:8080/path"));
        }
    }
}

/// What is known of a URL up to this place, if its host is.
fn with_whole_host(text: &str, unknown: usize) -> Option<Url> {
    let (known, rest) = text.split_at(unknown);
    let (scheme, after) = known.split_once("://")?;
    let host = &after[..after.find(['/', '?', '#', ':'])?];
    // What stands before the host may have a colon too.
    let is_before_host = !after.contains('/') && rest[..rest.find('/').unwrap_or(rest.len())].contains('@');
    let is_whole = !is_before_host && !host.contains(['@', '[']) && !host.is_empty();
    is_whole.then(|| Url::parse(&format!("{scheme}://{host}")).ok()).flatten()
}

/// The metadata of an authorization server are read over TLS (RFC 8414, 3), unless somebody tries one out.
fn metadata(server: &ServerConfig, findings: &mut Vec<Finding>) {
    let url = server.auth.oauth.as_ref().and_then(|oauth| oauth.metadata_url.as_ref());
    let is_here = |url: &str| Url::parse(url).is_ok_and(|url| is_loopback(&url));
    if let Some(url) = url.filter(|url| url.value.starts_with("http://") && !is_here(&url.value)) {
        let message = "the metadata of an authorization server are read over https only";
        findings.push(codes::URL_SCHEME.at(url.span, message).hint("write https://"));
    }
}

/// Whether the scheme is one that the transport speaks; if not, that is told.
fn scheme(dialect: &Dialect, server: &ServerConfig, url: &At<String>, text: &str, findings: &mut Vec<Finding>) -> bool {
    let transport = server.transport.value;
    let schemes: &[&str] = if transport == Transport::Ws { &["ws", "wss"] } else { &["http", "https"] };
    let Some((scheme, rest)) = text.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', ' '])) else {
        let local = ["localhost", "127.", "[::1]"].iter().any(|host| text.starts_with(host));
        let scheme = if local { schemes[0] } else { schemes[1] };
        let finding = codes::URL.at(url.span, "a URL begins with its scheme");
        let slip = schemes.iter().find_map(|scheme| match text.strip_prefix(scheme)? {
            rest if rest.starts_with(":/") => Some(format!("write two slashes: {scheme}://")),
            rest if rest.starts_with("//") => Some(format!("write a colon before the slashes: {scheme}://")),
            _ => None,
        });
        let has_scheme = schemes.iter().any(|scheme| text.strip_prefix(scheme).is_some_and(|it| it.starts_with(":\\")));
        let slip = slip.or_else(|| has_scheme.then(|| "write / instead of each backslash".to_owned()));
        findings.push(finding.hint(slip.unwrap_or_else(|| match text.starts_with("//") {
            true => format!("write {scheme}: before it"),
            false => format!("begin it with {scheme}://"),
        })));
        return false;
    };
    if let Some(second) =
        schemes.iter().find(|it| rest.strip_prefix(**it).is_some_and(|it| it.starts_with(":/") || it.starts_with("//")))
    {
        let message = "a URL has its scheme once";
        findings.push(codes::URL.at(url.span, message).hint(format!("write {second}:// once, and the host after it")));
        return false;
    }
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
        Transport::Stdio => format!("no server is reached by {scheme}://"),
        _ => format!("a server of transport {transport} is not reached by {scheme}://"),
    };
    findings.push(codes::URL_SCHEME.at(url.span, message).hint(hint));
    false
}

fn host(server: &ServerConfig, url: &At<String>, parsed: &Url, findings: &mut Vec<Finding>) {
    let address = address(parsed);
    if address.is_some_and(|address| address.is_unspecified()) {
        let message = "a server listens on this address, and only some systems let anybody dial it";
        findings.push(codes::URL_HOST.at(url.span, message).hint("write 127.0.0.1 or localhost"));
        return;
    }
    let secret =
        server.headers.iter().find(|pair| is_secret_name(&pair.name.value)).map(|pair| pair.name.value.as_str());
    let secret =
        secret.or(server.auth.bearer.as_ref().map(|_| "a token")).or(server.auth.api_key.as_ref().map(|_| "a key"));
    if let (Some(secret), "http" | "ws", false) = (secret, parsed.scheme(), is_near(parsed)) {
        let message = format!("{secret} goes to {} unencrypted", parsed.host_str().unwrap_or_default());
        findings.push(codes::PLAIN_HTTP.at(url.span, message).hint(format!("write {}s://", parsed.scheme())));
    }
}

/// The address in a URL, if it has one and no name.
fn address(url: &Url) -> Option<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        _ => None,
    }
}

/// Whether a URL leads to this machine, or to a container on it: their names have no dot, but those that Docker gives to
/// the machine itself. A private address may be another machine's.
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
fn headers(server: &ServerConfig, findings: &mut Vec<Finding>) {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    for pair in &server.headers {
        let name = &pair.name.value;
        if name.is_empty() || !name.chars().all(|c| is_token(c) || c == '{' || c == '}') {
            let message = "this is no name of a header";
            let hint = match name.split_once(':') {
                Some((before, _)) => format!("the name is `{before}`, the rest belongs into its value"),
                None => "letters, digits and - are good".into(),
            };
            findings.push(codes::HEADER.at(pair.name.span, message).hint(hint));
        }
        if pair.value.value.contains(['\r', '\n', '\0']) {
            let message = format!("the value of {name} has a line break");
            findings.push(codes::HEADER.at(pair.value.span, message).hint("HTTP rejects it; write it in one line"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Source, examine, finding::codes};

    #[test]
    fn what_begins_a_url_is_told_as_it_is_wrong() {
        for (url, expected) in [
            ("https://https://a.example", "write https:// once, and the host after it"),
            ("https://http//a.example", "write http:// once, and the host after it"),
            ("//a.example/mcp", "write https: before it"),
            (r"https:\\\\a.example", "write / instead of each backslash"),
            ("a.example/mcp", "begin it with https://"),
            ("https://a.example/ mcp", "remove it, or write %20"),
            ("{{ url }}/mcp", "write what belongs there"),
            ("<YOUR_URL>", "write what belongs there"),
            ("%SERVER%/mcp", "write ${SERVER}"),
        ] {
            let text = format!("{{\"mcpServers\": {{\"s\": {{\"type\": \"http\", \"url\": \"{url}\"}}}}}}");
            let examined = examine(&Source::new(".mcp.json", text.clone()), Some(Path::new(".mcp.json")), None, None);
            let told: Vec<_> = examined.findings.iter().map(|it| it.problem.hint.as_deref()).collect();
            assert_eq!(told, [Some(expected)], "{url}");
        }
    }

    #[test]
    fn a_secret_may_go_unencrypted_to_containers_of_this_machine_and_to_no_other() {
        let is_told = |url: &str| {
            let server = format!(
                "{{\"type\": \"http\", \"url\": \"{url}\", \"headers\": {{\"Authorization\": \"Bearer ${{T:-}}\"}}}}"
            );
            let source = Source::new(".mcp.json", format!("{{\"mcpServers\": {{\"s\": {server}}}}}"));
            let examined = examine(&source, Some(Path::new(".mcp.json")), None, None);
            examined.findings.iter().any(|it| it.code == &codes::PLAIN_HTTP)
        };
        for near in ["localhost", "mcp-server:8000", "host.docker.internal:8080", "gateway.docker.internal", "[::1]:80"]
        {
            assert!(!is_told(&format!("http://{near}/mcp")), "{near}");
        }
        for far in
            ["192.168.1.5", "10.0.0.1:80", "nas.local", "api.internal", "docker.internal.example.com", "[fe80::1]"]
        {
            assert!(is_told(&format!("http://{far}/mcp")), "{far}");
        }
    }
}
