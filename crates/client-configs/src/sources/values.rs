//! Everything that is known about a server, each with its origin.

use std::{borrow::Cow, time::Duration};

use serde_json::{Value as Json, json};

use super::{Kept, Origin};
use crate::{
    dialect::Dialect,
    secret::{KnownSecrets, mask, mask_argument},
    server::{Approval, At, Auth, ConfiguredServer, OAuth, Pair, Timeouts, ToolFilter},
};
use rehearse_document::Span;

/// One value of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Where it is in the model: `args.0`, `env.TOKEN`, `timeouts.call`.
    pub path: String,
    /// A text, a flag, a number (for a time: of seconds), or a list of texts.
    pub value: Json,
    /// The same, if it is a time.
    pub time: Option<Duration>,
    /// `None` if it is a default.
    pub origin: Option<Origin>,
    hides: Hides,
}

/// Where secrets may be in a value.
#[derive(Clone, Debug, PartialEq)]
enum Hides {
    /// What this key, header or variable holds.
    Named(String),
    /// An argument, after this one.
    Argument(String),
}

impl Setting {
    /// The path with the unit of the value in it, for programs: `timeoutSeconds.call`.
    pub fn key(&self) -> Cow<'_, str> {
        match self.path.strip_prefix("timeouts.").filter(|_| self.time.is_some()) {
            Some(rest) => format!("timeoutSeconds.{rest}").into(),
            None => (&*self.path).into(),
        }
    }

    fn new(path: &str, value: Json, origin: Option<Origin>, hides: Hides) -> Setting {
        Setting { path: path.to_owned(), value, time: None, origin, hides }
    }

    fn time(path: &str, time: Duration, origin: Option<Origin>) -> Setting {
        let value = json!(time.as_secs_f64());
        Setting { time: Some(time), ..Setting::new(path, value, origin, Hides::Named(String::new())) }
    }

    /// The value without the secrets in it, and without what is known to be one.
    pub fn masked(&self, known: &KnownSecrets) -> Cow<'_, Json> {
        let text = match &self.value {
            Json::String(text) => text,
            Json::Array(items) => {
                let item = |item: &Json| match item {
                    Json::String(text) => known.mask(mask("", text)).into(),
                    other => other.clone(),
                };
                return Cow::Owned(items.iter().map(item).collect());
            }
            _ => return Cow::Borrowed(&self.value),
        };
        let masked = match &self.hides {
            Hides::Named(name) => mask(name, text),
            Hides::Argument(before) => mask_argument(before, text),
        };
        Cow::Owned(known.mask(masked).into())
    }
}

/// Everything that is known about a server, in the order of the model. A call of which nothing is said may take
/// `usual_call`.
pub fn settings(kept: &Kept, usual_call: Duration) -> Vec<Setting> {
    let mut list = List { server: &kept.server, settings: Vec::new() };
    list.server(&kept.server);
    list.fill_in(kept.dialect, usual_call);
    list.settings
}

struct List<'s> {
    server: &'s ConfiguredServer,
    settings: Vec<Setting>,
}

