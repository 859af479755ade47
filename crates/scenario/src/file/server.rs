//! The servers of a scenario: mock scripts, commands and URLs.

use std::{
    collections::BTreeMap,
    env, io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::config_servers;
use crate::keys::KEYS;
use rehearse_client::{CommandSpec, Endpoint, StopGrace, Target, Timeouts, address, free_port};
use rehearse_document::{Fields, Node, Problem, Problems, Value, Variables};
use rehearse_hub::HubServer;
use rehearse_mock::{
    script::{BuiltinScript, Script},
    serve::url as mock_url,
};
use rehearse_protocol::Transport;

/// What stands for the free port.
const PORT: [&str; 2] = ["{{ port }}", "{{port}}"];

/// One server of a scenario.
#[derive(Debug, Clone)]
pub struct ServerSpec {
    /// Its name in the scenario.
    pub name: String,
    /// How to reach it.
    pub kind: ServerKind,
    /// Its timeouts.
    pub timeouts: Timeouts,
}

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum ServerKind {
    /// A mock script, by path or by the name of a built-in script, and the HTTP headers of requests. Every cell starts a
    /// fresh mock.
    Mock(PathBuf, Vec<(String, String)>),
    /// A config of a subagent, served by this program. Every cell starts a fresh server.
    Subagent(PathBuf),
    /// The servers of a client config, as one set of tools.
    Config(Vec<HubServer>),
    /// A command or a URL for each of its transports.
    Targets(Vec<TargetSpec>),
}

/// How to reach a server over one transport.
#[derive(Debug, Clone)]
pub struct TargetSpec {
    /// The command or the URL. In a URL, `{{ port }}` is a free port.
    pub target: Target,
    /// The command that serves the URL. Every cell starts it.
    pub command: Option<NetworkCommand>,
}

/// A command that serves a URL. In its arguments and variables, `{{ port }}` is the port of the URL.
#[derive(Debug, Clone)]
pub struct NetworkCommand {
    /// The command.
    pub command: CommandSpec,
    /// A text in its output that shows that it is ready; by default, the address of the URL must accept connections.
    pub ready: Option<String>,
}

impl ServerSpec {
    /// Sets the time from the start of the server to the end of its handshake.
    pub fn set_start_timeout(&mut self, limit: Duration) {
        self.timeouts.connect = limit;
        if let ServerKind::Config(members) = &mut self.kind {
            members.iter_mut().for_each(|member| member.config.timeouts.connect = limit);
        }
    }

    pub(crate) fn read(
        name: &str,
        node: &Node,
        folder: &Path,
        builtins: &[BuiltinScript],
    ) -> Result<ServerSpec, Problems> {
        let fields = KEYS.fields(node, "server")?;
        let timeouts = fields.read("timeouts", read_timeouts)?.unwrap_or_default();
        let kind = match Transport::EXTERNAL.iter().any(|it| fields.get(it.as_str()).is_some()) {
            true => ServerKind::Targets(read_targets(&fields, folder)?),
            false => read_kind(&fields, folder, builtins)?,
        };
        Ok(ServerSpec { name: name.to_owned(), kind, timeouts })
    }

    /// The values of the server's headers and environment variables, each with its name.
    pub(crate) fn secrets(&self) -> Vec<(String, String)> {
        let named = |kind: &str, name: &str, value: &str| (format!("{kind} {name}"), value.to_owned());
        let of_headers = |headers: &[(String, String)]| -> Vec<_> {
            headers.iter().map(|(name, value)| named("header", name, value)).collect()
        };
        let of_command = |command: &CommandSpec| -> Vec<_> {
            command.env.iter().map(|(name, value)| named("env", name, value)).collect()
        };
        let of_target = |target: &Target| match target {
            Target::Stdio(command) => of_command(command),
            target => target.endpoint().map(|endpoint| of_headers(&endpoint.headers)).unwrap_or_default(),
        };
        let of_spec = |spec: &TargetSpec| {
            let mut secrets = of_target(&spec.target);
            secrets.extend(spec.command.iter().flat_map(|network| of_command(&network.command)));
            secrets
        };
        let mut secrets = match &self.kind {
            ServerKind::Mock(_, headers) => of_headers(headers),
            ServerKind::Subagent(_) => Vec::new(),
            ServerKind::Config(members) => members.iter().flat_map(|member| of_target(&member.config.target)).collect(),
            ServerKind::Targets(targets) => targets.iter().flat_map(of_spec).collect(),
        };
        // Shorter values occur in other strings by chance.
        secrets.retain(|(_, value)| value.len() >= 8);
        secrets
    }

    /// Where its command listens over a transport, unless each cell has a port of its own.
    pub(crate) fn fixed_address(&self, transport: Transport) -> Option<String> {
        let ServerKind::Targets(targets) = &self.kind else { return None };
        let spec = targets.iter().find(|spec| spec.target.transport() == transport && spec.command.is_some())?;
        let at = spec.target.endpoint().filter(|at| !has_port(&at.url))?;
        address(&at.url)
    }

    /// The transports of the server.
    pub fn transports(&self) -> Vec<Transport> {
        match &self.kind {
            // A config says how to reach its servers, whatever the cell.
            ServerKind::Mock(..) | ServerKind::Config(_) => Transport::ALL.to_vec(),
            ServerKind::Subagent(_) => Transport::EXTERNAL.to_vec(),
            ServerKind::Targets(targets) => targets.iter().map(|spec| spec.target.transport()).collect(),
        }
    }
}

/// A server with one entry for each transport.
fn read_targets(fields: &Fields<'_>, folder: &Path) -> Result<Vec<TargetSpec>, Problems> {
    let foreign = KEYS.keys("server").into_iter().take_while(|key| *key != "stdio");
    if let Some(entry) = foreign.into_iter().find_map(|key| fields.entry(key)) {
        let problem =
            Problem::new(entry.key_span, format!("`{}` belongs into `stdio`, `http`, `sse` or `ws`", entry.key));
        return Err(problem.into());
    }
    let read = |transport: Transport| {
        let key = transport.as_str();
        fields.read(key, |node| match transport {
            Transport::Stdio => {
                let fields = KEYS.fields(node, "process")?;
                let command = read_command(&fields, fields.required("command")?, folder)?;
                Ok(TargetSpec { target: Target::Stdio(command), command: None })
            }
            _ => read_network(&KEYS.fields_as(node, "network", &format!("`{key}`"))?, Some(transport), folder),
        })
    };
    let targets = Problems::collect(Transport::EXTERNAL.into_iter().map(read))?;
    Ok(targets.into_iter().flatten().collect())
}

/// A server with one mock, command or URL.
fn read_kind(fields: &Fields<'_>, folder: &Path, builtins: &[BuiltinScript]) -> Result<ServerKind, Problems> {
    let key = match fields.get("url") {
        Some(_) => fields.exactly_one(&["mock", "url"])?,
        None => fields.exactly_one(&["mock", "subagent", "config", "command", "url"])?,
    };
    let foreign: &[&str] = match key.key.as_str() {
        "mock" => &["args", "env", "cwd", "type", "ready", "server", "dialect"],
        "subagent" => &["args", "env", "cwd", "type", "ready", "headers", "server", "dialect"],
        "config" => &["args", "env", "cwd", "type", "ready", "headers", "timeouts"],
        "command" => &["headers", "type", "ready", "server", "dialect"],
        _ if fields.get("command").is_none() => &["args", "env", "cwd", "ready", "server", "dialect"],
        _ => &["server", "dialect"],
    };
    if let Some(entry) = fields.at_most_one(foreign)? {
        let message = format!("`{}` cannot be used with `{}`", entry.key, key.key);
        return Err(Problem::new(entry.key_span, message).into());
    }
    let target = match key.key.as_str() {
        "mock" => return Ok(ServerKind::Mock(read_script(&key.node, folder, builtins)?, pairs(fields, "headers")?)),
        "subagent" => {
            let path = folder.join(key.node.str()?);
            if !path.is_file() {
                return Err(key.node.problem(format!("there is no file {}", path.display())).into());
            }
            return Ok(ServerKind::Subagent(path));
        }
        "config" => return config_servers::read(fields, &key.node, folder).map(ServerKind::Config),
        "command" => TargetSpec { target: Target::Stdio(read_command(fields, &key.node, folder)?), command: None },
        _ => {
            let transport = fields.read("type", |node| {
                let text = node.str()?;
                let named = Transport::NETWORK.into_iter().find(|transport| transport.as_str() == text);
                named.ok_or_else(|| node.problem("`type` must be http, sse or ws").into())
            })?;
            read_network(fields, transport, folder)?
        }
    };
    Ok(ServerKind::Targets(vec![target]))
}

impl TargetSpec {
    /// The subagent of a config as a server over this transport. The program `rehearse` that its config names is this one.
    pub(crate) fn for_subagent(config: &Path, rehearse: &Path, transport: Transport) -> io::Result<TargetSpec> {
        let config = config.canonicalize()?;
        let mut command = CommandSpec {
            program: rehearse.display().to_string(),
            // A test leaves no files.
            args: ["serve", "--quiet", "--no-save", "--config"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("PATH".to_owned(), path_with(rehearse))]),
            cwd: config.parent().map(Path::to_owned),
            ..CommandSpec::default()
        };
        command.args.push(config.display().to_string());
        let url = mock_url(transport, format!("127.0.0.1:{}", PORT[0]));
        let endpoint = url.map(|url| Endpoint { url, headers: Vec::new() });
        let Some(target) = endpoint.and_then(|endpoint| Target::at(transport, endpoint)) else {
            return Ok(TargetSpec { target: Target::Stdio(command), command: None });
        };
        // The same inputs on every transport, as far as they are beside the config.
        command.args.extend(["--allow-input", ".", "--listen", PORT[0]].map(str::to_owned));
        Ok(TargetSpec { target, command: Some(NetworkCommand { command, ready: None }) })
    }

    /// Replaces `{{ port }}` by a free port.
    ///
    /// # Errors
    /// No port is free.
    pub(crate) fn with_free_port(&self) -> io::Result<TargetSpec> {
        let mut spec = self.clone();
        let (Some(network), Some(at)) = (&mut spec.command, spec.target.endpoint_mut()) else { return Ok(spec) };
        if has_port(&at.url) {
            let port = free_port()?.to_string();
            let NetworkCommand { command, ready } = network;
            let texts = command.args.iter_mut().chain(command.env.values_mut()).chain(ready).chain([&mut at.url]);
            texts.for_each(|text| *text = PORT.iter().fold(text.clone(), |text, name| text.replace(name, &port)));
        }
        Ok(spec)
    }
}

