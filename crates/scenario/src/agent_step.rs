//! The action `agent`: a model works on a prompt with the tools of a server.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{
    Observation, StepOutcome,
    agent_expectations::AgentLog,
    cell_run::CellRunner,
    error::StepError,
    keys::KEYS,
    model_list::valid_script,
    named_file,
    observation::{observe_raw, observe_result},
};
use rehearse_agent::{
    Agent, AgentError, AgentOptions, Conversation, EmitFuture, Event, EventSink, RunLabel, ToolFormat,
};
use rehearse_client::Failure;
use rehearse_document::{
    Fields, Node, Problem, Problems, Source, Span, Value,
    template::{Templates, Text},
};
use rehearse_hub::Hub;
use rehearse_llm::{
    final_answer::AnswerSchema,
    model::{Block, GenerationOptions, Model, ModelError, ScriptedModel, text_of},
    xml,
};

/// A prompt, and the models that get it.
#[derive(Debug)]
pub struct AgentStep {
    players: Players,
    prompt: Text,
    system: Option<Text>,
    max_turns: Option<u32>,
    max_tokens: Option<u64>,
    format: ToolFormat,
    answer: Option<Arc<AnswerSchema>>,
}

/// Who gets the prompt.
#[derive(Debug)]
pub(super) enum Players {
    /// A valid script, once. Each run reads it again, because a model counts its errors.
    Script(Arc<Source>),
    /// Models of the key `models`, each several times.
    Models(EvalOptions),
}

/// How models play a step.
#[derive(Debug)]
pub(super) struct EvalOptions {
    /// The names of the models, and where they are written.
    pub(super) models: Vec<(String, Span)>,
    pub(super) runs: u32,
    /// How many runs of each model must pass.
    pub(super) required: u32,
    /// How many runs of a model are at once.
    pub(super) concurrency: usize,
}

/// A run of an agent.
#[derive(Debug)]
pub(super) struct AgentOutcome {
    pub(super) observation: Observation,
    /// The model could not be asked; that says nothing of the server.
    pub(super) error: Option<ModelError>,
}

