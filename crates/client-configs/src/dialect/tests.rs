use super::*;
use crate::{ConfiguredServer, read::read};
use rehearse_document::{Node, Source, json};
use rehearse_report::findings::Finding;

fn root(text: &str) -> Node {
    json::parse(&Source::new("t.json", text)).unwrap_or_else(|problems| panic!("{text}: {problems:?}")).root
}

/// A file with one server, whose name is `s`.
fn file(dialect: &Dialect, server: &str) -> String {
    let beside = dialect.companions.iter().map(|it| format!("\"{}\":\"{}\",", it.key, it.value)).collect::<String>();
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\":")).collect();
    let open = open.replacen('{', &format!("{{{beside}"), 1);
    let servers = match dialect.collection {
        Collection::Map => format!("{{\"s\":{server}}}"),
        Collection::List { .. } => format!("[{{\"name\":\"s\",{}]", &server[1..]),
    };
    format!("{open}{servers}{}", "}".repeat(dialect.roots[0].len()))
}

fn read_text(dialect: &'static Dialect, text: &str) -> (Vec<ConfiguredServer>, Vec<Finding>) {
    let mut findings = Vec::new();
    let config = read(&root(text), dialect, &Source::new("t.json", text), &mut findings);
    (config.servers, findings)
}

fn read_as(dialect: &str, server: &str) -> (Vec<ConfiguredServer>, Vec<Finding>) {
    let dialect = by_name(dialect).expect(dialect);
    read_text(dialect, &file(dialect, server))
}

fn key(dialect: &Dialect, field: Field) -> Option<&'static str> {
    dialect.keys.iter().find(|key| key.field == field).map(|key| key.name)
}

/// A server that is started, as the dialect writes it.
fn started(dialect: &Dialect) -> String {
    let mut server = serde_json::Map::new();
    if let (Some(key), Some((word, _))) =
        (key(dialect, Field::Transport), dialect.transports.iter().find(|it| it.1 == Transport::Stdio))
    {
        server.insert(key.into(), (*word).into());
    }
    match key(dialect, Field::CommandLine) {
        Some(key) => drop(server.insert(key.into(), serde_json::json!(["npx", "-y", "x"]))),
        None => {
            server.insert(key(dialect, Field::Command).expect("a command").into(), "npx".into());
            server.insert(key(dialect, Field::Args).expect("arguments").into(), serde_json::json!(["-y", "x"]));
        }
    }
    server.insert(key(dialect, Field::Env).expect("variables").into(), serde_json::json!({ "A": "b" }));
    serde_json::Value::Object(server).to_string()
}

#[test]
fn every_dialect_is_complete() {
    for dialect in ALL {
        assert_eq!(by_name(dialect.name).map(|it| it.name), Some(dialect.name), "each name is given once");
        let has = |wanted: fn(&Field) -> bool| dialect.keys.iter().any(|key| wanted(&key.field));
        assert!(has(|field| matches!(field, Field::Command | Field::CommandLine)), "{}", dialect.name);
        assert_eq!(
            dialect.timeout.is_some(),
            has(|field| matches!(field, Field::Timeout | Field::CallTimeout)),
            "{}",
            dialect.name
        );
        let dials = dialect.transports.iter().any(|(_, transport)| *transport != Transport::Stdio);
        assert_eq!(dials, has(|field| matches!(field, Field::Url(_))) || dialect.name == "engine", "{}", dialect.name);
    }
}

#[test]
fn the_same_server_is_read_from_every_dialect() {
    for dialect in ALL {
        let (servers, findings) = read_as(dialect.name, &started(dialect));
        assert_eq!(findings, [], "{}", dialect.name);
        let [server] = &servers[..] else { panic!("{}: {servers:?}", dialect.name) };
        assert_eq!((server.name.value.as_str(), server.transport.value), ("s", Transport::Stdio));
        assert_eq!(server.command.as_ref().map(|it| it.value.as_str()), Some("npx"));
        assert_eq!(server.args.iter().map(|it| it.value.as_str()).collect::<Vec<_>>(), ["-y", "x"]);
        assert_eq!((server.env[0].name.value.as_str(), server.env[0].value.value.as_str()), ("A", "b"));
    }
}
