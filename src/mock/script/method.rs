//! Methods that the protocol does not have, or other answers to those that it has; and completions.

use super::{Kind, Reader, Stub, Subject};
use crate::{
    config::{Entry, Node, Problems, Value},
    mock::template::Data,
};

/// Methods on which everything else rests. The protocol answers them, whatever a script says.
const RESERVED: &[&str] = &["initialize", "ping", "server/discover"];

/// A method of the script. It answers before the protocol does.
#[derive(Debug)]
pub struct MethodStub {
    pub stub: Stub,
}

impl MethodStub {
    pub(super) fn read(node: &Node, reader: &mut Reader) -> Result<MethodStub, Problems> {
        let subject = Subject::Method;
        let fields = node.fields("a method", &Stub::keys(&["method"], &subject))?;
        let method = fields.required("method")?;
        if RESERVED.contains(&method.str()?) {
            let problem = method.problem(format!("`{}` is always answered by the protocol", method.str()?));
            return Err(problem.hint("delay it or break it with `faults: [{ on: { method: … }, do: … }]`").into());
        }
        Ok(MethodStub { stub: Stub::read(&fields, &subject, reader)? })
    }
}

/// Values that complete one argument of a prompt or one variable of a resource template.
#[derive(Debug)]
pub struct Completion {
    pub reference: Reference,
    pub argument: String,
    /// A list of texts.
    pub values: Data,
}

/// Whose argument is completed (2025-11-25, Completion: Reference Types).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    Prompt(String),
    Resource(String),
}

impl Reference {
    /// Whether this refers to what has this name. A resource template goes by its URI template.
    pub fn is(&self, kind: Kind, name: &str) -> bool {
        match self {
            Reference::Prompt(prompt) => kind == Kind::Prompt && prompt == name,
            Reference::Resource(uri) => kind == Kind::ResourceTemplate && uri == name,
        }
    }
}

impl Completion {
    pub(super) fn read(node: &Node, reader: &mut Reader) -> Result<Completion, Problems> {
        let fields = node.fields("a completion", &["prompt", "resource", "argument", "values"])?;
        let Entry { key, node: name, .. } = fields.exactly_one(&["prompt", "resource"])?;
        let name = name.str()?.to_owned();
        let values = fields.required("values")?;
        if !matches!(values.value, Value::String(_)) {
            values.each(|value| Ok(value.str()?.to_owned()))?;
        }
        Ok(Completion {
            reference: if key == "prompt" { Reference::Prompt(name) } else { Reference::Resource(name) },
            argument: fields.required("argument")?.str()?.to_owned(),
            values: reader.templates.data(values)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{config::Source, mock::script::Script};

    #[test]
    fn what_could_never_answer_is_refused() {
        for method in super::RESERVED {
            let text = format!("methods: [{{ method: {method}, reply: {{ result: {{}} }} }}]");
            let error = Script::parse(&Source::new("m", text)).expect_err(method).to_string();
            assert!(error.starts_with(&format!("m:1:21: `{method}` is always answered by the protocol (")), "{error}");
        }
    }
}
