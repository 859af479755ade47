use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
    time::Duration,
};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use crate::{
    LintReport, codes,
    convert::{Loss, Notation, convert, write},
    dialect::{Dialect, Field, Key, all},
    lint,
    policy::{BothFilters, Patterns},
    server::{At, ConfiguredServer, OAuth, Pair},
};
use rehearse_document::{Form, Node, Source, Span, Variables};
use rehearse_protocol::Transport;
use rehearse_report::findings::{Finding, Severity};

fn at<T>(value: T) -> At<T> {
    At { value, span: Span::default() }
}

/// Texts that readers stumble over.
fn values() -> impl Strategy<Value = String> {
    let odd = "|-y|--|- a|#x|a #b|a: b|80|1e3|0x1F|true|No|null|~|~/x|\"q\"|it's|a\nb|\ttab |é 世界 😀|\u{feff}x|{a}|[b]|&x|*|!t|%d|@s/p|`c`|a\\b|$|$5";
    let references = "$HOME|${TOKEN}|${A:-x y}|${env:KEY}|${input:key}|${workspaceFolder}/a|${workspaceFolder:api}|${userHome}|\
        ${config:editor.tabSize}|${{ secrets.S }}|${CLAUDE_PLUGIN_ROOT}|${|$$X|${env:CLAUDE_PLUGIN_ROOT}|${A:-$B}";
    let any_of =
        |values: &'static str| prop::sample::select(values.split('|').collect::<Vec<_>>()).prop_map(str::to_owned);
    let part = prop_oneof![
        3 => "[a-z0-9./:-]{0,8}",
        2 => any_of(odd),
        2 => any_of(references),
        1 => "\\PC{0,8}",
    ];
    prop::collection::vec(part, 1..3).prop_map(|parts| parts.concat())
}

/// A value of a header: one line.
fn header_values() -> impl Strategy<Value = String> {
    values().prop_map(|value| value.replace(|c: char| c.is_control() || c == '\u{feff}', ""))
}

fn pairs(names: &'static str, values: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<Pair>> {
    prop::collection::btree_map(names, values, 0..4)
        .prop_map(|map| map.into_iter().map(|(name, value)| Pair { name: at(name), value: at(value) }).collect())
}

fn transports() -> impl Strategy<Value = Transport> {
    prop::sample::select(vec![Transport::Stdio, Transport::Stdio, Transport::Http, Transport::Sse, Transport::Ws])
}

fn texts(values: impl Strategy<Value = String>, most: usize) -> impl Strategy<Value = Vec<At<String>>> {
    prop::collection::vec(values.prop_map(at), 0..most)
}

fn reached(source: &Arc<Source>) -> impl Strategy<Value = ConfiguredServer> + use<> {
    let source = source.clone();
    let remote =
        (prop::sample::select(vec!["h.example", "${HOST}", "${env:HOST}"]), pairs("[A-Z][a-z]{1,6}", header_values()));
    let process = (
        prop::sample::select(vec!["npx", "/bin/x", "${env:BIN}", "$BIN"]),
        texts(values(), 4),
        pairs("[A-Z_]{1,8}", values()),
        prop::option::of("/[a-z]{1,5}"),
        prop::option::of(prop::sample::select(vec!["/w", "${workspaceFolder}", "${DIR}"])),
    );
    let auth =
        (prop::option::of("[a-z$]{1,8}"), prop::option::of(("[a-z]{1,4}", prop::collection::vec("[a-z]{1,3}", 0..3))));
    (transports(), process, remote, auth).prop_map(move |(transport, process, remote, (bearer, oauth))| {
        let mut server = ConfiguredServer::new(source.clone(), at(String::new()), at(transport));
        if transport == Transport::Stdio {
            server.command = Some(at(process.0.to_owned()));
            (server.args, server.env) = (process.1, process.2);
            server.env_file = process.3.map(at);
            server.cwd = process.4.map(|cwd| at(cwd.to_owned()));
        } else {
            let scheme = if transport == Transport::Ws { "wss" } else { "https" };
            server.url = Some(at(format!("{scheme}://{}/mcp", remote.0)));
            server.headers = remote.1;
            server.auth.bearer = bearer.map(at);
            let oauth = oauth.map(|(id, scopes)| OAuth {
                client_id: Some(at(id)),
                scopes: scopes.into_iter().map(at).collect(),
                callback_port: Some(at(8080)),
                ..OAuth::default()
            });
            server.auth.oauth = oauth.map(Box::new);
        }
        server
    })
}

