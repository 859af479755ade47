//! Runs an agent on the prompt of a step.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{cell_run::CellRunner, error::StepError};
use crate::{
    file::agent_step::{AgentStep, Players},
    snapshot::{
        Observation, StepOutcome,
        observation::{AgentLog, observe_raw, observe_result},
    },
};
use rehearse_agent::{Agent, AgentError, AgentOptions, Conversation, EmitFuture, Event, EventSink, RunLabel};
use rehearse_client::Failure;
use rehearse_hub::Hub;
use rehearse_llm::model::{Block, GenerationOptions, Model, ModelError, ScriptedModel, text_of};

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

/// A run of an agent.
#[derive(Debug)]
pub(crate) struct AgentOutcome {
    pub(crate) observation: Observation,
    /// The model could not be asked; that says nothing of the server.
    pub(crate) error: Option<ModelError>,
}

impl CellRunner<'_> {
    /// The answer or the error of the script, as the result of a tool that runs an agent.
    ///
    /// # Errors
    /// A template cannot be rendered, the script has changed, or models play the step.
    pub(crate) async fn agent(&self, hub: &Hub, step: &AgentStep, limit: Duration) -> Result<Observation, StepError> {
        let Players::Script(script) = &step.players else { return Err(StepError::NotOfSession) };
        let model = Model::Scripted(ScriptedModel::parse(script)?);
        let played = self.play(hub, step, model, GenerationOptions::default(), limit);
        Ok(played.await?.observation)
    }

    /// What the models are asked.
    ///
    /// # Errors
    /// The template cannot be rendered.
    pub(crate) fn prompt_of(&self, step: &AgentStep) -> Result<String, StepError> {
        Ok(self.text(&step.prompt)?)
    }

    /// One run of a model: its answer or error, as the result of a tool that runs an agent, with the calls of the model.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub(crate) async fn play(
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
            None => (Observation::from_failure(&Failure::Timeout(limit.into())), None),
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
        Plan, RunOptions, Selection, SnapshotMode, TrafficHooks,
        file::Scenario,
        run,
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
        let record_sink: crate::run::RecordSink = Arc::new(move |at, recorder| {
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
