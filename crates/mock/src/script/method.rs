//! Custom methods, and custom answers to methods of the protocol.

use super::{Item, ReplySubject, ScriptReader, keys::KEYS};
use rehearse_document::{Node, Problems};

/// Methods that the protocol always answers, because all others depend on them.
const RESERVED: &[&str] = &["initialize", "ping", "server/discover"];

/// A method of the script. It takes precedence over the protocol.
#[derive(Debug)]
pub struct MethodItem {
    /// The answer.
    pub item: Item,
}

impl MethodItem {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<MethodItem, Problems> {
        let subject = ReplySubject::Method;
        let fields = KEYS.fields(node, "method")?;
        let method = fields.required("method")?;
        if RESERVED.contains(&method.str()?) {
            let problem = method.problem(format!("`{}` is always answered by the protocol", method.str()?));
            return Err(problem.hint("delay it or break it with `faults: [{ on: { method: … }, do: … }]`").into());
        }
        Ok(MethodItem { item: Item::read(&fields, &subject, reader)? })
    }
}

#[cfg(test)]
mod tests {
    use crate::script::Script;
    use rehearse_document::Source;

    #[test]
    fn a_method_without_a_possible_answer_is_refused() {
        for method in super::RESERVED {
            let text = format!("methods: [{{ method: {method}, reply: {{ result: {{}} }} }}]");
            let error = Script::parse(&Source::new("m", text)).expect_err(method).to_string();
            assert!(error.starts_with(&format!("m:1:21: `{method}` is always answered by the protocol (")), "{error}");
        }
    }
}
