//! What a check cites. `official/pages.py` writes the lists of what there is, `checks/pages.txt` and `checks/types.txt`.

use rehearse_protocol::Version;

const SITE: &str = "https://modelcontextprotocol.io/specification";

/// Where the types of the versions are whose schema has no page: the address of all schemas, and a line for each type.
const TYPES: &str = include_str!("../checks/types.txt");

/// The address of a section of a version, such as `basic#messages`. An address stays as it is.
pub(crate) fn link(version: Version, section: &str) -> String {
    if section.starts_with("https://") {
        return section.to_owned();
    }
    in_a_file(version, section).unwrap_or_else(|| format!("{SITE}/{version}/{section}"))
}

/// The address of a type, or of the whole schema, in a version whose schema has no page.
fn in_a_file(version: Version, section: &str) -> Option<String> {
    let (schemas, types) = TYPES.split_once('\n')?;
    let has_page = !types.lines().any(|line| line.starts_with(version.as_str()));
    if has_page || !is_of_the_schema(section) {
        return None;
    }
    let file = format!("{schemas}/{version}/schema.ts");
    let line = types.lines().find_map(|line| line.strip_prefix(&format!("{version} {section} ")));
    Some(match line {
        Some(line) => format!("{file}#L{line}"),
        None => file,
    })
}

