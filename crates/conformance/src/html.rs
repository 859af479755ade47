//! What an HTML page is and what it loads, as far as its text says so: nothing of it is run.

use html5gum::{DefaultEmitter, Error, StartTag, Token, Tokenizer};
use url::Url;

/// A page of HTML.
#[derive(Debug, Default)]
pub(crate) struct Html {
    pub(crate) has_doctype: bool,
    /// Whether it has an element that only a document has.
    pub(crate) has_document_element: bool,
    /// Where the text ends though more must follow.
    pub(crate) cut_in: Option<String>,
    /// What it loads, in order.
    pub(crate) links: Vec<Link>,
    base: Option<Url>,
}

/// Something that a browser loads for a page.
#[derive(Debug, PartialEq)]
pub(crate) struct Link {
    pub(crate) kind: LinkKind,
    /// As it is written.
    pub(crate) written: String,
    /// Where it is; `None` if only the place of the page says that.
    pub(crate) url: Option<Url>,
}

/// What is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Script,
    Style,
    Media,
    Frame,
    Base,
    /// A request that a script makes.
    Request,
}

/// The elements whose text has no tags.
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
/// The elements whose content is not loaded.
const INERT: [&str; 2] = ["template", "noscript"];
/// The calls whose first argument is a URL.
const REQUESTS: [&str; 3] = ["fetch(", "new WebSocket(", "new EventSource("];

impl Html {
    pub(crate) fn parse(text: &str) -> Html {
        let mut emitter = DefaultEmitter::default();
        emitter.naively_switch_states(true);
        let (mut html, mut raw, mut inert) = (Html::default(), None::<String>, 0_usize);
        for token in Tokenizer::new_with_emitter(text, emitter).flatten() {
            match token {
                Token::Doctype(doctype) => html.has_doctype |= doctype.name.eq_ignore_ascii_case(b"html"),
                Token::StartTag(tag) => {
                    let name = String::from_utf8_lossy(&tag.name).into_owned();
                    html.has_document_element |= ["html", "head", "body"].contains(&&*name);
                    if INERT.contains(&&*name) {
                        inert += 1;
                    } else if inert == 0 {
                        html.read_links(&name, &tag);
                    }
                    // In SVG it has no end tag then.
                    raw = (RAW.contains(&&*name) && !tag.self_closing).then_some(name);
                }
                Token::EndTag(tag) => {
                    raw = None;
                    inert = inert
                        .saturating_sub(INERT.iter().any(|it| tag.name.eq_ignore_ascii_case(it.as_bytes())).into());
                }
                Token::String(text) if raw.as_deref() == Some("script") && inert == 0 => {
                    html.read_requests(&String::from_utf8_lossy(&text));
                }
                Token::Error(error) => {
                    html.cut_in = html.cut_in.take().or(match *error {
                        Error::EofInTag | Error::EofBeforeTagName => Some("a tag".to_owned()),
                        Error::EofInComment => Some("a comment".to_owned()),
                        Error::EofInDoctype => Some("the doctype".to_owned()),
                        _ => None,
                    });
                }
                Token::String(_) | Token::Comment(_) => {}
            }
        }
        html.cut_in = html.cut_in.take().or(raw.map(|name| format!("`<{name}>`")));
        html
    }

    fn read_links(&mut self, name: &str, tag: &StartTag<()>) {
        let attribute = |name: &str| {
            let value = tag.attributes.get(name.as_bytes())?;
            Some(String::from_utf8_lossy(value).trim().to_owned())
        };
        let (key, kind) = match name {
            "script" => ("src", LinkKind::Script),
            "img" | "audio" | "video" | "source" | "track" => ("src", LinkKind::Media),
            "iframe" => ("src", LinkKind::Frame),
            "base" => ("href", LinkKind::Base),
            "link" => {
                let relations = attribute("rel").unwrap_or_default().to_ascii_lowercase();
                // Other links are not loaded, or are no more than hints.
                if !relations.split_ascii_whitespace().any(|it| it == "stylesheet") {
                    return;
                }
                ("href", LinkKind::Style)
            }
            _ => return,
        };
        self.link(kind, attribute(key).unwrap_or_default());
    }

    fn read_requests(&mut self, script: &str) {
        for call in REQUESTS {
            for (start, _) in script.match_indices(call) {
                let argument = script.get(start + call.len()..).unwrap_or_default().trim_start();
                let Some(quote) = argument.chars().next().filter(|it| "\"'".contains(*it)) else { continue };
                let literal = argument.get(1..).and_then(|rest| rest.split_once(quote));
                if let Some((url, _)) = literal.filter(|(url, _)| url.contains("://")) {
                    self.link(LinkKind::Request, url.to_owned());
                }
            }
        }
    }

    fn link(&mut self, kind: LinkKind, written: String) {
        // Nothing is loaded for an empty one, or for a part of the page itself.
        if written.is_empty() || written.starts_with('#') {
            return;
        }
        let absolute = if written.starts_with("//") { format!("https:{written}") } else { written.clone() };
        let url = match (&self.base, Url::parse(&absolute)) {
            (_, Ok(url)) => Some(url),
            (Some(base), Err(_)) => base.join(&written).ok(),
            (None, Err(_)) => None,
        };
        if kind == LinkKind::Base && self.base.is_none() {
            self.base.clone_from(&url);
        }
        self.links.push(Link { kind, written, url });
    }
}

