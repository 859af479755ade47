//! Which model an agent uses.

use std::{collections::BTreeMap, fmt, path::Path, str::FromStr, time::Duration};

use rehearse_llm::{
    Provider,
    model::{
        HttpModel, Model, ScriptedModel,
        http::{ApiKey, HttpModelOptions, InvalidOptions},
        scripted::LoadError,
    },
};

/// The API of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelApi {
    Http(Provider),
    /// A script of this program.
    Scripted,
}

/// A model: `anthropic:ID`, `openai:ID`, `responses:ID` or `scripted:FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSpec {
    pub api: ModelApi,
    /// The name at the provider, or the path of the script.
    pub id: String,
}

/// How to reach a model of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ModelAccess<'a> {
    /// The URL of the API; `None` is that of the variables, such as `ANTHROPIC_BASE_URL`, or else the provider's.
    pub base_url: Option<&'a str>,
    /// The environment variable with the API key; `None` is the usual one of the provider.
    pub key_variable: Option<&'a str>,
    /// The variables of the process.
    pub variables: &'a BTreeMap<String, String>,
    /// The time limit of each request.
    pub timeout: Duration,
}

/// Why a model cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ModelSpecError {
    #[error("unknown model type {0:?}: use anthropic, openai, responses or scripted")]
    UnknownApi(String),
    #[error("{0:?} is not a model: write TYPE:ID, such as anthropic:claude-sonnet-4-5 or scripted:model.yaml")]
    NoSpec(String),
    #[error("API key missing: {0} not set")]
    NoKey(String),
    #[error(transparent)]
    Invalid(#[from] InvalidOptions),
    #[error(transparent)]
    Script(#[from] LoadError),
}

impl FromStr for ModelApi {
    type Err = ModelSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "anthropic" => ModelApi::Http(Provider::Anthropic),
            "openai" => ModelApi::Http(Provider::OpenAi),
            "responses" => ModelApi::Http(Provider::OpenAiResponses),
            "scripted" => ModelApi::Scripted,
            other => return Err(ModelSpecError::UnknownApi(other.to_owned())),
        })
    }
}

impl fmt::Display for ModelSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let api = match self.api {
            ModelApi::Http(Provider::Anthropic) => "anthropic",
            ModelApi::Http(Provider::OpenAi) => "openai",
            ModelApi::Http(Provider::OpenAiResponses) => "responses",
            ModelApi::Scripted => "scripted",
        };
        write!(f, "{api}:{}", self.id)
    }
}

impl FromStr for ModelSpec {
    type Err = ModelSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (api, id) =
            text.split_once(':').filter(|(_, id)| !id.is_empty()).ok_or(ModelSpecError::NoSpec(text.to_owned()))?;
        Ok(ModelSpec { api: api.parse()?, id: id.to_owned() })
    }
}

impl ModelSpec {
    /// The model.
    ///
    /// # Errors
    /// The script has mistakes, the key is not set, or the URL is wrong.
    pub fn to_model(&self, access: &ModelAccess<'_>) -> Result<Model, ModelSpecError> {
        let provider = match self.api {
            ModelApi::Scripted => return Ok(Model::Scripted(ScriptedModel::load(Path::new(&self.id))?)),
            ModelApi::Http(provider) => provider,
        };
        // The variables that the SDKs of the providers read.
        let (usual, url_variable) = match provider {
            Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
            Provider::OpenAi | Provider::OpenAiResponses => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
        };
        let of_variable = access.variables.get(url_variable).map(String::as_str).filter(|url| !url.is_empty());
        let base_url = access.base_url.or(of_variable);
        let key = access.variables.get(access.key_variable.unwrap_or(usual)).filter(|key| !key.is_empty());
        // A server of one's own may need no key.
        if key.is_none() && (access.key_variable.is_some() || base_url.is_none()) {
            return Err(ModelSpecError::NoKey(access.key_variable.unwrap_or(usual).to_owned()));
        }
        let options = HttpModelOptions {
            base_url: base_url.map(str::to_owned),
            key: key.map(ApiKey::new),
            timeout: access.timeout,
            ..HttpModelOptions::new(provider, &self.id)
        };
        Ok(Model::Http(HttpModel::new(options)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_named_by_its_api_and_its_id() {
        let spec: ModelSpec = "scripted:a:b.yaml".parse().expect("valid");
        assert_eq!((spec.api, &*spec.id), (ModelApi::Scripted, "a:b.yaml"));
        for text in ["anthropic:c", "openai:g", "responses:g", "scripted:a:b.yaml"] {
            assert_eq!(text.parse::<ModelSpec>().expect("valid").to_string(), text);
        }
        let error = |text: &str| text.parse::<ModelSpec>().expect_err(text).to_string();
        assert!(error("claude").contains("write TYPE:ID"));
        assert!(error("oracle:x").starts_with("unknown model type \"oracle\""));
    }

    #[test]
    fn a_provider_needs_a_key_and_a_server_of_your_own_does_not() {
        let variables = BTreeMap::from([("MINE".to_owned(), "secret".to_owned())]);
        let access = |base_url, key_variable| ModelAccess {
            base_url,
            key_variable,
            variables: &variables,
            timeout: Duration::from_secs(1),
        };
        let spec: ModelSpec = "openai:gpt".parse().expect("valid");
        let error = spec.to_model(&access(None, None)).expect_err("no key").to_string();
        assert_eq!(error, "API key missing: OPENAI_API_KEY not set");
        let error = spec.to_model(&access(Some("http://127.0.0.1:1"), Some("NONE"))).expect_err("no key").to_string();
        assert_eq!(error, "API key missing: NONE not set");
        let model = spec.to_model(&access(Some("http://127.0.0.1:1"), None)).expect("no key needed");
        let with_key = spec.to_model(&access(None, Some("MINE"))).expect("a key");
        assert!(!format!("{model:?}{with_key:?}").contains("secret"));
        let variables = BTreeMap::from([("OPENAI_BASE_URL".to_owned(), "ftp://rehearsal".to_owned())]);
        let of_variable = |base_url| spec.to_model(&ModelAccess { variables: &variables, ..access(base_url, None) });
        assert!(of_variable(None).expect_err("no URL").to_string().contains("ftp://rehearsal"));
        of_variable(Some("http://127.0.0.1:1")).expect("the config is stronger");
    }
}
