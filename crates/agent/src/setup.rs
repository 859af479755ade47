//! From a config to the parts of an agent. Everything that can be wrong is found here, before the first run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    AgentOptions, CallOrder,
    system_prompt::{self, PromptError, PromptValues},
};
use rehearse_client_configs::{
    agent::{AgentConfig, GenerationParams, ModelConfig},
    server::At,
};
use rehearse_document::{Problem, Problems, Source};
use rehearse_llm::{
    final_answer::AnswerSchema,
    model::{GenerationOptions, Model, ScriptedModel, scripted::LoadError},
};

/// How long a request to a model may take, unless the config says so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Where a config is, and what its process knows.
#[derive(Clone, Debug)]
pub struct SetupContext<'a> {
    /// The folder of the config.
    pub folder: &'a Path,
    /// The variables of the process.
    pub variables: &'a BTreeMap<String, String>,
    /// The `ref` of the model, instead of `defaults.model`.
    pub model: Option<&'a str>,
}

/// The model of a config and its options.
#[derive(Debug)]
pub struct AgentSetup {
    pub model: Arc<Model>,
    pub options: AgentOptions,
}

impl AgentSetup {
    /// Makes the model, and reads the system prompt and the schema of the answer.
    ///
    /// # Errors
    /// Everything that is missing or wrong, with its position in the config.
    pub fn new(config: &AgentConfig, context: &SetupContext<'_>) -> Result<AgentSetup, Problems> {
        let model_config = config.model(context.model)?;
        let subagent = config.subagent.as_ref();
        let model = model(model_config, config.timeout.unwrap_or(REQUEST_TIMEOUT), context);
        let system = model_config.system_prompt_path.as_ref().or(config.system_prompt_path.as_ref());
        let system = system.map(|path| {
            let values = PromptValues {
                name: subagent.map(|subagent| subagent.name.value.clone()).unwrap_or_default(),
                description: subagent.map(|subagent| subagent.description.value.clone()).unwrap_or_default(),
                env: context.variables.clone(),
            };
            system_prompt(path, &values, context)
        });
        let schema = subagent.and_then(|subagent| subagent.output_schema_path.as_ref());
        let schema = schema.map(|path| answer_schema(path, context));
        let (model, system, answer, ()) = Problems::all4(model, system.transpose(), schema.transpose(), Ok(()))?;
        let usual = AgentOptions::default();
        let options = AgentOptions {
            system,
            generation: generation(model_config, &config.generation),
            max_turns: subagent.and_then(|subagent| subagent.max_turns).unwrap_or(usual.max_turns),
            max_tokens: subagent.and_then(|subagent| subagent.max_tokens),
            order: match subagent.is_some_and(|subagent| subagent.is_parallel) {
                true => CallOrder::Parallel,
                false => CallOrder::Sequential,
            },
            answer: answer.map(Arc::new),
            answer_retries: subagent.map_or(0, |subagent| subagent.answer_retries),
            ..usual
        };
        Ok(AgentSetup { model: Arc::new(model), options })
    }
}

/// The path of a file of the config: below the working directory if it is there, else below the folder of the config.
fn find(path: &str, context: &SetupContext<'_>) -> PathBuf {
    let here = Path::new(path);
    let beside = context.folder.join(path);
    if !here.exists() && beside.exists() { beside } else { here.to_owned() }
}

/// Where a missing file was looked for.
fn places(path: &str, context: &SetupContext<'_>) -> String {
    match Path::new(path).is_absolute() || context.folder.as_os_str().is_empty() {
        true => "the path is relative to the working directory".to_owned(),
        false => format!("looked in the working directory and in {}", context.folder.display()),
    }
}

fn system_prompt(path: &At<String>, values: &PromptValues, context: &SetupContext<'_>) -> Result<String, Problems> {
    system_prompt::load(&find(&path.value, context), values).map_err(|error| {
        let problem = Problem::new(path.span, error.to_string());
        match error {
            PromptError::Unreadable { .. } => problem.hint(places(&path.value, context)),
            PromptError::Template { .. } => problem,
        }
        .into()
    })
}

fn answer_schema(path: &At<String>, context: &SetupContext<'_>) -> Result<AnswerSchema, Problems> {
    let file = find(&path.value, context);
    let source = Source::read(&file).map_err(|error| {
        let problem = Problem::new(path.span, format!("failed to read output schema file {:?}: {error}", path.value));
        problem.hint(places(&path.value, context))
    })?;
    let invalid = |error| Problem::new(path.span, format!("invalid output schema in {:?}: {error}", path.value));
    AnswerSchema::parse(&source).map_err(|error| invalid(error).into())
}

/// The model of a config.
fn model(config: &ModelConfig, timeout: Duration, context: &SetupContext<'_>) -> Result<Model, Problems> {
    match config.api.value.as_str() {
        "scripted" => scripted(config, context).map(Model::Scripted),
        other => {
            let _ = timeout;
            let problem = Problem::new(config.api.span, format!("unknown model type `{other}`"));
            Err(problem.hint("known types are anthropic, openai, responses and scripted").into())
        }
    }
}

fn scripted(config: &ModelConfig, context: &SetupContext<'_>) -> Result<ScriptedModel, Problems> {
    let path = find(&config.id.value, context);
    ScriptedModel::load(&path).map_err(|error| {
        let problem = Problem::new(config.id.span, error.to_string());
        match error {
            LoadError::Unreadable(..) => problem.hint(places(&config.id.value, context)).into(),
            LoadError::Invalid(_) => problem.into(),
        }
    })
}

fn generation(model: &ModelConfig, defaults: &GenerationParams) -> GenerationOptions {
    let params = model.generation.clone().or(defaults);
    GenerationOptions {
        max_tokens: params.max_tokens.or(model.max_output),
        temperature: params.temperature,
        top_p: params.top_p,
        top_k: params.top_k,
        frequency_penalty: params.frequency_penalty,
        presence_penalty: params.presence_penalty,
        stop_sequences: params.stop_sequences,
        tool_choice: params.tool_choice,
        thinking: params.thinking,
    }
}
