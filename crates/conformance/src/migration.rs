//! What a server or a client of an older version has to do for the newest one, from what it does today.

use std::{collections::BTreeSet, sync::LazyLock};

use rehearse_protocol::{
    List, Transport, Version,
    names::{INPUT_METHODS, SESSION_HEADER},
};
use rehearse_report::check::{Migration, MigrationKind, MigrationStep};
use serde::Deserialize;

use crate::{Evidence, Message, Role, citation, sdk};

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

/// What a server or a client does today for which something changes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Concern {
    Always,
    Http,
    Sse,
    Stdio,
    Lists,
    Session,
    Asks,
    /// It declares that it answers questions.
    Answers,
    Stream,
    Subscribes,
    Logs,
    /// It declares one of these capabilities.
    Declares(Vec<String>),
    /// It sends one of these requests or notifications.
    Sends(Vec<String>),
    NotFound,
    ReservedCodes,
    ElicitationIds,
    Deprecated,
}

static OF_SERVERS: LazyLock<Vec<Demand>> = LazyLock::new(|| read(include_str!("../checks/migration.jsonl")));
static OF_CLIENTS: LazyLock<Vec<Demand>> = LazyLock::new(|| read(include_str!("../checks/client-migration.jsonl")));

fn read(lines: &str) -> Vec<Demand> {
    lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The SDKs that speak the newest version, and since which of their own.
const SDKS: [(&str, &str); 3] = [("TypeScript SDK", "2"), ("Python SDK", "2"), ("FastMCP", "4")];

/// What a server or a client has to do for the newest version; no step if it speaks it.
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
    let demands = if evidence.facts.role == Role::Client { &OF_CLIENTS } else { &OF_SERVERS };
    Migration { from: evidence.version, to, sdk, steps: demands.iter().filter_map(step).collect() }
}

impl Concern {
    /// What shows it, as far as something has to be seen; `None` if it does not concern the server.
    fn seen(&self, evidence: &Evidence<'_>) -> Option<String> {
        let is_pipe = matches!(evidence.transport, Transport::Stdio | Transport::Memory);
        let is_client = evidence.facts.role == Role::Client;
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
            Concern::Sse => concerns(evidence.transport == Transport::Sse),
            Concern::Stdio => concerns(is_pipe),
            Concern::Lists => declares(evidence, lists()),
            Concern::Session if is_client => {
                let sent = evidence.exchanges().find_map(|(_, http)| http.request_header(SESSION_HEADER));
                sent.map(|_| "sends `Mcp-Session-Id`".to_owned())
            }
            Concern::Session => {
                let given = evidence.exchanges().find_map(|(_, http)| http.header(SESSION_HEADER));
                given.map(|_| "gives out `Mcp-Session-Id`".to_owned())
            }
            Concern::Stream => {
                let mut streams = evidence.exchanges().filter(|(_, http)| http.method == "GET" && http.is_stream());
                let does = if is_client { "opens a stream by GET" } else { "answers GET with a stream" };
                streams.next().map(|_| does.to_owned())
            }
            Concern::Asks => asks(|method| INPUT_METHODS.contains(&method)),
            Concern::Answers => declares(evidence, ["elicitation", "roots", "sampling"]),
            Concern::Subscribes => {
                let changes: Vec<_> = lists().map(|capability| format!("{capability}/listChanged")).collect();
                declares(evidence, changes.iter().map(String::as_str).chain(["resources/subscribe"]))
            }
            Concern::Declares(names) => declares(evidence, names.iter().map(String::as_str)),
            Concern::Sends(methods) => {
                let sent =
                    evidence.own().filter_map(Message::method).filter(|sent| methods.iter().any(|it| it == sent));
                each("sends", sent.map(ToOwned::to_owned))
            }
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
            Concern::Deprecated if is_client => declares(evidence, ["roots", "sampling"]),
            Concern::Deprecated => asks(|method| matches!(method, "roots/list" | "sampling/createMessage"))
                .or_else(|| declares(evidence, ["logging"])),
        }
    }
}

/// Those of these capabilities that the server or the client declares.
fn declares<'n>(evidence: &Evidence<'_>, names: impl IntoIterator<Item = &'n str>) -> Option<String> {
    let of_client = |name: &str| {
        let at = format!("/params/capabilities/{name}");
        evidence.calls_of("initialize").any(|call| !call.request.at(&at).is_null())
    };
    let is_declared = |name: &&str| match evidence.facts.role {
        Role::Client => of_client(name),
        _ => evidence.facts.declares(name),
    };
    each("declares", names.into_iter().filter(is_declared).map(|name| name.replace('/', ".")))
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
        let lines = include_str!("../checks/migration.jsonl").lines();
        let lines = lines.chain(include_str!("../checks/client-migration.jsonl").lines()).count();
        assert_eq!(OF_SERVERS.len() + OF_CLIENTS.len(), lines);
        let pages = include_str!("../checks/pages.txt");
        for demand in OF_SERVERS.iter().chain(OF_CLIENTS.iter()) {
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

    #[test]
    fn what_a_client_does_today_decides_what_it_has_to_do() {
        let mut trace = Trace::default();
        let mut send =
            |message: &str| trace.push_frame(Duration::ZERO, Direction::ClientToServer, message.to_owned().into());
        send(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"sampling":{}}}}"#);
        send(r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}"#);
        let facts = Facts { role: Role::Client, ..Facts::default() };
        let steps = migration(&Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, facts)).steps;
        let seen = |text: &str| steps.iter().find(|step| step.text.contains(text)).map(|step| step.seen.as_deref());
        assert_eq!(seen("inputRequests"), Some(Some("declares sampling")));
        assert_eq!(seen("resources/unsubscribe"), Some(Some("sends resources/subscribe")));
        assert_eq!(
            (seen("server/discover"), seen("logging/setLevel"), seen("Mcp-Session-Id")),
            (Some(None), None, None)
        );
    }
}
