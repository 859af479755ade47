//! What a server of an older version has to do for the newest one, from what it does today.

use std::{collections::BTreeMap, sync::LazyLock};

use rehearse_protocol::{List, Transport, Version};
use rehearse_report::check::{Migration, MigrationKind, MigrationStep};
use serde::Deserialize;

use crate::{Evidence, citation, sdk};

/// What the newest version asks of those whom it concerns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Demand {
    kind: MigrationKind,
    when: Concern,
    text: String,
    /// A section of the newest version.
    section: String,
    /// The checks that will hold it, as `--only` takes them.
    checks: Vec<String>,
}

/// What a server does today for which something changes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Concern {
    Always,
    Http,
    Stdio,
    Lists,
    Session,
    Asks,
    Stream,
    Subscribes,
    SubscribesResources,
    Tasks,
    Logs,
    Levels,
    NotFound,
    ReservedCodes,
    ElicitationIds,
    Deprecated,
}

static DEMANDS: LazyLock<Vec<Demand>> = LazyLock::new(|| {
    include_str!("../checks/migration.jsonl").lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
});

/// The SDKs that serve the newest version, and since which of their own.
const SDKS: [(&str, &str); 3] = [("TypeScript SDK", "2"), ("Python SDK", "2"), ("FastMCP", "4")];

/// What a server has to do for the newest version; nothing if it speaks it.
pub fn migration(evidence: &Evidence<'_>) -> Option<Migration> {
    let to = Version::LATEST;
    let step = |demand: &Demand| {
        let seen = demand.when.seen(evidence)?;
        Some(MigrationStep {
            kind: demand.kind,
            text: demand.text.clone(),
            seen: Some(seen).filter(|it| !it.is_empty()),
            spec: citation::link(to, &demand.section),
            checks: demand.checks.clone(),
        })
    };
    let known = sdk::known(evidence);
    let sdk = SDKS.iter().rfind(|(sdk, _)| known.contains(sdk)).map(|(sdk, version)| format!("{sdk} {version}"));
    let steps = || DEMANDS.iter().filter_map(step).collect();
    (!evidence.is_modern()).then(|| Migration { from: evidence.version, to, sdk, steps: steps() })
}

impl Concern {
    /// What shows it, as far as something has to be seen; `None` if it does not concern the server.
    fn seen(self, evidence: &Evidence<'_>) -> Option<String> {
        let facts = &evidence.facts;
        let is_pipe = matches!(evidence.transport, Transport::Stdio | Transport::Memory);
        let concerns = |is_so: bool| is_so.then(String::new);
        let declares = |names: &mut dyn Iterator<Item = String>| {
            let names: Vec<_> = names.filter(|name| facts.declares(name)).collect();
            (!names.is_empty()).then(|| format!("declares {}", names.join(", ").replace('/', ".")))
        };
        let declares_one = |name: &str| declares(&mut std::iter::once(name.to_owned()));
        match self {
            Concern::Always => concerns(true),
            Concern::Http => concerns(!is_pipe),
            Concern::Stdio => concerns(is_pipe),
            Concern::Lists => declares(&mut List::ALL.iter().map(|list| list.capability().to_owned()).take(3)),
            Concern::Session => {
                let given = evidence.exchanges().find_map(|(_, http)| http.header("mcp-session-id"));
                given.map(|_| "gives out `Mcp-Session-Id`".to_owned())
            }
            Concern::Stream => {
                let mut streams = evidence.exchanges().filter(|(_, http)| http.method == "GET" && http.is_stream());
                streams.next().map(|_| "answers GET with a stream".to_owned())
            }
            Concern::Asks => counted("asks", evidence.asks().map(|ask| ask.method().to_owned())),
            Concern::Subscribes => {
                let changes = List::ALL.iter().map(|list| format!("{}/listChanged", list.capability())).take(3);
                declares(&mut changes.chain(["resources/subscribe".to_owned()]))
            }
            Concern::SubscribesResources => declares_one("resources/subscribe"),
            Concern::Tasks => declares_one("tasks"),
            Concern::Levels => declares_one("logging"),
            Concern::Logs => {
                counted("sends", evidence.notifications("notifications/message").map(|_| "log messages".into()))
            }
            Concern::NotFound => counted("answers", codes(evidence, |code| code == -32002)),
            Concern::ReservedCodes => {
                // Of the specification in older versions: the question for a URL.
                counted("answers", codes(evidence, |code| (-32099..=-32020).contains(&code) && code != -32042))
            }
            Concern::ElicitationIds => {
                let has_id = evidence.asks().any(|ask| !ask.request.at("/params/elicitationId").is_null());
                let is_told = evidence.notifications("notifications/elicitation/complete").next().is_some();
                concerns(has_id || is_told)
            }
            Concern::Deprecated => {
                let asks = evidence.asks().map(|ask| ask.method().to_owned());
                let asks = asks.filter(|method| matches!(method.as_str(), "roots/list" | "sampling/createMessage"));
                counted("asks", asks).or_else(|| declares_one("logging"))
            }
        }
    }
}

