//! The packages and remotes of a `server.json` (its schema of 2025-12-11: `Package`, `Argument`, `Input`).

use std::sync::Arc;

use rehearse_client_configs::{Machine, server::Pair};
use rehearse_document::{Node, Source};
use rehearse_protocol::Transport;

use super::{Draft, Start, at, set};

/// The registries of packages that can be started: their usual runtime, and their address if that is not in the identifier.
const REGISTRIES: [(&str, &str, &str); 3] =
    [("npm", "npx", "https://registry.npmjs.org"), ("pypi", "uvx", "https://pypi.org"), ("oci", "docker", "")];

/// The runtimes that start a package, and their words before it.
const RUNTIMES: [(&str, &[&str]); 4] =
    [("npx", &["-y"]), ("uvx", &[]), ("docker", &["run", "-i", "--rm"]), ("podman", &["run", "-i", "--rm"])];

pub(super) fn starts(root: &Node, source: &Arc<Source>, machine: &Machine) -> Vec<Start> {
    let items = |key: &str| root.get(key).and_then(Node::as_items).unwrap_or_default();
    let packages = items("packages").iter().map(|package| of_package(package, source, machine));
    packages.chain(items("remotes").iter().map(|remote| of_remote(remote, source, machine))).collect()
}

fn of_package(package: &Node, source: &Arc<Source>, machine: &Machine) -> Start {
    let (kind, identifier) = (text(package, "registryType"), text(package, "identifier"));
    let version = package.get("version").and_then(Node::as_str);
    let separator = if kind == "pypi" { "==" } else { "@" };
    let package_name = version.map_or_else(|| identifier.to_owned(), |it| format!("{identifier}{separator}{it}"));
    let draft = Draft::new(format!("{kind} {package_name}"), package, source, Transport::Stdio);
    let mut inputs = Inputs { draft, machine };
    let (runtime, address) =
        REGISTRIES.iter().find(|(name, ..)| *name == kind).map_or(("", ""), |(_, runtime, at)| (*runtime, *at));
    let runtime = package.get("runtimeHint").and_then(Node::as_str).filter(|_| !runtime.is_empty()).unwrap_or(runtime);
    let own = RUNTIMES.iter().find(|(name, _)| *name == runtime).map(|(_, words)| *words);
    let other = "start it yourself: --connect --stdio COMMAND";
    let other_address = package.get("registryBaseUrl").and_then(Node::as_str);
    let other_address = other_address.filter(|it| !address.is_empty() && it.trim_end_matches('/') != address);
    let reason = match own {
        _ if text(package.get("transport").unwrap_or(package), "type") != "stdio" => "it serves HTTP itself".to_owned(),
        // A package of this name in the usual registry is another one.
        _ if other_address.is_some() => "it is in another registry than the usual one".to_owned(),
        None if runtime.is_empty() => format!("no runtime for packages of `{kind}` is known"),
        None => format!("how `{runtime}` starts a package is not known"),
        Some(_) => String::new(),
    };
    if !reason.is_empty() {
        inputs.draft.refuse(package, &reason, other.to_owned());
    }
    let list = |key: &str| package.get(key).and_then(Node::as_items).unwrap_or_default();
    let before = list("runtimeArguments").iter().flat_map(|input| inputs.words(input)).collect::<Vec<_>>();
    let after = list("packageArguments").iter().flat_map(|input| inputs.words(input)).collect::<Vec<_>>();
    for input in list("environmentVariables") {
        let name = text(input, "name");
        if let Some(value) = inputs.value(input, name, Some(name)) {
            inputs.draft.server.env.push(Pair { name: at(input, name), value: at(input, value) });
        }
    }
    // A container has only the variables that it is given.
    let variables = inputs.draft.server.env.iter().filter(|_| kind == "oci");
    let variables = variables.flat_map(|pair| ["-e".to_owned(), pair.name.value.clone()]);
    let own: Vec<_> = own.unwrap_or_default().iter().map(|word| (*word).to_owned()).collect();
    // Some files have these words as runtime arguments.
    let before = before.into_iter().filter(|word| !own.contains(word)).collect::<Vec<_>>();
    let own: Vec<_> = own.into_iter().chain(variables).collect();
    let words = own.iter().chain(&before).chain([&package_name]).chain(&after);
    inputs.draft.server.args = words.map(|word| at(package, word.as_str())).collect();
    inputs.draft.server.command = Some(at(package, runtime));
    inputs.draft.into_start()
}

