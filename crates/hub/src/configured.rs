//! Converts configured servers to the parameters of client sessions.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::HubServer;
use rehearse_client::{
    ClientInfo, CommandSpec, Endpoint, ServerParams, Target, Timeouts,
    oauth::{ClientSecret, Identity, Options, PreregisteredClient, Secret},
};
use rehearse_client_configs::{
    System,
    dialect::Dialect,
    parse_dotenv,
    policy::{self, Policy},
    server::{self, At},
};
use rehearse_document::text::text_of;

/// Why a configured server cannot be connected to.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// A key that the transport requires is missing.
    #[error("it has no {0}")]
    Missing(&'static str),
    /// The env file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    EnvFile { path: PathBuf, source: io::Error },
}

/// The parameters of a configured server, whose variables are replaced. Relative paths start at `folder`. Reads the env
/// file of the server, if it has one. `defaults` are the timeouts that the server does not set.
///
/// # Errors
/// [`ConfigurationError`] names the missing key or the file.
pub fn server_params(
    server: &server::ConfiguredServer,
    policy: &Policy,
    defaults: Timeouts,
    folder: &Path,
) -> Result<ServerParams, ConfigurationError> {
    let transport = server.transport.value;
    let target = match transport.schemes() {
        [] => None,
        _ => Target::at(transport, endpoint(server)?),
    };
    let target = match target {
        Some(target) => target,
        None => Target::Stdio(command(server, policy, folder)?),
    };
    let own = &server.timeouts;
    let timeouts = Timeouts {
        connect: own.connect.as_ref().map_or(defaults.connect, |it| it.value),
        list: own.list.as_ref().map_or(defaults.list, |it| it.value),
        call: own.call.as_ref().map_or(defaults.call, |it| it.value),
    };
    Ok(ServerParams { timeouts, client_info: client_info(policy), ..ServerParams::new(&server.name.value, target) })
}

/// A configured server as a server of a hub. Its variables need not be replaced; `config` has the values.
pub fn hub_server(server: &server::ConfiguredServer, policy: &'static Policy, config: ServerParams) -> HubServer {
    let per_tool = server.timeouts.tools.iter().map(|(tool, limit)| (tool.value.clone(), limit.value));
    HubServer {
        is_enabled: server.is_enabled(),
        filter: server.tools.clone(),
        policy,
        is_trusted: server.approval.trust.as_ref().is_some_and(|trust| trust.value),
        always_allow: server.approval.always_allow.iter().map(|tool| tool.value.clone()).collect(),
        tool_timeouts: per_tool.collect(),
        waits_for_tools: policy.waits_for_tools,
        ..HubServer::new(config)
    }
}

fn client_info(policy: &Policy) -> ClientInfo {
    match policy.client_info {
        policy::ClientInfo::Own => ClientInfo::default(),
        policy::ClientInfo::Named { name, title, version } => ClientInfo {
            name: name.to_owned(),
            title: title.map(str::to_owned),
            version: version.map_or_else(|| ClientInfo::default().version, str::to_owned),
        },
    }
}

/// The default timeouts of a program, or those of the client if they are unknown.
pub fn default_timeouts(dialect: &Dialect) -> Timeouts {
    match dialect.usual_timeout() {
        Some(limit) => Timeouts { connect: limit, list: limit, call: limit },
        None => Timeouts::default(),
    }
}

/// The OAuth options of a config whose variables are replaced: non-interactive, without a token store. URLs of single
/// endpoints are not used, because the metadata of the authorization server has them.
pub fn oauth_options(oauth: &server::OAuth) -> Options {
    let registered = oauth.client_id.as_ref().map(|id| {
        let secret = oauth.client_secret.as_ref();
        let secret = secret.map_or(ClientSecret::None, |secret| ClientSecret::Text(Secret::new(&*secret.value)));
        PreregisteredClient { id: id.value.clone(), secret, issuer: None }
    });
    let scopes: Vec<_> = oauth.scopes.iter().map(|scope| scope.value.clone()).collect();
    Options {
        identity: Identity { registered, ..Identity::default() },
        scopes: Some(scopes).filter(|scopes| !scopes.is_empty()),
        metadata_url: oauth.metadata_url.as_ref().map(|url| url.value.clone()),
        ..Options::default()
    }
}

