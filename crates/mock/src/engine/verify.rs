//! The verification of the script's expectations.

use std::{collections::HashSet, fmt, sync::Arc};

use serde::Serialize;

use super::instance::Engine;
use crate::{
    journal::{Entry, Failures, FirstEntries, Handling},
    script::{CallRange, Item},
};

/// The expectations that were not met, and the requests that were not expected.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Verification {
    /// How many expectations the script has.
    pub expectations: usize,
    /// The expectations that were not met.
    pub unmet: Vec<UnmetExpectation>,
    /// The first messages that were refused although no correct client is refused for them.
    pub violations: Vec<Entry>,
    /// The first requests that no rule matched or that had wrong arguments, if the script has `unexpected: fail`.
    pub unexpected: Vec<Entry>,
    /// How many more violations and unexpected requests there were.
    pub more: u64,
    /// The first calls with wrong arguments, if the script does not have `unexpected: fail`.
    pub tolerated: Vec<Entry>,
}

/// A tool, another item or a rule that was used too often or not often enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmetExpectation {
    /// Its label in the script: `tools.echo.rules[1]`.
    pub label: String,
    /// What was expected, as text: `at least 2 calls`.
    pub expected: String,
    /// The number of uses.
    pub calls: u64,
    /// The closest requests that did not match, each with the reason; the latest last.
    pub closest_requests: Vec<String>,
    /// The requests that it answered, each with its arguments, if there were too many.
    pub answered_requests: Vec<String>,
}

/// How many answered requests are printed, and how many characters of their arguments.
const MAX_LISTED: usize = 10;
const LONGEST_ARGUMENTS: usize = 200;

impl Verification {
    /// Whether every expectation is met.
    pub fn holds(&self) -> bool {
        self.unmet.is_empty() && self.unexpected.is_empty() && self.violations.is_empty()
    }
}

impl fmt::Display for Verification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for unmet in &self.unmet {
            let calls = if unmet.calls == 1 { "call" } else { "calls" };
            writeln!(f, "{}: expected {}, got {} {calls}", unmet.label, unmet.expected, unmet.calls)?;
            for miss in &unmet.closest_requests {
                writeln!(f, "  closest request: {miss}")?;
            }
            for request in unmet.answered_requests.iter().take(MAX_LISTED) {
                writeln!(f, "  {request}")?;
            }
            if let more @ 1.. = unmet.answered_requests.len().saturating_sub(MAX_LISTED) {
                writeln!(f, "  … and {more} more")?;
            }
        }
        for entry in &self.violations {
            writeln!(f, "{}", line(entry))?;
        }
        for entry in &self.unexpected {
            writeln!(f, "unexpected: {}", line(entry))?;
        }
        match (self.more, self.violations.is_empty()) {
            (0, _) => Ok(()),
            (more, true) => writeln!(f, "unexpected: {more} more"),
            (more, false) => writeln!(f, "{more} more"),
        }
    }
}

impl Engine {
    /// Checks the requests so far against the script's `expect` and `unexpected`.
    pub fn verify(&self) -> Verification {
        let catalog = self.catalog();
        let journal = self.journal.entries();
        let mut unmet = Vec::new();
        let mut expectations = usize::from(catalog.script.strict);
        let mut check = |label: &str, name: &str, expect: Option<CallRange>, calls: u64| {
            expectations += usize::from(expect.is_some());
            if let Some(expected) = expect.filter(|expected| !expected.contains(calls)) {
                let closest_requests = journal.iter().filter_map(|entry| closest_request(entry, label, name)).collect();
                let answered = journal.iter().filter(|_| calls > expected.max);
                unmet.push(UnmetExpectation {
                    label: label.to_owned(),
                    expected: expected.to_string(),
                    calls,
                    closest_requests,
                    answered_requests: answered.filter_map(|entry| answered_request(entry, label)).collect(),
                });
            }
        };
        // An added rule is in an item and in its replacements.
        let mut seen = HashSet::new();
        for (_, item) in catalog.script.all_items() {
            let Item { label, name, rules, expect, .. } = item;
            let (calls, of_rules) = catalog.counts(item);
            check(label, name, *expect, calls);
            for (rule, calls) in rules.iter().zip(of_rules).filter(|(rule, _)| seen.insert(Arc::as_ptr(rule))) {
                check(&rule.label, name, rule.expect, calls);
            }
        }
        let Failures { violations, mut unexpected } = self.journal.failures();
        let mut tolerated = Vec::new();
        if !catalog.script.strict {
            tolerated = std::mem::take(&mut unexpected).first;
            tolerated.retain(|entry| !matches!(entry.handling, Handling::Unmatched { .. }));
        }
        let more = violations.more() + unexpected.more();
        let (FirstEntries { first: violations, .. }, FirstEntries { first: unexpected, .. }) = (violations, unexpected);
        Verification { expectations, unmet, violations, unexpected, more, tolerated }
    }
}

