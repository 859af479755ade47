//! Faults in what a config says about the agent itself.

use crate::config::{
    dialect::Dialect,
    finding::{Code, codes},
};

pub(super) fn faults(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    if !dialect.agent {
        return;
    }
    let and = |text: &str| format!("{}, {text}}}", &whole[..whole.len() - 1]);
    add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}], \"defaults\": {\"model\": «\"ones\"»}"));
    add(&codes::MODEL, and("\"models\": [«{}»]"));
    add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}, {\"ref\": «\"one\"»}]"));
    add(&codes::VALUE_TYPE, and("\"models\": «{}»"));
    add(&codes::SUBAGENT, and("«\"subagent\"»: {\"name\": \"a\"}"));
    add(&codes::SUBAGENT, and("\"subagent\": {\"name\": \"a\", \"description\": «\"\"»}"));
    let schema = "\"subagent\": {\"name\": \"a\", \"description\": \"b\", \"outputSchemaPath\": «\"gone.json\"»}";
    add(&codes::SUBAGENT, and(schema));
    add(&codes::VALUE_TYPE, and("\"subagent\": «[]»"));
}
