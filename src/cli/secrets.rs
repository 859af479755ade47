//! The secrets of servers, and their redaction in everything that is printed.

use std::{
    hash::{BuildHasher, RandomState},
    ops::Range,
    sync::LazyLock,
};

use parking_lot::Mutex;
use regex::Regex;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

use rehearse_client::{ServerParams, Target, oauth::Authorizer};
use rehearse_client_configs::{
    Variables,
    secret::{MASK, hidden_in, is_secret_name, secrets_in_argument},
    server,
};
use rehearse_document::references;
use rehearse_protocol::names::SESSION_HEADER;
use rehearse_report::{WireKind, WireLine, summary::Results};
use rehearse_scenario::{Scenario, ServerKind};
use rehearse_system::program;

/// The minimum length of a secret: shorter texts occur by chance.
const MIN_LENGTH: usize = 6;
/// The minimum length of a secret that may be a word.
const MIN_WORD_LENGTH: usize = 8;
/// The length of the longest usual words.
const MAX_PROSE_LENGTH: usize = 16;
/// A member whose name looks like that of a secret.
const PROGRESS: &str = "\"progressToken\":";

/// The codes of OAuth in queries and forms (RFC 6749, 4.1.2 and 4.1.3; RFC 8628, 3.4; RFC 7521, 4).
static CODE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:^|[?&])(?:(?:device_)?code|(?:client_)?assertion)=([^&\s"'<>#]+)"#).ok());

/// What was typed, what is in the environment, and what the configs and scenarios read so far have.
static KNOWN: LazyLock<Mutex<Secrets>> = LazyLock::new(|| Mutex::new(Secrets::of_process()));

/// Texts that must not be printed; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    texts: Vec<String>,
    /// Whether to also mask text in stderr and frames that looks like a secret.
    masks_unknown: bool,
    /// The authorizers whose current tokens must not be printed.
    authorizers: Vec<Authorizer>,
    /// The headers of scenarios, as `name: value`. A value may come from a variable, so an HTTP head hides all of them.
    headers: Vec<(String, String)>,
}

/// A result has a value that its JSON cannot have.
#[derive(Debug, thiserror::Error)]
#[error("cannot mask the secrets of the result: {0}")]
pub(crate) struct MaskError(#[from] serde_json::Error);

impl Secrets {
    /// All secrets that this process knows. Every result and message is without them.
    pub(crate) fn known() -> Secrets {
        KNOWN.lock().clone()
    }

    /// A message without what is known to be secret.
    pub(crate) fn masked(message: &str) -> String {
        KNOWN.lock().hidden_known(message)
    }

    /// Adds them to [`Secrets::known`].
    #[must_use]
    pub(crate) fn remembered(self) -> Secrets {
        let mut known = KNOWN.lock();
        *known = std::mem::take(&mut *known).merge(&self);
        self
    }

    /// The secrets in the arguments of this process and in its environment; none with `--show-secrets`.
    fn of_process() -> Secrets {
        let mut secrets = Vec::new();
        let args: Vec<_> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
        if args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--show-secrets") {
            return Secrets::default();
        }
        add_words(&mut secrets, &args);
        // A command in quotes.
        let lines = args.iter().filter(|arg| arg.contains(char::is_whitespace));
        lines.filter_map(|line| program::words(line).ok()).for_each(|words| add_words(&mut secrets, &words));
        add_environment(&mut secrets, |_| true);
        Secrets::new(secrets)
    }

    /// The secrets of a server: secret literals, and the values of variables in secret places.
    pub(crate) fn from_server(
        server: &server::ConfiguredServer,
        resolved: &server::ConfiguredServer,
        config: &ServerParams,
        variables: &Variables,
    ) -> Secrets {
        let mut secrets = Vec::new();
        add_target(&mut secrets, &config.target);
        let auth = &resolved.auth;
        let keys = auth.bearer.iter().chain(auth.api_key.iter().map(|api_key| &api_key.key));
        let keys = keys.chain(auth.oauth.iter().filter_map(|oauth| oauth.client_secret.as_ref()));
        add_pairs(&mut secrets, keys.map(|key| ("token", &*key.value)));
        // The values of references in headers are always secret.
        let both = server.headers.iter().zip(&resolved.headers);
        secrets.extend(both.filter(|(written, it)| written.value != it.value).map(|(_, it)| it.value.value.clone()));
        for text in server.texts() {
            let secret = references(&text.at.value).filter(|reference| is_secret_name(reference.name));
            secrets.extend(secret.filter_map(|reference| variables.get(reference.name).map(str::to_owned)));
        }
        Secrets::new(secrets)
    }

    /// The secrets of the servers of a scenario.
    pub(crate) fn from_scenario(scenario: &Scenario) -> Secrets {
        let (mut secrets, mut own) = (Vec::new(), Vec::new());
        for server in &scenario.servers {
            match &server.kind {
                ServerKind::Mock(_, headers) => {
                    own.extend(headers.iter().cloned());
                    add_headers(&mut secrets, headers);
                }
                ServerKind::Subagent(_) => {}
                ServerKind::Config(members) => {
                    for member in members {
                        own.extend(headers_of(&member.config.target).iter().cloned());
                        add_target(&mut secrets, &member.config.target);
                    }
                }
                ServerKind::Targets(targets) => targets.iter().for_each(|spec| {
                    own.extend(headers_of(&spec.target).iter().cloned());
                    add_target(&mut secrets, &spec.target);
                    let env = spec.command.iter().flat_map(|network| &network.command.env);
                    add_pairs(&mut secrets, env.map(|(name, value)| (&**name, &**value)));
                }),
            }
        }
        let headers = own.into_iter().map(|(name, value)| (name.to_lowercase(), value)).collect();
        Secrets { headers, ..Secrets::new(secrets) }
    }

    /// The secrets in a command or a URL.
    pub(crate) fn from_target(target: &Target) -> Secrets {
        let mut secrets = Vec::new();
        add_target(&mut secrets, target);
        Secrets::new(secrets)
    }

    /// These texts, but for those that occur by chance.
    pub(crate) fn new(mut texts: Vec<String>) -> Secrets {
        texts.iter_mut().for_each(|text| *text = text.trim().to_owned());
        // The form in JSON strings.
        let quoted = |secret: &String| serde_json::to_string(secret).map(|text| text[1..text.len() - 1].to_owned());
        let quoted: Vec<_> = texts.iter().filter_map(|secret| quoted(secret).ok()).collect();
        texts.extend(quoted);
        texts.retain(|secret| secret.len() >= if is_word(secret) { MIN_WORD_LENGTH } else { MIN_LENGTH });
        Secrets { texts, masks_unknown: true, ..Secrets::default() }.sorted()
    }

    /// Masks the known secrets in a text.
    pub(crate) fn hidden_known(&self, text: &str) -> String {
        let text = self.texts.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK));
        self.authorizers.iter().fold(text, |text, authorizer| authorizer.masked(&text, MASK))
    }

    /// Masks the secrets in a text, such as a message or lines of standard error, and what looks like a secret and not
    /// like prose.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let text = self.hidden_known(text);
        let masked = || text.split('\n').map(|line| masked(line, |range| !is_prose(line, range)));
        if self.masks_unknown { masked().collect::<Vec<_>>().join("\n") } else { text }
    }

    /// Masks the secrets in a frame, and text that looks like a secret.
    pub(crate) fn hidden_in_frame(&self, frame: &str) -> String {
        let text = self.hidden_known(frame);
        if self.masks_unknown { masked(&text, |_| true) } else { text }
    }

    /// Masks a header, except for the scheme of credentials.
    pub(crate) fn hidden_header(&self, name: &str, value: &str) -> String {
        if name == SESSION_HEADER && self.masks_unknown {
            return stand_in(value);
        }
        match is_secret_name(name) {
            // The scheme is not a secret.
            true => match value.split_once(' ').filter(|_| name.ends_with("authorization")) {
                Some((scheme, _)) => format!("{scheme} {MASK}"),
                None => MASK.to_owned(),
            },
            // A challenge looks like credentials but is not secret.
            false if name.ends_with("-authenticate") => self.hidden_known(value),
            false => self.hidden_in_frame(value),
        }
    }

    /// Masks the secrets in every string of all results, of whatever kind.
    ///
    /// # Errors
    /// One has a value that its JSON cannot have.
    pub(crate) fn hidden_in_results(&self, results: Results) -> Result<Results, MaskError> {
        let Results { run, check, bench, diff, fuzz, host } = results;
        Ok(Results {
            run: self.hidden_in(run)?,
            check: self.hidden_in(check)?,
            bench: self.hidden_in(bench)?,
            diff: self.hidden_in(diff)?,
            fuzz: self.hidden_in(fuzz)?,
            host: self.hidden_in(host)?,
        })
    }

    /// Masks the secrets in every string of a value, by way of its JSON.
    ///
    /// # Errors
    /// It has a value that its JSON cannot have.
    pub(crate) fn hidden_in<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T, MaskError> {
        let masked = serde_json::to_value(value).and_then(|mut value| {
            self.hide_in_json("", &mut value);
            serde_json::from_value(value)
        });
        Ok(masked?)
    }

    /// Masks the secrets in the member of this name.
    fn hide_in_json(&self, name: &str, value: &mut Value) {
        match (name, value) {
            ("arguments", value @ Value::Object(_)) => {
                let text = self.hidden_in_frame(&value.to_string());
                *value = serde_json::from_str(&text).unwrap_or(text.into());
            }
            ("source", Value::String(text)) => {
                *text = text.split('\n').map(|line| self.hidden_in_frame(line)).collect::<Vec<_>>().join("\n");
            }
            (_, Value::String(text)) => *text = self.hidden(text),
            (name, Value::Array(items)) => items.iter_mut().for_each(|item| self.hide_in_json(name, item)),
            (_, Value::Object(members)) => {
                let is_wire = self.hide_in_wire(members);
                // What `rehearse fuzz` has made up is no secret, whatever it looks like.
                let is_made_up = members.contains_key("inputKind");
                for (name, mut value) in std::mem::take(members) {
                    if is_made_up && name == "arguments" {
                        let known = self.hidden_known(&value.to_string());
                        value = serde_json::from_str(&known).unwrap_or(known.into());
                    } else if !is_wire || !["text", "mark", "hex"].contains(&&*name) {
                        self.hide_in_json(&name, &mut value);
                    }
                    // Counts of what a server said have that as their name.
                    let name = self.hidden(&name);
                    match (members.get(&name).and_then(Value::as_u64), value.as_u64()) {
                        (Some(one), Some(other)) => members.insert(name, (one + other).into()),
                        _ => members.insert(name, value),
                    };
                }
            }
            _ => {}
        }
    }

    /// Masks the secrets in a line of traffic, if these members are one. Returns whether they are.
    fn hide_in_wire(&self, members: &mut Map<String, Value>) -> bool {
        if !["direction", "text", "length"].iter().all(|name| members.contains_key(*name)) {
            return false;
        }
        let Ok(mut line) = serde_json::from_value::<WireLine>(Value::Object(members.clone())) else { return false };
        self.hide_in_line(&mut line);
        if let Ok(Value::Object(line)) = serde_json::to_value(line) {
            // The bytes are gone with what was masked in them.
            members.remove("hex");
            members.extend(line);
        }
        true
    }

    fn hide_in_line(&self, line: &mut WireLine) {
        let text = self.without_part(line);
        let hidden = match line.kind {
            WireKind::Stderr => self.hidden(&text),
            WireKind::HttpHead => {
                let hide = |text: String, (name, value): &(String, String)| {
                    text.replace(&format!("{name}: {value}"), &format!("{name}: {MASK}"))
                };
                self.hidden_in_frame(&self.headers.iter().fold(text, hide))
            }
            _ => self.hidden_in_frame(&text),
        };
        line.mark = line.mark.take().map(|mark| self.hidden_in_frame(&mark));
        if hidden != line.text {
            (line.text, line.hex) = (hidden, None);
        }
    }

    /// The text of a line, without a part of a secret in which it begins or ends.
    fn without_part(&self, line: &WireLine) -> String {
        let mut text = line.text.clone();
        for secret in &self.texts {
            let ends = secret.char_indices().map(|(at, _)| at).filter(|at| *at >= MIN_LENGTH / 2);
            for at in ends.rev() {
                if let Some(before) = text.strip_suffix(&secret[..at]).filter(|_| line.is_cut()) {
                    text = format!("{before}{MASK}");
                }
                if let Some(after) = text.strip_prefix(&secret[at..]).filter(|_| line.offset > 0) {
                    text = format!("{MASK}{after}");
                }
            }
        }
        text
    }

    /// Adds other secrets.
    pub(crate) fn merge(mut self, other: &Secrets) -> Secrets {
        self.masks_unknown |= other.masks_unknown;
        self.texts.extend(other.texts.iter().cloned());
        self.headers.extend(other.headers.iter().cloned());
        self.authorizers.extend(other.authorizers.iter().cloned());
        self.sorted()
    }

    /// Adds the tokens of authorizers.
    pub(crate) fn merge_tokens(mut self, authorizers: impl IntoIterator<Item = Authorizer>) -> Secrets {
        self.authorizers.extend(authorizers);
        self
    }

    /// The longest text first: others may be parts of it.
    fn sorted(mut self) -> Secrets {
        self.texts.sort_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
        self.texts.dedup();
        self
    }
}