fn of_remote(remote: &Node, source: &Arc<Source>, machine: &Machine) -> Start {
    let transport = if text(remote, "type") == "sse" { Transport::Sse } else { Transport::Http };
    let url = text(remote, "url");
    let mut inputs = Inputs { draft: Draft::new(url.to_owned(), remote, source, transport), machine };
    let url = inputs.filled(remote, url, true);
    inputs.draft.server.url = Some(at(remote, url));
    for input in remote.get("headers").and_then(Node::as_items).unwrap_or_default() {
        let name = text(input, "name");
        let variable = name.to_uppercase().replace('-', "_");
        if let Some(value) = inputs.value(input, name, Some(&variable)) {
            inputs.draft.server.headers.push(Pair { name: at(input, name), value: at(input, value) });
        }
    }
    inputs.draft.into_start()
}

fn text<'n>(node: &'n Node, key: &str) -> &'n str {
    node.get(key).and_then(Node::as_str).unwrap_or_default()
}

fn is_required(input: &Node) -> bool {
    input.get("isRequired").and_then(Node::as_bool) == Some(true)
}

/// Finds the values of a server's inputs.
struct Inputs<'m> {
    draft: Draft,
    machine: &'m Machine,
}

impl Inputs<'_> {
    /// The value of an input: the one that is fixed, that of a variable of the environment, or the default.
    fn value(&mut self, input: &Node, name: &str, variable: Option<&str>) -> Option<String> {
        let fixed = input.get("value").and_then(Node::as_str);
        let is_open = fixed.is_none() || input.get("variables").is_some();
        let given = variable.filter(|_| is_open).and_then(|variable| set(self.machine, variable));
        if let Some(given) = given {
            return Some(given.to_owned());
        }
        if let Some(template) = fixed {
            let found = self.draft.findings.len();
            let value = self.filled(input, template, false);
            if let (Some(finding), Some(variable)) = (self.draft.findings.get_mut(found), variable) {
                finding.problem.hint =
                    Some(format!("set the environment variable {variable} to all of `{name}`").into());
            }
            return Some(value);
        }
        let default = input.get("default").and_then(Node::as_str).map(str::to_owned);
        if default.is_none() && is_required(input) {
            self.draft.miss(input, name, variable);
        }
        default
    }

    /// A template with its variables replaced; one without a value stays, unless it must have one.
    fn filled(&mut self, input: &Node, template: &str, must: bool) -> String {
        let mut filled = template.to_owned();
        for entry in input.get("variables").and_then(Node::as_entries).unwrap_or_default() {
            let reference = format!("{{{}}}", entry.key);
            if !filled.contains(&reference) {
                continue;
            }
            match ["value", "default"].iter().find_map(|key| entry.node.get(key)?.as_str()) {
                Some(value) => filled = filled.replace(&reference, value),
                None if must || is_required(&entry.node) => self.draft.miss(&entry.node, &entry.key, None),
                None => {}
            }
        }
        filled
    }

    /// The words of an argument: `--flag {value}`, or a value.
    fn words(&mut self, input: &Node) -> Vec<String> {
        let name = if text(input, "type") == "named" { text(input, "name") } else { "" };
        let shown = [name, text(input, "valueHint"), "an argument"].into_iter().find(|it| !it.is_empty());
        let value = self.value(input, shown.unwrap_or_default(), None);
        let name = Some(name.to_owned()).filter(|name| !name.is_empty() && value.is_some());
        name.into_iter().chain(value).collect()
    }
}
