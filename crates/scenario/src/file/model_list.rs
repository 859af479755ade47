//! The key `models`: the models that play the steps of a scenario.
//!
//! | written | the model |
//! | --- | --- |
//! | `anthropic:ID`, `openai:ID`, `responses:ID` | one of a provider |
//! | `scripted:FILE` | a script, in the folder of the file |
//! | an object with `model`, one of these | the same, with settings |
//! | a path in place of the whole key | the models of that file: such an object, or the `models` of a subagent's config |

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use super::named_file;
use crate::keys::KEYS;
use rehearse_agent::{ModelAccess, ModelApi, ModelSpec, ModelSpecError};
use rehearse_client_configs::{
    Machine,
    agent::{AgentConfig, ModelConfig},
};
use rehearse_document::{Diagnostics, Entry, Node, Problem, Problems, Source, Value, parse_yaml};
use rehearse_llm::model::{
    Budget, GenerationOptions, HttpModel, Model, Price, RecordedAnswers, RecordedModel, ScriptedModel,
};

/// The longest time for one try of a request to a provider.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(2 * 60);

/// A model that steps can name.
#[derive(Clone, Debug)]
pub struct ModelDefinition {
    /// Its name in the scenario.
    pub name: String,
    source: ModelSource,
    pub(crate) generation: GenerationOptions,
    /// What it costs, if the file says so.
    pub price: Option<Price>,
}

#[derive(Clone, Debug)]
enum ModelSource {
    /// A valid script. Each run reads it again, because a model counts its errors.
    Script(Arc<Source>),
    Provider {
        spec: ModelSpec,
        base_url: Option<String>,
        key_variable: Option<String>,
    },
}

/// What all models of a run share.
#[derive(Clone, Debug)]
pub struct ModelOptions {
    /// Where the answers of providers are kept and played from.
    pub recorded: Option<Arc<RecordedAnswers>>,
    /// Whether only recorded answers are played.
    pub only_recorded: bool,
    /// The most that all requests may take together.
    pub budget: Option<Arc<Budget>>,
    /// Only these models play; empty: all.
    pub only: Vec<String>,
    /// The variables with the keys.
    pub variables: BTreeMap<String, String>,
}

/// A model that can be asked.
#[derive(Debug)]
pub(crate) struct OpenModel<'a> {
    pub(crate) definition: &'a ModelDefinition,
    options: &'a ModelOptions,
    live: Option<Arc<HttpModel>>,
    /// Why there is no provider.
    missing: String,
}

impl Default for ModelOptions {
    /// Nothing is recorded, and the variables are those of this process.
    fn default() -> Self {
        ModelOptions {
            recorded: None,
            only_recorded: false,
            budget: None,
            only: Vec::new(),
            variables: Machine::here().variables,
        }
    }
}

impl ModelOptions {
    /// Whether a model of this name plays.
    pub(crate) fn may_play(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

impl ModelDefinition {
    /// Reads the key `models`; paths start at `folder`.
    pub(crate) fn read_all(node: &Node, folder: &Path) -> Result<Vec<ModelDefinition>, Problems> {
        match &node.value {
            Value::String(_) => named_file::read(node, folder, models_of_file),
            _ => Problems::collect(node.entries()?.iter().map(|entry| ModelDefinition::read(entry, folder))),
        }
    }

    fn read(Entry { key, node, .. }: &Entry, folder: &Path) -> Result<ModelDefinition, Problems> {
        let name = key.clone();
        if let Value::String(_) = node.value {
            let source = ModelSource::read(node, folder)?;
            return Ok(ModelDefinition { name, source, generation: GenerationOptions::default(), price: None });
        }
        let fields = KEYS.fields(node, "modelOptions")?;
        let text = |key: &str| fields.read(key, |node| Ok(node.str()?.to_owned()));
        let mut source = ModelSource::read(fields.required("model")?, folder)?;
        match &mut source {
            ModelSource::Provider { base_url, key_variable, .. } => {
                (*base_url, *key_variable) = (text("baseUrl")?, text("keyVariable")?);
            }
            ModelSource::Script(_) => {
                if let Some(entry) = ["baseUrl", "keyVariable"].iter().find_map(|key| fields.entry(key)) {
                    return Err(Problem::new(entry.key_span, format!("a script has no `{}`", entry.key)).into());
                }
            }
        }
        let generation = GenerationOptions {
            max_tokens: fields.read("maxTokens", Node::integer)?,
            temperature: fields.read("temperature", number)?,
            top_p: fields.read("topP", number)?,
            thinking: text("thinking")?,
            ..GenerationOptions::default()
        };
        Ok(ModelDefinition { name, source, generation, price: fields.read("price", read_price)? })
    }

    /// Whether a provider answers, which takes time and money.
    pub fn is_of_provider(&self) -> bool {
        matches!(self.source, ModelSource::Provider { .. })
    }

    /// Makes the model usable. Without a key, recorded answers can still be played.
    ///
    /// # Errors
    /// The key is not set and there are no recorded answers, or the URL is wrong.
    pub(crate) fn open<'a>(&'a self, options: &'a ModelOptions) -> Result<OpenModel<'a>, ModelSpecError> {
        let (mut live, mut missing) = (None, String::new());
        if let ModelSource::Provider { spec, base_url, key_variable } = &self.source {
            let access = ModelAccess {
                base_url: base_url.as_deref(),
                key_variable: key_variable.as_deref(),
                variables: &options.variables,
                timeout: REQUEST_TIMEOUT,
            };
            match spec.to_model(&access) {
                _ if options.only_recorded => missing = "only recorded answers are played".to_owned(),
                Ok(Model::Http(model)) => live = Some(Arc::new(model)),
                Ok(_) => {}
                Err(error @ ModelSpecError::NoKey(_)) if options.recorded.is_some() => missing = error.to_string(),
                Err(error) => return Err(error),
            }
        }
        Ok(OpenModel { definition: self, options, live, missing })
    }

    /// Says why the model cannot be used with these options.
    ///
    /// # Errors
    /// See [`ModelSpecError`].
    pub fn check(&self, options: &ModelOptions) -> Result<(), ModelSpecError> {
        self.open(options).map(drop)
    }
}

impl OpenModel<'_> {
    /// The model of a run, whose number counts from 1.
    ///
    /// # Errors
    /// The script has changed.
    pub(crate) fn of_run(&self, run: u32) -> Result<Model, Diagnostics> {
        let ModelDefinition { name, source, price, .. } = self.definition;
        let spec = match source {
            ModelSource::Script(source) => return ScriptedModel::parse(source).map(Model::Scripted),
            ModelSource::Provider { spec, .. } => spec,
        };
        Ok(Model::Recorded(RecordedModel {
            name: name.clone(),
            id: spec.to_string(),
            live: self.live.clone(),
            missing: self.missing.clone(),
            recorded: self.options.recorded.clone(),
            budget: self.options.budget.clone(),
            price: price.clone(),
            run,
        }))
    }
}

impl ModelSource {
    fn read(node: &Node, folder: &Path) -> Result<ModelSource, Problems> {
        let spec: ModelSpec = node.str()?.parse().map_err(|error: ModelSpecError| node.problem(error.to_string()))?;
        match spec.api {
            ModelApi::Scripted => ModelSource::read_script(node, &spec.id, folder),
            ModelApi::Http(_) => Ok(ModelSource::Provider { spec, base_url: None, key_variable: None }),
        }
    }

