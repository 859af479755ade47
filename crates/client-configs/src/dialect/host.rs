//! The hosts: one file in `hosts/` for each program, with its dialects and its profile.

use std::sync::OnceLock;

use serde::Deserialize;

use super::Dialect;
use rehearse_document::{Source, parse_yaml};

/// The keys of dialects and of `headless`, a part of a [`KeyTable`](rehearse_document::keys::KeyTable).
pub const KEYS: &str = concat!(include_str!("keys.txt"), include_str!("../headless/keys.txt"));

/// A program with MCP servers.
#[derive(Debug)]
pub struct Host {
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
    dialects: OnceLock<Vec<Dialect>>,
}

macro_rules! hosts {
    ($($name:literal)+) => {
        [$(Host {
            name: $name,
            text: include_str!(concat!("../../hosts/", $name, ".yaml")),
            dialects: OnceLock::new(),
        }),+]
    };
}

/// Every host. Of those whose dialects read a file equally well, the first is taken.
pub static HOSTS: [Host; 31] = hosts! {
    "claude-code" "claude-desktop" "vscode" "copilot" "cursor" "cline" "roo" "antigravity" "windsurf" "gemini-cli" "qwen"
    "amazon-q" "kiro" "engine" "cpe" "code_agent" "mcpilot" "opencode" "zed" "librechat" "continue" "junie" "codex"
    "chatgpt" "claude-ai" "goose" "kilo" "kimi-code" "amp" "crush" "fast-agent"
};

impl Host {
    /// Its dialects. A file is parsed when its dialects are first needed.
    pub fn dialects(&'static self) -> &'static [Dialect] {
        self.dialects.get_or_init(|| self.read().unwrap_or_default())
    }

    /// # Errors
    /// What is wrong with its file.
    fn read(&'static self) -> Result<Vec<Dialect>, String> {
        // The profile is not parsed for nothing.
        let end = ["\nheadless:", "\nnotHeadless:", "\nclient:", "\nrules:"]
            .iter()
            .filter_map(|key| self.text.find(key))
            .min();
        let source = Source::new(self.name, &self.text[..end.unwrap_or(self.text.len())]);
        let node = parse_yaml(&source).map_err(|problems| problems.in_source(&source).to_string())?;
        let Some(config) = node.get("config") else { return Ok(Vec::new()) };
        // What the dialects borrow from is kept until the program ends.
        Vec::deserialize(&*Box::leak(Box::new(config.to_json()))).map_err(|error| error.to_string())
    }
}

/// Every dialect, one host after the other.
pub fn all() -> impl Iterator<Item = &'static Dialect> + Clone {
    HOSTS.iter().flat_map(Host::dialects)
}

/// The dialects of the hosts with this text in their files: no others are parsed.
pub(super) fn all_with(text: &str) -> impl Iterator<Item = &'static Dialect> {
    HOSTS.iter().filter(move |host| host.text.contains(text)).flat_map(Host::dialects)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{
        dialect::{TimeoutRule, VariableRule},
        policy::Policy,
    };
    use rehearse_document::keys::KeyTable;

    #[test]
    fn every_file_is_a_host_of_its_name() {
        for host in &HOSTS {
            assert_eq!(host.read().map(|it| it.is_empty()), Ok(!host.text.contains("\nconfig:")), "{}", host.name);
        }
        let count = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/hosts")).expect("the folder").count();
        assert_eq!(count, HOSTS.len(), "every file is in the table");
    }

    #[test]
    fn the_keys_of_the_schema_are_those_that_are_read() {
        fn check<T: Deserialize<'static>>(object: &str) {
            let wrong = Box::leak(Box::new(serde_json::json!({ "?": 1 })));
            let error = T::deserialize(&*wrong).err().expect("an unknown key").to_string();
            let read: BTreeSet<_> = error.split('`').skip(3).step_by(2).collect();
            let table = KeyTable::parse(KEYS);
            assert_eq!(table.unread(), [""; 0]);
            assert_eq!(read, table.keys(object).into_iter().collect(), "{object}");
        }
        check::<Dialect>("dialect");
        check::<Policy>("policy");
        check::<TimeoutRule>("timeoutRule");
        check::<VariableRule>("variableRule");
    }
}
