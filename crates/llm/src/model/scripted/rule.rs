//! The rules of a model script.

use serde_json::Value as Json;

use super::reply::Reply;
use rehearse_document::{Node, Problem, Problems, matcher::Matcher, nearest, template::Templates};

/// What conditions and templates can use.
pub(super) const NAMES: &[&str] =
    &["turn", "prompt", "system", "tools", "tool", "result", "results", "failed", "media"];

/// A condition and its replies.
#[derive(Debug)]
pub(super) struct Rule {
    conditions: Vec<(String, Matcher)>,
    replies: Replies,
}

#[derive(Debug)]
enum Replies {
    /// The same reply in every turn.
    Same(Box<Reply>),
    /// One reply for each turn, from the first.
    Turns(Vec<Reply>),
}

impl Rule {
    pub(super) fn read(node: &Node, templates: &mut Templates) -> Result<Rule, Problems> {
        let fields = node.fields("a rule", &["when", "reply", "turns"])?;
        let conditions = fields.read("when", |when| {
            let condition = |entry: &rehearse_document::Entry| {
                if !NAMES.contains(&entry.key.as_str()) {
                    let problem = Problem::new(entry.key_span, format!("`when` has no key `{}`", entry.key));
                    return Err(match nearest(&entry.key, NAMES) {
                        Some(near) => problem.hint(format!("did you mean `{near}`?")),
                        None => problem.hint(format!("its keys are {}", NAMES.join(", "))),
                    }
                    .into());
                }
                Ok((entry.key.clone(), Matcher::read(&entry.node)?))
            };
            Problems::collect(when.entries()?.iter().map(condition))
        })?;
        let entry = fields.exactly_one(&["reply", "turns"])?;
        let replies = match entry.key.as_str() {
            "reply" => Replies::Same(Reply::read(&entry.node, templates)?.into()),
            _ => Replies::Turns(entry.node.each(|node| Reply::read(node, templates))?),
        };
        Ok(Rule { conditions: conditions.unwrap_or_default(), replies })
    }

    /// The reply to the turn at `position`, from 0, of a conversation that matches.
    pub(super) fn reply(&self, position: usize, view: &Json) -> Option<&Reply> {
        let value = |name: &str| view.get(name).filter(|value| !value.is_null());
        let is_match = self.conditions.iter().all(|(name, matcher)| matcher.is_match(value(name)));
        match &self.replies {
            _ if !is_match => None,
            Replies::Same(reply) => Some(reply),
            Replies::Turns(replies) => replies.get(position),
        }
    }
}
