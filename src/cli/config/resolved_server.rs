//! Servers of configs with their variables replaced, ready to connect.

use std::{collections::BTreeMap, path::Path, time::Duration};

use rehearse_client::{STDERR_HEADING, ServerParams, Target, oauth::Authorizer};
use rehearse_client_configs::{
    Machine, Unresolved, codes,
    dialect::Dialect,
    resolve,
    secret::{MASK, hidden_in, is_secret_name, mask, secrets_in_argument},
    server,
};
use rehearse_document::references;
use rehearse_hub::configured::{default_timeouts, server_params};
use rehearse_protocol::{Protocol, Transport, Version};
use rehearse_report::findings::Finding;

/// The minimum length of a secret: shorter texts occur by chance.
const MIN_SECRET_LENGTH: usize = 4;
/// The minimum timeout for [`Protocol::Auto`], which waits 10 s for a response before it tries the legacy handshake.
const MIN_AUTO_TIMEOUT: Duration = Duration::from_secs(12);

/// A server with its connection options and its secrets.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedServer {
    pub(crate) config: ServerParams,
    /// The OAuth settings of the config, with variables replaced.
    pub(crate) oauth: server::OAuth,
    pub(crate) secrets: Secrets,
}

/// Texts that must not be printed; none by default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Secrets {
    texts: Vec<String>,
    /// Whether to also mask text in stderr that looks like a secret.
    masks_stderr: bool,
    /// The authorizers whose current tokens must not be printed.
    authorizers: Vec<Authorizer>,
}

/// The environment of this process, and the variables that programs define for a project.
pub(crate) fn variables(project: &Path) -> BTreeMap<String, String> {
    let mut variables = Machine::here().variables;
    let home = variables.get("HOME").cloned().unwrap_or_default();
    let folder = project.display().to_string();
    let base = project.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let known = [
        ("workspaceFolder", folder.clone()),
        ("workspaceFolderBasename", base),
        ("cwd", folder),
        ("userHome", home),
        ("pathSeparator", std::path::MAIN_SEPARATOR.to_string()),
        ("/", std::path::MAIN_SEPARATOR.to_string()),
    ];
    variables.extend(known.map(|(name, value)| (name.to_owned(), value)));
    variables
}

/// Replaces the variables of a configured server. Relative paths start at `folder`.
///
/// # Errors
/// A finding for every variable without a value, or for a missing key.
pub(crate) fn prepare(
    server: &server::ConfiguredServer,
    dialect: &Dialect,
    variables: &BTreeMap<String, String>,
    folder: &Path,
) -> Result<ResolvedServer, Vec<Finding>> {
    let name = &server.name;
    let resolved = resolve(server, dialect, variables).map_err(|unresolved| {
        let finding = |it: &Unresolved| {
            let message = format!("cannot connect to `{}`: {}", name.value, it.describe(dialect.program));
            codes::CONNECT.at(it.span, message).about(&*name.value)
        };
        unresolved.iter().map(finding).collect::<Vec<_>>()
    })?;
    let config = server_params(&resolved, &dialect.policy, default_timeouts(dialect), folder).map_err(|error| {
        vec![codes::CONNECT.at(name.span, format!("cannot connect to `{}`: {error}", name.value)).about(&*name.value)]
    })?;
    let secrets = Secrets::from_server(server, &resolved, &config, variables);
    Ok(ResolvedServer { secrets, oauth: resolved.auth.oauth.map(|oauth| *oauth).unwrap_or_default(), config })
}

/// The default protocol version: negotiated, or the newest legacy version if the timeout is too short for two attempts.
pub(crate) fn default_protocol(config: &ServerParams) -> Protocol {
    let is_http = matches!(config.target.transport(), Transport::Http | Transport::Sse);
    match is_http || config.timeouts.connect >= MIN_AUTO_TIMEOUT {
        true => Protocol::Auto,
        false => Protocol::Exact(Version::LATEST_LEGACY),
    }
}