fn servers() -> impl Strategy<Value = Vec<ConfiguredServer>> {
    let source = Source::new("made", "");
    let tools =
        || prop::option::of(texts(prop::sample::select(vec!["a", "b", "get_*", "*"]).prop_map(str::to_owned), 4));
    let timeout =
        prop::option::of((any::<bool>(), prop::sample::select(vec![0, 1, 500, 1500, 30_000, 3_600_000, 5_000_000])));
    let flag = || prop::option::of(any::<bool>());
    let more = (timeout, tools(), tools(), flag(), flag(), flag(), texts("[a-z]{1,4}", 3));
    let server = (reached(&source), more).prop_map(|(mut server, more)| {
        let (timeout, include, exclude, enabled, trust, debug, always_allow) = more;
        if let Some((is_for_all, millis)) = timeout {
            let timeout = Some(at(Duration::from_millis(millis)));
            server.timeouts.call.clone_from(&timeout);
            if is_for_all {
                server.timeouts.connect.clone_from(&timeout);
                server.timeouts.list = timeout;
            }
        }
        server.tools.include = include.map(at);
        server.tools.exclude = exclude.map(at);
        server.enabled = enabled.map(at);
        server.approval.trust = trust.map(at);
        server.debug = debug.map(at);
        server.approval.always_allow = always_allow;
        server
    });
    let name = prop_oneof![
        "[a-z][a-z0-9_-]{0,8}",
        "[a-zé世: #.'\"-]{1,8}x",
        prop::sample::select(vec!["true", "80", "name"]).prop_map(str::to_owned)
    ];
    prop::collection::btree_map(name, server, 1..4)
        .prop_map(|map| map.into_iter().map(|(name, server)| ConfiguredServer { name: at(name), ..server }).collect())
}

/// A file of the dialect with as much of these servers as it can have.
fn write_config(servers: &[ConfiguredServer], dialect: &'static Dialect) -> String {
    let write = |server: &'_ ConfiguredServer| write::server(server, dialect, dialect, &mut Vec::new());
    let servers = servers.iter().filter_map(|server| Some((server.name.value.as_str(), write(server)?)));
    usual_notation(dialect).emit(&dialect.file(servers.collect()))
}

fn usual_notation(dialect: &Dialect) -> Notation {
    Notation::for_file(dialect, None).expect("its own")
}

fn read(text: &str, dialect: &'static Dialect) -> LintReport {
    let report = lint(&Source::new("t", text), None, Some(dialect), None);
    // What is written here has no section beside its servers.
    let is_bad =
        |finding: &Finding| finding.code.severity() == Severity::Error && finding.code != &codes::INPUT_UNKNOWN;
    let bad: Vec<_> = report.findings.iter().filter(|finding| is_bad(finding)).collect();
    assert!(bad.is_empty(), "{}: {bad:?}\n{text}", dialect.name);
    report
}

