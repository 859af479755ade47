//! The servers of a scenario: mock scripts, commands and URLs.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use rehearse_client::{CommandSpec, Endpoint, StopGrace, Target, Timeouts};
use rehearse_document::{Entry, Fields, Node, Problem, Problems, Value, Variables};
use rehearse_mock::script::{BuiltinScript, Script};
use rehearse_protocol::Transport;

const KEYS: &[&str] = &["mock", "command", "url", "args", "env", "cwd", "headers", "type", "timeouts"];

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
    /// A command or a URL.
    Target(Target),
}

impl ServerSpec {
    pub(super) fn read(
        name: &str,
        node: &Node,
        folder: &Path,
        builtins: &[BuiltinScript],
    ) -> Result<ServerSpec, Problems> {
        let fields = node.fields("a server", KEYS)?;
        let Entry { key, node: value, .. } = fields.exactly_one(&["mock", "command", "url"])?;
        let kind = match key.as_str() {
            "mock" => ServerKind::Mock(read_script(value, folder, builtins)?, pairs(&fields, "headers")?),
            "command" => ServerKind::Target(read_command(&fields, value, folder)?),
            _ => ServerKind::Target(read_url(&fields, value)?),
        };
        let foreign: &[&str] = match key.as_str() {
            "mock" => &["args", "env", "cwd", "type"],
            "command" => &["headers", "type"],
            _ => &["args", "env", "cwd"],
        };
        if let Some(entry) = fields.at_most_one(foreign)? {
            let message = format!("`{}` cannot be used with `{key}`", entry.key);
            return Err(Problem::new(entry.key_span, message).into());
        }
        let timeouts = fields.read("timeouts", read_timeouts)?.unwrap_or_default();
        Ok(ServerSpec { name: name.to_owned(), kind, timeouts })
    }

    /// The values of the server's headers and environment variables, each with its name.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let named = |kind: &str, name: &str, value: &str| (format!("{kind} {name}"), value.to_owned());
        let of_headers = |headers: &[(String, String)]| -> Vec<_> {
            headers.iter().map(|(name, value)| named("header", name, value)).collect()
        };
        let secrets = match &self.kind {
            ServerKind::Mock(_, headers) => of_headers(headers),
            ServerKind::Target(Target::Stdio(command)) => {
                command.env.iter().map(|(name, value)| named("env", name, value)).collect()
            }
            ServerKind::Target(Target::Http(endpoint) | Target::Sse(endpoint) | Target::Ws(endpoint)) => {
                of_headers(&endpoint.headers)
            }
            ServerKind::Target(Target::Memory(_)) => Vec::new(),
        };
        // Shorter values occur in other strings by chance.
        secrets.into_iter().filter(|(_, value)| value.len() >= 8).collect()
    }

    /// The transports of the server.
    pub fn transports(&self) -> Vec<Transport> {
        match &self.kind {
            ServerKind::Mock(..) => Transport::ALL.to_vec(),
            ServerKind::Target(target) => vec![target.transport()],
        }
    }
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

fn read_command(fields: &Fields<'_>, node: &Node, folder: &Path) -> Result<Target, Problems> {
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
    Ok(Target::Stdio(CommandSpec {
        program,
        args,
        env: pairs(fields, "env")?.into_iter().collect::<BTreeMap<_, _>>(),
        inherit: None,
        cwd: cwd.map(|cwd| folder.join(cwd)),
        grace: StopGrace::default(),
    }))
}

fn read_url(fields: &Fields<'_>, node: &Node) -> Result<Target, Problems> {
    let url = expand(node)?;
    let endpoint = Endpoint { url: url.clone(), headers: pairs(fields, "headers")? };
    let scheme = url.split("://").next().unwrap_or_default();
    let transport = fields.read("type", |node| match node.str()? {
        "http" => Ok(Transport::Http),
        "sse" => Ok(Transport::Sse),
        "ws" => Ok(Transport::Ws),
        _ => Err(node.problem("`type` must be http, sse or ws").into()),
    })?;
    match (scheme, transport) {
        ("wss", _) => Err(node.problem("wss:// is not supported: this client has no TLS for WebSockets").into()),
        ("ws", None | Some(Transport::Ws)) => Ok(Target::Ws(endpoint)),
        ("http" | "https", Some(Transport::Sse)) => Ok(Target::Sse(endpoint)),
        ("http" | "https", None) if url.trim_end_matches('/').ends_with("/sse") => Ok(Target::Sse(endpoint)),
        ("http" | "https", None | Some(Transport::Http)) => Ok(Target::Http(endpoint)),
        ("http" | "https" | "ws", _) => Err(node.problem("the URL does not fit `type`").into()),
        _ => Err(node.problem("a URL must start with http://, https:// or ws://").into()),
    }
}

fn read_timeouts(node: &Node) -> Result<Timeouts, Problems> {
    let fields = node.fields("`timeouts`", &["connect", "list", "call"])?;
    let default = Timeouts::default();
    let read = |key, default: Duration| Ok::<_, Problems>(fields.read(key, Node::duration)?.unwrap_or(default));
    Ok(Timeouts {
        connect: read("connect", default.connect)?,
        list: read("list", default.list)?,
        call: read("call", default.call)?,
    })
}
