//! Holds the rules of a profile against a server.

use crate::{Profile, ServerEvidence, condition::Judged};
use rehearse_protocol::List;
use rehearse_report::profile::{Fit, ProfileFinding, ProfileFit, RuleLevel, UntriedRule};

impl Profile {
    /// What it says of a server. A rule that blocks an item degrades the server, unless all tools are blocked.
    pub fn judge(&self, server: &ServerEvidence<'_>) -> ProfileFit {
        let (mut findings, mut untried, mut kept, mut is_blocked) = (Vec::new(), Vec::new(), 0, false);
        let name = server.config_name();
        for rule in &self.rules {
            match rule.condition.judge(server, &|tool| self.tool_name(&name, tool)) {
                Judged::Kept => kept += 1,
                Judged::Untried(reason) => untried.push(UntriedRule { rule: rule.id.clone(), reason }),
                Judged::Broken(items) => {
                    let blocks_all = rule.is_of_server || items.iter().any(|(subject, _)| subject.is_none());
                    is_blocked |= rule.level == RuleLevel::Blocks && blocks_all;
                    findings.extend(items.into_iter().map(|(subject, message)| ProfileFinding {
                        rule: rule.id.clone(),
                        level: rule.level,
                        subject,
                        message,
                        effect: rule.effect.clone(),
                        source: rule.source.clone(),
                        seen: rule.seen.clone(),
                        measured: rule.measured.clone(),
                    }));
                }
            }
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let is_tool_blocked = |name: &str| {
            let subject = format!("{} {name}", List::Tools.noun());
            findings.iter().any(|it| it.level == RuleLevel::Blocks && it.subject.as_ref() == Some(&subject))
        };
        let tools = server.surface.list(List::Tools).unwrap_or_default();
        let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
        is_blocked |= !tools.is_empty() && names.all(is_tool_blocked);
        let fit = match findings.first().map(|finding| finding.level) {
            _ if is_blocked => Fit::Blocked,
            Some(RuleLevel::Blocks | RuleLevel::Degrades) => Fit::Degraded,
            _ => Fit::Works,
        };
        ProfileFit {
            profile: self.name.clone(),
            title: self.title.clone(),
            kind: self.kind,
            fit,
            required: false,
            findings,
            kept,
            untried,
        }
    }
}
