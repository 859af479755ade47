//! What a config of CPE says about the agent: `models`, `defaults`, `subagent`.

use std::{collections::BTreeMap, time::Duration};

use crate::{expand_env, server::At};
use rehearse_document::{Node, Problem, Problems, Span, Value, nearest, parse_duration};

/// The agent of a config.
#[derive(Clone, Debug, Default)]
pub struct AgentConfig {
    pub models: Vec<ModelConfig>,
    /// `defaults.model`: the `ref` of a model.
    pub default_model: Option<At<String>>,
    /// `defaults.systemPromptPath`.
    pub system_prompt_path: Option<At<String>>,
    /// `defaults.timeout`: of each request to the model.
    pub timeout: Option<Duration>,
    /// `defaults.generationParams`.
    pub generation: GenerationParams,
    /// `defaults.codeMode`.
    pub code_mode: Option<CodeModeConfig>,
    pub subagent: Option<SubagentConfig>,
}

/// A model of a config.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// The name in the config: `ref`.
    pub reference: At<String>,
    /// The name at the provider; the path of the script for a scripted model.
    pub id: At<String>,
    /// The API: `anthropic`, `openai`, `responses`, `scripted`.
    pub api: At<String>,
    pub base_url: Option<At<String>>,
    /// The environment variable with the API key.
    pub api_key_env: Option<At<String>>,
    /// The longest conversation, in tokens.
    pub context_window: Option<u64>,
    /// The longest answer, in tokens.
    pub max_output: Option<u32>,
    pub system_prompt_path: Option<At<String>>,
    pub generation: GenerationParams,
    /// Replaces the block of `defaults`.
    pub code_mode: Option<CodeModeConfig>,
}

/// How a model answers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerationParams {
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u32>,
    pub frequency_penalty: Option<f64>,
    pub presence_penalty: Option<f64>,
    pub max_tokens: Option<u32>,
    pub stop_sequences: Vec<String>,
    pub tool_choice: Option<String>,
    pub thinking: Option<String>,
}

/// Code mode: the model writes programs that call tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CodeModeConfig {
    pub is_enabled: bool,
    /// The tools that stay tools of their own.
    pub excluded_tools: Vec<String>,
    /// The longest run of a program that the model may ask for, in seconds.
    pub max_timeout: Option<u64>,
}

/// The subagent that a config defines.
#[derive(Clone, Debug)]
pub struct SubagentConfig {
    pub name: At<String>,
    pub description: At<String>,
    pub output_schema_path: Option<At<String>>,
    /// How many wrong answers the model may correct.
    pub answer_retries: u32,
    /// How often the model may answer in one run.
    pub max_turns: Option<u32>,
    /// How many tokens one run may take.
    pub max_tokens: Option<u64>,
    /// The time limit of one run.
    pub timeout: Option<Duration>,
    /// Whether the tool calls of one turn run at once.
    pub is_parallel: bool,
}

impl AgentConfig {
    /// Reads the agent from the root of a config. References to variables are replaced as CPE does; unset ones are empty.
    /// Unknown keys are no errors: the linter reports them.
    ///
    /// # Errors
    /// Every value of a wrong type, and every missing key without which nothing can run.
    pub fn read(root: &Node, variables: &BTreeMap<String, String>) -> Result<AgentConfig, Problems> {
        let reader = Reader { variables };
        let mut problems = Problems(Vec::new());
        let mut keep = |found: Problems| problems.0.extend(found.0);
        let models = match root.get("models") {
            Some(list) => list.each(|node| reader.model(node)).map_err(&mut keep).unwrap_or_default(),
            None => Vec::new(),
        };
        let subagent = root.get("subagent").map(|node| reader.subagent(node)).transpose();
        let subagent = subagent.map_err(&mut keep).unwrap_or_default();
        let nothing = Node { span: root.span, value: Value::Null };
        let defaults = reader.defaults(root.get("defaults").unwrap_or(&nothing)).map_err(&mut keep);
        if !problems.0.is_empty() {
            return Err(problems);
        }
        Ok(AgentConfig { models, subagent, ..defaults.unwrap_or_default() })
    }

