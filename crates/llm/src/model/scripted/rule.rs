//! The rules of a model script.

use serde_json::Value as Json;

use super::{KEYS, offered_tool::is_offered, reply::Reply};
use crate::ToolDefinition;
use rehearse_document::{Entry, Node, Problems, matcher::Matcher, template::Templates};

/// A condition and its replies.
#[derive(Debug)]
pub(super) struct Rule {
    conditions: Vec<Condition>,
    replies: Replies,
}

#[derive(Debug)]
enum Condition {
    /// A value of the conversation.
    Value(String, Matcher),
    /// None of these tools is offered.
    Lacks(Vec<String>),
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
        let fields = KEYS.fields(node, "rule")?;
        let conditions = fields.read("when", |when| {
            KEYS.fields(when, "when")?;
            let condition = |entry: &Entry| match entry.key.as_str() {
                "lacks" => Ok(Condition::Lacks(entry.node.each(|node| Ok(node.str()?.to_owned()))?)),
                name => Ok(Condition::Value(name.to_owned(), Matcher::read(&entry.node)?)),
            };
            Problems::collect(when.entries()?.iter().map(condition))
        })?;
        let entry = fields.exactly_one(&KEYS.choices("rule"))?;
        let replies = match entry.key.as_str() {
            "reply" => Replies::Same(Reply::read(&entry.node, templates)?.into()),
            _ => Replies::Turns(entry.node.each(|node| Reply::read(node, templates))?),
        };
        Ok(Rule { conditions: conditions.unwrap_or_default(), replies })
    }

    /// The reply to the turn at `position`, from 0, of a conversation that matches.
    pub(super) fn reply(&self, position: usize, view: &Json, tools: &[ToolDefinition<'_>]) -> Option<&Reply> {
        let value = |name: &str| view.get(name).filter(|value| !value.is_null());
        let is_match = self.conditions.iter().all(|condition| match condition {
            Condition::Value(name, matcher) => matcher.is_match(value(name)),
            Condition::Lacks(names) => !names.iter().any(|name| is_offered(tools, name)),
        });
        match &self.replies {
            _ if !is_match => None,
            Replies::Same(reply) => Some(reply),
            Replies::Turns(replies) => replies.get(position),
        }
    }
}
