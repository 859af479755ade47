//! Accepted changes: a file.

use std::fmt::Write;

use rehearse_document::{Node, Problems};
use rehearse_report::diff::{Change, Class};

/// The reason of an entry before its author writes one.
const TODO: &str = "TODO";

/// The accepted changes of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Baseline {
    entries: Vec<Entry>,
}

/// One accepted change.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    rule: String,
    /// Only of this subject; else of all.
    subject: Option<String>,
    reason: String,
}

impl Baseline {
    /// Reads a file.
    ///
    /// # Errors
    /// A key is unknown or missing.
    pub fn read(node: &Node) -> Result<Baseline, Problems> {
        let fields = node.fields("a baseline", &["version", "accept"])?;
        let version = fields.required("version")?;
        if version.integer::<u32>()? != 1 {
            return Err(version.problem("the version of a baseline must be 1").into());
        }
        let entries = fields.read_each("accept", |node| {
            let fields = node.fields("an accepted change", &["id", "subject", "reason"])?;
            let rule = fields.required("id")?.str()?.to_owned();
            let reason = fields.required("reason")?;
            if reason.str()?.trim().is_empty() {
                return Err(reason.problem("the reason must not be empty").into());
            }
            let subject = fields.read("subject", Node::str)?.map(ToOwned::to_owned);
            Ok(Entry { rule, subject, reason: reason.str()?.to_owned() })
        })?;
        Ok(Baseline { entries })
    }

    /// Accepts the changes that an entry matches. Returns the entries that match none.
    pub fn apply(&self, changes: &mut [Change]) -> Vec<String> {
        let mut stale = Vec::new();
        for entry in &self.entries {
            let mut covered = changes.iter_mut().filter(|change| entry.covers(change)).peekable();
            if covered.peek().is_none() {
                let subject = entry.subject.as_ref().map(|subject| format!(" ({subject})"));
                stale.push(format!("{}{}", entry.rule, subject.unwrap_or_default()));
            }
            covered.for_each(|change| change.accepted = Some(entry.reason.clone()));
        }
        stale
    }

    /// What of it still matches, with an entry for each change of at least this class that is not accepted.
    pub fn renewed(&self, changes: &[Change], least: Class) -> Baseline {
        let kept = self.entries.iter().filter(|entry| changes.iter().any(|change| entry.covers(change)));
        let mut entries: Vec<_> = kept.cloned().collect();
        for change in changes.iter().filter(|change| change.class >= least && change.accepted.is_none()) {
            let (rule, subject) = (change.rule.clone(), Some(change.subject.clone()));
            let entry = Entry { rule, subject, reason: TODO.to_owned() };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        Baseline { entries }
    }

    /// The file.
    pub fn to_yaml(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let mut out = "version: 1\naccept:".to_owned();
        if self.entries.is_empty() {
            out.push_str(" []\n");
            return out;
        }
        out.push('\n');
        for entry in &self.entries {
            let _ = writeln!(out, "  - id: {}", entry.rule);
            if let Some(subject) = &entry.subject {
                let _ = writeln!(out, "    subject: {}", quoted(subject));
            }
            let _ = writeln!(out, "    reason: {}", quoted(&entry.reason));
        }
        out
    }
}

impl Entry {
    fn covers(&self, change: &Change) -> bool {
        self.rule == change.rule && self.subject.as_ref().is_none_or(|subject| *subject == change.subject)
    }
}
