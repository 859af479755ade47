//! How the server of a release file is started: as its hosts and registries describe it.

mod bundle;
mod registry;

use std::{path::Path, sync::Arc};

use rehearse_client_configs::{
    Machine, codes,
    server::{At, ConfiguredServer},
};
use rehearse_document::{Node, Source, Value};
use rehearse_protocol::Transport;
use rehearse_report::findings::Finding;

use super::Release;

/// One way to reach the server of a release file.
#[derive(Clone, Debug)]
pub struct Start {
    /// Where it is described, and what it is: `npm weather@1.2.3`, a URL.
    pub name: At<String>,
    pub transport: Transport,
    /// The server, or why it cannot be started: values that are missing, for example.
    pub server: Result<ConfiguredServer, Vec<Finding>>,
}

/// All ways to reach the server of a release file. Values that a user gives come from the file's defaults and from the
/// variables of the machine.
pub fn starts(release: Release, root: &Node, source: &Arc<Source>, folder: &Path, machine: &Machine) -> Vec<Start> {
    match release {
        Release::Bundle => vec![bundle::start(root, source, folder, machine)],
        Release::ServerJson => registry::starts(root, source, machine),
        Release::Skill => Vec::new(),
    }
}

/// A server that is built while values are found, and why it cannot be started.
struct Draft {
    name: At<String>,
    server: ConfiguredServer,
    findings: Vec<Finding>,
}

impl Draft {
    fn new(name: String, node: &Node, source: &Arc<Source>, transport: Transport) -> Draft {
        let name = At { value: name, span: node.span };
        let transport = At { value: transport, span: node.span };
        let server = ConfiguredServer::new(source.clone(), name.clone(), transport);
        Draft { name, server, findings: Vec::new() }
    }

    /// Says why it cannot be started.
    fn refuse(&mut self, node: &Node, why: &str, hint: String) {
        let message = format!("cannot start `{}`: {why}", self.name.value);
        self.findings.push(codes::CONNECT.at(node.span, message).hint(hint));
    }

    /// A value that is missing; `variable` of the environment can give it.
    fn miss(&mut self, node: &Node, what: &str, variable: Option<&str>) {
        let hint = match variable {
            Some(variable) => format!("set the environment variable {variable}"),
            None => "start the server with its values yourself: --connect --stdio COMMAND".to_owned(),
        };
        self.refuse(node, &format!("`{what}` has no value"), hint);
    }

    fn into_start(self) -> Start {
        let Draft { name, server, findings } = self;
        let transport = server.transport.value;
        Start { name, transport, server: if findings.is_empty() { Ok(server) } else { Err(findings) } }
    }
}

fn at(node: &Node, text: impl Into<String>) -> At<String> {
    At { value: text.into(), span: node.span }
}

/// The value of a variable that is not empty.
fn set<'m>(machine: &'m Machine, variable: &str) -> Option<&'m str> {
    machine.variable(variable).filter(|value| !value.is_empty())
}

/// A text, a number or a boolean as a program gets it.
fn plain(node: &Node) -> Option<String> {
    match &node.value {
        Value::String(text) | Value::Number(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
