//! What a change of a server does to its fit.

use rehearse_diff::Surface;
use rehearse_protocol::List;
use rehearse_report::{
    diff::{Change, Class},
    profile::{Fit, ProfileFinding, ProfileFit, RuleLevel},
};

/// What a host, a provider or a directory does with the new server that it did not do with the old one. What it no longer
/// does is no change for users, and an item that is new takes nothing from them, unless it blocks the whole server.
pub fn compare_fits(old: (&Surface, &ProfileFit), new: &ProfileFit) -> Vec<Change> {
    let (old_surface, old) = old;
    let is_blocked = new.fit == Fit::Blocked && old.fit < Fit::Blocked;
    let existed = |subject: &str| {
        let item = subject.split_once(' ').and_then(|(noun, name)| {
            let list = List::ALL.into_iter().find(|list| list.noun() == noun)?;
            old_surface.item(list, name)
        });
        item.is_some()
    };
    let is_new = |finding: &&ProfileFinding| {
        let same = |it: &ProfileFinding| (&it.rule, &it.subject) == (&finding.rule, &finding.subject);
        finding.level > RuleLevel::Advice && !old.findings.iter().any(same)
    };
    let change = |finding: &ProfileFinding| Change {
        class: match finding.level {
            RuleLevel::Blocks if is_blocked => Class::Breaking,
            _ if finding.subject.as_ref().is_some_and(|subject| !existed(subject)) => Class::Addition,
            RuleLevel::Blocks => Class::Breaking,
            _ => Class::Behaviour,
        },
        is_possible: false,
        rule: format!("profile.{}", finding.level.as_str()),
        subject: finding.subject.clone().unwrap_or_else(|| "server".to_owned()),
        old: None,
        new: None,
        message: format!("{}: {} {}", new.title, finding.message, finding.effect),
        instance: None,
        place: None,
        accepted: None,
    };
    new.findings.iter().filter(is_new).map(change).collect()
}