/// The variable `PATH` of a process for which `rehearse` is this program.
pub(crate) fn path_with(rehearse: &Path) -> String {
    let usual = env::var_os("PATH").unwrap_or_default();
    let folders = rehearse.parent().map(Path::to_owned).into_iter().chain(env::split_paths(&usual));
    // A folder with a separator in its name cannot be in the variable.
    env::join_paths(folders).unwrap_or(usual).to_string_lossy().into_owned()
}

fn has_port(text: &str) -> bool {
    PORT.iter().any(|name| text.contains(name))
}

/// The path of a valid script.
fn read_script(node: &Node, folder: &Path, builtins: &[BuiltinScript]) -> Result<PathBuf, Problems> {
    let text = node.str()?;
    let path = folder.join(text);
    let path = if !path.exists() && builtins.iter().any(|script| script.name == text) { text.into() } else { path };
    match Script::load(&path, builtins) {
        Ok(_) => Ok(path),
        Err(error) => Err(node.problem(error.to_string()).into()),
    }
}

fn expand(node: &Node) -> Result<String, Problems> {
    Variables::OURS
        .substitute(node.str()?, |reference| std::env::var(reference.name).ok())
        .map_err(|unset| node.problem(unset.to_string()).hint("set it, or give a default with ${NAME:-default}").into())
}