fn headers_of(target: &Target) -> &[(String, String)] {
    target.endpoint().map_or(&[], |endpoint| &endpoint.headers)
}

fn add_target(secrets: &mut Vec<String>, target: &Target) {
    if let Target::Stdio(spec) = target {
        add_pairs(secrets, spec.env.iter().map(|(name, value)| (&**name, &**value)));
        let is_inherited = |name: &str| spec.inherit.is_none_or(|names| names.contains(&name));
        add_environment(secrets, is_inherited);
        add_words(secrets, &spec.args);
    }
    if let Some(endpoint) = target.endpoint() {
        add_headers(secrets, &endpoint.headers);
        add_pairs(secrets, [("url", &*endpoint.url)]);
    }
}

/// The secrets in the words of a command.
fn add_words(secrets: &mut Vec<String>, words: &[String]) {
    let mut flag = "";
    for word in words {
        secrets.extend(secrets_in_argument(flag, word).into_iter().map(|range| word[range].to_owned()));
        flag = if word.starts_with('-') { word } else { "" };
    }
}

fn add_environment(secrets: &mut Vec<String>, is_wanted: impl Fn(&str) -> bool) {
    for (name, value) in std::env::vars_os() {
        if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
            && is_secret_name(name)
            && is_wanted(name)
        {
            add_pairs(secrets, [(name, value)]);
        }
    }
}