impl AgentStep {
    /// `model` is a path relative to `folder`, and so is `answer` if it is a text.
    ///
    /// # Errors
    /// The script cannot be read or is invalid, or a value is wrong.
    pub(super) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<AgentStep, Problems> {
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
    pub(super) fn eval(&self) -> Option<&EvalOptions> {
        match &self.players {
            Players::Script(_) => None,
            Players::Models(eval) => Some(eval),
        }
    }

    /// The prompt, if it is no template.
    pub(super) fn prompt(&self) -> Option<&str> {
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

/// The tool calls of a run, each with its result, and what the run took.
#[derive(Default)]
struct CallLog(Mutex<AgentLog>);

impl EventSink for CallLog {
    fn emit<'a>(&'a self, _: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let AgentLog { calls, warnings, turns, usage } = &mut *self.0.lock();
        match event {
            Event::ToolCall { call, .. } => {
                let arguments = serde_json::from_str(&call.arguments);
                let arguments = arguments.unwrap_or_else(|_| Json::from(&*call.arguments));
                calls.push(json!({ "tool": call.name, "arguments": arguments }));
            }
            // One call after another.
            Event::ToolResult(result) => {
                if let Some(call) = calls.last_mut() {
                    call["result"] = text_of(&result.content).into();
                    call["isError"] = result.is_error.into();
                }
            }
            Event::Warning(text) => warnings.push(text.to_owned()),
            Event::Ended { statistics, .. } => (*turns, *usage) = (statistics.turns.into(), statistics.usage),
            _ => {}
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl CellRunner<'_> {
    /// The answer or the error of the script, as the result of a tool that runs an agent.
    ///
    /// # Errors
    /// A template cannot be rendered, the script has changed, or models play the step.
    pub(super) async fn agent(&self, hub: &Hub, step: &AgentStep, limit: Duration) -> Result<Observation, StepError> {
        let Players::Script(script) = &step.players else { return Err(StepError::NotOfSession) };
        let model = Model::Scripted(ScriptedModel::parse(script)?);
        let played = self.play(hub, step, model, GenerationOptions::default(), limit);
        Ok(played.await?.observation)
    }

    /// What the models are asked.
    ///
    /// # Errors
    /// The template cannot be rendered.
    pub(super) fn prompt_of(&self, step: &AgentStep) -> Result<String, StepError> {
        Ok(self.text(&step.prompt)?)
    }

    /// One run of a model: its answer or error, as the result of a tool that runs an agent, with the calls of the model.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub(super) async fn play(
        &self,
        hub: &Hub,
        step: &AgentStep,
        model: Model,
        generation: GenerationOptions,
        limit: Duration,
    ) -> Result<AgentOutcome, StepError> {
        let usual = AgentOptions::default();
        let options = AgentOptions {
            system: step.system.as_ref().map(|text| self.text(text)).transpose()?,
            generation,
            max_turns: step.max_turns.unwrap_or(usual.max_turns),
            max_tokens: step.max_tokens,
            answer: step.answer.clone(),
            format: step.format,
            ..usual
        };
        let log = Arc::new(CallLog::default());
        let (name, asks_provider) = (model.name().to_owned(), matches!(model, Model::Recorded(_)));
        let agent = Agent::new(Arc::new(model), hub.clone(), options).with_sink(log.clone());
        let label = RunLabel { agent: self.scenario.name.as_str().into(), run_id: "1".into() };
        let prompt = vec![Block::text(self.prompt_of(step)?)];
        let (mut conversation, cancel) = (Conversation::default(), CancellationToken::new());
        let mut run = Box::pin(agent.run(&mut conversation, prompt, &label, &cancel, None));
        let run = tokio::select! {
            run = &mut run => Some(run),
            () = tokio::time::sleep(limit) => {
                cancel.cancel();
                // It ends with the calls that it cancels.
                let _ = run.await;
                None
            }
        };
        let is_late = run.is_none();
        let (mut observation, mut error) = match run {
            None => (Observation::from_failure(&Failure::Timeout(limit)), None),
            Some(Ok(run)) => (observe_raw(Ok(run.answer.to_tool_result())), None),
            Some(Err(error)) => {
                let content = json!([{ "type": "text", "text": error.to_string() }]);
                let observation = observe_result(Ok(json!({ "content": content, "isError": true })));
                (observation, if let AgentError::Model(error) = error { Some(error) } else { None })
            }
        };
        let log = std::mem::take(&mut *log.0.lock());
        if let StepOutcome::Result(result) = &mut observation.outcome {
            result["calls"] = log.calls.clone().into();
        }
        // A provider that does not answer says nothing of the server.
        let waits_for_tool = log.calls.last().is_some_and(|call| call.get("isError").is_none());
        if is_late && asks_provider && !waits_for_tool {
            error = Some(ModelError::TimedOut { endpoint: name, limit });
        }
        observation.agent = Some(log);
        Ok(AgentOutcome { observation, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Plan, RunOptions, Scenario, Selection, SnapshotMode, TrafficHooks, run,
        tests::{BUILTINS, problems},
    };
    use rehearse_client::ClientRecorder;

    const MODEL: &str = "
rules:
  - turns: [{ calls: [{ tool: echo, args: { text: '{{ prompt }}' } }, { tool: gone }] }, 'It says {{ results.echo }}.']";
    const SCENARIO: &str = "
servers: { s: { mock: basic } }
matrix: { transport: memory }
steps: [{ agent: { model: model.yaml, prompt: Hi }, expect: { text: It says Hi. }, snapshot: said }]";

    #[tokio::test]
    async fn a_scripted_agent_does_the_same_in_every_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.yaml");
        std::fs::write(folder.path().join("model.yaml"), MODEL).expect("writes");
        std::fs::write(&path, SCENARIO).expect("writes");
        let recorders = Arc::new(Mutex::new(Vec::<(String, ClientRecorder)>::new()));
        let seen = recorders.clone();
        let record_sink: crate::RecordSink = Arc::new(move |at, recorder| {
            seen.lock().push((at.cell.to_string(), recorder.clone()));
        });
        let options = RunOptions {
            mode: SnapshotMode::Update,
            repeat: 2,
            builtin_scripts: BUILTINS,
            hooks: TrafficHooks { record_sink: Some(record_sink), ..TrafficHooks::default() },
            ..RunOptions::default()
        };
        let scenario = Scenario::load(&path, BUILTINS).expect("valid");
        let plan = Plan::new(vec![scenario], &Selection::default());
        let result = run(plan, options, CancellationToken::new(), |_| {}).await;
        assert_eq!(problems(&result), [""; 0]);
        let said = std::fs::read_to_string(folder.path().join("snapshots/s/said.snap")).expect("a snapshot");
        assert!(said.contains(r#""tool": "gone""#) && said.contains(r#""result": "Hi""#), "{said}");
        let recorders = recorders.lock();
        assert_eq!(recorders.len(), 4);
        for runs in recorders.chunks(2) {
            let frames = |(cell, recorder): &(String, ClientRecorder)| {
                let frames = recorder.since(0).into_iter();
                let frames: Vec<_> =
                    frames.map(|it| format!("{:?} {}", it.direction, String::from_utf8_lossy(&it.bytes))).collect();
                (cell.clone(), frames)
            };
            assert_eq!(frames(&runs[0]), frames(&runs[1]));
        }
    }
}
