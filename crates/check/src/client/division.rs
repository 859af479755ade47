//! How the acts of a composite act are divided to find the one in which the client violates a check.

use std::collections::BTreeSet;

use rehearse_conformance::checks;

use super::ActScript;

/// The act that gives occasion to violate a check, by the beginning of its id, if the check does not name the act itself.
/// A check that several of them are for is looked for in the first act that is there.
const OCCASIONS: &[(&str, &str)] = &[
    ("client-list.page.", "pages"),
    ("client-res.prompt.paginated", "pages"),
    ("client-list.changed.burst-coalesced", "burst"),
    ("client-ask.elicit.required-error-handled", "page-required"),
    ("client-ask.", "version-2025-11-25"),
    ("client-life.caps.", "version-2025-11-25"),
    ("client-ping.answer.", "version-2025-11-25"),
    ("client-rpc.response.unknown-method-32601", "stray-request"),
    ("client-rpc.response.unknown-method-32601", "version-2025-11-25"),
    ("client-rpc.response.answered", "version-2025-11-25"),
    ("client-modern.version.retry-supported", "version-once"),
    ("client-http.get.405-ok", "stateless"),
    ("client-sse.resume.", "resume"),
    ("client-tasks.ext.", "tasks"),
];

/// Acts in parts.
pub(super) enum Division {
    /// Each one that is likely to show a violation, alone, and the others.
    Suspects(Vec<ActScript>, Vec<ActScript>),
    /// No act is more likely than another one, or so many are that the client may only have stopped early.
    Halves(Vec<ActScript>, Vec<ActScript>),
}

/// Divides acts in which these checks are violated.
pub(super) fn divide(mut acts: Vec<ActScript>, violated: &BTreeSet<&str>) -> Division {
    let suspects: BTreeSet<_> =
        violated.iter().filter_map(|check| suspect(check, &acts)).map(ToOwned::to_owned).collect();
    if suspects.is_empty() || 2 * suspects.len() > acts.len() {
        let rest = acts.split_off(acts.len() / 2);
        return Division::Halves(acts, rest);
    }
    let (alone, rest): (Vec<_>, Vec<_>) = acts.into_iter().partition(|act| suspects.contains(&act.name));
    Division::Suspects(alone, rest)
}

/// The act that is most likely to show the violation of a check.
fn suspect<'a>(check: &str, acts: &'a [ActScript]) -> Option<&'a str> {
    let looks_at = checks().iter().find(|it| it.id == check).map_or("", |it| it.looks_at.as_str());
    let names = || acts.iter().map(|act| act.name.as_str());
    let named = names().find(|name| looks_at.contains(&format!("`{name}`")));
    let mut occasions = OCCASIONS.iter().filter(|(beginning, _)| check.starts_with(beginning));
    named.or_else(|| occasions.find_map(|(_, act)| names().find(|name| name == act)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts of acts, by name.
    fn divided(acts: &[&str], violated: &[&str]) -> Vec<Vec<String>> {
        let named = |act: &&str| {
            let mut found = ActScript::select(&[(*act).to_owned()]).expect("the act");
            found.pop().expect("the act")
        };
        let parts = match divide(acts.iter().map(named).collect(), &violated.iter().copied().collect()) {
            Division::Suspects(alone, rest) => alone.into_iter().map(|act| vec![act]).chain([rest]).collect(),
            Division::Halves(one, other) => vec![one, other],
        };
        parts.into_iter().map(|part| part.into_iter().map(|act| act.name).collect()).collect()
    }

    #[test]
    fn the_act_that_a_check_is_about_is_alone() {
        let acts = ["pages", "json", "media-type", "stateless", "late-answers"];
        let rest = |alone: &[&str]| acts.into_iter().filter(|act| !alone.contains(act)).map(str::to_owned).collect();
        // The check names the act, or the table does.
        let parts = divided(&acts, &["client-cancel.late.response-ignored"]);
        assert_eq!(parts, [vec!["late-answers".to_owned()], rest(&["late-answers"])]);
        let parts = divided(&acts, &["client-list.page.followed", "client-res.prompt.paginated"]);
        assert_eq!(parts, [vec!["pages".to_owned()], rest(&["pages"])]);
        let parts = divided(&acts, &["client-list.page.followed", "client-http.response.charset-tolerated"]);
        assert_eq!(parts, [vec!["pages".to_owned()], vec!["media-type".to_owned()], rest(&["pages", "media-type"])]);
    }

    #[test]
    fn acts_are_halved_if_none_or_too_many_of_them_are_suspect() {
        let acts = ["bom", "data-lines", "no-space", "large"];
        let halves = [["bom", "data-lines"], ["no-space", "large"]];
        assert_eq!(divided(&acts, &["client-rpc.request.id-unique"]), halves);
        let stopped = ["client-sse.parse.bom", "client-sse.parse.multi-line-data", "client-sse.parse.no-space"];
        assert_eq!(divided(&acts, &stopped), halves);
    }

    #[test]
    fn every_occasion_is_an_act_and_checks_that_do_not_name_it() {
        let wrong = OCCASIONS.iter().filter(|(beginning, act)| {
            let mut about = checks().iter().filter(|check| check.id.starts_with(beginning)).peekable();
            let is_known = about.peek().is_some() && super::super::ACTS.iter().any(|it| it.name == *act);
            !is_known || about.all(|check| check.looks_at.contains(&format!("`{act}`")))
        });
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new());
    }
}