fn command(
    server: &server::ConfiguredServer,
    policy: &Policy,
    folder: &Path,
) -> Result<CommandSpec, ConfigurationError> {
    let program = server.command.as_ref().ok_or(ConfigurationError::Missing("command"))?.value.clone();
    let mut spec = CommandSpec { program, ..CommandSpec::default() };
    spec.args = server.args.iter().map(|arg| arg.value.clone()).collect();
    if let Some(At { value, .. }) = &server.env_file {
        let path = folder.join(value);
        let text = text_of(&path).map_err(|source| ConfigurationError::EnvFile { path, source })?;
        spec.env.extend(parse_dotenv(&text));
    }
    spec.env.extend(server.env.iter().map(|pair| (pair.name.value.clone(), pair.value.value.clone())));
    spec.cwd = server.cwd.as_ref().map(|cwd| folder.join(&cwd.value));
    spec.inherit = policy.environment.names(System::HERE);
    Ok(spec)
}

fn endpoint(server: &server::ConfiguredServer) -> Result<Endpoint, ConfigurationError> {
    let url = server.url.as_ref().ok_or(ConfigurationError::Missing("url"))?.value.clone();
    let mut headers: Vec<_> =
        server.headers.iter().map(|pair| (pair.name.value.clone(), pair.value.value.clone())).collect();
    // A header of the config takes precedence.
    let mut add = |name: &str, value: String| {
        if !headers.iter().any(|(known, _): &(String, _)| known.eq_ignore_ascii_case(name)) {
            headers.push((name.to_owned(), value));
        }
    };
    if let Some(token) = &server.auth.bearer {
        add("Authorization", format!("Bearer {}", token.value));
    }
    if let Some(api_key) = &server.auth.api_key {
        add(api_key.header.as_ref().map_or("X-API-Key", |name| &name.value), api_key.key.value.clone());
    }
    Ok(Endpoint { url, headers })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use rehearse_client_configs::{dialect, lint, server::ApiKey};
    use rehearse_document::{Source, Span};

    fn server(dialect: &str, text: &str) -> (server::ConfiguredServer, &'static Policy) {
        let dialect = dialect::by_name(dialect).expect(dialect);
        let place = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect::<String>();
        let text = format!("{place}{{\"s\":{text}}}{}", "}".repeat(dialect.roots[0].len()));
        let examined = lint(&Source::new("t.json", &*text), None, Some(dialect), None);
        let mut servers = examined.config.map(|config| config.servers).unwrap_or_default();
        assert_eq!(servers.len(), 1, "{:?}", examined.findings);
        (servers.remove(0), &dialect.policy)
    }

    fn configured(dialect: &str, text: &str, folder: &Path) -> ServerParams {
        let defaults = default_timeouts(dialect::by_name(dialect).expect(dialect));
        let (server, policy) = server(dialect, text);
        server_params(&server, policy, defaults, folder).expect("valid parameters")
    }

    #[test]
    fn a_command_starts_in_the_folder_with_the_environment_of_its_program() {
        let folder = Path::new("/project");
        let text = r#"{"command": "c", "args": ["a", "b"], "env": {"A": "1"}, "cwd": "sub", "timeout": 7}"#;
        let config = configured("cline", text, folder);
        let Target::Stdio(spec) = config.target else { panic!("{:?}", config.target) };
        assert_eq!((&*config.name, &*spec.program, spec.args), ("s", "c", vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(spec.env.into_iter().collect::<Vec<_>>(), [("A".to_owned(), "1".to_owned())]);
        assert_eq!(spec.cwd.as_deref(), Some(Path::new("/project/sub")));
        assert!(spec.inherit.is_some_and(|names| names.contains(&"PATH")), "{:?}", spec.inherit);
        assert_eq!(config.timeouts.connect, Duration::from_secs(7));
        let config = configured("vscode", r#"{"command": "c"}"#, folder);
        assert_eq!((config.timeouts.connect, config.client_info), (Duration::from_secs(30), ClientInfo::default()));
        let Target::Stdio(spec) = config.target else { panic!("{:?}", config.target) };
        assert_eq!((spec.inherit, spec.cwd), (None, None));
    }

    #[test]
    fn a_config_without_timeouts_has_those_of_its_program() {
        let limits = |dialect: &str, text: &str| {
            let Timeouts { connect, list, call } = configured(dialect, text, Path::new("/project")).timeouts;
            [connect, list, call].map(|limit| limit.as_secs())
        };
        assert_eq!(limits("gemini", r#"{"command": "c"}"#), [600; 3]);
        assert_eq!(limits("gemini", r#"{"command": "c", "timeout": 7000}"#), [7; 3]);
        // Its timeout is for the start alone, or for calls alone, or it has none.
        assert_eq!(limits("cpe", r#"{"type": "stdio", "command": "c", "timeout": 7}"#), [7, 7, 60]);
        assert_eq!(limits("cpe", r#"{"type": "stdio", "command": "c"}"#), [60; 3]);
        assert_eq!(limits("roo", r#"{"command": "c", "timeout": 7}"#), [30, 30, 7]);
        assert_eq!(limits("vscode", r#"{"command": "c"}"#), [30, 30, 60]);
        for (dialect, text, expected) in [
            ("mcpilot", r#"{"command": "c"}"#, 60),
            ("mcpilot", r#"{"command": "c", "timeout": 7}"#, 7),
            ("code_agent", r#"{"type": "stdio", "command": "c"}"#, 30),
            ("code_agent", r#"{"type": "stdio", "command": "c", "timeout": 7000}"#, 7),
        ] {
            assert_eq!(limits(dialect, text), [expected; 3], "{dialect} {text}");
        }
        for (dialect, waits) in [("cpe", true), ("code_agent", false)] {
            let text = r#"{"type": "stdio", "command": "c", "timeout": 7000}"#;
            let (server, policy) = server(dialect, text);
            let hub_server = hub_server(&server, policy, configured(dialect, text, Path::new("/project")));
            let call = if waits { Duration::MAX } else { Duration::from_secs(7) };
            assert_eq!(hub_server.tool_timeout("t"), call, "{dialect}");
        }
    }

    #[test]
    fn a_server_of_a_program_sees_the_name_of_that_program() {
        let named = |dialect: &str, text: &str| {
            let ClientInfo { name, title, version } = configured(dialect, text, Path::new("/project")).client_info;
            [name, title.unwrap_or_default(), version]
        };
        let own = ClientInfo::default().version;
        assert_eq!(named("cpe", r#"{"type": "stdio", "command": "c"}"#), ["cpe", "CPE", &own]);
        assert_eq!(named("mcpilot", r#"{"command": "c"}"#), ["MCPilot", "", "1.0.0"]);
        assert_eq!(named("engine", r#"{"command": "c"}"#), ["aidk-engine", "", "1.0.0"]);
        assert_eq!(named("cursor", r#"{"command": "c"}"#), ["rehearse", "", &own]);
    }

    #[test]
    fn an_env_file_adds_variables_to_those_of_the_config() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join(".env"), "A=file\nB=file\n").expect("writes");
        let text = r#"{"command": "c", "envFile": ".env", "env": {"A": "own"}}"#;
        let Target::Stdio(spec) = configured("vscode", text, folder.path()).target else { panic!("a command") };
        let pairs: Vec<_> = spec.env.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(pairs, [("A", "own"), ("B", "file")]);
        let (server, policy) = server("vscode", r#"{"command": "c", "envFile": "missing"}"#);
        let error =
            server_params(&server, policy, Timeouts::default(), folder.path()).expect_err("no such file").to_string();
        assert!(error.starts_with("cannot read ") && error.contains("missing"), "{error}");
    }

    #[test]
    fn oauth_settings_of_a_config_become_options() {
        let oauth =
            r#"{"clientId": "me", "callbackPort": 7, "authServerMetadataUrl": "https://as/m", "scopes": "a b"}"#;
        let text = format!(r#"{{"type": "http", "url": "http://h/", "oauth": {oauth}}}"#);
        let mut oauth = server("claude-code", &text).0.auth.oauth.expect("OAuth settings");
        let options = oauth_options(&oauth);
        let registered = options.identity.registered.expect("an id");
        assert_eq!((&*registered.id, registered.secret), ("me", ClientSecret::None));
        assert_eq!(options.scopes, Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(options.metadata_url.as_deref(), Some("https://as/m"));
        oauth.client_secret = Some(At { value: "s".to_owned(), span: Span::default() });
        let registered = oauth_options(&oauth).identity.registered.expect("an id");
        assert_eq!(registered.secret, ClientSecret::Text(Secret::new("s")));
        assert_eq!(oauth_options(&server::OAuth::default()).scopes, None);
    }

    #[test]
    fn authorization_becomes_a_header_unless_the_config_has_one() {
        let text = r#"{"type": "http", "url": "http://h/", "headers": {"A": "1"}}"#;
        let (mut server, policy) = server("claude-code", text);
        let at = |value: &str| At { value: value.to_owned(), span: Span::default() };
        server.auth.bearer = Some(at("t"));
        server.auth.api_key = Some(Box::new(ApiKey { header: None, key: at("k") }));
        let headers =
            |server: &server::ConfiguredServer| match server_params(server, policy, Timeouts::default(), Path::new(""))
                .expect("an endpoint")
                .target
            {
                Target::Http(Endpoint { url, headers }) => {
                    assert_eq!(url, "http://h/");
                    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>()
                }
                other => panic!("{other:?}"),
            };
        assert_eq!(headers(&server), ["A: 1", "Authorization: Bearer t", "X-API-Key: k"]);
        server.headers[0].name.value = "authorization".into();
        assert_eq!(headers(&server), ["authorization: 1", "X-API-Key: k"]);
    }
}