fn add_headers(secrets: &mut Vec<String>, headers: &[(String, String)]) {
    add_pairs(secrets, headers.iter().map(|(name, value)| (&**name, &**value)));
}

fn add_pairs<'p>(secrets: &mut Vec<String>, pairs: impl IntoIterator<Item = (&'p str, &'p str)>) {
    for (name, value) in pairs {
        secrets.extend(hidden_in(name, value).into_iter().map(|range| value[range].to_owned()));
    }
}

/// A session id in place of another: who has it has the session. Equal ids have equal ones, of the same length, that differ
/// in as many places.
fn stand_in(id: &str) -> String {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let replaced = |(place, character): (usize, char)| {
        let number = LETTERS.iter().position(|letter| char::from(*letter) == character)?;
        let by = usize::try_from(KEY.hash_one(place) % 61).ok()? + 1;
        Some(char::from(LETTERS[(number + by) % LETTERS.len()]))
    };
    id.chars().enumerate().map(|(place, character)| replaced((place, character)).unwrap_or(character)).collect()
}

/// Where traffic has the codes of OAuth, which are too short to look like secrets.
fn codes(text: &str) -> impl Iterator<Item = Range<usize>> {
    let found = CODE.iter().flat_map(|code| code.captures_iter(text)).filter_map(|captures| captures.get(1));
    found.map(|code| code.range())
}

