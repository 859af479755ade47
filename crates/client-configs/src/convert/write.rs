//! One server in another dialect.

use super::{
    filter,
    loss::Loss,
    reference::{ValueContext, translate},
    timeout::{Counted, count},
};
use crate::{
    dialect::{Dialect, Field, Key, MissingType},
    server::{At, ConfiguredServer, Pair},
};
use rehearse_document::{Entry, Node, Span, Value};
use rehearse_protocol::Transport;

/// Writes a server, without its name; `None` if the dialect cannot have it.
pub(super) fn server(
    server: &ConfiguredServer,
    from: &'static Dialect,
    to: &'static Dialect,
    losses: &mut Vec<Loss>,
) -> Option<Node> {
    let mut writer = Writer { server, from, to, connection: None, entries: Vec::new(), losses };
    writer.connection = writer.connection();
    if let Err((span, field, reason)) = writer.reach() {
        let field = field.to_owned();
        let (server, source) = (Some(server.name.value.clone()), server.source.clone());
        losses.push(Loss { server, field, reason, left_out: true, source, span });
        return None;
    }
    writer.auth();
    writer.timeouts();
    writer.tools();
    writer.flags();
    Some(mapping(writer.entries))
}

/// Why a server is left out: where, which field, and the reason.
type Refusal = (Span, &'static str, String);

struct Writer<'a> {
    server: &'a ConfiguredServer,
    from: &'static Dialect,
    to: &'static Dialect,
    /// The object that holds how the server is reached, if that is not beside everything else.
    connection: Option<&'static Key>,
    entries: Vec<Entry>,
    losses: &'a mut Vec<Loss>,
}

/// Where a key is: the keys of the objects around it, and its own.
type Path = Vec<&'static Key>;