/// An entry as a line of a report.
fn line(entry: &Entry) -> String {
    let what = entry.method().or_else(|| entry.http.clone()).unwrap_or_else(|| "a message without a method".into());
    format!("{what} (number {}): {}", entry.number, entry.handling)
}

/// The reason why a request did not match, if the rule or item with this label or name was the closest one.
fn closest_request(entry: &Entry, label: &str, name: &str) -> Option<String> {
    match &entry.handling {
        Handling::Unmatched { closest: Some(closest), why } if closest == label || closest == name => {
            Some(format!("{} (number {}): {why}", entry.method()?, entry.number))
        }
        _ => None,
    }
}

/// A request that the rule or item with this label has answered.
fn answered_request(entry: &Entry, label: &str) -> Option<String> {
    let Handling::Rule(rule) = &entry.handling else { return None };
    let is_inside = || rule.strip_prefix(label).is_some_and(|rest| rest.starts_with(".rules["));
    if **rule != *label && !is_inside() {
        return None;
    }
    let params = serde_json::from_slice::<serde_json::Value>(&entry.request).ok()?["params"].take();
    let arguments =
        params.get("arguments").or_else(|| params.get("uri")).unwrap_or(&serde_json::Value::Null).to_string();
    let cut = arguments.char_indices().nth(LONGEST_ARGUMENTS).map_or(arguments.len(), |(cut, _)| cut);
    Some(format!("{} (number {}): {}", entry.method()?, entry.number, &arguments[..cut]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::Mock;

    const SCRIPT: &str = "
unexpected: fail
tools:
  - { name: once, expect: { calls: 1 }, reply: x }
  - name: by_city
    rules:
      - { when: { args: { city: Paris } }, expect: { calls: { min: 1 } }, reply: x }
  - { name: never, expect: { calls: { max: 0 } }, reply: x }
";

    #[test]
    fn an_unmet_expectation_names_the_closest_requests() {
        let mock = Mock::legacy(SCRIPT, "2025-11-25");
        mock.call("tools/call", json!({ "name": "once", "arguments": {} }));
        mock.call("tools/call", json!({ "name": "by_city", "arguments": { "city": "Rome" } }));
        mock.call("tools/call", json!({ "name": "never", "arguments": {} }));
        let verification = mock.engine.verify();
        assert!(!verification.holds() && verification.expectations == 4);
        assert_eq!(
            verification.to_string(),
            "tools.by_city.rules[0]: expected at least 1 call, got 0 calls\n  \
             closest request: tools/call (number 3): /city: expected \"Paris\", found \"Rome\"\n\
             tools.never: expected 0 calls, got 1 call\n  \
             tools/call (number 4): {}\n\
             unexpected: tools/call (number 3): no rule matched; closest is tools.by_city.rules[0]: /city: expected \"Paris\", found \"Rome\"\n"
        );
    }

    #[test]
    fn unmatched_requests_count_after_any_number_of_later_requests() {
        let mock =
            Mock::legacy("unexpected: fail\nprotocol: 2025-11-25\ntools: [{ name: echo, reply: x }]", "2025-11-25");
        let probe = mock.call("server/discover", json!({}));
        assert!(probe["error"]["code"] == -32601 && mock.engine.verify().holds(), "{probe}");
        for _ in 0..150 {
            mock.call("acme/nothing", json!({}));
        }
        for _ in 0..5000 {
            mock.call("ping", json!({}));
        }
        mock.engine.journal().clear();
        let verification = mock.engine.verify();
        assert_eq!((verification.unexpected.len(), verification.more), (100, 50));
        let text = verification.to_string();
        assert!(text.contains("acme/nothing (number 3): no rule matched: Method not found"), "{text}");
        assert!(text.ends_with("unexpected: 50 more\n"), "{text}");
        mock.engine.reset(std::time::Duration::ZERO);
        assert!(mock.engine.verify().holds());
    }

    #[test]
    fn it_holds_when_everything_came_and_again_after_a_reset() {
        let mock = Mock::legacy("tools: [{ name: once, expect: { calls: 1 }, reply: x }]", "2025-11-25");
        assert!(!mock.engine.verify().holds());
        mock.call("tools/call", json!({ "name": "once", "arguments": {} }));
        assert!(mock.engine.verify().holds());
        mock.engine.reset(std::time::Duration::ZERO);
        assert_eq!(mock.engine.verify().unmet[0].calls, 0);
    }
}