    /// Code mode with this model, if it is enabled.
    pub fn code_mode_of(&self, model: Option<&str>) -> Option<&CodeModeConfig> {
        let of_model = self.model(model).ok().and_then(|model| model.code_mode.as_ref());
        of_model.or(self.code_mode.as_ref()).filter(|wanted| wanted.is_enabled)
    }

    /// The model of `defaults.model`, or the one that is named instead.
    ///
    /// # Errors
    /// No model is named, or there is no such model.
    pub fn model(&self, name: Option<&str>) -> Result<&ModelConfig, Problem> {
        let (name, span) = match (name, &self.default_model) {
            (Some(name), _) => (name, Span::default()),
            (None, Some(default)) => (default.value.as_str(), default.span),
            (None, None) => {
                let problem = Problem::new(Span::default(), "no model is chosen");
                return Err(problem.hint("write `defaults: { model: REF }`, or use --model REF"));
            }
        };
        self.models.iter().find(|model| model.reference.value == name).ok_or_else(|| {
            let known: Vec<_> = self.models.iter().map(|model| model.reference.value.as_str()).collect();
            let problem = Problem::new(span, format!("no model has the ref `{name}`"));
            match nearest(name, &known) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("the models are {}", known.join(", "))),
            }
        })
    }
}

struct Reader<'a> {
    variables: &'a BTreeMap<String, String>,
}

impl Reader<'_> {
    /// A string in which the variables are replaced.
    fn text(&self, node: &Node) -> Result<At<String>, Problems> {
        Ok(At { value: expand_env::expand(node.str()?, self.variables), span: node.span })
    }

    fn text_at(&self, node: &Node, key: &str) -> Result<Option<At<String>>, Problems> {
        get(node, key).map(|node| self.text(node)).transpose()
    }

    fn required(&self, node: &Node, what: &str, key: &str) -> Result<At<String>, Problems> {
        let text = self.text_at(node, key)?;
        text.filter(|text| !text.value.trim().is_empty())
            .ok_or_else(|| node.problem(format!("{what} needs a `{key}`")).into())
    }

    fn model(&self, node: &Node) -> Result<ModelConfig, Problems> {
        node.entries()?;
        Ok(ModelConfig {
            reference: self.required(node, "a model", "ref")?,
            id: self.required(node, "a model", "id")?,
            api: self.required(node, "a model", "type")?,
            base_url: self.text_at(node, "base_url")?.filter(|url| !url.value.is_empty()),
            api_key_env: self.text_at(node, "api_key_env")?.filter(|name| !name.value.is_empty()),
            context_window: integer(node, "context_window")?.filter(|tokens| *tokens > 0),
            max_output: integer(node, "max_output")?,
            system_prompt_path: self.text_at(node, "systemPromptPath")?,
            generation: generation(get(node, "generationDefaults").or_else(|| get(node, "generationParams")))?,
            code_mode: get(node, "codeMode").map(code_mode).transpose()?,
        })
    }

    fn defaults(&self, node: &Node) -> Result<AgentConfig, Problems> {
        Ok(AgentConfig {
            default_model: self.text_at(node, "model")?.filter(|name| !name.value.is_empty()),
            system_prompt_path: self.text_at(node, "systemPromptPath")?.filter(|path| !path.value.is_empty()),
            timeout: duration(node, "timeout")?,
            generation: generation(get(node, "generationParams"))?,
            code_mode: get(node, "codeMode").map(code_mode).transpose()?,
            ..AgentConfig::default()
        })
    }

    fn subagent(&self, node: &Node) -> Result<SubagentConfig, Problems> {
        node.entries()?;
        Ok(SubagentConfig {
            name: self.required(node, "the subagent", "name")?,
            description: self.required(node, "the subagent", "description")?,
            output_schema_path: self.text_at(node, "outputSchemaPath")?.filter(|path| !path.value.is_empty()),
            answer_retries: integer(node, "answerRetries")?.unwrap_or(0),
            max_turns: limit(node, "maxTurns")?,
            max_tokens: limit(node, "maxTokens")?,
            timeout: duration(node, "timeout")?,
            is_parallel: get(node, "parallelToolCalls").map(Node::bool).transpose()?.unwrap_or(false),
        })
    }
}