impl Writer<'_> {
    fn lose(&mut self, field: impl Into<String>, span: Span, reason: impl Into<String>) {
        let (server, source) = (Some(self.server.name.value.clone()), self.server.source.clone());
        let (field, reason) = (field.into(), reason.into());
        self.losses.push(Loss { server, field, reason, left_out: false, source, span });
    }

    fn is_process(&self) -> bool {
        self.server.transport.value == Transport::Stdio
    }

    fn is_for(&self, key: &Key) -> bool {
        key.applies_to.includes(self.server.transport.value)
    }

    /// The key that the new file has for a field.
    fn path(&self, wanted: impl Fn(Field) -> bool) -> Option<Path> {
        let fits = |key: &&'static Key| wanted(key.field) && self.is_for(key);
        let nested = |object: &'static Key| match object.field {
            Field::Object(keys) if self.is_for(object) => keys.iter().find(fits).map(|key| vec![object, key]),
            _ => None,
        };
        let in_connection = self.connection.and_then(nested);
        let direct = || self.to.keys.iter().find(fits).map(|key| vec![key]);
        in_connection.or_else(direct).or_else(|| self.to.keys.iter().find_map(nested))
    }

    /// The object of the connection, if something that this server needs has its key only there.
    fn connection(&self) -> Option<&'static Key> {
        let server = self.server;
        let needed = [
            (self.is_process(), Field::Command),
            (!server.env.is_empty(), Field::Env),
            (server.cwd.is_some(), Field::Cwd),
            (server.env_file.is_some(), Field::EnvFile),
            (!self.is_process(), Field::Url(None)),
            (!server.headers.is_empty(), Field::Headers),
        ];
        let holds = |object: &&'static Key| match object.field {
            Field::Object(keys) => keys.iter().any(|key| matches!(key.field, Field::Command | Field::Url(_))),
            _ => false,
        };
        let object = self.to.keys.iter().find(holds)?;
        let only_there = |field| self.path(|other| other == field).is_some_and(|path| path[0] == object);
        needed.into_iter().any(|(is_needed, field)| is_needed && only_there(field)).then_some(object)
    }

    /// What the file that is converted calls a field.
    fn source_key(&self, field: Field) -> &'static str {
        fn find(keys: &'static [Key], field: Field) -> Option<&'static str> {
            keys.iter().find_map(|key| match key.field {
                Field::Object(keys) => find(keys, field),
                Field::Url(_) => matches!(field, Field::Url(_)).then_some(key.name),
                Field::ScopeText => (field == Field::Scopes).then_some(key.name),
                Field::CommandLine => (field == Field::Command).then_some(key.name),
                other => (other == field).then_some(key.name),
            })
        }
        find(self.from.keys, field).unwrap_or("server")
    }

    fn put(&mut self, path: &[&'static Key], node: Node) {
        let Some((last, objects)) = path.split_last() else { return };
        let mut entries = &mut self.entries;
        for object in objects {
            let place = entries.iter().position(|entry| entry.key == object.name).unwrap_or_else(|| {
                entries.push(entry(object.name, mapping(Vec::new())));
                entries.len() - 1
            });
            let Value::Mapping(inner) = &mut entries[place].node.value else { return };
            entries = inner;
        }
        entries.push(entry(last.name, node));
    }

    /// Writes a field, or reports that there is no key for it.
    fn carry(&mut self, field: Field, called: Field, span: Span, node: Node) {
        match self.path(|other| other == field) {
            Some(path) => self.put(&path, node),
            None => self.lose(self.source_key(called), span, format!("{} has no key for it", self.to.program)),
        }
    }

    /// A value with its references as the other program writes them.
    fn translated(&mut self, value: &At<String>, (from, to): (Field, Field), called: &str) -> String {
        let (from, to) =
            (ValueContext { dialect: self.from, field: from }, ValueContext { dialect: self.to, field: to });
        let translated = translate(&value.value, from, to);
        for trouble in translated.troubles {
            self.lose(called, value.span, trouble);
        }
        translated.text
    }

    fn text(&mut self, field: Field, value: Option<&At<String>>) {
        let Some(value) = value else { return };
        if self.path(|other| other == field).is_none() {
            self.carry(field, field, value.span, Node { span: value.span, value: Value::Null });
            return;
        }
        let written = self.translated(value, (field, field), self.source_key(field));
        self.carry(field, field, value.span, text(written));
    }

    fn pairs(&mut self, field: Field, pairs: &[Pair], more: Vec<Entry>) {
        let mut entries = Vec::with_capacity(pairs.len());
        if let (Some(first), None) = (pairs.first(), self.path(|other| other == field)) {
            self.lose(self.source_key(field), first.name.span, format!("{} has no key for it", self.to.program));
            return;
        }
        for Pair { name, value } in pairs {
            let called = format!("{}.{}", self.source_key(field), name.value);
            entries.push(entry(&name.value, text(self.translated(value, (field, field), &called))));
        }
        entries.extend(more);
        if !entries.is_empty() {
            self.carry(field, field, Span::default(), mapping(entries));
        }
    }

    /// How the server is reached.
    fn reach(&mut self) -> Result<(), Refusal> {
        let (server, program) = (self.server, self.to.program);
        let Some((word, _)) = self.to.transports.iter().find(|(_, known)| *known == server.transport.value) else {
            let reason = format!("{program} has no transport {}", server.transport.value);
            return Err((server.transport.span, "type", reason));
        };
        let allowed = |name: &str, more: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c));
        if self.to.name_characters.is_some_and(|more| !allowed(&server.name.value, more)) {
            return Err((server.name.span, "name", format!("{program} rejects a file with such a name in it")));
        }
        if let Some(enabled) = &server.enabled
            && !enabled.value
            && self.path(|field| matches!(field, Field::Enabled | Field::Disabled)).is_none()
        {
            return Err((enabled.span, "disabled", format!("it is disabled, and {program} would start it")));
        }
        match self.is_process() {
            true => self.process(word),
            false => self.remote(word),
        }
    }

    fn process(&mut self, word: &str) -> Result<(), Refusal> {
        let server = self.server;
        let Some(command) = &server.command else {
            return Err((server.name.span, "command", "it has no command".into()));
        };
        if self.to.when_type_missing == MissingType::Rejected || self.to.is_explicit || self.connection.is_some() {
            self.transport(word);
        }
        let started = self.translated(command, (Field::Command, Field::Command), self.source_key(Field::Command));
        let mut args = Vec::with_capacity(server.args.len());
        for (index, arg) in server.args.iter().enumerate() {
            let called = match self.from.keys.iter().find(|key| key.field == Field::CommandLine) {
                Some(line) => format!("{}[{}]", line.name, index + 1),
                None => format!("{}[{index}]", self.source_key(Field::Args)),
            };
            args.push(text(self.translated(arg, (Field::Args, Field::Args), &called)));
        }
        match self.path(|field| field == Field::CommandLine) {
            Some(path) => {
                args.insert(0, text(started));
                self.put(&path, sequence(args));
            }
            None => {
                self.carry(Field::Command, Field::Command, command.span, text(started));
                if !args.is_empty() || self.to.required_keys.contains(&"args") {
                    self.carry(Field::Args, Field::Args, command.span, sequence(args));
                }
            }
        }
        self.pairs(Field::Env, &server.env, Vec::new());
        self.text(Field::EnvFile, server.env_file.as_ref());
        self.text(Field::Cwd, server.cwd.as_ref());
        Ok(())
    }

    fn remote(&mut self, word: &str) -> Result<(), Refusal> {
        let (server, transport) = (self.server, self.server.transport.value);
        let Some(url) = &server.url else {
            return Err((server.name.span, "url", "it has no URL".into()));
        };
        let path = self
            .path(|field| field == Field::Url(Some(transport)))
            .or_else(|| self.path(|field| field == Field::Url(None)))
            .or_else(|| self.path(|field| matches!(field, Field::Url(_))));
        let Some(path) = path else {
            return Err((server.transport.span, "url", format!("{} has no servers with a URL", self.to.program)));
        };
        let written = self.translated(url, (Field::Url(None), Field::Url(None)), self.source_key(Field::Url(None)));
        if let Some(scheme) = foreign_scheme(&written, transport, self.to) {
            return Err((url.span, "url", format!("{} does not reach {scheme}:// by {transport}", self.to.program)));
        }
        let is_socket = written.starts_with("ws://") || written.starts_with("wss://");
        let untyped = match (path.last().map(|key| key.field), self.to.when_type_missing) {
            (Some(Field::Url(Some(transport))), _) | (_, MissingType::Inferred(transport)) => Some(transport),
            (_, MissingType::Process | MissingType::Rejected) => None,
        };
        let untyped = untyped.map(|transport| if is_socket { Transport::Ws } else { transport });
        let is_typed =
            untyped != Some(transport) || self.to.when_type_missing == MissingType::Rejected || self.to.is_explicit;
        if (is_typed || self.connection.is_some()) && !self.transport(word) {
            let reason = format!("{} does not reach such a URL by {transport}", self.to.program);
            return Err((url.span, "url", reason));
        }
        self.put(&path, text(written));
        Ok(())
    }

    /// Writes the word for the transport, if there is a key for it.
    fn transport(&mut self, word: &str) -> bool {
        if self.connection.is_some() && self.to.keys.iter().any(|key| key.name == "serverName") {
            self.entries.push(entry("serverName", text(self.server.name.value.clone())));
        }
        let Some(path) = self.path(|field| field == Field::Transport) else { return false };
        self.put(&path, text(word.to_owned()));
        true
    }

    /// Headers and other credentials.
    fn auth(&mut self) {
        let (server, auth) = (self.server, &self.server.auth);
        if self.is_process() {
            return;
        }
        let mut more = Vec::new();
        if let Some(token) = &auth.bearer {
            match self.path(|field| field == Field::Bearer) {
                Some(path) => {
                    // The object of a token says that it is one.
                    if let [object @ .., _] = &path[..]
                        && let Some(Key { field: Field::Object(keys), .. }) = object.last()
                        && let Some(kind) = keys.iter().find(|key| key.field == Field::AuthKind)
                    {
                        let kind: Path = object.iter().copied().chain([kind]).collect();
                        self.put(&kind, text("bearer".into()));
                    }
                    let written = self.translated(token, (Field::Bearer, Field::Bearer), "token");
                    self.put(&path, text(written));
                }
                None => more.extend(self.header("Authorization", "Bearer ", token)),
            }
        }
        if let Some(api_key) = &auth.api_key {
            let name = api_key.header.as_ref().map_or("X-API-Key", |header| &header.value);
            more.extend(self.header(name, "", &api_key.key));
        }
        self.pairs(Field::Headers, &server.headers, more);
        let Some(oauth) = &auth.oauth else { return };
        self.text(Field::ClientId, oauth.client_id.as_ref());
        self.text(Field::ClientSecret, oauth.client_secret.as_ref());
        self.text(Field::MetadataUrl, oauth.metadata_url.as_ref());
        if let Some(port) = &oauth.callback_port {
            let number = Node { span: port.span, value: Value::Number(port.value.to_string()) };
            self.carry(Field::CallbackPort, Field::CallbackPort, port.span, number);
        }
        for (name, url) in [("authorizationUrl", &oauth.authorization_url), ("tokenUrl", &oauth.token_url)] {
            if let Some(url) = url {
                self.lose(name, url.span, format!("{} has no key for it", self.to.program));
            }
        }
        self.scopes(&oauth.scopes);
    }

    /// A header for a credential, unless there is one of that name already.
    fn header(&mut self, name: &str, before: &str, value: &At<String>) -> Option<Entry> {
        let is_taken = self.server.headers.iter().any(|pair| pair.name.value.eq_ignore_ascii_case(name));
        if is_taken || self.path(|field| field == Field::Headers).is_none() {
            let why = if is_taken { "there is a header" } else { "has neither a key nor headers" };
            self.lose("auth", value.span, format!("{} {why} for it", self.to.program));
            return None;
        }
        let value = At { value: format!("{before}{}", value.value), span: value.span };
        let written = self.translated(&value, (Field::Bearer, Field::Headers), "auth");
        Some(entry(name, text(written)))
    }

    fn scopes(&mut self, scopes: &[At<String>]) {
        let Some(first) = scopes.first() else { return };
        let mut words = Vec::with_capacity(scopes.len());
        for scope in scopes {
            words.push(self.translated(scope, (Field::Scopes, Field::Scopes), "scopes"));
        }
        let field = match self.path(|field| field == Field::ScopeText) {
            Some(_) => Field::ScopeText,
            None => Field::Scopes,
        };
        let node = match field {
            Field::ScopeText => text(words.join(" ")),
            _ => sequence(words.into_iter().map(text).collect()),
        };
        self.carry(field, Field::Scopes, first.span, node);
    }

    fn timeouts(&mut self) {
        let (timeouts, to) = (&self.server.timeouts, self.to);
        let mut of_tools = Vec::new();
        for (tool, timeout) in &timeouts.tools {
            let rule = to.timeout.as_ref().filter(|_| self.path(|field| field == Field::ToolTimeouts).is_some());
            match rule.map(|rule| count(timeout.value, rule, to.program)) {
                Some(Counted::Exactly(number)) => {
                    let number = Node { span: timeout.span, value: Value::Number(number.to_string()) };
                    of_tools.push(entry(&tool.value, number));
                }
                _ => {
                    let reason = format!("{} has no such timeout", to.program);
                    self.lose(format!("timeouts.{}", tool.value), timeout.span, reason);
                }
            }
        }
        if let Some((_, first)) = timeouts.tools.first().filter(|_| !of_tools.is_empty()) {
            self.carry(Field::ToolTimeouts, Field::ToolTimeouts, first.span, mapping(of_tools));
        }
        let is_for_calls = |field| matches!(field, Field::Timeout | Field::CallTimeout);
        let called = match self.from.keys.iter().find(|key| is_for_calls(key.field)) {
            Some(key) => key.name,
            None => "timeout",
        };
        let path = self.path(is_for_calls).or_else(|| self.path(|field| field == Field::StartTimeout));
        let of_start = timeouts.connect.as_ref().or(timeouts.list.as_ref());
        let (any, other) = match path.as_ref().and_then(|path| path.last()).map(|key| key.field) {
            Some(Field::StartTimeout) => (of_start, timeouts.call.as_ref()),
            _ => (timeouts.call.as_ref(), of_start),
        };
        let Some(any) = any.or(other) else { return };
        let (Some(path), Some(rule)) = (path, &to.timeout) else {
            self.lose(called, any.span, format!("{} has no timeouts", to.program));
            return;
        };
        let of = |timeout: &Option<At<_>>| timeout.as_ref().map(|timeout| timeout.value);
        let is_for_all = timeouts.connect.is_some()
            && of(&timeouts.connect) == of(&timeouts.list)
            && of(&timeouts.list) == of(&timeouts.call);
        let is_for_calls = timeouts.call.is_some() && timeouts.connect.is_none() && timeouts.list.is_none();
        match path.last().map(|key| key.field) {
            Some(Field::CallTimeout) if timeouts.call.is_none() => {
                self.lose(called, any.span, format!("{} has a timeout for calls only", to.program));
                return;
            }
            Some(Field::CallTimeout) if !is_for_calls => {
                self.lose(called, any.span, format!("{} takes it for calls only", to.program));
            }
            Some(Field::StartTimeout) if of_start.is_none() => {
                self.lose(called, any.span, format!("{} has a timeout for connecting and listing only", to.program));
                return;
            }
            Some(Field::StartTimeout) if timeouts.call.is_some() => {
                self.lose(called, any.span, format!("{} uses it only to connect and to list", to.program));
            }
            Some(Field::Timeout) if !is_for_all => {
                let more = if timeouts.call.is_some() { "connecting and listing" } else { "calls" };
                let reason = format!("{} takes it for {more} as well", to.program);
                self.lose(called, any.span, reason);
            }
            _ => {}
        }
        let number = match count(any.value, rule, to.program) {
            Counted::Exactly(number) => number,
            Counted::About(number, reason) => {
                self.lose(called, any.span, reason);
                number
            }
            Counted::Not(reason) => return self.lose(called, any.span, reason),
        };
        self.put(&path, Node { span: any.span, value: Value::Number(number.to_string()) });
    }

    fn tools(&mut self) {
        let filter::Lists { include, exclude, losses } = filter::lists(&self.server.tools, self.from, self.to);
        for (field, span, reason) in losses {
            self.lose(self.source_key(field), span, reason);
        }
        for (field, names) in [(Field::Include, include), (Field::Exclude, exclude)] {
            if let Some(names) = names {
                self.carry(field, field, Span::default(), sequence(names.into_iter().map(text).collect()));
            }
        }
    }

    fn flags(&mut self) {
        let (server, approval) = (self.server, &self.server.approval);
        if let Some(enabled) = &server.enabled {
            for (field, value) in [(Field::Enabled, enabled.value), (Field::Disabled, !enabled.value)] {
                if let Some(path) = self.path(|other| other == field) {
                    self.put(&path, flag(value));
                }
            }
        }
        for (field, value) in [(Field::Trust, &approval.trust), (Field::Debug, &server.debug)] {
            // An empty value needs no entry.
            if let Some(value) = value
                && (value.value || self.path(|other| other == field).is_some())
            {
                self.carry(field, field, value.span, flag(value.value));
            }
        }
        if let Some(first) = approval.always_allow.first() {
            let names = approval.always_allow.iter().map(|name| text(name.value.clone())).collect();
            self.carry(Field::AlwaysAllow, Field::AlwaysAllow, first.span, sequence(names));
        }
    }
}

/// The scheme of a URL, if the program does not speak it by this transport.
fn foreign_scheme(url: &str, transport: Transport, program: &Dialect) -> Option<String> {
    let scheme = url.trim_start().split_once("://")?.0.to_ascii_lowercase();
    // Anything else is no scheme, such as a reference to a variable.
    let is_scheme = scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    (is_scheme && !transport.schemes().contains(&&*scheme) && !program.schemes.contains(&&*scheme)).then_some(scheme)
}

/// A key with a value, without a position.
pub(super) fn entry(key: &str, node: Node) -> Entry {
    Entry { key: key.to_owned(), key_span: Span::default(), node }
}

fn node(value: Value) -> Node {
    Node { span: Span::default(), value }
}

pub(super) fn text(value: String) -> Node {
    node(Value::String(value))
}

pub(super) fn mapping(entries: Vec<Entry>) -> Node {
    node(Value::Mapping(entries))
}

pub(super) fn sequence(items: Vec<Node>) -> Node {
    node(Value::Sequence(items))
}

fn flag(value: bool) -> Node {
    node(Value::Bool(value))
}
