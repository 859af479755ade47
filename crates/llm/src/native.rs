//! Tool definitions in the formats of provider APIs.

use std::{fmt, str::FromStr};

use serde::Serialize;
use serde_json::value::RawValue;

use super::ToolDefinition;

/// A provider of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provider {
    /// `tools` of the Messages API.
    Anthropic,
    /// `tools` of the Chat Completions API, which many other providers support.
    OpenAi,
    /// `tools` of the Responses API.
    OpenAiResponses,
}

/// A definition in the format of a provider. The schema is verbatim.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Definition<'a> {
    Anthropic {
        name: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        description: Option<&'a str>,
        input_schema: &'a RawValue,
    },
    OpenAi {
        r#type: &'static str,
        function: Function<'a>,
    },
    OpenAiResponses {
        r#type: &'static str,
        #[serde(flatten)]
        function: Function<'a>,
        /// Without it, the API makes every property required.
        strict: bool,
    },
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Function<'a> {
    pub name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<&'a str>,
    pub parameters: &'a RawValue,
}

impl Provider {
    pub const ALL: [Provider; 3] = [Provider::Anthropic, Provider::OpenAi, Provider::OpenAiResponses];

    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::OpenAi => "openai",
            Provider::OpenAiResponses => "openai-responses",
        }
    }

    /// The definition of a tool. Its name should be an alias of [`Aliases`](super::Aliases): providers reject other names.
    pub fn definition<'a>(self, tool: &ToolDefinition<'a>) -> Definition<'a> {
        let ToolDefinition { name, description, input_schema, .. } = *tool;
        let (r#type, function) = ("function", Function { name, description, parameters: input_schema });
        match self {
            Provider::Anthropic => Definition::Anthropic { name, description, input_schema },
            Provider::OpenAi => Definition::OpenAi { r#type, function },
            Provider::OpenAiResponses => Definition::OpenAiResponses { r#type, function, strict: false },
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The name of an unknown provider.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider {0:?}: use `anthropic`, `openai` or `openai-responses`")]
pub struct UnknownProvider(pub String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Provider::ALL.into_iter().find(|provider| provider.as_str() == text);
        named.ok_or_else(|| UnknownProvider(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_format_and_the_schema_is_verbatim() {
        let schema = RawValue::from_string(r#"{"type":"object", "maximum":1.0}"#.to_owned()).expect("JSON");
        let tool = ToolDefinition { description: Some("Reads."), ..ToolDefinition::new("read", &schema) };
        let text = |provider: Provider, tool| serde_json::to_string(&provider.definition(tool)).expect("serialises");
        let expected = r#"{"name":"read","description":"Reads.","input_schema":{"type":"object", "maximum":1.0}}"#;
        assert_eq!(text(Provider::Anthropic, &tool), expected);
        let expected = r#"{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object", "maximum":1.0}}}"#;
        assert_eq!(text(Provider::OpenAi, &tool), expected);
        let expected = r#"{"type":"function","name":"read","description":"Reads.","parameters":{"type":"object", "maximum":1.0},"strict":false}"#;
        assert_eq!(text(Provider::OpenAiResponses, &tool), expected);
        let bare = ToolDefinition::new("read", &schema);
        for provider in Provider::ALL {
            assert!(!text(provider, &bare).contains("description"), "{provider}");
        }
    }

    #[test]
    fn every_provider_reads_back_from_its_name() {
        for provider in Provider::ALL {
            assert_eq!(provider.to_string().parse(), Ok(provider));
        }
        assert!("mistral".parse::<Provider>().is_err());
    }
}
