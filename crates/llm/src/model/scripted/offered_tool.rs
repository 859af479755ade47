//! The tool of a request that a script means: hosts write the server before the name of a tool, replace letters, and cut.

use crate::ToolDefinition;

/// Hosts cut names at 63 letters or more.
const SHORTEST_CUT_NAME: usize = 60;
/// What a host leaves of a tool's name.
const SHORTEST_HEAD: usize = 8;

/// A name that can be that of the wanted tool.
struct Fit<'n> {
    name: &'n str,
    /// What is before the tool's name, with `_` for each separator.
    prefix: String,
    /// How much of the tool's name is there.
    length: usize,
    /// Whether the tool's name is all that follows.
    is_whole: bool,
}

/// The name that the agent gives to the tool; `None` if it does not offer it, or if several fit.
pub fn offered_name<'n>(tools: &'n [ToolDefinition<'n>], server: Option<&str>, wanted: &str) -> Option<&'n str> {
    match offered_names(tools, server, wanted)[..] {
        [name] => Some(name),
        _ => None,
    }
}

/// The names that the agent may give to the tool; several if they do not say which is which.
pub fn offered_names<'n>(tools: &'n [ToolDefinition<'n>], server: Option<&str>, wanted: &str) -> Vec<&'n str> {
    let exact = tools.iter().map(|tool| tool.name).find(|name| *name == wanted);
    if server.is_none() && exact.is_some() {
        return exact.into_iter().collect();
    }
    let plain_server = server.map(plain);
    let is_of_server = |prefix: &str| {
        let Some(server) = &plain_server else { return true };
        let before = prefix.trim_end_matches('_').strip_suffix(server.as_str());
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    };
    let fits: Vec<_> = fits(tools, wanted).filter(|fit| is_of_server(&fit.prefix)).collect();
    // `forecast` of a server is also the end of its `detailed_forecast`.
    let whole = || fits.iter().filter(|fit| fit.is_whole);
    if let Some(best) = whole().min_by_key(|fit| (fit.prefix.len(), replaced(fit.name, wanted))) {
        let is_only = whole().all(|fit| fit.prefix.starts_with(&best.prefix));
        return if is_only { vec![best.name] } else { whole().map(|fit| fit.name).collect() };
    }
    let longest = fits.iter().map(|fit| fit.length).max();
    let best: Vec<_> = fits.iter().filter(|fit| Some(fit.length) == longest).map(|fit| fit.name).collect();
    // Some hosts name no server.
    if best.is_empty() { exact.into_iter().collect() } else { best }
}

/// How much of the tool's name is otherwise at the end of this one. What hosts replace, they replace by `_`.
fn replaced(name: &str, wanted: &str) -> usize {
    let cost = |(letter, wanted): (char, char)| if letter == wanted { 0 } else { 1 + usize::from(letter != '_') };
    name.chars().rev().zip(wanted.chars().rev()).map(cost).sum()
}

/// Whether the agent offers a tool of this name.
pub(super) fn is_offered(tools: &[ToolDefinition<'_>], wanted: &str) -> bool {
    fits(tools, wanted).next().is_some()
}

fn fits<'n>(tools: &'n [ToolDefinition<'n>], wanted: &str) -> impl Iterator<Item = Fit<'n>> {
    let wanted = plain(wanted);
    tools.iter().filter_map(move |tool| fit(tool.name, &wanted))
}

fn fit<'n>(name: &'n str, wanted: &str) -> Option<Fit<'n>> {
    let whole = plain(name);
    let middle = name.split_once("...").map(|(head, tail)| (plain(head), plain(tail)));
    let without_hash = whole.rsplit_once('_').filter(|(_, hash)| is_hash(hash));
    let forms = [
        Some((whole.as_str(), "")),
        without_hash.map(|(head, _)| (head.trim_end_matches('_'), "")),
        middle.as_ref().map(|(head, tail)| (head.as_str(), tail.as_str())),
    ];
    forms.into_iter().flatten().find_map(|(head, tail)| {
        let is_start = |at: &usize| {
            let part = &head[*at..];
            let is_begun = *at == 0 || head[..*at].ends_with('_');
            let is_cut = name.len() >= SHORTEST_CUT_NAME && part.len() >= SHORTEST_HEAD;
            is_begun && (part == wanted || is_cut && wanted.strip_prefix(part).is_some_and(|it| it.ends_with(tail)))
        };
        let start = (0..head.len()).find(is_start)?;
        let length = head.len() - start + tail.len();
        let is_whole = whole[start..] == *wanted;
        Some(Fit { name, prefix: whole[..start].to_owned(), length, is_whole })
    })
}

/// The name with `_` for each separator: hosts replace all that is no letter or digit.
fn plain(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// Whether it can be the hash that hosts write after a name that they have changed.
fn is_hash(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_digit();
    (6..=12).contains(&text.len())
        && text.bytes().any(is_digit)
        && text.bytes().all(|byte| is_digit(byte) || byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;
    use rehearse_testing::table;

    #[test]
    fn a_tool_is_found_by_its_mcp_name_in_the_form_of_every_host() {
        for [offered, wanted, expected] in table::rows(include_str!("offered_tools.txt"), "offered tools") {
            let tools: Vec<_> = offered.split(", ").map(|name| ToolDefinition::new(name, RawValue::NULL)).collect();
            let (server, tool) = match wanted.split_once(" of ") {
                Some((tool, server)) => (Some(server), tool),
                None => (None, &*wanted),
            };
            assert_eq!(offered_name(&tools, server, tool).unwrap_or("-"), &*expected, "{wanted} in {offered}");
        }
    }

    #[test]
    fn a_tool_that_several_servers_have_is_offered() {
        let tools = ["mcp__a__echo", "mcp__b__echo"].map(|name| ToolDefinition::new(name, RawValue::NULL));
        assert!(is_offered(&tools, "echo") && !is_offered(&tools, "ech"));
    }
}