/// The value at a key, unless it is null.
fn get<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|value| !value.is_null())
}

fn integer<T: TryFrom<i128>>(node: &Node, key: &str) -> Result<Option<T>, Problems> {
    get(node, key).map(Node::integer).transpose()
}

/// A whole number that leaves something to do.
fn limit<T: TryFrom<i128>>(node: &Node, key: &str) -> Result<Option<T>, Problems> {
    match get(node, key) {
        Some(zero) if zero.integer::<i128>().is_ok_and(|number| number == 0) => {
            Err(zero.problem(format!("`{key}` must be at least 1")).into())
        }
        _ => integer(node, key),
    }
}

fn number(node: &Node, key: &str) -> Result<Option<f64>, Problems> {
    let read = |node: &Node| match node.to_json().as_f64() {
        Some(number) => Ok(number),
        None => Err(Problems::from(node.problem(format!("`{key}` must be a number, found {}", node.describe())))),
    };
    get(node, key).map(read).transpose()
}

/// A duration of CPE: `5m`, `90s`, `1m30s`.
fn duration(node: &Node, key: &str) -> Result<Option<Duration>, Problems> {
    let read = |node: &Node| {
        let text = node.str()?;
        let mut total = Duration::ZERO;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let unit = rest[digits..].find(|c: char| !c.is_ascii_alphabetic()).map_or(rest.len(), |end| digits + end);
            let part = parse_duration(&rest[..unit]);
            let invalid = || node.problem(format!("`{key}` must be a duration such as 5m or 90s, not {text:?}"));
            total += part.ok_or_else(invalid)?;
            rest = &rest[unit..];
        }
        Ok::<_, Problems>(total)
    };
    get(node, key).map(read).transpose()
}

fn strings(node: &Node, key: &str) -> Result<Vec<String>, Problems> {
    get(node, key).map_or_else(|| Ok(Vec::new()), |list| list.each(|item| Ok(item.str()?.to_owned())))
}

fn code_mode(node: &Node) -> Result<CodeModeConfig, Problems> {
    node.entries()?;
    Ok(CodeModeConfig {
        is_enabled: get(node, "enabled").map(Node::bool).transpose()?.unwrap_or(false),
        excluded_tools: strings(node, "excludedTools")?,
        max_timeout: integer(node, "maxTimeout")?,
    })
}

fn generation(node: Option<&Node>) -> Result<GenerationParams, Problems> {
    let Some(node) = node else { return Ok(GenerationParams::default()) };
    node.entries()?;
    let max_tokens = integer(node, "maxGenerationTokens")?;
    let text = |key| get(node, key).map(|node| node.as_str().map_or_else(|| node.to_json_text(), str::to_owned));
    Ok(GenerationParams {
        temperature: number(node, "temperature")?,
        top_p: number(node, "topP")?,
        top_k: integer(node, "topK")?,
        frequency_penalty: number(node, "frequencyPenalty")?,
        presence_penalty: number(node, "presencePenalty")?,
        max_tokens: if max_tokens.is_some() { max_tokens } else { integer(node, "maxTokens")? },
        stop_sequences: strings(node, "stopSequences")?,
        tool_choice: text("toolChoice"),
        thinking: text("thinkingBudget"),
    })
}

