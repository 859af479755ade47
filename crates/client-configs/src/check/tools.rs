//! Lists of tools.

use std::collections::HashSet;

use super::CheckedConfig;
use crate::{
    At, ConfiguredServer, codes,
    policy::{BothFilters, EmptyFilter, Patterns, Policy},
    server::ToolFilter,
};
use rehearse_report::findings::Finding;

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let (policy, program) = (checked.dialect().policy, checked.dialect().program);
    let ToolFilter { include, exclude } = &server.tools;
    for (list, is_include) in [(include, true), (exclude, false)] {
        let Some(list) = list.as_ref().filter(|list| list.value.is_empty()) else { continue };
        match (policy.empty_filter, is_include) {
            (EmptyFilter::Rejected, _) => {
                let message = format!("{program} rejects an empty tool list");
                findings.push(codes::FILTER.at(list.span, message).hint("name a tool, or remove the list"));
            }
            (EmptyFilter::Literal, true) => {
                let message = "the list is empty, so the server has no tools";
                findings.push(codes::FILTER_EMPTY.at(list.span, message).hint("remove it to have all of them"));
            }
            (EmptyFilter::Literal, false) => {}
        }
    }
    if let (Some(include), Some(exclude)) = (include, exclude) {
        check_both(policy, program, include, exclude, findings);
    }
    let filtered = include.iter().chain(exclude).flat_map(|list| &list.value).map(|tool| (tool, false));
    let approved = server.approval.always_allow.iter().map(|tool| (tool, true));
    for (tool, is_for_approval) in filtered.chain(approved) {
        let is_pattern = match policy.patterns {
            _ if is_for_approval && tool.value == "*" => false,
            Patterns::Exact => tool.value.contains('*'),
            Patterns::Star => tool.value.contains('*') && tool.value != "*",
            Patterns::Globs => false,
        };
        if is_pattern {
            let message = format!("{program} takes `{}` for the name of a tool, not for a pattern", tool.value);
            findings.push(codes::FILTER_PATTERN.at(tool.span, message).hint("name every tool"));
        }
    }
}

type List = At<Vec<At<String>>>;

fn check_both(policy: Policy, program: &str, include: &List, exclude: &List, findings: &mut Vec<Finding>) {
    match policy.both_filters {
        BothFilters::Rejected => {
            let message = format!("{program} rejects both kinds of tool lists together");
            findings.push(codes::FILTER.at(exclude.span, message).hint("keep one of the lists"));
        }
        BothFilters::IncludeWins => {
            let message = format!("{program} ignores this list: there is a list of tools to include");
            findings.push(codes::FILTER_CONFLICT.at(exclude.span, message).hint("keep one of the lists"));
        }
        BothFilters::ExcludeWins => {
            let included: HashSet<_> = include.value.iter().map(|tool| &tool.value).collect();
            for tool in exclude.value.iter().filter(|tool| included.contains(&tool.value)) {
                let message = format!("`{}` is included and excluded, so it is not available", tool.value);
                findings.push(codes::FILTER_CONFLICT.at(tool.span, message).hint("remove it from one of the lists"));
            }
        }
    }
}