fn pairs(fields: &Fields<'_>, key: &str) -> Result<Vec<(String, String)>, Problems> {
    let entries = fields.get(key).map(Node::entries).transpose()?.unwrap_or_default();
    Problems::collect(entries.iter().map(|entry| Ok((entry.key.clone(), expand(&entry.node)?))))
}

fn read_command(fields: &Fields<'_>, node: &Node, folder: &Path) -> Result<CommandSpec, Problems> {
    let program = expand(node)?;
    let program = match program.starts_with('.') {
        true => folder.join(program).display().to_string(),
        false => program,
    };
    if program.contains(char::is_whitespace) && !Path::new(&program).exists() {
        let mut words = program.split_whitespace();
        let (program, args) = (words.next().unwrap_or_default(), words.collect::<Vec<_>>().join(", "));
        let problem = node.problem("`command` must be a program without arguments");
        return Err(problem.hint(format!("write `command: {program}` and `args: [{args}]`")).into());
    }
    let cwd = fields.read("cwd", expand)?;
    let args = match fields.get("args") {
        Some(Node { value: Value::String(text), span }) => {
            let problem = Problem::new(*span, "`args` must be an array");
            let words = text.split_whitespace().collect::<Vec<_>>().join(", ");
            return Err(problem.hint(format!("write `args: [{words}]`")).into());
        }
        _ => fields.read_each("args", expand)?,
    };
    Ok(CommandSpec {
        program,
        args,
        env: pairs(fields, "env")?.into_iter().collect::<BTreeMap<_, _>>(),
        inherit: None,
        cwd: cwd.map(|cwd| folder.join(cwd)),
        grace: StopGrace::default(),
    })
}

