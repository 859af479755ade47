//! Names of tools in the lists of several servers: the same name, and a description that names a tool of another server.

use rehearse_client_configs::{codes, server};
use rehearse_report::findings::Finding;
use serde_json::Value;

/// How many names are in a finding.
const NAMED: usize = 5;

/// The name and the description of a tool.
pub(super) struct Described {
    pub(super) name: String,
    description: String,
}

impl Described {
    /// Those in a definition; `None` if it has no name.
    pub(super) fn of(definition: &Value) -> Option<Described> {
        let text = |key: &str| definition[key].as_str().map(ToOwned::to_owned);
        Some(Described { name: text("name")?, description: text("description").unwrap_or_default() })
    }
}

/// A server of a config, with its tools that may be used.
pub(super) struct Offer<'a> {
    pub(super) name: &'a server::At<String>,
    pub(super) tools: &'a [Described],
}

/// Findings about the last of these servers.
pub(super) fn findings(offers: &[Offer<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let Some((own, others)) = offers.split_last() else { return findings };
    let has = |offer: &Offer<'_>, name: &str| offer.tools.iter().any(|tool| tool.name == name);
    for other in others {
        let shared: Vec<_> = own.tools.iter().map(|tool| tool.name.as_str()).filter(|name| has(other, name)).collect();
        if !shared.is_empty() {
            let more = if shared.len() > NAMED { ", …" } else { "" };
            let names = shared.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let (one, other) = (&own.name.value, &other.name.value);
            let message = format!("`{one}` has tools with the names of tools of `{other}`: {names}{more}");
            let finding = codes::TOOL_SHADOWED.at(own.name.span, message).about(&**one);
            findings.push(finding.hint("a model may call the wrong one; leave one of them out, or rename it"));
        }
        findings.extend(mention(own, other));
        findings.extend(mention(other, own));
    }
    findings
}

/// A description that names a tool of the other server. A plain word, such as `search`, may mean anything.
fn mention(own: &Offer<'_>, other: &Offer<'_>) -> Option<Finding> {
    let is_name = |it: char| it.is_alphanumeric() || it == '_' || it == '-';
    let is_plain = |name: &str| !name.contains('_') && !name.contains('-') && !name.contains(char::is_uppercase);
    let mut named = own.tools.iter().flat_map(|tool| {
        let words = tool.description.split(|it: char| !is_name(it));
        words.filter(|word| !is_plain(word)).map(move |word| (&tool.name, word))
    });
    let is_foreign = |(_, word): &(&String, &str)| {
        other.tools.iter().any(|tool| tool.name == *word) && !own.tools.iter().any(|tool| tool.name == *word)
    };
    let (tool, word) = named.find(is_foreign)?;
    let message = format!("the description of `{tool}` names `{word}`, a tool of `{}`", other.name.value);
    let finding = codes::TOOL_MENTION.at(own.name.span, message).about(&*own.name.value);
    Some(finding.hint("a description can steer what a model does with other servers: read it"))
}