fn is_of_the_schema(section: &str) -> bool {
    section == "schema" || section.starts_with("schema#")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Check, Level, checks};

    /// Documents whose sections have numbers.
    const NUMBERED: [&str; 3] = [
        "https://www.rfc-editor.org/rfc/rfc",
        "https://datatracker.ietf.org/doc/html/draft-ietf-oauth-v2-1-",
        "https://json-schema.org/draft/2020-12/json-schema-validation",
    ];

    /// Other documents, with the sections that are cited.
    const NAMED: [(&str, &[&str]); 3] = [
        (
            "https://www.jsonrpc.org/specification",
            &["request_object", "notification", "response_object", "error_object"],
        ),
        (
            "https://html.spec.whatwg.org/multipage/server-sent-events.html",
            &["parsing-an-event-stream", "event-stream-interpretation", "authoring-notes"],
        ),
        ("https://fetch.spec.whatwg.org/", &["cors-protocol-and-credentials", "http-access-control-expose-headers"]),
    ];

    /// The hosts of the specification and its extensions: what is cited there is in the list.
    const LISTED: [&str; 2] = ["https://modelcontextprotocol.io/", "https://github.com/modelcontextprotocol/"];

    /// The keywords of each section, by its address.
    fn pages() -> BTreeMap<String, &'static str> {
        let lines = include_str!("../checks/pages.txt").lines().filter(|line| !line.starts_with('#'));
        let page = |line: &'static str| {
            let version = Version::ALL.into_iter().find(|version| line.starts_with(version.as_str()));
            let rest = version.map_or(line, |version| line[version.as_str().len()..].trim_start());
            let (section, keywords) = rest.split_once(' ').unwrap_or((rest, ""));
            (version.map_or_else(|| section.to_owned(), |version| format!("{SITE}/{version}/{section}")), keywords)
        };
        lines.map(page).collect()
    }

    /// What is wrong with a citation.
    fn fault(pages: &BTreeMap<String, &str>, version: Version, section: &str, level: Level) -> Option<&'static str> {
        let (page, anchor) = section.split_once('#').unwrap_or((section, ""));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if let Some(document) = NUMBERED.iter().find_map(|it| page.strip_prefix(it)) {
            let is_section = anchor.strip_prefix("section-").is_some_and(is_number);
            return (!is_section || !document.is_empty() && !is_number(document)).then_some("no such section");
        }
        if let Some((_, sections)) = NAMED.iter().find(|(it, _)| *it == page) {
            return (!sections.contains(&anchor)).then_some("no such section");
        }
        if section.starts_with(SITE) {
            return Some("the version is not that of the rule");
        }
        if section.contains("://") && !LISTED.iter().any(|it| section.starts_with(it)) {
            return Some("no known address");
        }
        if let Some(address) = in_a_file(version, section) {
            return (!anchor.is_empty() && !address.contains("#L")).then_some("no such section");
        }
        let keyword = match level {
            _ if is_of_the_schema(section) => "",
            Level::Must | Level::MustNot => "MUST",
            Level::Should | Level::ShouldNot => "SHOULD",
            Level::Derived | Level::Info => "",
        };
        match pages.get(&link(version, section)) {
            Some(keywords) if keywords.contains(keyword) => None,
            Some(_) => Some("no such keyword"),
            None if pages.contains_key(&link(version, page)) => Some("no such section"),
            None => Some("no such page"),
        }
    }

    fn faults<'c>(check: &'c Check, pages: &BTreeMap<String, &str>) -> Vec<(&'c str, Version, String, &'static str)> {
        let faults = check.levels.iter().filter_map(|(version, level)| {
            let section = check.sections.get(version);
            let found = match section.or_else(|| check.sections.values().next_back()) {
                Some(found) if section.is_none() && !found.starts_with("https://") => {
                    Some("the version is not that of the rule")
                }
                Some(found) => fault(pages, *version, found, *level),
                None => Some("no such page"),
            };
            found.map(|found| (check.id.as_str(), *version, check.link(*version), found))
        });
        faults.collect()
    }

    #[test]
    fn every_citation_leads_to_a_section_of_its_version_that_has_the_keyword() {
        let pages = pages();
        let faults: Vec<_> = checks().iter().flat_map(|check| faults(check, &pages)).collect();
        assert!(faults.is_empty(), "{} faults: {faults:#?}", faults.len());
    }

    #[test]
    fn a_citation_that_leads_nowhere_or_to_no_such_rule_is_a_fault() {
        let pages = pages();
        let [first, second, _, fourth, newest] = Version::ALL;
        let rfc = "https://www.rfc-editor.org/rfc/rfc9110";
        for (version, section, level, expected) in [
            (fourth, "basic/transports#stdio", Level::Must, None),
            (fourth, "schema#task", Level::Must, None),
            (first, "schema#calltoolresult", Level::MustNot, None),
            (newest, &format!("{rfc}#section-5.1"), Level::Should, None),
            (newest, "https://RFC9110#host", Level::Derived, Some("no known address")),
            (newest, "https://seps/2663-tasks-extension#task-polling", Level::Must, Some("no known address")),
            (newest, "http://modelcontextprotocol.io/seps/2663-tasks-extension", Level::Info, Some("no known address")),
            (newest, rfc, Level::Must, Some("no such section")),
            (newest, &format!("{rfc}#host"), Level::Must, Some("no such section")),
            (newest, "https://www.jsonrpc.org/specification#errors", Level::Must, Some("no such section")),
            (newest, "https://modelcontextprotocol.io/seps/2663-tasks", Level::Must, Some("no such page")),
            (newest, "basic/lifecycle#stdio", Level::Derived, Some("no such page")),
            (fourth, "basic#_meta", Level::Info, Some("no such section")),
            (second, "schema#contentblock", Level::Must, Some("no such section")),
            (newest, "schema#contentblocks", Level::Must, Some("no such section")),
            (fourth, "basic/utilities/ping#message-format", Level::Must, Some("no such keyword")),
            (fourth, "server/tools#structured-content", Level::MustNot, Some("no such keyword")),
            (fourth, "basic/utilities/ping#message-format", Level::ShouldNot, Some("no such keyword")),
            (first, &format!("{SITE}/2026-07-28/basic"), Level::Derived, Some("the version is not that of the rule")),
        ] {
            assert_eq!(fault(&pages, version, section, level), expected, "{section}");
        }
        let found = checks().iter().find(|check| check.id == "tools.input.type-object");
        let mut check = found.cloned().expect("a check of every version");
        check.sections.remove(&first);
        let missing = faults(&check, &pages);
        assert_eq!(
            missing.iter().map(|it| (it.1, it.3)).collect::<Vec<_>>(),
            [(first, "the version is not that of the rule")]
        );
    }

    #[test]
    fn a_type_of_a_version_without_a_page_for_its_schema_is_a_line_of_a_file() {
        let [first, _, third, ..] = Version::ALL;
        let address = link(first, "schema#calltoolresult");
        assert!(address.starts_with("https://github.com/") && address.contains("/2024-11-05/schema.ts#L"), "{address}");
        assert!(link(first, "schema").ends_with("/schema/2024-11-05/schema.ts"));
        assert_eq!(link(third, "schema#tool"), format!("{SITE}/2025-06-18/schema#tool"));
        assert_eq!(link(first, "server/tools#tool"), format!("{SITE}/2024-11-05/server/tools#tool"));
    }
}
