//! A server of the command line as it stands in a scenario file.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use rehearse_client::Target;
use rehearse_client_configs::secret::{flag, secrets_in_argument};
use rehearse_document::{Form, references};
use serde_json::{Map, Value as Json, json};

/// The server for a file in this folder. The values of headers and variables and secrets stand outside of it, in variables.
pub(super) fn scenario_server(target: &Target, folder: &Path) -> Json {
    let variables = |pairs: Vec<(String, String)>| -> Map<String, Json> {
        pairs.into_iter().map(|(name, variable)| (name, format!("${{{variable}}}").into())).collect()
    };
    match target {
        Target::Stdio(command) => {
            let mut server = json!({ "command": literal(&program(&command.program, folder)) });
            if !command.args.is_empty() {
                let before = std::iter::once("").chain(command.args.iter().map(String::as_str));
                server["args"] = command.args.iter().zip(before).map(|(arg, before)| public(before, arg)).collect();
            }
            if !command.env.is_empty() {
                let names = command.env.keys().map(|name| (name.clone(), name.clone())).collect();
                server["env"] = variables(names).into();
            }
            if let Some(cwd) = &command.cwd {
                server["cwd"] = literal(&cwd.display().to_string()).into();
            }
            server
        }
        target => {
            let (url, headers) = target.endpoint().map(|at| (at.url.as_str(), &at.headers[..])).unwrap_or_default();
            let mut server = json!({ "url": public("", url), "type": target.transport().as_str() });
            if !headers.is_empty() {
                let variable = |name: &str| name.to_uppercase().replace('-', "_");
                let names = headers.iter().map(|(name, _)| (name.clone(), variable(name))).collect();
                server["headers"] = variables(names).into();
            }
            server
        }
    }
}

/// An argument after another one, or a URL, with variables in place of its secrets.
fn public(before: &str, text: &str) -> String {
    let (mut public, mut at) = (String::new(), 0);
    for mut range in secrets_in_argument(flag(before), text) {
        range.start = range.end - text[range.clone()].trim_start().len();
        let words = |text: &str| text.trim_matches(|it: char| !it.is_ascii_alphanumeric()).to_uppercase();
        let own = text[..range.start].rsplit(|it: char| !it.is_ascii_alphanumeric() && !"-_=: ".contains(it)).next();
        let name = [words(own.unwrap_or_default()), words(before)].into_iter().find(|name| !name.is_empty());
        let name = name.unwrap_or_else(|| "SECRET".to_owned()).replace(|it: char| !it.is_ascii_alphanumeric(), "_");
        let name = if name.starts_with(|it: char| it.is_ascii_digit()) { format!("SECRET_{name}") } else { name };
        public.push_str(&format!("{}${{{name}}}", text[at..range.start].replace('$', "$$")));
        at = range.end;
    }
    if at == 0 { literal(text) } else { public + &text[at..].replace('$', "$$") }
}

/// A text of a file in which no variable is replaced.
fn literal(text: &str) -> String {
    let has_variable = text.contains("$$") || text.contains("${");
    if has_variable { text.replace('$', "$$") } else { text.to_owned() }
}

/// The same without variables, which may not be set here.
pub(super) fn without_variables(server: &Json) -> Json {
    serde_json::from_str(&server.to_string().replace("${", "_{")).unwrap_or_default()
}

/// The variables that the file needs.
pub(super) fn variables(server: &Json) -> Vec<String> {
    let of = |key: &str| server[key].as_object().into_iter().flatten().filter_map(|(_, value)| value.as_str());
    let names = |text: &str| {
        references(text).filter(|it| it.form != Form::Bare).map(|it| it.name.to_owned()).collect::<Vec<_>>()
    };
    let args = server["args"].as_array().into_iter().flatten().filter_map(Json::as_str);
    let texts = ["env", "headers"].into_iter().flat_map(of).chain(args).chain(server["url"].as_str());
    let names: BTreeSet<_> = texts.flat_map(|text| names(&text.replace("$$", ""))).collect();
    names.into_iter().collect()
}

/// A program whose path begins with a dot is found from the folder of the file.
fn program(program: &str, folder: &Path) -> String {
    if !program.starts_with('.') {
        return program.to_owned();
    }
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    match folder.components().all(is_plain) {
        true => {
            let depth = folder.components().filter(|part| matches!(part, Component::Normal(_))).count();
            let up = "../".repeat(depth);
            if up.is_empty() { program.to_owned() } else { up + program.trim_start_matches("./") }
        }
        false => std::path::absolute(program).unwrap_or_else(|_| PathBuf::from(program)).display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rehearse_client::{CommandSpec, Endpoint};

    use super::*;

    #[test]
    fn a_server_in_a_file_has_no_secrets_and_is_found_from_there() {
        let command = CommandSpec {
            program: "./bin/server".into(),
            args: ["-v", "$HOME", "$$ ${A}", "--token", "Zq7kd83hf", "--api-key=Zq7kd83h$"].map(str::to_owned).to_vec(),
            env: [("API_KEY".to_owned(), "geheim".to_owned())].into(),
            ..CommandSpec::default()
        };
        let server = |folder: &str| scenario_server(&Target::Stdio(command.clone()), Path::new(folder));
        let args = ["-v", "$HOME", "$$$$ $${A}", "--token", "${TOKEN}", "--api-key=${API_KEY}"];
        let expected = json!({ "command": "../../bin/server", "args": args, "env": { "API_KEY": "${API_KEY}" } });
        assert_eq!(server("a/b"), expected);
        assert_eq!(server("")["command"], "./bin/server");
        assert!(server("/x")["command"].as_str().is_some_and(|program| Path::new(program).is_absolute()));
        assert_eq!(
            (variables(&expected), without_variables(&expected)["env"]["API_KEY"].clone()),
            (["API_KEY", "TOKEN"].map(str::to_owned).to_vec(), json!("_{API_KEY}"))
        );
        let at = Endpoint {
            url: "http://u:Zq7kd83hf@h/mcp?a=1&api_key=Zq7kd83hf".into(),
            headers: vec![("X-Api-Key".into(), "geheim".into())],
        };
        let expected = json!({ "url": "http://u:${U}@h/mcp?a=1&api_key=${API_KEY}", "type": "http", "headers": { "X-Api-Key": "${X_API_KEY}" } });
        assert_eq!(scenario_server(&Target::Http(at), Path::new("x")), expected);
    }
}
