//! A change as its form shows it, before values are looked for.

use serde_json::Value as Json;

use rehearse_report::diff::Class;

use super::{
    Direction,
    rules::{Effect, Rule},
};

#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub rule: &'static Rule,
    pub effect: Effect,
    pub class: Class,
    pub is_certain: bool,
    /// Whether the server may accept what its schema refuses.
    pub is_doubtful: bool,
    /// Where it is in both schemas.
    pub old: Option<String>,
    pub new: Option<String>,
    /// What has changed, without a full stop.
    pub message: String,
    /// Why it has its class; `None` for what follows from its effect.
    pub reason: Option<String>,
    /// What refuses a value because of it, in both schemas.
    pub old_cause: Cause,
    pub new_cause: Cause,
}

/// The keyword that refuses a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Cause {
    /// The JSON pointer to it, or to what contains it.
    pub pointer: String,
    /// The property that it is about.
    pub property: Option<String>,
    /// The values that it refuses; empty if it may refuse any.
    pub values: Vec<Json>,
}

impl Draft {
    pub(super) fn new(id: &str, direction: Direction, message: String) -> Draft {
        let rule = Rule::by_id(id);
        Draft {
            rule,
            effect: rule.effect,
            class: if direction == Direction::Input { rule.input } else { rule.output },
            is_certain: rule.is_certain,
            is_doubtful: false,
            old: None,
            new: None,
            message,
            reason: None,
            old_cause: Cause::default(),
            new_cause: Cause::default(),
        }
    }

    /// The places of the keyword, or the pointers to the two schemas where it is absent.
    pub(super) fn at(mut self, (old, new): (Option<String>, Option<String>), schemas: (&str, &str)) -> Draft {
        self.old_cause.pointer = old.clone().unwrap_or_else(|| schemas.0.to_owned());
        self.new_cause.pointer = new.clone().unwrap_or_else(|| schemas.1.to_owned());
        (self.old, self.new) = (old, new);
        self
    }

    pub(super) fn because(self, reason: &str) -> Draft {
        Draft { reason: Some(reason.to_owned()), ..self }
    }

    /// About one property.
    pub(super) fn about(mut self, property: &str) -> Draft {
        self.old_cause.property = Some(property.to_owned());
        self.new_cause.property = Some(property.to_owned());
        self
    }

    /// About values that only one side accepts.
    pub(super) fn of_values(mut self, values: &[&Json]) -> Draft {
        let values: Vec<_> = values.iter().map(|it| (*it).clone()).collect();
        (self.old_cause.values, self.new_cause.values) = (values.clone(), values);
        self
    }

    /// The change as a sentence, with the class that it has now.
    pub(super) fn sentence(&self, direction: Direction) -> String {
        let follows = match (direction, self.effect, self.class) {
            (_, Effect::None, _) => "",
            (Direction::Input, _, Class::Breaking) => "values that were accepted are refused",
            (Direction::Input, _, _) => "what was accepted still is",
            (Direction::Output, _, Class::Breaking) => "a reader may meet values that it does not expect",
            (Direction::Output, _, Class::Behaviour) => "a reader seldom relies on it",
            (Direction::Output, _, _) => "what a reader expects still holds",
        };
        match self.reason.as_deref().unwrap_or(follows) {
            "" => format!("{}.", self.message),
            reason => format!("{}: {reason}.", self.message),
        }
    }
}