impl Secrets {
    /// The secrets of a server: secret literals, and the values of variables in secret places.
    pub(crate) fn from_server(
        server: &server::ConfiguredServer,
        resolved: &server::ConfiguredServer,
        config: &ServerParams,
        variables: &BTreeMap<String, String>,
    ) -> Secrets {
        let mut secrets = Vec::new();
        let mut add = |name: &str, value: &str| {
            secrets.extend(hidden_in(name, value).into_iter().map(|range| value[range].to_owned()));
        };
        let pairs = resolved.env.iter().chain(&resolved.headers);
        pairs.for_each(|pair| add(&pair.name.value, &pair.value.value));
        // These include the variables of an env file.
        if let Target::Stdio(spec) = &config.target {
            spec.env.iter().for_each(|(name, value)| add(name, value));
        }
        resolved.url.iter().for_each(|url| add("url", &url.value));
        let auth = &resolved.auth;
        let keys = auth.bearer.iter().chain(auth.api_key.iter().map(|api_key| &api_key.key));
        let keys = keys.chain(auth.oauth.iter().filter_map(|oauth| oauth.client_secret.as_ref()));
        keys.for_each(|key| add("token", &key.value));
        let mut flag = "";
        for arg in &resolved.args {
            let found = secrets_in_argument(flag, &arg.value);
            secrets.extend(found.into_iter().map(|range| arg.value[range].to_owned()));
            flag = if arg.value.starts_with('-') { &arg.value } else { "" };
        }
        // The values of references in headers are always secret.
        let both = server.headers.iter().zip(&resolved.headers);
        secrets.extend(both.filter(|(written, it)| written.value != it.value).map(|(_, it)| it.value.value.clone()));
        for text in server.texts() {
            let secret = references(&text.at.value).filter(|reference| is_secret_name(reference.name));
            secrets.extend(secret.filter_map(|reference| variables.get(reference.name).cloned()));
        }
        // The form in JSON strings.
        let quoted = |secret: &String| serde_json::to_string(secret).map(|text| text[1..text.len() - 1].to_owned());
        let quoted: Vec<_> = secrets.iter().filter_map(|secret| quoted(secret).ok()).collect();
        secrets.extend(quoted);
        secrets.retain(|secret| secret.len() >= MIN_SECRET_LENGTH);
        secrets.sort_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
        secrets.dedup();
        Secrets { texts: secrets, masks_stderr: true, authorizers: Vec::new() }
    }

    /// Masks the secrets in a text.
    pub(crate) fn hidden(&self, text: &str) -> String {
        let text = self.texts.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), MASK));
        let text = self.authorizers.iter().fold(text, |text, authorizer| authorizer.masked(&text, MASK));
        match text.split_once(STDERR_HEADING) {
            Some((before, lines)) => format!("{before}{STDERR_HEADING}{}", self.hidden_in_stderr(lines)),
            None => text,
        }
    }

    /// Masks the secrets in stderr lines, and text that looks like a secret.
    pub(crate) fn hidden_in_stderr(&self, lines: &str) -> String {
        let text = self.hidden(lines);
        let masked = || text.split('\n').map(|line| mask("", line)).collect::<Vec<_>>().join("\n");
        if self.masks_stderr { masked() } else { text }
    }

    /// Adds other secrets.
    pub(crate) fn merge(mut self, other: &Secrets) -> Secrets {
        self.masks_stderr |= other.masks_stderr;
        self.texts.extend(other.texts.iter().cloned());
        self.texts.sort_by(|one, two| two.len().cmp(&one.len()).then_with(|| one.cmp(two)));
        self.texts.dedup();
        self.authorizers.extend(other.authorizers.iter().cloned());
        self
    }

    /// Adds the tokens of authorizers.
    pub(crate) fn merge_tokens(mut self, authorizers: impl IntoIterator<Item = Authorizer>) -> Secrets {
        self.authorizers.extend(authorizers);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_client::Timeouts;
    use rehearse_client_configs::server::{At, Pair};
    use rehearse_document::{Source, Span};
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
        let secrets = Secrets::from_server(&server, &server, &config, &BTreeMap::new());
        assert_eq!(secrets.hidden(r#"ge"heim and {"a":"ge\"heim"}"#), r#"*** and {"a":"***"}"#);
        assert_eq!(Secrets::default().merge(&secrets).texts, secrets.texts);
        server.auth.oauth =
            Some(Box::new(server::OAuth { client_secret: Some(at("s3cret")), ..server::OAuth::default() }));
        let secrets = Secrets::from_server(&server, &server, &config, &BTreeMap::new());
        assert_eq!(secrets.hidden("invalid s3cret"), "invalid ***");
    }
}
