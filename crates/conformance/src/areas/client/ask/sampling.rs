//! Answers of the model.

use rehearse_document::json_schema::accepts;
use serde_json::Value;

use super::{super::super::common::shown, Asked, SAMPLE, check, results};
use crate::areas::query::elements;
use crate::{Evidence, Judgement, Level};

pub(super) fn blocks(result: &Value) -> impl Iterator<Item = &Value> {
    let content = &result["content"];
    let one = content.is_object().then_some(content);
    elements(content).chain(one)
}

pub(super) fn has_tool_use(result: &Value) -> bool {
    blocks(result).any(|block| block["type"] == "tool_use")
}

/// An answer that has many more words than it may have tokens. No tokeniser makes one token of several words.
pub(super) fn max_tokens(asked: &Asked<'_>, result: &Value) -> Option<String> {
    let most = asked.params["maxTokens"].as_u64()?;
    let texts = blocks(result).filter_map(|block| block["text"].as_str());
    let words: usize = texts.map(|text| text.split_whitespace().count()).sum();
    (words as u64 > most.saturating_mul(2).saturating_add(20)).then(|| format!("{words} words for {most} tokens"))
}

pub(super) fn tool_use_shape(e: &Evidence<'_>, j: &mut Judgement) {
    for (asked, result) in results(e, SAMPLE) {
        let offered = elements(&asked.params["tools"]);
        let offered: Vec<_> = offered.filter_map(|tool| Some((tool["name"].as_str()?, &tool["inputSchema"]))).collect();
        for block in blocks(result).filter(|block| block["type"] == "tool_use") {
            let tool = offered.iter().find(|(name, _)| block["name"] == *name);
            let is_whole = block["id"].is_string() && block["input"].is_object() && tool.is_some();
            check(j, &asked, (!is_whole).then(|| shown(block)));
            let fits = tool.is_none_or(|(_, schema)| accepts(schema, &block["input"]) != Some(false));
            if is_whole && (!fits || result["stopReason"] != "toolUse") {
                check(j, &asked, Some(format!("{} with `stopReason: {}`", shown(block), result["stopReason"])));
                j.at_level(Level::Derived);
            }
        }
    }
    j.untested("the model used no tool");
}

/// Whether a use of a tool is not followed by its result.
pub(super) fn is_unbalanced(messages: &Value) -> bool {
    let of_type = |message: &Value, kind: &str, key: &str| -> Vec<String> {
        let all = elements(&message["content"]).filter(|block| block["type"] == kind);
        all.filter_map(|block| block[key].as_str().map(ToOwned::to_owned)).collect()
    };
    let messages = messages.as_array().map(Vec::as_slice).unwrap_or_default();
    messages.iter().enumerate().any(|(number, message)| {
        let next = messages.get(number + 1).map(|it| of_type(it, "tool_result", "toolUseId")).unwrap_or_default();
        of_type(message, "tool_use", "id").iter().any(|id| !next.contains(id))
    })
}
