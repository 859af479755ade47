//! Where a host says that it could not start a server, or left out a tool.

use regex::Regex;
use serde_json::Value as Json;

/// What is said of a server that could not be started, or of a tool that was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub server: Option<String>,
    /// If only a tool was left out.
    pub tool: Option<String>,
    pub reason: Option<String>,
}

/// How failures are found in what a host writes.
#[derive(Clone, Debug)]
pub struct FailurePattern {
    pub from: FailureSource,
    pub(super) pattern: Option<Regex>,
    /// Without it, the output is a text.
    pub(super) lines: Option<JsonLines>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureSource {
    Stdout,
    Stderr,
    /// A path with placeholders, `*` for any characters but `/`, and `{server}` for the name of the server that failed.
    File(String),
}

/// Lines that are JSON values. All places are JSON pointers.
#[derive(Clone, Debug, Default)]
pub(super) struct JsonLines {
    pub(super) each: Option<String>,
    pub(super) when: Vec<(String, Json)>,
    pub(super) server: Option<String>,
    pub(super) reason: Option<String>,
}

impl FailurePattern {
    /// The failures in an output.
    pub fn find(&self, output: &str) -> Vec<Failure> {
        let Some(lines) = &self.lines else { return self.matches(output) };
        let mut failures = Vec::new();
        for line in output.lines() {
            let Ok(line) = serde_json::from_str::<Json>(line) else { continue };
            let items = match &lines.each {
                Some(pointer) => line.pointer(pointer).and_then(Json::as_array).map_or(&[][..], |items| items),
                None => std::slice::from_ref(&line),
            };
            for item in items.iter().filter(|item| lines.when.iter().all(|(at, it)| item.pointer(at) == Some(it))) {
                let text = |at: &Option<String>| Some(item.pointer(at.as_ref()?)?.as_str()?.to_owned());
                let (server, reason) = (text(&lines.server), text(&lines.reason));
                match &self.pattern {
                    Some(_) => failures.extend(self.matches(&reason.unwrap_or_default())),
                    None if server.is_some() || reason.is_some() => {
                        failures.push(Failure { server, tool: None, reason })
                    }
                    None => {}
                }
            }
        }
        failures
    }

    fn matches(&self, text: &str) -> Vec<Failure> {
        let found = self.pattern.iter().flat_map(|pattern| pattern.captures_iter(text));
        let group = |found: &regex::Captures<'_>, name| Some(found.name(name)?.as_str().to_owned());
        let failure = |found: regex::Captures<'_>| {
            let [server, tool, reason] = ["server", "tool", "reason"].map(|name| group(&found, name));
            Failure { server, tool, reason }
        };
        found.map(failure).collect()
    }
}