impl List<'_> {
    fn server(&mut self, server: &ConfiguredServer) {
        let ConfiguredServer {
            source: _,
            name: _,
            transport,
            enabled,
            command,
            args,
            env,
            env_file,
            cwd,
            url,
            headers,
            auth,
            timeouts,
            tools,
            approval,
            debug,
        } = server;
        self.put("transport", transport.value.as_str().into(), transport.span, Hides::Named(String::new()));
        self.flag("enabled", enabled.as_ref());
        self.text("command", command.as_ref());
        let mut before = "";
        for (index, At { value, span }) in args.iter().enumerate() {
            self.put(&format!("args.{index}"), value.as_str().into(), *span, Hides::Argument(before.to_owned()));
            before = value;
        }
        self.pairs("env", env);
        self.text("envFile", env_file.as_ref());
        self.text("cwd", cwd.as_ref());
        self.text("url", url.as_ref());
        self.pairs("headers", headers);
        self.auth(auth);
        let Timeouts { connect, list, call, tools: by_tool } = timeouts;
        for (path, timeout) in [("timeouts.connect", connect), ("timeouts.list", list), ("timeouts.call", call)] {
            self.duration(path, timeout.as_ref());
        }
        for (tool, timeout) in by_tool {
            self.duration(&format!("timeouts.tools.{}", tool.value), Some(timeout));
        }
        let ToolFilter { include, exclude } = tools;
        for (path, tools) in [("tools.include", include), ("tools.exclude", exclude)] {
            if let Some(At { value, span }) = tools {
                self.texts(path, value, *span);
            }
        }
        let Approval { trust, always_allow } = approval;
        self.flag("trust", trust.as_ref());
        if let Some(first) = always_allow.first() {
            self.texts("alwaysAllow", always_allow, first.span);
        }
        self.flag("debug", debug.as_ref());
    }

    fn auth(&mut self, auth: &Auth) {
        let Auth { bearer, api_key, oauth } = auth;
        self.text("auth.bearer", bearer.as_ref());
        if let Some(api_key) = api_key {
            self.text("auth.apiKey.header", api_key.header.as_ref());
            self.text("auth.apiKey", Some(&api_key.key));
        }
        let Some(oauth) = oauth else { return };
        let OAuth { client_id, client_secret, scopes, callback_port, metadata_url, authorization_url, token_url } =
            &**oauth;
        self.text("auth.oauth.clientId", client_id.as_ref());
        self.text("auth.oauth.clientSecret", client_secret.as_ref());
        if let Some(first) = scopes.first() {
            self.texts("auth.oauth.scopes", scopes, first.span);
        }
        if let Some(At { value, span }) = callback_port {
            self.put("auth.oauth.callbackPort", (*value).into(), *span, Hides::Named(String::new()));
        }
        self.text("auth.oauth.metadataUrl", metadata_url.as_ref());
        self.text("auth.oauth.authorizationUrl", authorization_url.as_ref());
        self.text("auth.oauth.tokenUrl", token_url.as_ref());
    }

    fn put(&mut self, path: &str, value: Json, span: Span, hides: Hides) {
        let origin = Some(Origin::new(&self.server.source, span));
        self.settings.push(Setting::new(path, value, origin, hides));
    }

    fn text(&mut self, path: &str, text: Option<&At<String>>) {
        if let Some(At { value, span }) = text {
            self.put(path, value.as_str().into(), *span, Hides::Named(path.to_owned()));
        }
    }

    fn texts(&mut self, path: &str, texts: &[At<String>], span: Span) {
        let texts = texts.iter().map(|text| text.value.as_str()).collect();
        self.put(path, texts, span, Hides::Named(String::new()));
    }

    fn flag(&mut self, path: &str, flag: Option<&At<bool>>) {
        if let Some(At { value, span }) = flag {
            self.put(path, (*value).into(), *span, Hides::Named(String::new()));
        }
    }

    fn pairs(&mut self, path: &str, pairs: &[Pair]) {
        for Pair { name, value } in pairs {
            let path = format!("{path}.{}", name.value);
            self.put(&path, value.value.as_str().into(), value.span, Hides::Named(name.value.clone()));
        }
    }

    fn duration(&mut self, path: &str, duration: Option<&At<Duration>>) {
        if let Some(At { value, span }) = duration {
            let origin = Some(Origin::new(&self.server.source, *span));
            self.settings.push(Setting::time(path, *value, origin));
        }
    }

    /// The defaults.
    fn fill_in(&mut self, dialect: &Dialect, usual_call: Duration) {
        let timeouts = &self.server.timeouts;
        if self.server.enabled.is_none() {
            let hides = Hides::Named(String::new());
            self.settings.push(Setting::new("enabled", true.into(), None, hides));
        }
        let usual = dialect.usual_timeout();
        let call = dialect.timeout.filter(|_| !dialect.policy.waits_for_tools).map(|_| usual_call);
        let each = [
            ("timeouts.connect", &timeouts.connect, usual),
            ("timeouts.list", &timeouts.list, usual),
            ("timeouts.call", &timeouts.call, call),
        ];
        let missing = each.into_iter().filter(|(_, own, _)| own.is_none());
        let missing = missing.filter_map(|(path, _, usual)| Some(Setting::time(path, usual?, None)));
        self.settings.extend(missing);
    }
}