impl GenerationParams {
    /// These parameters, and those of `other` where there are none.
    #[must_use]
    pub fn or(self, other: &GenerationParams) -> GenerationParams {
        let other = other.clone();
        GenerationParams {
            temperature: self.temperature.or(other.temperature),
            top_p: self.top_p.or(other.top_p),
            top_k: self.top_k.or(other.top_k),
            frequency_penalty: self.frequency_penalty.or(other.frequency_penalty),
            presence_penalty: self.presence_penalty.or(other.presence_penalty),
            max_tokens: self.max_tokens.or(other.max_tokens),
            stop_sequences: if self.stop_sequences.is_empty() { other.stop_sequences } else { self.stop_sequences },
            tool_choice: self.tool_choice.or(other.tool_choice),
            thinking: self.thinking.or(other.thinking),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_document::{Source, parse_yaml};

    fn read(text: &str) -> Result<AgentConfig, String> {
        let source = Source::new("c.yaml", text);
        let variables = BTreeMap::from([("DIR".to_owned(), "prompts".to_owned())]);
        let root = parse_yaml(&source).expect("YAML");
        AgentConfig::read(&root, &variables).map_err(|problems| problems.in_source(&source).to_string())
    }

    #[test]
    fn the_agent_of_a_config_is_read_with_its_variables() {
        let text = "models:\n- { ref: m, id: claude, type: anthropic, api_key_env: KEY, generationDefaults: { topP: 0.5 } }\n\
                    defaults: { model: m, systemPromptPath: '$DIR/p.md', timeout: 1m30s, codeMode: { enabled: true, excludedTools: [a] }, generationParams: { temperature: 1, topP: 1 } }\n\
                    subagent: { name: coder, description: Codes., outputSchemaPath: '${NONE}s.json', answerRetries: 2 }";
        let agent = read(text).expect("valid");
        let model = agent.model(None).expect("the default");
        assert_eq!((&*model.id.value, &*model.api.value), ("claude", "anthropic"));
        assert_eq!(agent.system_prompt_path.as_ref().expect("a path").value, "prompts/p.md");
        assert_eq!(agent.timeout, Some(Duration::from_secs(90)));
        assert_eq!(agent.code_mode.as_ref().expect("code mode").excluded_tools, ["a"]);
        let generation = model.generation.clone().or(&agent.generation);
        assert_eq!((generation.temperature, generation.top_p), (Some(1.0), Some(0.5)));
        let subagent = agent.subagent.expect("a subagent");
        assert_eq!((&*subagent.name.value, subagent.answer_retries), ("coder", 2));
        assert_eq!(subagent.output_schema_path.expect("a path").value, "s.json");
    }

    #[test]
    fn what_is_missing_or_wrong_has_a_position() {
        let error = |text: &str| read(text).expect_err(text);
        assert_eq!(error("subagent: { name: a }"), "c.yaml:1:11: the subagent needs a `description`");
        assert_eq!(error("subagent: { name: a, description: ' ' }"), "c.yaml:1:11: the subagent needs a `description`");
        let none = error("subagent: { name: a, description: b, maxTurns: 0 }");
        assert_eq!(none, "c.yaml:1:48: `maxTurns` must be at least 1");
        assert_eq!(error("models: [{ ref: a, id: b }]"), "c.yaml:1:10: a model needs a `type`");
        let wrong = error("defaults: { timeout: soon }\nsubagent: 1");
        assert!(wrong.contains("c.yaml:1:22: `timeout` must be a duration such as 5m or 90s, not \"soon\""), "{wrong}");
        assert!(wrong.contains("c.yaml:2:11: "), "{wrong}");
        let agent = read("models: [{ ref: one, id: i, type: scripted }]\ndefaults: { model: oen }").expect("valid");
        let problem = agent.model(None).expect_err("a typo");
        assert_eq!(problem.message, "no model has the ref `oen`");
        assert_eq!(problem.hint.expect("a hint"), "did you mean `one`?");
        assert_eq!(read("").expect("empty").model(None).expect_err("none").message, "no model is chosen");
    }
}