/// A URL, and the command that serves it if there is one.
fn read_network(fields: &Fields<'_>, transport: Option<Transport>, folder: &Path) -> Result<TargetSpec, Problems> {
    let node = fields.required("url")?;
    let url = expand(node)?;
    let command = fields.get("command").map(|node| read_command(fields, node, folder)).transpose()?;
    let ready = fields.read("ready", expand)?;
    if command.is_none() && has_port(&url) {
        let problem = node.problem("`{{ port }}` is a free port, on which only a `command` can listen");
        return Err(problem.hint("add the `command` that starts the server, or write its port").into());
    }
    let endpoint = Endpoint { url: url.clone(), headers: pairs(fields, "headers")? };
    let scheme = url.split("://").next().unwrap_or_default();
    let guess = match scheme {
        "ws" | "wss" => Transport::Ws,
        "http" | "https" if url.trim_end_matches('/').ends_with("/sse") => Transport::Sse,
        "http" | "https" => Transport::Http,
        _ => return Err(node.problem("a URL must start with http://, https://, ws:// or wss://").into()),
    };
    let transport = transport.unwrap_or(guess);
    let target = Target::at(transport, endpoint).filter(|_| transport.schemes().contains(&scheme));
    let not_fitting = || node.problem(format!("this is not a URL of the transport {transport}"));
    let target = target.ok_or_else(not_fitting)?;
    Ok(TargetSpec { target, command: command.map(|command| NetworkCommand { command, ready }) })
}

fn read_timeouts(node: &Node) -> Result<Timeouts, Problems> {
    let fields = KEYS.fields(node, "timeouts")?;
    let default = Timeouts::default();
    let read = |key, default: Duration| Ok::<_, Problems>(fields.read(key, Node::duration)?.unwrap_or(default));
    Ok(Timeouts {
        connect: read("connect", default.connect)?,
        list: read("list", default.list)?,
        call: read("call", default.call)?,
    })
}
