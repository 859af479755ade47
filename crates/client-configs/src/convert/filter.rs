//! Which tools there are, in another program's lists.

use std::collections::HashSet;

use crate::{
    dialect::{Dialect, Field},
    policy::{BothFilters, EmptyFilter, Patterns},
    server::{At, ToolFilter},
};
use rehearse_document::Span;

/// The lists that a program is to have, and what they do not say.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Lists {
    pub(super) include: Option<Vec<String>>,
    pub(super) exclude: Option<Vec<String>>,
    pub(super) losses: Vec<(Field, Span, String)>,
}

/// The same choice of tools for another program; where it cannot be said, rather fewer tools than more.
pub(super) fn lists(filter: &ToolFilter, from: &Dialect, to: &Dialect) -> Lists {
    let has = |field| to.keys.iter().any(|key| key.field == field);
    let mut lists = Lists::default();
    let include = filter.include.as_ref().filter(|list| !is_everything(list, from));
    let ignored = filter.include.is_some() && from.policy.both_filters == BothFilters::IncludeWins;
    let exclude = filter.exclude.as_ref().filter(|list| !list.value.is_empty() && !ignored);
    let include_names = include.map(|list| (list.span, names(list, Field::Include, from, to, &mut lists)));
    let exclude_names = exclude.map(|list| (list.span, names(list, Field::Exclude, from, to, &mut lists)));
    let both_count = has(Field::Exclude) && to.policy.both_filters == BothFilters::ExcludeWins;
    let merged = match (include_names, exclude_names) {
        // One list says the same where the program has no other or does not look at it.
        (Some((span, include)), Some((_, exclude))) if has(Field::Include) && !both_count => {
            let exclude: HashSet<String> = exclude.into_iter().collect();
            (Some((span, include.into_iter().filter(|name| !exclude.contains(name)).collect::<Vec<_>>())), None)
        }
        both => both,
    };
    let no_list = |field, span| (field, span, format!("{} has no such list of tools", to.program));
    if let Some((span, names)) = merged.0 {
        match has(Field::Include) {
            true if names.is_empty() && to.policy.empty_filter == EmptyFilter::Rejected => {
                lists.losses.push((Field::Include, span, format!("{} rejects an empty list", to.program)));
            }
            true => lists.include = Some(names),
            false => lists.losses.push(no_list(Field::Include, span)),
        }
    }
    if let Some((span, names)) = merged.1 {
        match has(Field::Exclude) {
            true => lists.exclude = Some(names).filter(|names| !names.is_empty()),
            false => lists.losses.push(no_list(Field::Exclude, span)),
        }
    }
    if lists.include.is_none() && has(Field::Include) && to.policy.patterns == Patterns::Star {
        lists.include = Some(vec!["*".into()]);
    }
    lists
}

/// Whether a list lets all tools through.
fn is_everything(list: &At<Vec<At<String>>>, dialect: &Dialect) -> bool {
    dialect.policy.patterns != Patterns::Exact && list.value.iter().any(|name| name.value == "*")
}

/// The names that mean the same there.
fn names(list: &At<Vec<At<String>>>, field: Field, from: &Dialect, to: &Dialect, lists: &mut Lists) -> Vec<String> {
    let is_pattern = |name: &str, dialect: &Dialect| match dialect.policy.patterns {
        Patterns::Exact => false,
        Patterns::Globs => name.contains('*'),
        Patterns::Star => name == "*",
    };
    let mut kept = Vec::new();
    for name in &list.value {
        let reason = match (is_pattern(&name.value, from), is_pattern(&name.value, to)) {
            (true, false) => format!("{} has no pattern `{}`", to.program, name.value),
            (false, true) => format!("{} takes the name `{}` for a pattern", to.program, name.value),
            _ => {
                kept.push(name.value.clone());
                continue;
            }
        };
        lists.losses.push((field, name.span, reason));
    }
    kept
}