/// The value with every reference that the program replaces as its meaning.
fn meant(text: &str, field: Field, dialect: &Dialect) -> String {
    let rule = dialect.rule(field);
    let home = if dialect.expands_home_in.contains(&field) { "\u{1}home\u{2}" } else { "~" };
    let with_home = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{home}{rest}"),
        _ => text.to_owned(),
    };
    let text = with_home.as_str();
    if !rule.holds_in(field) {
        return text.to_owned();
    }
    if rule.by_go {
        let (mut replaced, mut at) = (String::new(), 0);
        for reference in rule.references(text) {
            let value = format!("\u{1}{} None\u{2}", reference.name);
            replaced.extend([&text[at..reference.range.start], if reference.name.is_empty() { "" } else { &value }]);
            at = reference.range.end;
        }
        return replaced + &text[at..];
    }
    let forms: &'static [Form] = match () {
        () if rule.known.is_empty() || rule.forms.contains(&Form::Braced) => rule.forms,
        () if rule.forms.contains(&Form::Input) => &[Form::Env, Form::Input, Form::Braced],
        () => &[Form::Env, Form::Braced],
    };
    let replaced = Variables { forms, dollars_are_doubled: false }.substitute(text, |reference| {
        let is_known = reference.form == Form::Braced
            && reference.name.split(':').take(1).chain([reference.name]).any(|name| rule.known.contains(&name));
        Some(match reference.form {
            _ if is_known => format!("\u{1}known {}\u{2}", reference.name),
            Form::Input => format!("\u{1}input {}\u{2}", reference.name),
            form if rule.forms.contains(&form) => format!("\u{1}{} {:?}\u{2}", reference.name, reference.default),
            _ => text[reference.range.clone()].to_owned(),
        })
    });
    let replaced = replaced.expect("everything is set");
    let is_one = replaced.starts_with('\u{1}') && replaced.find('\u{2}') == Some(replaced.len() - 1);
    if rule.whole && !is_one { text.to_owned() } else { replaced }
}

/// All that a program makes of a server, by the name of the field.
fn sense(server: &ConfiguredServer, dialect: &Dialect) -> BTreeMap<String, String> {
    let mut sense = BTreeMap::from([("transport".to_owned(), server.transport.value.to_string())]);
    let mut say = |name: &str, field: Field, value: &Option<At<String>>| {
        if let Some(value) = value {
            sense.insert(name.to_owned(), meant(&value.value, field, dialect));
        }
    };
    say("command", Field::Command, &server.command);
    say("url", Field::Url(None), &server.url);
    say("cwd", Field::Cwd, &server.cwd);
    say("envFile", Field::EnvFile, &server.env_file);
    let oauth = server.auth.oauth.clone().unwrap_or_default();
    say("clientId", Field::ClientId, &oauth.client_id);
    say("headers.Authorization", Field::Bearer, &server.auth.bearer);
    if let Some(bearer) = sense.get_mut("headers.Authorization") {
        bearer.insert_str(0, "Bearer ");
    }
    for (index, arg) in server.args.iter().enumerate() {
        sense.insert(format!("args[{index}]"), meant(&arg.value, Field::Args, dialect));
    }
    for (kind, field, pairs) in [("env", Field::Env, &server.env), ("headers", Field::Headers, &server.headers)] {
        for pair in pairs {
            sense.insert(format!("{kind}.{}", pair.name.value), meant(&pair.value.value, field, dialect));
        }
    }
    let names = |list: &[At<String>]| list.iter().map(|name| name.value.clone()).collect::<Vec<_>>();
    let timeouts = &server.timeouts;
    let all = [&timeouts.connect, &timeouts.list, &timeouts.call].map(|it| it.as_ref().map(|it| it.value));
    let everything = |list: &Vec<String>| dialect.policy.patterns != Patterns::Exact && list.contains(&"*".to_owned());
    let include = server.tools.include.as_ref().map(|list| names(&list.value)).filter(|list| !everything(list));
    let mut exclude = server.tools.exclude.as_ref().map(|list| names(&list.value)).unwrap_or_default();
    if dialect.policy.both_filters == BothFilters::IncludeWins && server.tools.include.is_some() {
        exclude.clear();
    }
    let include = include.map(|list| list.into_iter().filter(|name| !exclude.contains(name)).collect::<Vec<_>>());
    if include.is_some() {
        exclude.clear();
    }
    sense.extend([
        ("timeout".into(), format!("{all:?}")),
        ("tools".into(), format!("{include:?} {exclude:?}")),
        ("enabled".into(), server.enabled.as_ref().is_none_or(|it| it.value).to_string()),
        ("trust".into(), server.approval.trust.as_ref().is_some_and(|it| it.value).to_string()),
        ("debug".into(), server.debug.as_ref().is_some_and(|it| it.value).to_string()),
        ("alwaysAllow".into(), format!("{:?}", names(&server.approval.always_allow))),
        ("scopes".into(), format!("{:?}", names(&oauth.scopes))),
        ("callbackPort".into(), format!("{:?}", oauth.callback_port.map(|it| it.value))),
    ]);
    sense
}

