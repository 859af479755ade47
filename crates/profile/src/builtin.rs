//! The profiles that come with the program.

use std::sync::LazyLock;

use crate::Profile;
use rehearse_client_configs::dialect::{HOSTS, Host};
use rehearse_document::Source;

/// The files, by name: providers, then directories.
const FILES: &[(&str, &str)] = &[
    ("anthropic", include_str!("../profiles/anthropic.yaml")),
    ("anthropic-mcp-connector", include_str!("../profiles/anthropic-mcp-connector.yaml")),
    ("azure-openai", include_str!("../profiles/azure-openai.yaml")),
    ("bedrock", include_str!("../profiles/bedrock.yaml")),
    ("gemini", include_str!("../profiles/gemini.yaml")),
    ("mistral", include_str!("../profiles/mistral.yaml")),
    ("openai", include_str!("../profiles/openai.yaml")),
    ("openai-strict", include_str!("../profiles/openai-strict.yaml")),
    ("vertex", include_str!("../profiles/vertex.yaml")),
    ("xai", include_str!("../profiles/xai.yaml")),
    ("anthropic-directory", include_str!("../profiles/anthropic-directory.yaml")),
    ("mcp-registry", include_str!("../profiles/mcp-registry.yaml")),
    ("openai-directory", include_str!("../profiles/openai-directory.yaml")),
];

static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let parse = |(name, text): &(&str, &str)| Profile::parse(&Source::new(format!("{name}.yaml"), *text)).ok();
    let of_host = |host: &&Host| Profile::parse_host(&Source::new(format!("{}.yaml", host.name), host.text)).ok();
    hosts().iter().filter_map(of_host).chain(FILES.iter().filter_map(parse)).collect()
});

/// The hosts with rules, by name.
fn hosts() -> Vec<&'static Host> {
    let mut hosts: Vec<_> = HOSTS.iter().filter(|host| host.text.contains("\nrules:")).collect();
    hosts.sort_by_key(|host| host.name);
    hosts
}

/// All profiles that come with the program: hosts, then providers, then directories.
pub fn builtins() -> &'static [Profile] {
    &PROFILES
}

/// The profile of this name.
pub fn builtin(name: &str) -> Option<&'static Profile> {
    builtins().iter().find(|profile| profile.name == name)
}

/// The profile of the host with this config dialect.
pub fn builtin_of_dialect(dialect: &str) -> Option<&'static Profile> {
    builtins().iter().find(|profile| profile.dialects.iter().any(|known| known == dialect))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_schema;
    use rehearse_document::{json_schema, parse_yaml};

    #[test]
    fn every_file_is_a_profile_of_its_name() {
        for (name, text) in FILES {
            let source = Source::new(format!("{name}.yaml"), *text);
            let profile = Profile::parse(&source).map_err(|problems| problems.in_source(&source));
            assert_eq!(profile.map(|profile| profile.name).map_err(|it| it.to_string()), Ok((*name).to_owned()));
        }
        let validator = json_schema::compile(&host_schema()).expect("a schema");
        for host in &HOSTS {
            let source = Source::new(format!("{}.yaml", host.name), host.text);
            let profile = Profile::parse_host(&source).map_err(|problems| problems.in_source(&source).to_string());
            assert_eq!(profile.map(|profile| profile.name), Ok(host.name.to_owned()));
            let file = parse_yaml(&source).map(|node| node.to_json()).unwrap_or_default();
            let errors: Vec<_> = validator.iter_errors(&file).map(|error| error.to_string()).collect();
            assert_eq!(errors, [""; 0], "{}", host.name);
        }
        let says_twice = |it: &&Profile| it.tool_name.is_some() && !it.dialects.is_empty();
        assert_eq!(builtins().iter().find(says_twice).map(|it| &it.name), None, "the dialect says how tools are named");
        let count = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/profiles")).expect("the folder").count();
        assert_eq!(count, FILES.len(), "every file is in the table");
    }
}
