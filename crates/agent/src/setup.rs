//! From a config to the parts of an agent. Everything that can be wrong is found here, before the first run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    AgentOptions, CallOrder, ModelAccess, ModelApi, ModelSpec, ModelSpecError,
    system_prompt::{self, PromptError, PromptValues},
};
use rehearse_client_configs::{
    agent::{AgentConfig, GenerationParams, ModelConfig},
    projection::Projection,
    server::At,
};
use rehearse_document::{Problem, Problems, Source};
use rehearse_llm::{
    final_answer::AnswerSchema,
    model::{GenerationOptions, Model, scripted::LoadError},
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
///
/// ```
/// use std::{collections::BTreeMap, path::Path};
/// use rehearse_agent::{Agent, setup::{AgentSetup, SetupContext}};
/// use rehearse_client_configs::agent::AgentConfig;
/// use rehearse_document::{Source, parse_yaml};
/// use rehearse_hub::{Hub, HubOptions};
///
/// let text = "
/// models: [{ ref: claude, display_name: Claude, id: claude-sonnet-4-5, type: anthropic, api_key_env: KEY }]
/// defaults: { model: claude }
/// subagent: { name: coder, description: Changes files., maxTurns: 20 }
/// ";
/// let source = Source::new("coder.yaml", text);
/// let variables = BTreeMap::from([("KEY".to_owned(), "k".to_owned())]);
/// let context = SetupContext { folder: Path::new(""), variables: &variables, model: None };
/// let config = parse_yaml(&source).and_then(|root| AgentConfig::read(&root, &variables));
/// let setup = config.and_then(|config| AgentSetup::new(&config, &context));
/// let setup = setup.map_err(|problems| problems.in_source(&source).to_string())?;
/// let agent = Agent::new(setup.model, Hub::new([], HubOptions::default()), setup.options);
/// assert_eq!(agent.options().max_turns, 20);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
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
        let (model, system, answer, ()) =
            Problems::all4(model, system.transpose(), answer_schema(config, context), Ok(()))?;
        let usual = AgentOptions::default();
        let options = AgentOptions {
            system,
            generation: generation(model_config, &config.generation),
            max_turns: subagent.and_then(|subagent| subagent.max_turns).unwrap_or(usual.max_turns),
            max_tokens: subagent.and_then(|subagent| subagent.max_tokens),
            max_context: model_config.context_window,
            order: match subagent.is_some_and(|subagent| subagent.is_parallel) {
                true => CallOrder::Parallel,
                false => CallOrder::Sequential,
            },
            answer,
            answer_retries: subagent.map_or(0, |subagent| subagent.answer_retries),
            projection: Some(Projection::Cpe),
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

/// Reads the schema of the answer, if there is one.
///
/// # Errors
/// The file cannot be read, or is no schema.
pub fn answer_schema(config: &AgentConfig, context: &SetupContext<'_>) -> Result<Option<Arc<AnswerSchema>>, Problems> {
    let path = config.subagent.as_ref().and_then(|subagent| subagent.output_schema_path.as_ref());
    let Some(path) = path else { return Ok(None) };
    let file = find(&path.value, context);
    let source = Source::read(&file).map_err(|error| {
        let problem = Problem::new(path.span, format!("failed to read output schema file {:?}: {error}", path.value));
        problem.hint(places(&path.value, context))
    })?;
    let invalid = |error| Problem::new(path.span, format!("invalid output schema in {:?}: {error}", path.value));
    AnswerSchema::parse(&source).map(|schema| Some(Arc::new(schema))).map_err(|error| invalid(error).into())
}

/// The model of a config.
fn model(config: &ModelConfig, timeout: Duration, context: &SetupContext<'_>) -> Result<Model, Problems> {
    let api: ModelApi = config.api.value.parse().map_err(|error: ModelSpecError| {
        let problem = Problem::new(config.api.span, error.to_string());
        problem.hint("for a provider with the API of OpenAI, write `type: openai` and its `base_url`")
    })?;
    let id = match api {
        ModelApi::Scripted => find(&config.id.value, context).display().to_string(),
        ModelApi::Http(_) => config.id.value.clone(),
    };
    let access = ModelAccess {
        base_url: config.base_url.as_ref().map(|url| url.value.as_str()),
        key_variable: config.api_key_env.as_ref().map(|name| name.value.as_str()),
        variables: context.variables,
        timeout,
    };
    ModelSpec { api, id }.to_model(&access).map_err(|error| {
        let of_key = config.api_key_env.as_ref().filter(|_| matches!(error, ModelSpecError::NoKey(_)));
        let of_url = config.base_url.as_ref().filter(|_| matches!(error, ModelSpecError::Invalid(_)));
        let span = of_key.or(of_url).unwrap_or(&config.id).span;
        let problem = Problem::new(span, error.to_string());
        match error {
            ModelSpecError::NoKey(_) => problem.hint("set the variable, or name another one with `api_key_env`"),
            ModelSpecError::Script(LoadError::Unreadable(..)) => problem.hint(places(&config.id.value, context)),
            _ => problem,
        }
        .into()
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
