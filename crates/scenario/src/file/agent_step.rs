//! The action `agent`: a model works on a prompt with the tools of a server.

use std::{path::Path, sync::Arc};

use super::{model_list::valid_script, named_file};
use crate::keys::KEYS;
use rehearse_agent::ToolFormat;
use rehearse_document::{
    Fields, Node, Problem, Problems, Source, Span, Value,
    template::{Templates, Text},
};
use rehearse_llm::{final_answer::AnswerSchema, xml};

/// A prompt, and the models that get it.
#[derive(Debug)]
pub struct AgentStep {
    pub(crate) players: Players,
    pub(crate) prompt: Text,
    pub(crate) system: Option<Text>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) format: ToolFormat,
    pub(crate) answer: Option<Arc<AnswerSchema>>,
}

/// Who gets the prompt.
#[derive(Debug)]
pub(crate) enum Players {
    /// A valid script, once. Each run reads it again, because a model counts its errors.
    Script(Arc<Source>),
    /// Models of the key `models`, each several times.
    Models(EvalOptions),
}

/// How models play a step.
#[derive(Debug)]
pub(crate) struct EvalOptions {
    /// The names of the models, and where they are written.
    pub(crate) models: Vec<(String, Span)>,
    pub(crate) runs: u32,
    /// How many runs of each model must pass.
    pub(crate) required: u32,
    /// How many runs of a model are at once.
    pub(crate) concurrency: usize,
}

impl AgentStep {
    /// `model` is a path relative to `folder`, and so is `answer` if it is a text.
    ///
    /// # Errors
    /// The script cannot be read or is invalid, or a value is wrong.
    pub(crate) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<AgentStep, Problems> {
        let fields = KEYS.fields(node, "agent")?;
        let players = match &*fields.exactly_one(&KEYS.choices("agent"))?.key {
            "model" => {
                if let Some(entry) = ["runs", "pass", "concurrency"].iter().find_map(|key| fields.entry(key)) {
                    let problem = Problem::new(entry.key_span, format!("`{}` needs `models`", entry.key));
                    return Err(problem.hint("write the script into the `models` of the scenario").into());
                }
                Players::Script(named_file::read(fields.required("model")?, folder, valid_script)?)
            }
            _ => Players::Models(EvalOptions::read(&fields)?),
        };
        let format = fields.read("toolFormat", |node| match node.str()? {
            "native" => Ok(ToolFormat::Native),
            "xml" => Ok(ToolFormat::Xml(xml::Options::default())),
            _ => Err(node.problem("`toolFormat` must be native or xml").into()),
        })?;
        let answer = fields.read("answer", |node| match &node.value {
            Value::String(_) => named_file::read(node, folder, AnswerSchema::parse),
            _ => AnswerSchema::read(node),
        })?;
        Ok(AgentStep {
            players,
            prompt: templates.text(fields.required("prompt")?)?,
            system: fields.read("system", |node| templates.text(node))?,
            max_turns: fields.read("maxTurns", Node::integer)?,
            max_tokens: fields.read("maxTokens", Node::integer)?,
            format: format.unwrap_or_default(),
            answer: answer.map(Arc::new),
        })
    }

    /// How models play it, if they do.
    pub(crate) fn eval(&self) -> Option<&EvalOptions> {
        match &self.players {
            Players::Script(_) => None,
            Players::Models(eval) => Some(eval),
        }
    }

    /// The prompt, if it is no template.
    pub(crate) fn prompt(&self) -> Option<&str> {
        match &self.prompt {
            Text::Literal(text) => Some(text),
            _ => None,
        }
    }
}

impl EvalOptions {
    fn read(fields: &Fields<'_>) -> Result<EvalOptions, Problems> {
        let models = fields.required("models")?.one_or_more(|node| Ok((node.str()?.to_owned(), node.span)))?;
        for (at, (name, span)) in models.iter().enumerate() {
            if models[..at].iter().any(|(other, _)| other == name) {
                return Err(Problem::new(*span, format!("`{name}` is named twice")).into());
            }
        }
        let positive = |node: &Node| match node.integer::<u32>()? {
            0 => Err(node.problem("must be at least 1").into()),
            number => Ok(number),
        };
        let runs = fields.read("runs", positive)?.unwrap_or(1);
        let required = fields.read("pass", |node| read_required(node, runs))?.unwrap_or(runs);
        let concurrency = fields.read("concurrency", positive)?.unwrap_or(1);
        Ok(EvalOptions { models, runs, required, concurrency: concurrency as usize })
    }
}

/// How many of the runs must pass: their number, or their share, such as `80%`.
fn read_required(node: &Node, runs: u32) -> Result<u32, Problems> {
    let wrong =
        || node.problem(format!("`pass` must be a number from 1 to {runs} (`runs`), or a share such as 80%")).into();
    let share = node.as_str().and_then(|text| text.strip_suffix('%')?.trim_end().parse::<f64>().ok());
    match share {
        Some(share) if share > 0.0 && share <= 100.0 => Ok((share * f64::from(runs) / 100.0 - 1e-9).ceil() as u32),
        Some(_) => Err(wrong()),
        None => node.integer().ok().filter(|required| (1..=runs).contains(required)).ok_or_else(wrong),
    }
}
