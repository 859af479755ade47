//! The action `final_answer`: extracts the answer of a subagent from a dialog.

use std::path::Path;

use super::named_file;
use crate::keys::KEYS;
use rehearse_document::{
    Node, Problems, Value,
    template::{Data, Templates},
};
use rehearse_llm::final_answer::{AnswerSchema, Dialog};

/// A dialog, and the schema of its answer.
#[derive(Debug)]
pub struct FinalAnswer {
    pub(crate) dialog: DialogSource,
    pub(crate) schema: Option<AnswerSchema>,
}

#[derive(Debug)]
pub(crate) enum DialogSource {
    /// A file.
    File(Dialog),
    /// Inline data with templates, or one template for the whole dialog.
    Inline(Data),
}

impl FinalAnswer {
    /// `dialog` and `schema` are paths relative to `folder`, or inline values.
    ///
    /// # Errors
    /// A file cannot be read, or a dialog or schema is invalid.
    pub(crate) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<FinalAnswer, Problems> {
        let fields = KEYS.fields(node, "final_answer")?;
        let dialog = fields.required("dialog")?;
        let dialog = match (&dialog.value, templates.data(dialog)?) {
            (Value::String(_), Data::Literal(_)) => {
                named_file::read(dialog, folder, Dialog::parse).map(DialogSource::File)
            }
            (Value::String(_), template) => Ok(DialogSource::Inline(template)),
            (_, data) => Dialog::read(dialog).map(|_| DialogSource::Inline(data)),
        };
        let schema = fields.read("schema", |node| match &node.value {
            Value::String(_) => named_file::read(node, folder, AnswerSchema::parse),
            _ => AnswerSchema::read(node),
        });
        match (dialog, schema) {
            (Ok(dialog), Ok(schema)) => Ok(FinalAnswer { dialog, schema }),
            (dialog, schema) => {
                let problems = [dialog.err(), schema.err()].into_iter().flatten();
                Err(Problems(problems.flat_map(|problems| problems.0).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::file::Scenario;
    use rehearse_document::Source;

    fn parse(step: &str) -> Result<Scenario, String> {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [("good.json", "[]"), ("bad.json", "[{},\n5]"), ("schema.json", r#"{"type":"list"}"#)] {
            std::fs::write(folder.path().join(name), text).expect("writes");
        }
        let text = format!("steps:\n- {{ {step} }}");
        let parsed =
            Scenario::parse(&Source::new("s.yaml", text), &folder.path().join("s.yaml"), crate::tests::BUILTINS);
        parsed.map_err(|error| {
            error.to_string().replace(&folder.path().display().to_string(), "DIR").replace("DIR\\", "DIR/")
        })
    }

    #[test]
    fn a_scenario_of_dialogs_needs_no_server_and_is_run_once() {
        let scenario = parse("final_answer: { dialog: good.json, schema: { required: [a] } }").expect("valid");
        let cells: Vec<_> = scenario.cells().iter().map(|(cell, no)| format!("{cell} {no:?}")).collect();
        assert_eq!(cells, ["memory/2026-07-28 None"]);
        assert_eq!(scenario.steps[0].title(), "final_answer");
    }
}
