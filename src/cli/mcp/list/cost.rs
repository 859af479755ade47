//! `--cost`: how much of a model's context the definitions of tools take.

use std::cmp::Reverse;

use anstyle::Style;
use serde::Serialize;

use crate::cli::{
    Failure,
    mcp::print::table::draw,
    style::{STRONG, printable},
};
use rehearse_hub::RegisteredTool;
use rehearse_llm::{Provider, tokens::Encoding};

/// What the definition of a tool costs: its JSON with name, description and input schema.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Cost {
    bytes: usize,
    tokens: usize,
    encoding: &'static str,
}

/// The encoding in which tokens are counted.
///
/// # Errors
/// The program was built without any.
pub(crate) fn encoding() -> Result<Encoding, Failure> {
    let missing = || Failure::Usage("--cost: this program was built without the feature `tokens`".to_owned());
    Encoding::ALL.first().copied().ok_or_else(missing)
}

/// The cost of a tool.
pub(crate) fn of(tool: &RegisteredTool, encoding: Encoding) -> Cost {
    let definition = serde_json::to_string(&Provider::Anthropic.definition(&tool.for_model())).unwrap_or_default();
    Cost { bytes: definition.len(), tokens: encoding.count(&definition), encoding: encoding.name() }
}

/// What tools cost together.
pub(crate) fn total(costs: impl Iterator<Item = Cost>, encoding: Encoding) -> Cost {
    let none = Cost { bytes: 0, tokens: 0, encoding: encoding.name() };
    costs.fold(none, |all, it| Cost { bytes: all.bytes + it.bytes, tokens: all.tokens + it.tokens, ..all })
}

/// A table of tools, the dearest first, and what all of them cost.
pub(crate) fn table(mut tools: Vec<(&RegisteredTool, Cost)>, encoding: Encoding) -> String {
    tools.sort_by_key(|(_, cost)| Reverse((cost.tokens, cost.bytes)));
    let all = total(tools.iter().map(|(_, cost)| *cost), encoding);
    let row = |name: &str, server: &str, cost: Cost| {
        let (bytes, tokens) = (all.bytes.to_string().len().max(5), all.tokens.to_string().len().max(6));
        let [name, server] = [name, server].map(|text| printable(text).into_owned());
        [name, server, format!("{:>bytes$}", cost.bytes), format!("{:>tokens$}", cost.tokens)]
    };
    let mut rows: Vec<_> = tools.iter().map(|(tool, cost)| row(&tool.name, &tool.server, *cost)).collect();
    rows.push(row("in all", "", all));
    let style = |index, _| if index == tools.len() { STRONG } else { Style::new() };
    let table = draw(["Tool", "Server", "Bytes", "Tokens"], &rows, style);
    format!("{table}Tokens are those of the encoding {}.\n", encoding.name())
}
