//! Which of a server's tools a program lets through.

use super::{
    policy::{BothFilters, EmptyFilter, Patterns, Policy},
    server::{At, ToolFilter},
};

impl ToolFilter {
    /// Whether a program with this policy offers the tool.
    pub fn offers(&self, policy: &Policy, tool: &str) -> bool {
        // A program that rejects an empty list never asks what it means.
        let counts = |list: &&[At<String>]| policy.empty_filter == EmptyFilter::Literal || !list.is_empty();
        let names = |list: &[At<String>]| list.iter().any(|name| matches(policy.patterns, &name.value, tool));
        let (include, exclude) = (names_of(&self.include).filter(counts), names_of(&self.exclude).filter(counts));
        match (include, exclude, policy.both_filters) {
            (Some(include), _, BothFilters::IncludeWins) => names(include),
            (include, exclude, _) => include.is_none_or(names) && !exclude.is_some_and(names),
        }
    }
}

fn names_of(list: &Option<At<Vec<At<String>>>>) -> Option<&[At<String>]> {
    list.as_ref().map(|list| &list.value[..])
}

fn matches(patterns: Patterns, pattern: &str, tool: &str) -> bool {
    match patterns {
        Patterns::Exact => pattern == tool,
        Patterns::Star => pattern == "*" || pattern == tool,
        Patterns::Globs => is_glob_of(pattern, tool),
    }
}

/// Whether a pattern fits, in which `*` matches any characters.
fn is_glob_of(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    // The leftmost place of each part leaves the most for those that follow.
    for part in middle.split('*') {
        let Some(at) = text.find(part) else { return false };
        text = &text[at + part.len()..];
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_document::Span;

    fn filter(include: Option<&[&str]>, exclude: Option<&[&str]>) -> ToolFilter {
        let at = |value: &str| At { value: value.to_owned(), span: Span::default() };
        let list = |names: Option<&[&str]>| {
            names.map(|names| At { value: names.iter().map(|name| at(name)).collect(), span: Span::default() })
        };
        ToolFilter { include: list(include), exclude: list(exclude) }
    }

    #[test]
    fn both_lists_and_empty_ones_mean_what_the_program_says() {
        let offered = |filter: &ToolFilter, policy: &Policy| {
            ["a", "b", "c"].into_iter().filter(|tool| filter.offers(policy, tool)).collect::<String>()
        };
        let include_wins = Policy { both_filters: BothFilters::IncludeWins, ..Policy::USUAL };
        let both = filter(Some(&["a", "b"]), Some(&["b", "c"]));
        assert_eq!(offered(&both, &Policy::USUAL), "a");
        assert_eq!(offered(&both, &include_wins), "ab");
        assert_eq!(offered(&filter(None, Some(&["b"])), &include_wins), "ac");
        assert_eq!(offered(&ToolFilter::default(), &Policy::USUAL), "abc");
        let rejected = Policy { empty_filter: EmptyFilter::Rejected, ..Policy::USUAL };
        let empty = filter(Some(&[]), Some(&[]));
        assert_eq!((offered(&empty, &Policy::USUAL), offered(&empty, &rejected)), (String::new(), "abc".into()));
    }

    #[test]
    fn a_star_is_a_star_only_where_the_program_knows_it() {
        let offers = |patterns, pattern: &str, tool: &str| {
            filter(Some(&[pattern]), None).offers(&Policy { patterns, ..Policy::USUAL }, tool)
        };
        for (pattern, tool, expected) in [
            ("*", "x", true),
            ("get_*", "get_x", true),
            ("get_*", "set_x", false),
            ("*_x", "get_x", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("ab*ba", "aba", false),
            ("*b*", "abc", true),
            ("x", "x", true),
        ] {
            assert_eq!(offers(Patterns::Globs, pattern, tool), expected, "{pattern} {tool}");
        }
        assert!(offers(Patterns::Star, "*", "x") && !offers(Patterns::Star, "x*", "xy"));
        assert!(offers(Patterns::Exact, "*", "*") && !offers(Patterns::Exact, "*", "x"));
    }
}