/// Masks what looks like a secret and is one.
fn masked(text: &str, is_secret: impl Fn(&Range<usize>) -> bool) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    let is_of_protocol = |range: &Range<usize>| text[..range.start].trim_end_matches(['"', ' ']).ends_with(PROGRESS);
    let found = hidden_in("", text).into_iter().filter(|range| is_secret(range) && !is_of_protocol(range));
    let mut found: Vec<_> = found.chain(codes(text)).collect();
    found.sort_by_key(|range| range.start);
    for range in found {
        if range.start < at {
            continue;
        }
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(MASK);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Whether a value in a line is an ordinary word, as in `session: closed`. A quoted string never is, nor is the password in a URL.
fn is_prose(line: &str, range: &Range<usize>) -> bool {
    let value = line[range.clone()].trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let is_quoted = line[..range.start].ends_with(['"', '\'']);
    let is_short = value.len() < MIN_LENGTH || (value.len() < MAX_PROSE_LENGTH && is_word(value));
    is_short && !is_quoted && !line[range.end..].starts_with('@')
}

fn is_word(text: &str) -> bool {
    text.chars().all(|character| character.is_alphabetic() || character == '-')
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use rehearse_client::Timeouts;
    use rehearse_client_configs::server::{At, Pair};
    use rehearse_document::{Source, Span};
    use rehearse_hub::configured::server_params;
    use rehearse_protocol::Transport;

    #[test]
    fn a_secret_is_hidden_as_it_is_and_within_json() {
        let at = |value: &str| At { value: value.to_owned(), span: Span::default() };
        let transport = At { value: Transport::Stdio, span: Span::default() };
        let mut server = server::ConfiguredServer::new(Source::new("", ""), at("s"), transport);
        server.command = Some(at("c"));
        server.env = vec![Pair { name: at("PASSWORD"), value: at("ge\"heim") }];
        let policy = rehearse_client_configs::policy::Policy::USUAL;
        let config = server_params(&server, &policy, Timeouts::default(), Path::new("")).expect("a command");
        let secrets = Secrets::from_server(&server, &server, &config, &Variables::default());
        assert_eq!(secrets.hidden(r#"ge"heim and {"a":"ge\"heim"}"#), r#"*** and {"a":"***"}"#);
        assert_eq!(Secrets::default().merge(&secrets).texts, secrets.texts);
        server.auth.oauth =
            Some(Box::new(server::OAuth { client_secret: Some(at("s3cret")), ..server::OAuth::default() }));
        let secrets = Secrets::from_server(&server, &server, &config, &Variables::default());
        assert_eq!(secrets.hidden("invalid s3cret"), "invalid ***");
    }

    #[test]
    fn a_line_of_traffic_shows_neither_a_header_of_the_scenario_nor_a_part_of_a_secret() {
        let headers = vec![("x-user".to_owned(), "ada-lovelace".to_owned())];
        let secrets = Secrets { headers, ..Secrets::new(vec!["geheim-1234".to_owned()]) };
        let line = |kind, text: &str, mark: Option<&str>, length| WireLine {
            kind,
            text: text.to_owned(),
            mark: mark.map(str::to_owned),
            length,
            ..WireLine::new(rehearse_protocol::Direction::ClientToServer, std::time::Duration::ZERO, b"", &[])
        };
        let hidden = |mut line: WireLine| {
            secrets.hide_in_line(&mut line);
            (line.text, line.mark)
        };
        let head = hidden(line(WireKind::HttpHead, "POST /mcp  x-user: ada-lovelace  accept: a", None, 0));
        assert_eq!(head.0, "POST /mcp  x-user: ***  accept: a");
        let marked = hidden(line(WireKind::Frame, "\"bad geheim-1234\"", Some("\"bad geheim-1234\""), 0));
        assert_eq!(marked, ("\"bad ***\"".to_owned(), Some("\"bad ***\"".to_owned())));
        assert_eq!(hidden(line(WireKind::Frame, "a cut geheim-1", None, 99)).0, "a cut ***");
        assert_eq!(hidden(line(WireKind::Frame, "a whole geheim-1", None, 0)).0, "a whole geheim-1");
    }

    #[test]
    fn the_words_of_a_log_are_not_masked_even_if_they_are_values() {
        let texts = ["line", "session", "geheim-1234", "passphrase"].map(str::to_owned).to_vec();
        let secrets = Secrets::new(texts);
        for line in [
            "starting a new session: line 5 of user input",
            "Session: user connected",
            "token: line 4",
            "Unexpected token: expired.",
            "Basic authentication for users",
            "pass: 3 of 10",
        ] {
            assert_eq!(secrets.hidden(line), line);
        }
        for (line, expected) in [
            ("session geheim-1234, passphrase", "session ***, ***"),
            ("token=Zq7kd83hf", "token=***"),
            ("password: hunter2", "password: ***"),
            ("{ runs: 5, pass: 4 }", "{ runs: 5, pass: 4 }"),
            ("pass: 80%", "pass: 80%"),
            ("pass: hunter2", "pass: ***"),
            (r#"{"password": "hunter"}"#, r#"{"password": "***"}"#),
            ("http://user:line@host/", "http://user:***@host/"),
            ("Bearer abcdefghijklmnopq", "Bearer ***"),
        ] {
            assert_eq!(secrets.hidden(line), expected);
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_in_a_frame() {
        let secrets = Secrets::new(Vec::new());
        let frame = r#"{"params":{"arguments":{"token":"geheim1234","city":"Oslo"}}}"#;
        assert_eq!(secrets.hidden_in_frame(frame), r#"{"params":{"arguments":{"token":"***","city":"Oslo"}}}"#);
        for plain in [
            "{}",
            r#"{"_meta":{"progressToken":1}}"#,
            r#"{"_meta":{"progressToken":"abcdefgh"}}"#,
            r#"{"properties":{"token":{"type":"string"},"password":{"$ref":"x"}}}"#,
        ] {
            assert_eq!(secrets.hidden_in_frame(plain), plain);
        }
    }
}