/// The error codes of the server that are meant.
fn codes<'e>(evidence: &'e Evidence<'_>, is_meant: impl Fn(i64) -> bool + 'e) -> impl Iterator<Item = String> + 'e {
    let codes = evidence.responses().filter_map(|message| message.error()?["code"].as_i64());
    codes.filter(move |code| is_meant(*code)).map(|code| code.to_string())
}

/// Each of these once, in words; `None` if there is none.
fn counted(verb: &str, all: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    all.for_each(|it| *counts.entry(it).or_default() += 1);
    let all: Vec<_> = counts.keys().cloned().collect();
    (!all.is_empty()).then(|| format!("{verb} {}", all.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Direction, Trace};
    use serde_json::json;

    use super::*;
    use crate::{Facts, checks};

    #[test]
    fn every_demand_is_read_and_names_a_section_and_checks_that_there_are() {
        let lines = include_str!("../checks/migration.jsonl").lines().count();
        assert_eq!(DEMANDS.len(), lines);
        let pages = include_str!("../checks/pages.txt");
        for demand in DEMANDS.iter() {
            let page = format!("{} {}", Version::LATEST, demand.section);
            let is_there = |line: &str| line == page || line.starts_with(&format!("{page} "));
            assert!(demand.section.starts_with("https://") || pages.lines().any(is_there), "{}", demand.section);
            for id in &demand.checks {
                let is_of = |check: &crate::Check| check.id == *id || check.id.starts_with(&format!("{id}."));
                assert!(checks().iter().any(is_of), "{id}");
            }
        }
    }

    #[test]
    fn what_a_server_does_today_decides_what_it_has_to_do() {
        let mut trace = Trace::default();
        let ask = r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?"}}"#;
        trace.push_frame(Duration::ZERO, Direction::ServerToClient, ask.into());
        let asked = |capabilities: serde_json::Value, version: Version| {
            let facts = Facts { capabilities, ..Facts::default() };
            let steps = migration(&Evidence::new(&[&trace], version, Transport::Stdio, facts))?.steps;
            Some(steps.into_iter().map(|step| (step.text, step.seen)).collect::<Vec<_>>())
        };
        assert!(asked(json!({}), Version::LATEST).is_none());
        let steps =
            asked(json!({ "resources": { "subscribe": true } }), Version::V2025_11_25).expect("an older version");
        let seen = |text: &str| steps.iter().find(|step| step.0.contains(text)).map(|step| step.1.as_deref());
        assert_eq!(seen("inputRequests"), Some(Some("asks elicitation/create")));
        assert_eq!(seen("resources/unsubscribe"), Some(Some("declares resources.subscribe")));
        assert_eq!((seen("server/discover"), seen("tasks/get"), seen("Mcp-Session-Id")), (Some(None), None, None));
    }
}
