//! What the model was asked.

use rehearse_llm::{
    ToolDefinition,
    endpoint::Question,
    model::{Block, Message, scripted::offered_names},
};
use serde_json::{Value, value::RawValue};

/// A question of the host to its model, as far as it shows what became of a server.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub(crate) tools: Vec<ShownTool>,
    pub(crate) results: Vec<ShownResult>,
}

/// A tool as the model sees it.
#[derive(Clone, Debug)]
pub(crate) struct ShownTool {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) schema: Value,
}

/// The result of a call as the model gets it.
#[derive(Clone, Debug)]
pub(crate) struct ShownResult {
    /// The name of the tool as the model called it.
    pub(crate) tool: String,
    pub(crate) text: String,
    /// The kinds of its images and sounds, such as `image`.
    pub(crate) media: Vec<String>,
    pub(crate) is_error: bool,
}

impl Asked {
    pub(crate) fn of(question: &Question) -> Asked {
        let tools = question.tools.iter().map(|tool| ShownTool {
            name: tool.name.clone(),
            description: tool.description.clone(),
            schema: serde_json::from_str(tool.schema.get()).unwrap_or_default(),
        });
        let media = |content: &[Block]| {
            let kinds = content.iter().filter_map(|block| match block {
                Block::Media(media) => media.mime_type.split('/').next().map(str::to_owned),
                _ => None,
            });
            kinds.collect::<Vec<_>>()
        };
        // Where a result can have no image, hosts put it into a message of the user.
        let beside = question.messages.iter().filter_map(|it| match it {
            Message::User { content } => Some(media(content)),
            _ => None,
        });
        let beside: Vec<String> = beside.flatten().collect();
        let results = question.messages.iter().filter_map(|message| match message {
            Message::ToolResult(result) => Some(ShownResult {
                tool: result.tool.clone(),
                text: message.text(),
                media: [beside.clone(), media(&result.content)].concat(),
                is_error: result.is_error,
            }),
            _ => None,
        });
        Asked { tools: tools.collect(), results: results.collect() }
    }

    /// The tool of a server by its MCP name.
    pub(crate) fn tool(&self, server: &str, name: &str) -> Option<&ShownTool> {
        let names = self.names(server, name);
        let [found] = &names[..] else { return None };
        self.tools.iter().find(|tool| tool.name == *found)
    }

    /// The names that the model may see of the tool; several if they do not say which is which.
    pub(crate) fn names(&self, server: &str, name: &str) -> Vec<String> {
        let offered: Vec<_> = self.tools.iter().map(|tool| ToolDefinition::new(&tool.name, RawValue::NULL)).collect();
        offered_names(&offered, Some(server), name).into_iter().map(str::to_owned).collect()
    }
}
