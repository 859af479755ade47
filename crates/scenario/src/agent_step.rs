//! The action `agent`: a scripted model works on a prompt with the tools of a server.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use tokio_util::sync::CancellationToken;

use super::{
    Observation, StepOutcome,
    cell_run::CellRunner,
    error::StepError,
    named_file,
    observation::{observe_raw, observe_result},
};
use rehearse_agent::{Agent, AgentOptions, Conversation, EmitFuture, Event, EventSink, RunLabel, ToolFormat};
use rehearse_client::Failure;
use rehearse_document::{
    Node, Problems, Source,
    template::{Templates, Text},
};
use rehearse_hub::Hub;
use rehearse_llm::{
    model::{Block, Model, ScriptedModel, text_of},
    xml,
};

/// A scripted model and what it gets.
#[derive(Debug)]
pub struct AgentStep {
    /// A valid script. Each run reads it again, because a model counts its errors.
    script: Arc<Source>,
    prompt: Text,
    system: Option<Text>,
    max_turns: Option<u32>,
    format: ToolFormat,
}

impl AgentStep {
    /// `model` is a path relative to `folder`.
    ///
    /// # Errors
    /// The script cannot be read or is invalid, or a value is wrong.
    pub(super) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<AgentStep, Problems> {
        let fields = node.fields("`agent`", &["model", "prompt", "system", "maxTurns", "toolFormat"])?;
        let valid = |source: &Arc<Source>| ScriptedModel::parse(source).map(|_| source.clone());
        let script = named_file::read(fields.required("model")?, folder, valid)?;
        let format = fields.read("toolFormat", |node| match node.str()? {
            "native" => Ok(ToolFormat::Native),
            "xml" => Ok(ToolFormat::Xml(xml::Options::default())),
            _ => Err(node.problem("`toolFormat` must be native or xml").into()),
        })?;
        Ok(AgentStep {
            script,
            prompt: templates.text(fields.required("prompt")?)?,
            system: fields.read("system", |node| templates.text(node))?,
            max_turns: fields.read("maxTurns", Node::integer)?,
            format: format.unwrap_or_default(),
        })
    }
}

/// The tool calls of a run, each with its result.
#[derive(Default)]
struct CallLog(Mutex<Vec<Json>>);

impl EventSink for CallLog {
    fn emit<'a>(&'a self, _: &'a RunLabel, event: Event<'a>) -> EmitFuture<'a> {
        let mut calls = self.0.lock();
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
            _ => {}
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

impl CellRunner<'_> {
    /// The answer or the error, as the result of a tool that runs an agent, with the calls of the model.
    ///
    /// # Errors
    /// A template cannot be rendered.
    pub(super) async fn agent(&self, hub: &Hub, step: &AgentStep, limit: Duration) -> Result<Observation, StepError> {
        let model = ScriptedModel::parse(&step.script)?;
        let usual = AgentOptions::default();
        let options = AgentOptions {
            system: step.system.as_ref().map(|text| self.text(text)).transpose()?,
            max_turns: step.max_turns.unwrap_or(usual.max_turns),
            format: step.format,
            ..usual
        };
        let log = Arc::new(CallLog::default());
        let agent = Agent::new(Arc::new(Model::Scripted(model)), hub.clone(), options).with_sink(log.clone());
        let label = RunLabel { agent: self.scenario.name.as_str().into(), run_id: "1".into() };
        let prompt = vec![Block::text(self.text(&step.prompt)?)];
        let (mut conversation, cancel) = (Conversation::default(), CancellationToken::new());
        let mut run = Box::pin(agent.run(&mut conversation, prompt, &label, &cancel, None));
        let run = tokio::select! {
            run = &mut run => run,
            () = tokio::time::sleep(limit) => {
                cancel.cancel();
                // It ends with the calls that it cancels.
                let _ = run.await;
                return Ok(Observation::from_failure(&Failure::Timeout(limit)));
            }
        };
        let mut observation = match run {
            Ok(run) => observe_raw(Ok(run.answer.to_tool_result())),
            Err(error) => {
                let content = json!([{ "type": "text", "text": error.to_string() }]);
                observe_result(Ok(json!({ "content": content, "isError": true })))
            }
        };
        if let StepOutcome::Result(result) = &mut observation.outcome {
            result["calls"] = std::mem::take(&mut *log.0.lock()).into();
        }
        Ok(observation)
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
            hooks: TrafficHooks { record_sink: Some(record_sink), judge: None },
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
