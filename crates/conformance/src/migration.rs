//! What a server of an older version has to do for the newest one, from what it does today.

use std::{collections::BTreeSet, sync::LazyLock};

use rehearse_protocol::{
    List, Transport, Version,
    names::{INPUT_METHODS, SESSION_HEADER},
};
use rehearse_report::check::{Migration, MigrationKind, MigrationStep};
use serde::Deserialize;

use crate::{Evidence, Message, citation, sdk};

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

/// What a server has to do for the newest version; no step if it speaks it.
pub fn migration(evidence: &Evidence<'_>) -> Migration {
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
    if evidence.is_modern() {
        return Migration { from: evidence.version, to, sdk: None, steps: Vec::new() };
    }
    let known = sdk::known(evidence);
    let sdk = SDKS.iter().rfind(|(sdk, _)| known.contains(sdk)).map(|(sdk, version)| format!("{sdk} {version}"));
    Migration { from: evidence.version, to, sdk, steps: DEMANDS.iter().filter_map(step).collect() }
}

impl Concern {
    /// What shows it, as far as something has to be seen; `None` if it does not concern the server.
    fn seen(self, evidence: &Evidence<'_>) -> Option<String> {
        let is_pipe = matches!(evidence.transport, Transport::Stdio | Transport::Memory);
        let concerns = |is_so: bool| is_so.then(String::new);
        let asks = |is_meant: fn(&str) -> bool| {
            let methods = evidence.asks().map(|ask| ask.method().to_owned()).filter(|method| is_meant(method));
            each("asks", methods)
        };
        // Templates are of the capability of resources.
        let lists = || [List::Tools, List::Prompts, List::Resources].into_iter().map(List::capability);
        match self {
            Concern::Always => concerns(true),
            Concern::Http => concerns(!is_pipe),
            Concern::Stdio => concerns(is_pipe),
            Concern::Lists => declares(evidence, lists().map(ToOwned::to_owned)),
            Concern::Session => {
                let given = evidence.exchanges().find_map(|(_, http)| http.header(SESSION_HEADER));
                given.map(|_| "gives out `Mcp-Session-Id`".to_owned())
            }
            Concern::Stream => {
                let mut streams = evidence.exchanges().filter(|(_, http)| http.method == "GET" && http.is_stream());
                streams.next().map(|_| "answers GET with a stream".to_owned())
            }
            Concern::Asks => asks(|method| INPUT_METHODS.contains(&method)),
            Concern::Subscribes => {
                let changes = lists().map(|capability| format!("{capability}/listChanged"));
                declares(evidence, changes.chain(["resources/subscribe".to_owned()]))
            }
            Concern::SubscribesResources => declares(evidence, ["resources/subscribe".to_owned()]),
            Concern::Tasks => declares(evidence, ["tasks".to_owned()]),
            Concern::Levels => declares(evidence, ["logging".to_owned()]),
            Concern::Logs => {
                let mut messages = evidence.notifications("notifications/message");
                messages.next().map(|_| "sends log messages".to_owned())
            }
            Concern::NotFound => {
                let read = evidence.calls_of("resources/read").filter_map(|call| code(call.response?));
                each("answers", read.filter(|code| *code == -32002).map(|code| code.to_string()))
            }
            Concern::ReservedCodes => {
                // -32042 is of the specification in older versions: the question for a URL.
                let is_meant = |code: &i64| (-32099..=-32020).contains(code) && *code != -32042;
                each("answers", evidence.responses().filter_map(code).filter(is_meant).map(|code| code.to_string()))
            }
            Concern::ElicitationIds => {
                let has_id = evidence.asks().any(|ask| !ask.request.at("/params/elicitationId").is_null());
                let completes = evidence.notifications("notifications/elicitation/complete").next().is_some();
                concerns(has_id || completes)
            }
            Concern::Deprecated => asks(|method| matches!(method, "roots/list" | "sampling/createMessage"))
                .or_else(|| Concern::Levels.seen(evidence)),
        }
    }
}

/// Those of these capabilities that the server declares.
fn declares(evidence: &Evidence<'_>, names: impl IntoIterator<Item = String>) -> Option<String> {
    let declared = names.into_iter().filter(|name| evidence.facts.declares(name));
    each("declares", declared.map(|name| name.replace('/', ".")))
}

fn code(response: &Message<'_>) -> Option<i64> {
    response.error()?["code"].as_i64()
}

/// Each of these once, in words; `None` if there is none.
fn each(verb: &str, all: impl Iterator<Item = String>) -> Option<String> {
    let all: BTreeSet<_> = all.collect();
    (!all.is_empty()).then(|| format!("{verb} {}", all.into_iter().collect::<Vec<_>>().join(", ")))
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
        trace.push_frame(
            Duration::ZERO,
            Direction::ServerToClient,
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#.into(),
        );
        let of = |capabilities: serde_json::Value, version: Version| {
            let facts = Facts { capabilities, ..Facts::default() };
            let steps = migration(&Evidence::new(&[&trace], version, Transport::Stdio, facts)).steps;
            steps.into_iter().map(|step| (step.text, step.seen)).collect::<Vec<_>>()
        };
        assert_eq!(of(json!({}), Version::LATEST), []);
        let steps = of(json!({ "resources": { "subscribe": true } }), Version::V2025_11_25);
        let seen = |text: &str| steps.iter().find(|step| step.0.contains(text)).map(|step| step.1.as_deref());
        assert_eq!(seen("inputRequests"), Some(Some("asks elicitation/create")));
        assert_eq!(seen("resources/unsubscribe"), Some(Some("declares resources.subscribe")));
        assert_eq!((seen("server/discover"), seen("tasks/get"), seen("Mcp-Session-Id")), (Some(None), None, None));
    }
}