/// Whether a source of a content security policy allows a URL (CSP3, section 6.7.2.8). A path says nothing here.
pub(crate) fn allows(source: &str, url: &Url) -> bool {
    if source == "*" {
        return matches!(url.scheme(), "http" | "https" | "ws" | "wss");
    }
    if let Some(scheme) = source.strip_suffix(':') {
        return url.scheme().eq_ignore_ascii_case(scheme);
    }
    let (scheme, rest) = source.split_once("://").map_or((None, source), |(scheme, rest)| (Some(scheme), rest));
    let is_scheme = scheme.is_none_or(|scheme| {
        let is_safer = |plain: &str, safe: &str| scheme.eq_ignore_ascii_case(plain) && url.scheme() == safe;
        scheme.eq_ignore_ascii_case(url.scheme()) || is_safer("http", "https") || is_safer("ws", "wss")
    });
    let authority = rest.split('/').next().unwrap_or_default();
    let (host, port) = authority.rsplit_once(':').map_or((authority, None), |(host, port)| (host, Some(port)));
    let (host, found) = (host.to_ascii_lowercase(), url.host_str().unwrap_or_default());
    let is_host = match host.strip_prefix("*.") {
        Some(domain) => found.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.')),
        None => host == found,
    };
    let is_port = match port {
        None => url.port().is_none(),
        Some("*") => true,
        Some(port) => url.port_or_known_default().is_some_and(|it| it.to_string() == port),
    };
    is_scheme && is_host && is_port
}

/// Whether a text is an origin, or one with a wildcard for its subdomains.
pub(crate) fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let host = authority.strip_prefix("*.").unwrap_or(authority);
    let is_plain = !host.is_empty() && !host.contains(|it: char| "/?#@*;,'\"\\".contains(it) || it.is_whitespace());
    is_plain && Url::parse(&format!("{scheme}://{host}")).is_ok_and(|url| url.has_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(text: &str) -> Vec<(LinkKind, String)> {
        let links = Html::parse(text).links.into_iter();
        links.map(|it| (it.kind, it.url.map_or_else(|| format!("? {}", it.written), |url| url.to_string()))).collect()
    }

    #[test]
    fn what_a_page_loads_is_found_and_what_it_only_mentions_is_not() {
        let page = r##"<!doctype html><script src=https://a.com/x.js></script><SCRIPT>
            "<img src='https://no.com/1'>"; fetch("https://b.com/d?q=1"); fetch(url); new WebSocket('wss://c.com')</SCRIPT>
            <!-- <img src="https://no.com/2"> --><a href="https://no.com/3">x</a><link rel="icon" href="https://no.com/4">
            <link rel="preload stylesheet" href="//d.com/s.css"><img src="data:image/png;base64,AA=="><img src="#x">
            <template><img src="https://no.com/5"></template><noscript><img src="https://no.com/6"></noscript>
            <script src="./main.js?a=1&amp;b=2"></script><base href="https://e.com/app/"><video src="v.mp4"></video>"##;
        let expected = [
            (LinkKind::Script, "https://a.com/x.js"),
            (LinkKind::Request, "https://b.com/d?q=1"),
            (LinkKind::Request, "wss://c.com/"),
            (LinkKind::Style, "https://d.com/s.css"),
            (LinkKind::Media, "data:image/png;base64,AA=="),
            (LinkKind::Script, "? ./main.js?a=1&b=2"),
            (LinkKind::Base, "https://e.com/app/"),
            (LinkKind::Media, "https://e.com/app/v.mp4"),
        ];
        assert_eq!(loaded(page), expected.map(|(kind, url)| (kind, url.to_owned())));
    }

    #[test]
    fn a_text_that_ends_too_early_is_cut() {
        let cut = |text: &str| Html::parse(text).cut_in;
        for text in ["<p>x", "<html><script>a < b</script>", "<title>a</title>", "<!-- x -->", "a < b"] {
            assert_eq!(cut(text), None, "{text}");
        }
        for (text, place) in [
            ("<body><script>let a = 1;", "`<script>`"),
            ("<style>p{", "`<style>`"),
            ("<p clas", "a tag"),
            ("<!-- x", "a comment"),
        ] {
            assert_eq!(cut(text).as_deref(), Some(place), "{text}");
        }
    }

    #[test]
    fn a_source_allows_its_origin() {
        let is_allowed = |source: &str, url: &str| allows(source, &Url::parse(url).expect("a URL"));
        for (source, url, expected) in [
            ("https://a.com", "https://a.com/x.js", true),
            ("https://A.com/", "https://a.com/x.js", true),
            ("https://a.com", "https://b.a.com/x.js", false),
            ("https://*.a.com", "https://b.a.com/x.js", true),
            ("https://*.a.com", "https://a.com/x.js", false),
            ("https://*.a.com", "https://bada.com/x.js", false),
            ("https://a.com", "http://a.com/", false),
            ("http://a.com", "https://a.com/", true),
            ("https://a.com", "https://a.com:8443/", false),
            ("https://a.com:8443", "https://a.com:8443/", true),
            ("http://localhost:*", "http://localhost:3000/", true),
            ("a.com", "https://a.com/", true),
            ("https:", "https://a.com/", true),
            ("data:", "data:text/css,p", true),
            ("*", "wss://a.com/", true),
            ("*", "data:text/css,p", false),
        ] {
            assert_eq!(is_allowed(source, url), expected, "{source} {url}");
        }
    }

    #[test]
    fn an_origin_has_a_scheme_and_no_path() {
        for origin in ["https://a.com", "https://a.com/", "wss://a.com:8443", "https://*.a.com", "http://[::1]:3000"] {
            assert!(is_origin(origin), "{origin}");
        }
        for other in
            ["a.com", "*", "https:", "'unsafe-eval'", "https://a.com/x", "https://a.com; x", "https://", "data:"]
        {
            assert!(!is_origin(other), "{other}");
        }
    }
}
