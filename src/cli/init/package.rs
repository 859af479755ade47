//! What a command or a URL is in a `server.json`: a package or a remote server (registry schema 2025-12-11).

use rehearse_client::{CommandSpec, Target};
use rehearse_client_configs::secret::{flag, is_secret_name, mask, secrets_in_argument};
use rehearse_protocol::Transport;
use rehearse_system::program;
use serde_json::{Value as Json, json};

/// Options of `npx` and `uvx` that say nothing of the package.
const QUIET: [&str; 4] = ["-y", "--yes", "-q", "--quiet"];
/// The same of `docker run`.
const USUAL: [&str; 5] = ["-i", "--interactive", "--rm", "--init", "--pull=always"];

/// The key and its only item; `None` if the registry has no such thing.
pub(super) fn source_of(target: &Target) -> Option<(&'static str, Json)> {
    if let Target::Stdio(command) = target {
        return package(command).map(|package| ("packages", package));
    }
    let kind = match target.transport() {
        Transport::Http => "streamable-http",
        Transport::Sse => "sse",
        _ => return None,
    };
    let at = target.endpoint()?;
    let mut remote = json!({ "type": kind, "url": mask("url", &at.url) });
    if !at.headers.is_empty() {
        remote["headers"] = at.headers.iter().map(|(name, _)| input(name)).collect();
    }
    Some(("remotes", remote))
}

/// The package that a command starts.
fn package(command: &CommandSpec) -> Option<Json> {
    let mut words = command.args.iter().map(String::as_str);
    let mut variables: Vec<_> = command.env.keys().cloned().collect();
    let runtime = program::name(&command.program);
    let mut package = match runtime {
        "npx" | "uvx" => {
            let name = words.by_ref().find(|word| !QUIET.contains(word)).filter(|word| is_name(word))?;
            let separator = if runtime == "uvx" { "==" } else { "@" };
            // The name of a scope begins with `@`.
            let (name, version) = match name[1..].rfind(separator).or_else(|| name[1..].rfind('@')).map(|at| at + 1) {
                Some(at) => (&name[..at], Some(name[at..].trim_start_matches(['@', '=']))),
                None => (name, None),
            };
            let kind = if runtime == "uvx" { "pypi" } else { "npm" };
            let mut package = json!({ "registryType": kind, "identifier": name });
            if let Some(version) = version {
                package["version"] = version.into();
            }
            package
        }
        "docker" => {
            words.next().filter(|word| *word == "run")?;
            let image = loop {
                match words.next()? {
                    "-e" | "--env" => variables.push(words.next()?.split('=').next()?.to_owned()),
                    word if USUAL.contains(&word) => {}
                    word => break Some(word).filter(|word| is_name(word))?,
                }
            };
            json!({ "registryType": "oci", "identifier": image })
        }
        _ => return None,
    };
    package["transport"] = json!({ "type": "stdio" });
    let words: Vec<_> = words.collect();
    let before = std::iter::once("").chain(words.iter().copied());
    let arguments = words.iter().zip(before).map(|(word, before)| match secrets_in_argument(flag(before), word)[..] {
        [] => json!({ "type": "positional", "value": word }),
        _ => json!({ "type": "positional", "valueHint": "secret", "isRequired": true, "isSecret": true }),
    });
    if !words.is_empty() {
        package["packageArguments"] = arguments.collect();
    }
    variables.sort();
    variables.dedup();
    if !variables.is_empty() {
        package["environmentVariables"] = variables.iter().map(|name| input(name)).collect();
    }
    Some(package)
}

/// Whether a word is a package or an image, and no option, path or URL.
fn is_name(word: &str) -> bool {
    !word.starts_with(['-', '.', '/', '~']) && !word.contains("://") && !word.contains('+')
}

/// An environment variable or a header whose value a user gives.
fn input(name: &str) -> Json {
    json!({ "name": name, "isRequired": true, "isSecret": is_secret_name(name) })
}

#[cfg(test)]
mod tests {
    use rehearse_client::Endpoint;

    use super::*;

    #[test]
    fn a_command_names_its_package_without_secrets() {
        let package = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            let program = words.next().expect("a program");
            let env = [("LEVEL".to_owned(), "geheim".to_owned())].into();
            source_of(&Target::Stdio(CommandSpec { program, args: words.collect(), env, ..CommandSpec::default() }))
        };
        let argument = |value: &str| json!({ "type": "positional", "value": value });
        let secret = json!({ "type": "positional", "valueHint": "secret", "isRequired": true, "isSecret": true });
        let (_, found) = package("/usr/bin/npx -y @a/w@1.2.3 start --api-key kZ8sQ1vT5xW2yB7n").expect("a package");
        assert_eq!(found["packageArguments"], json!([argument("start"), argument("--api-key"), secret]));
        assert_eq!((&found["identifier"], &found["version"]), (&"@a/w".into(), &"1.2.3".into()));
        let variable = json!({ "name": "LEVEL", "isRequired": true, "isSecret": false });
        assert_eq!(found["environmentVariables"], json!([variable]));
        for (line, kind, identifier, version) in [
            ("npx @a/w", "npm", "@a/w", Json::Null),
            ("uvx w==1", "pypi", "w", "1".into()),
            ("uvx -q w@1", "pypi", "w", "1".into()),
            ("docker run -i --rm -e API_KEY=geheim ghcr.io/a/w:1 --x", "oci", "ghcr.io/a/w:1", Json::Null),
        ] {
            let (_, package) = package(line).expect(line);
            assert_eq!(
                (&package["registryType"], &package["identifier"]),
                (&kind.into(), &identifier.into()),
                "{line}"
            );
            assert_eq!(package["version"], version, "{line}");
            assert!(!package.to_string().contains("geheim"), "{package}");
        }
        for line in [
            "node server.js",
            "npx ./w",
            "uvx --from x y",
            "uvx git+https://h/x",
            "docker build .",
            "docker run -v a:b w",
        ] {
            assert_eq!(package(line), None, "{line}");
        }
    }

    #[test]
    fn a_url_is_a_remote_server_whose_headers_are_inputs() {
        let headers = vec![("Authorization".to_owned(), "Bearer geheim".to_owned())];
        let at = Endpoint { url: "https://h.example/mcp?api_key=kZ8sQ1vT5xW2yB7n".to_owned(), headers };
        let (key, remote) = source_of(&Target::Http(at.clone())).expect("a remote");
        assert_eq!((key, &remote["url"]), ("remotes", &"https://h.example/mcp?api_key=***".into()));
        let header = json!({ "name": "Authorization", "isRequired": true, "isSecret": true });
        assert_eq!((&remote["type"], &remote["headers"]), (&"streamable-http".into(), &json!([header])));
        assert_eq!(source_of(&Target::Ws(at)), None);
    }
}
