//! The servers of a config, in any format.

use std::{sync::Arc, time::Duration};

use super::{dialect::Field, secret::flag};
use rehearse_document::{Source, Span};
use rehearse_protocol::Transport;

/// A value and its position in the source of its server.
#[derive(Clone, Debug, PartialEq)]
pub struct At<T> {
    pub value: T,
    pub span: Span,
}

/// How to reach one server, and what to make of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfiguredServer {
    /// Where every span of this server points.
    pub source: Arc<Source>,
    pub name: At<String>,
    /// The span of an inferred transport is that of the key that it was inferred from.
    pub transport: At<Transport>,
    pub enabled: Option<At<bool>>,

    pub command: Option<At<String>>,
    pub args: Vec<At<String>>,
    pub env: Vec<Pair>,
    pub env_file: Option<At<String>>,
    pub cwd: Option<At<String>>,

    pub url: Option<At<String>>,
    pub headers: Vec<Pair>,
    pub auth: Auth,

    pub timeouts: Timeouts,
    pub tools: ToolFilter,
    pub approval: Approval,
    pub debug: Option<At<bool>>,
}

impl ConfiguredServer {
    /// A server about which nothing else is known.
    pub fn new(source: Arc<Source>, name: At<String>, transport: At<Transport>) -> Self {
        ConfiguredServer {
            source,
            name,
            transport,
            enabled: None,
            command: None,
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            cwd: None,
            url: None,
            headers: Vec::new(),
            auth: Auth::default(),
            timeouts: Timeouts::default(),
            tools: ToolFilter::default(),
            approval: Approval::default(),
            debug: None,
        }
    }

    /// Whether the program is to connect to it.
    pub fn is_enabled(&self) -> bool {
        self.enabled.as_ref().is_none_or(|enabled| enabled.value)
    }

    /// Every string that may have a reference or a secret, in the order of the fields.
    pub fn texts(&self) -> impl Iterator<Item = Text<'_>> {
        let of = |field, name| move |at| Text { field, name, at };
        let flags = std::iter::once("").chain(self.args.iter().map(|argument| flag(&argument.value)));
        let args = self.args.iter().zip(flags).map(|(at, name)| Text { field: Field::Args, name, at });
        let oauth = self.auth.oauth.as_ref();
        let command = self.command.iter().map(of(Field::Command, "command")).chain(args);
        let process = command
            .chain(self.env.iter().map(|pair| pair.text(Field::Env)))
            .chain(self.env_file.iter().map(of(Field::EnvFile, "envFile")))
            .chain(self.cwd.iter().map(of(Field::Cwd, "cwd")));
        let remote = self
            .url
            .iter()
            .map(of(Field::Url(None), "url"))
            .chain(self.headers.iter().map(|pair| pair.text(Field::Headers)));
        let bearer = self.auth.bearer.iter().map(of(Field::Bearer, "token"));
        let id = oauth.and_then(|oauth| oauth.client_id.as_ref()).into_iter().map(of(Field::ClientId, "clientId"));
        let secret = oauth.and_then(|oauth| oauth.client_secret.as_ref());
        let secret = secret.into_iter().map(of(Field::ClientSecret, "clientSecret"));
        process.chain(remote).chain(bearer).chain(id).chain(secret)
    }

    /// Takes over what it does not say itself.
    pub fn inherit(&mut self, defaults: &ConfiguredServer) {
        let (own, all) = (&mut self.timeouts, &defaults.timeouts);
        for (own, all) in [(&mut own.connect, &all.connect), (&mut own.list, &all.list), (&mut own.call, &all.call)] {
            if own.is_none() {
                own.clone_from(all);
            }
        }
        for (own, all) in [(&mut self.debug, &defaults.debug), (&mut self.enabled, &defaults.enabled)] {
            if own.is_none() {
                own.clone_from(all);
            }
        }
    }
}

/// A text of a server.
#[derive(Clone, Copy, Debug)]
pub struct Text<'s> {
    pub field: Field,
    /// The name of the variable or header, the flag before an argument, or the usual name of the key.
    pub name: &'s str,
    pub at: &'s At<String>,
}

/// A name with a value: an environment variable, a header.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    pub name: At<String>,
    pub value: At<String>,
}

impl Pair {
    fn text(&self, field: Field) -> Text<'_> {
        Text { field, name: &self.name.value, at: &self.value }
    }
}

/// Credentials. Few servers have more than a token, so the others are boxed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Auth {
    /// A token for `Authorization: Bearer`.
    pub bearer: Option<At<String>>,
    pub api_key: Option<Box<ApiKey>>,
    pub oauth: Option<Box<OAuth>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApiKey {
    /// `X-API-Key` if it has no name.
    pub header: Option<At<String>>,
    pub key: At<String>,
}

/// OAuth 2.1, as far as it is not in the server's metadata.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OAuth {
    pub client_id: Option<At<String>>,
    pub client_secret: Option<At<String>>,
    pub scopes: Vec<At<String>>,
    pub callback_port: Option<At<u16>>,
    pub metadata_url: Option<At<String>>,
    pub authorization_url: Option<At<String>>,
    pub token_url: Option<At<String>>,
}

/// How long to wait; what is missing is up to the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeouts {
    /// From starting or connecting to the server to the end of the handshake.
    pub connect: Option<At<Duration>>,
    /// For one listing with all its pages.
    pub list: Option<At<Duration>>,
    /// For any other request.
    pub call: Option<At<Duration>>,
    /// For calls of one tool.
    pub tools: Vec<(At<String>, At<Duration>)>,
}

/// Which of a server's tools there are. An empty list is not a missing one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolFilter {
    pub include: Option<At<Vec<At<String>>>>,
    pub exclude: Option<At<Vec<At<String>>>>,
}

/// The calls that need no approval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Approval {
    /// All of them.
    pub trust: Option<At<bool>>,
    /// Those of these tools.
    pub always_allow: Vec<At<String>>,
}