    fn read_script(node: &Node, path: &str, folder: &Path) -> Result<ModelSource, Problems> {
        let node = Node { value: Value::String(path.into()), ..node.clone() };
        named_file::read(&node, folder, valid_script).map(ModelSource::Script)
    }
}

/// The script of a model, if it is valid.
///
/// # Errors
/// Every mistake in it.
pub(crate) fn valid_script(source: &Arc<Source>) -> Result<Arc<Source>, Diagnostics> {
    ScriptedModel::parse(source).map(|_| source.clone())
}

/// The models of a file that scenarios share.
fn models_of_file(source: &Arc<Source>) -> Result<Vec<ModelDefinition>, Diagnostics> {
    let folder = Path::new(&source.name).parent().unwrap_or(Path::new(""));
    let read = parse_yaml(source).and_then(|root| match root.get("models") {
        Some(Node { value: Value::Sequence(_), .. }) => {
            let config = AgentConfig::read(&root, &Machine::here().variables)?;
            Problems::collect(config.models.iter().map(|model| of_config(model, folder)))
        }
        Some(models) => ModelDefinition::read_all(models, folder),
        None => Problems::collect(root.entries()?.iter().map(|entry| ModelDefinition::read(entry, folder))),
    });
    read.map_err(|problems| problems.in_source(source))
}

/// A model of the config of a subagent.
fn of_config(model: &ModelConfig, folder: &Path) -> Result<ModelDefinition, Problems> {
    let at = |span| Node { span, value: Value::Null };
    let api: Result<ModelApi, _> = model.api.value.parse();
    let api = api.map_err(|error: ModelSpecError| at(model.api.span).problem(error.to_string()))?;
    let source = match api {
        ModelApi::Scripted => ModelSource::read_script(&at(model.id.span), &model.id.value, folder)?,
        ModelApi::Http(_) => ModelSource::Provider {
            spec: ModelSpec { api, id: model.id.value.clone() },
            base_url: model.base_url.as_ref().map(|url| url.value.clone()),
            key_variable: model.api_key_env.as_ref().map(|name| name.value.clone()),
        },
    };
    let params = &model.generation;
    let generation = GenerationOptions {
        max_tokens: params.max_tokens.or(model.max_output),
        temperature: params.temperature,
        top_p: params.top_p,
        top_k: params.top_k,
        thinking: params.thinking.clone(),
        ..GenerationOptions::default()
    };
    Ok(ModelDefinition { name: model.reference.value.clone(), source, generation, price: None })
}

/// US dollars for a million tokens, and the date on which that was the price.
fn read_price(node: &Node) -> Result<Price, Problems> {
    let fields = KEYS.fields(node, "price")?;
    let date = fields.required("date")?;
    let is_date = date.str().is_ok_and(|text| {
        let parts: Vec<_> =
            text.split('-').map(|part| (part.len(), part.bytes().all(|it| it.is_ascii_digit()))).collect();
        let number = |at: usize| text.split('-').nth(at).and_then(|part| part.parse::<u32>().ok()).unwrap_or_default();
        parts == [(4, true), (2, true), (2, true)] && (1..=12).contains(&number(1)) && (1..=31).contains(&number(2))
    });
    if !is_date {
        return Err(date.problem("`date` must be a day, such as 2026-11-01").into());
    }
    Ok(Price {
        input: number(fields.required("input")?)?,
        output: number(fields.required("output")?)?,
        cache_read: fields.read("cacheRead", number)?,
        cache_write: fields.read("cacheWrite", number)?,
    })
}

/// A number that is not negative.
pub(crate) fn number(node: &Node) -> Result<f64, Problems> {
    let number = match &node.value {
        Value::Number(text) => text.parse::<f64>().ok(),
        _ => None,
    };
    let problem = || Problem::new(node.span, "must be a number, and not negative").into();
    number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(problem)
}
