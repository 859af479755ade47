//! The action `final_answer`: extracts the answer of a subagent from a dialog.

use std::path::Path;

use super::{Observation, cell_run::CellRunner, error::StepError, keys::KEYS, named_file, observation::observe_raw};
use rehearse_document::{
    Node, Problems, Source, Value,
    template::{Data, Templates},
};
use rehearse_llm::final_answer::{AnswerSchema, Dialog, extract};

/// A dialog, and the schema of its answer.
#[derive(Debug)]
pub struct FinalAnswer {
    dialog: DialogSource,
    schema: Option<AnswerSchema>,
}

#[derive(Debug)]
enum DialogSource {
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
    pub(super) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<FinalAnswer, Problems> {
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

impl CellRunner<'_> {
    /// The answer or the error, as the result of the MCP tool that ran the subagent.
    ///
    /// # Errors
    /// A template cannot be rendered, or its result is not a dialog.
    pub(super) fn final_answer(&self, step: &FinalAnswer) -> Result<Observation, StepError> {
        let schema = step.schema.as_ref();
        let outcome = match &step.dialog {
            DialogSource::File(dialog) => extract(dialog, schema),
            DialogSource::Inline(data) => {
                let mut text = String::new();
                self.scenario.templates.write_json(data, &self.context(), &mut text)?;
                // A captured value may be a dialog as a string.
                let text = serde_json::from_str::<String>(&text).unwrap_or(text);
                let dialog = Dialog::parse(&Source::new("dialog", text))?;
                extract(&dialog, schema)
            }
        };
        let result = outcome.map_or_else(|error| error.to_tool_result(), |answer| answer.to_tool_result());
        Ok(observe_raw(Ok(result)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;

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