/// What a loss is about, in the words of [`sense`].
fn lost(loss: &Loss, dialect: &Dialect) -> (&'static str, String) {
    fn find(keys: &'static [Key], name: &str) -> Option<Field> {
        keys.iter().find_map(|key| match key.field {
            Field::Object(keys) => find(keys, name),
            field => (key.name == name).then_some(field),
        })
    }
    let (head, rest) = loss.field.split_at(loss.field.find(['.', '[']).unwrap_or(loss.field.len()));
    let head = match find(dialect.keys, head) {
        Some(Field::CommandLine) if !rest.is_empty() => {
            let index: usize = rest.trim_matches(['[', ']']).parse().expect("an index");
            return ("args", format!("[{}]", index - 1));
        }
        Some(Field::Command | Field::CommandLine) => "command",
        Some(Field::Args) => "args",
        Some(Field::Env) => "env",
        Some(Field::EnvFile) => "envFile",
        Some(Field::Cwd) => "cwd",
        Some(Field::Url(_)) => "url",
        Some(Field::Headers) => "headers",
        Some(Field::Timeout | Field::CallTimeout | Field::StartTimeout) => "timeout",
        Some(Field::Include | Field::Exclude) => "tools",
        Some(Field::Trust) => "trust",
        Some(Field::AlwaysAllow) => "alwaysAllow",
        Some(Field::Debug) => "debug",
        Some(Field::ClientId) => "clientId",
        Some(Field::Scopes | Field::ScopeText) => "scopes",
        Some(Field::CallbackPort) => "callbackPort",
        Some(Field::Bearer) => "headers.Authorization",
        None if head == "auth" => "headers.Authorization",
        None if head == "args" => "args",
        other => panic!("{other:?} {loss:?}"),
    };
    (head, rest.to_owned())
}

static SCHEMAS: LazyLock<BTreeMap<&str, jsonschema::Validator>> = LazyLock::new(|| {
    let validator = |dialect: &Dialect| jsonschema::draft7::new(&dialect.schema()).expect("a schema");
    all().map(|dialect| (dialect.name, validator(dialect))).collect()
});

fn check_round_trip(servers: &[ConfiguredServer], from: &'static Dialect, to: &'static Dialect) {
    let original = write_config(servers, from);
    let before = read(&original, from);
    let converted = convert(&before, to, usual_notation(to)).expect("it has a dialect");
    let after = read(&converted.text, to);
    let tree = after.root.as_ref().map(Node::to_json).expect("a tree");
    assert!(SCHEMAS[to.name].is_valid(&tree), "{}: {tree}", to.name);
    let (before, after) = (before.config.expect("servers"), after.config.expect("servers"));
    let context = format!("{} to {}\n{original}\n{}\n{:?}", from.name, to.name, converted.text, converted.losses);
    assert_eq!(converted.servers, after.servers.len(), "{context}");
    for server in &before.servers {
        let losses: Vec<_> =
            converted.losses.iter().filter(|loss| loss.server.as_ref() == Some(&server.name.value)).collect();
        let now = after.servers.iter().find(|other| other.name.value == server.name.value);
        assert_eq!(now.is_none(), losses.iter().any(|loss| loss.left_out), "{context}");
        let Some(now) = now else { continue };
        let (mut before, mut after) = (sense(server, from), sense(now, to));
        for (head, rest) in losses.iter().map(|loss| lost(loss, from)) {
            let is_lost = |name: &String| match rest.as_str() {
                "" => name == head || name.starts_with(&format!("{head}.")) || name.starts_with(&format!("{head}[")),
                _ => *name == format!("{head}{rest}"),
            };
            before.retain(|name, _| !is_lost(name));
            after.retain(|name, _| !is_lost(name));
        }
        assert_eq!(before, after, "{context}");
    }
}

/// Each pair of dialects once, with other servers for each distance between the two.
#[test]
fn conversions_change_only_what_they_report() {
    let (mut runner, strategy) = (TestRunner::deterministic(), servers());
    for distance in 0..all().count() {
        let servers = strategy.new_tree(&mut runner).expect("servers").current();
        for (from, to) in all().zip(all().cycle().skip(distance)) {
            check_round_trip(&servers, from, to);
        }
    }
}
