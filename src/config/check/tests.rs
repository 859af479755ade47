//! Every finding in every dialect that has it: each fault is planted between « and », where it must be found.

mod inputs;

use std::{collections::BTreeSet, fmt::Write, io, path::Path};

use super::*;
use crate::{
    config::{
        Found, Problem,
        dialect::{
            ALL, Both, Collection, Field, Files, Of, Outside, Place, Places, Profiles, RootKeys, Syntax, Unset, Untyped,
        },
        examine,
        finding::{Code, codes},
        policy::{BothFilters, EmptyFilter, Naming, Patterns},
    },
    transport::Transport,
};

fn machine() -> Machine {
    let look = |path: &Path| match path.to_str() {
        Some("/bin/npx" | "/bin/node" | "/bin/sh") => Found::Program,
        Some("/srv") => Found::Directory,
        _ => Found::Nothing,
    };
    let set = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Machine {
        variables: [set("PATH", "/bin"), set("SET", "value")].into(),
        directory: "/srv".into(),
        look,
        read: |_| Err(io::Error::from(io::ErrorKind::NotFound)),
    }
}

/// A fault: what it is called, and a file with it.
struct Fault {
    code: &'static Code,
    text: String,
}

/// The file with the marks taken out, and what they enclose.
fn unmarked(text: &str) -> (String, Span) {
    let start = text.find('«').unwrap_or_else(|| panic!("{text} has no mark"));
    let end = text.find('»').expect("two marks") - '«'.len_utf8();
    (text.replace(['«', '»'], ""), Span { start, end })
}

fn key(dialect: &Dialect, field: Field) -> Option<&'static str> {
    dialect.keys.iter().find(|key| key.field == field).map(|key| key.name)
}

fn word(dialect: &Dialect, transport: Transport) -> Option<&'static str> {
    dialect.transports.iter().find(|(_, it)| *it == transport).map(|it| it.0)
}

/// A file with these servers, each a name with an object, both as written in JSON.
fn file(dialect: &Dialect, servers: &[(&str, String)]) -> String {
    let beside = dialect.beside.iter().map(|it| format!("\"{}\": \"{}\", ", it.key, it.value)).collect::<String>();
    let open: String = dialect.roots[0].iter().map(|key| format!("{{\"{key}\": ")).collect();
    let open = open.replacen('{', &format!("{{{beside}"), 1);
    let is_list = matches!(dialect.collection, Collection::List { .. });
    let each = servers.iter().map(|(name, server)| match is_list {
        true => format!("{{\"name\": {name}, {}", server[1..].trim_start()),
        false => format!("{name}: {server}"),
    });
    let all = each.collect::<Vec<_>>().join(", ");
    let (begin, end) = if is_list { ('[', ']') } else { ('{', '}') };
    format!("{open}{begin}{all}{end}{}", "}".repeat(dialect.roots[0].len()))
}

/// A server that is started, with these members besides.
fn process(dialect: &Dialect, rest: &str) -> String {
    let mut members = Vec::new();
    if let (Some(key), Some(word)) = (key(dialect, Field::Transport), word(dialect, Transport::Stdio)) {
        members.push(format!("\"{key}\": \"{word}\""));
    }
    match (key(dialect, Field::CommandLine), key(dialect, Field::Command)) {
        (Some(key), _) => members.push(format!("\"{key}\": [\"node\"]")),
        (None, key) if !rest.contains(&format!("\"{}\":", key.expect("a command"))) => {
            members.push(format!("\"{}\": \"node\"", key.expect("a command")));
        }
        _ => {}
    }
    for key in dialect.required.iter().filter(|key| !rest.contains(&format!("\"{key}\""))) {
        members.push(format!("\"{key}\": []"));
    }
    members.push(rest.to_owned());
    members.retain(|member| !member.is_empty());
    format!("{{{}}}", members.join(", "))
}

/// A server at a URL, if the dialect has such, with this URL as written in JSON and these members besides.
fn remote(dialect: &Dialect, transport: Transport, url: &str, rest: &str) -> Option<String> {
    let at = dialect.keys.iter().find(|key| match key.field {
        Field::Url(None) => true,
        Field::Url(only) => only == Some(transport),
        _ => false,
    })?;
    let mut members = vec![format!("\"{}\": {url}", at.name)];
    if let (Some(key), Some(word)) = (key(dialect, Field::Transport), word(dialect, transport)) {
        members.push(format!("\"{key}\": \"{word}\""));
    } else if !matches!(dialect.untyped, Untyped::Inferred(it) if it == transport) {
        return None;
    }
    members.push(rest.to_owned());
    members.retain(|member| !member.is_empty());
    Some(format!("{{{}}}", members.join(", ")))
}

const GOOD: &str = "\"https://mcp.example.com/mcp\"";

/// Every fault that one server can have.
fn of_servers(dialect: &Dialect) -> Vec<(&'static Code, String)> {
    let mut faults: Vec<(&'static Code, Option<String>)> = Vec::new();
    let key = |field| key(dialect, field);
    let with = |field, value: &str| key(field).map(|key| process(dialect, &format!("\"{key}\": {value}")));
    let marked = |field, value: &str| key(field).map(|key| process(dialect, &format!("«\"{key}\"»: {value}")));
    let http = |url: &str, rest: &str| remote(dialect, Transport::Http, url, rest);
    let http_with = |field, value: &str| {
        let rest = format!("\"{}\": {value}", key(field)?);
        http(GOOD, &rest)
    };
    let top = |field: Field| dialect.keys.iter().any(|key| key.field == field);
    // Types.
    faults.push((&codes::VALUE_TYPE, with(Field::Args, "«\"-y pkg\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::Args, "[«1»]")));
    faults.push((&codes::VALUE_TYPE, with(Field::Command, "«[\"node\"]»")));
    faults.push((
        &codes::VALUE_TYPE,
        with(Field::CommandLine, "«\"node\"»").map(|it| it.replacen("\"command\": [\"node\"], ", "", 1)),
    ));
    faults.push((&codes::VALUE_TYPE, with(Field::Env, "«[\"A=b\"]»")));
    faults.push((&codes::VALUE_TYPE, with(Field::Env, "{\"A\": «true»}")));
    faults.push((&codes::VALUE_TYPE, with(Field::Cwd, "«7»")));
    let is_clamped = dialect.timeout.is_some_and(|rule| rule.outside == Outside::Clamped);
    let of_text = if is_clamped { &codes::IGNORED } else { &codes::VALUE_TYPE };
    faults.push((of_text, with(Field::Timeout, "«\"soon\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::CallTimeout, "«\"soon\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::Disabled, "«\"true\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::Enabled, "«\"yes\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::AlwaysAllow, "«\"echo\"»")));
    faults.push((&codes::VALUE_TYPE, with(Field::Include, "«\"echo\"»")));
    faults.push((&codes::VALUE_TYPE, http("«7»", "")));
    faults.push((&codes::VALUE_TYPE, http_with(Field::Headers, "«[]»")));
    // Keys.
    let (typo, extra) = match dialect.strict {
        true => (&codes::KEY_REJECTED, &codes::KEY_REJECTED),
        false => (&codes::UNKNOWN_KEY, &codes::EXTRA_KEY),
    };
    faults.push((typo, Some(process(dialect, "«\"environmnt\"»: {}"))));
    faults.push((extra, Some(process(dialect, "«\"zzz\"»: 1"))));
    faults.push((&codes::INVISIBLE, Some(process(dialect, "«\"\u{200b}env\"»: {}"))));
    faults.push((&codes::VALUE_TYPE, Some("«7»".into()).filter(|_| dialect.collection == Collection::Map)));
    // Transports.
    if let Some(kind) = key(Field::Transport) {
        let unknown = if dialect.guesses { &codes::TRANSPORT_GUESSED } else { &codes::TRANSPORT };
        faults.push((unknown, Some(format!("{{\"{kind}\": «\"pigeon\"», \"command\": \"x\"}}"))));
        faults.push((&codes::VALUE_TYPE, Some(format!("{{\"{kind}\": «7», \"command\": \"x\"}}"))));
    }
    if dialect.untyped == Untyped::Process {
        let at = key(Field::Url(None)).unwrap_or("url");
        faults.push((
            &codes::TRANSPORT,
            (!top(Field::Object(&[])) && dialect.name != "engine").then(|| format!("{{«\"{at}\"»: {GOOD}}}")),
        ));
    }
    if let (Both::Rejected, Some(command), Some(url)) = (dialect.both, key(Field::Command), key(Field::Url(None))) {
        faults.push((&codes::FORBIDDEN, Some(format!("{{\"{command}\": \"x\", «\"{url}\"»: {GOOD}}}"))));
    }
    let misplaced = dialect.keys.iter().filter_map(|key| match (key.field, key.of) {
        (Field::Headers, Of::Remote { strict }) => {
            Some((strict, process(dialect, &format!("«\"{}\"»: {{}}", key.name))))
        }
        (Field::Env, Of::Process { strict }) => Some((strict, http(GOOD, &format!("«\"{}\"»: {{}}", key.name))?)),
        _ => None,
    });
    for (strict, server) in misplaced {
        faults.push((if strict { &codes::FORBIDDEN } else { &codes::IGNORED }, Some(server)));
    }
    // Timeouts.
    if let Some(rule) = dialect.timeout {
        let field = if key(Field::Timeout).is_some() { Field::Timeout } else { Field::CallTimeout };
        let outside = if rule.outside == Outside::Rejected { &codes::TIMEOUT } else { &codes::TIMEOUT_UNIT };
        faults.push((outside, with(field, "«-1»")));
        let other = match (rule.unit, rule.most) {
            (1000, u64::MAX) => Some("«1000»"),
            (1000, _) => None,
            _ => Some("«60»"),
        };
        faults.push((&codes::TIMEOUT_UNIT, other.and_then(|other| with(field, other))));
        if rule.most < u64::MAX {
            faults.push((outside, with(field, &format!("«{}»", rule.most + 1))));
        }
    }
    // Commands.
    faults.push((&codes::ENV_NAME, with(Field::Env, "{«\"A=B\"»: \"c\"}")));
    faults.push((&codes::ENV_NAME, with(Field::Env, "{«\"\"»: \"c\"}")));
    faults.push((&codes::ENV_NAME, with(Field::Env, "{«\"A B\"»: \"c\"}")));
    faults.push((&codes::COMMAND_LINE, with(Field::Command, "«\"/usr/bin/env node\"»")));
    faults.push((&codes::COMMAND_LINE, with(Field::Args, "[«\"-y pkg\"»]")));
    faults.push((&codes::MISSING, with(Field::Command, "«\"\"»")));
    faults.push((&codes::COMMAND_LINE, with(Field::Command, "«\"npx -y pkg\"»")));
    faults.push((&codes::COMMAND_LINE, with(Field::Args, "[\"a\", «\"&&\"»]")));
    faults.push((&codes::COMMAND_NOT_FOUND, with(Field::Command, "«\"nowhere\"»")));
    faults.push((&codes::COMMAND_NOT_FOUND, with(Field::Command, "«\"/bin/nowhere\"»")));
    faults.push((&codes::DIRECTORY, with(Field::Cwd, "«\"/nowhere\"»")));
    faults.push((&codes::HOME, with(Field::Args, "[«\"~/x\"»]").filter(|_| !dialect.home.contains(&Field::Args))));
    if dialect.files.iter().any(|place| matches!(place, Place::Project(_))) {
        faults.push((&codes::MACHINE_PATH, with(Field::Args, "[«\"/home/ada/x\"»]")));
    }
    if let (Some(command), Some(args)) = (key(Field::Command), key(Field::Args)) {
        let server = process(dialect, &format!("\"{command}\": \"npx\", \"{args}\": [«\"pkg\"», \"-y\"]"));
        faults.push((&codes::PACKAGE_PROMPT, Some(server)));
    }
    // URLs.
    faults.push((&codes::MISSING, http("«\"\"»", "").filter(|_| !dialect.empty_url)));
    faults.push((&codes::URL, http("«\"mcp.example.com/mcp\"»", "")));
    faults.push((&codes::URL, http("«\"https://\"»", "")));
    faults.push((&codes::URL_SCHEME, http("«\"ftp://mcp.example.com\"»", "")));
    faults.push((&codes::URL_HOST, http("«\"http://0.0.0.0:8080/mcp\"»", "")));
    if let Some(headers) = key(Field::Headers) {
        let places = dialect.variables.places;
        let form = dialect.variables.forms.iter().find(|_| places != Places::Nowhere);
        let token = form.map_or("<TOKEN>".into(), |form| form.written("SET"));
        let rest = format!("\"{headers}\": {{\"Authorization\": \"Bearer {token}\"}}");
        faults.push((&codes::PLAIN_HTTP, http("«\"http://mcp.example.com/mcp\"»", &rest)));
    }
    faults.push((&codes::URL_SCHEME, remote(dialect, Transport::Ws, "«\"ftp://a.example\"»", "")));
    faults.push((&codes::URL, http("«\"https:/mcp.example.com/mcp\"»", "")));
    faults.push((&codes::HEADER, http_with(Field::Headers, "{«\"X-A: b\"»: \"c\"}")));
    faults.push((&codes::HEADER, http_with(Field::Headers, "{\"X-A\": «\"b\\nc\"»}")));
    // Tools.
    let policy = dialect.policy;
    if let (Some(include), Some(exclude)) = (key(Field::Include), key(Field::Exclude)) {
        let (code, text) = match policy.both_filters {
            BothFilters::Rejected => (&codes::FILTER, format!("\"{include}\": [\"a\"], «\"{exclude}\"»: [\"b\"]")),
            BothFilters::IncludeWins => {
                (&codes::FILTER_CONFLICT, format!("\"{include}\": [\"a\"], «\"{exclude}\"»: [\"b\"]"))
            }
            BothFilters::ExcludeWins => {
                (&codes::FILTER_CONFLICT, format!("\"{include}\": [\"a\"], \"{exclude}\": [«\"a\"»]"))
            }
        };
        faults.push((code, Some(process(dialect, &text))));
    }
    let empty = if policy.empty_filter == EmptyFilter::Rejected { &codes::FILTER } else { &codes::FILTER_EMPTY };
    faults.push((empty, with(Field::Include, "«[]»")));
    if policy.patterns != Patterns::Globs {
        faults.push((&codes::FILTER_PATTERN, with(Field::Include, "[«\"get_*\"»]")));
        faults.push((&codes::FILTER_PATTERN, with(Field::Exclude, "[«\"get_*\"»]")));
    }
    // Variables.
    let rule = &dialect.variables;
    if let Some(form) = rule
        .forms
        .iter()
        .find(|form| matches!(form, crate::config::Form::Bare | crate::config::Form::Braced | crate::config::Form::Env))
    {
        let code = if rule.unset == Unset::Rejected { &codes::VARIABLE_REJECTED } else { &codes::VARIABLE_UNSET };
        faults.push((code, with(Field::Env, &format!("{{\"A\": «\"{}\"»}}", form.written("UNSET")))));
        if !rule.whole {
            faults.push((code, with(Field::Env, &format!("{{\"A\": \"é «{}» b\"}}", form.written("UNSET")))));
        }
    }
    faults.push((
        &codes::VARIABLE_FORM,
        with(Field::Env, "{\"A\": \"\\u0041 «${{ secrets.X }}» b\"}")
            .filter(|_| !rule.forms.contains(&crate::config::Form::Secret) && !rule.by_go),
    ));
    if let Some(name) = rule.blocked.first() {
        faults.push((&codes::VARIABLE_FORM, with(Field::Env, &format!("{{\"A\": \"b «${{{name}}}»\"}}"))));
    }
    if rule.by_go {
        faults.push((&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": «\"${A:-b}\"»}")));
        faults.push((&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": \"é «$5» b\"}")));
        faults.push((&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": \"«${»A\"}")));
    }
    // Texts.
    faults.push((&codes::SECRET, with(Field::Env, "{\"A_TOKEN\": «\"ghp_0123456789abcdefghij\"»}")));
    faults.push((&codes::SECRET, with(Field::Args, "[\"--api-key\", «\"0123456789abcdef\"»]")));
    faults.push((&codes::SECRET, http_with(Field::Headers, "{\"Authorization\": \"Bearer «0123456789abcdef»\"}")));
    faults.push((&codes::SECRET, http("\"https://mcp.example.com/mcp?api_key=«0123456789abcdef»\"", "")));
    faults.push((&codes::PLACEHOLDER, with(Field::Env, "{\"A\": «\"<your-token>\"»}")));
    faults.push((&codes::PLACEHOLDER, with(Field::Args, "[\"--root=«/path/to»/x\"]")));
    faults.push((&codes::INVISIBLE, with(Field::Args, "[\"a«\u{200b}»b\"]")));
    faults.push((&codes::INVISIBLE, with(Field::Args, "[«\" a\"»]")));
    faults.push((&codes::INVISIBLE, with(Field::Args, "[\"C:«\\n»ew\"]")));
    faults.push((
        &codes::INVISIBLE,
        marked(Field::Env, "{}")
            .map(|_| process(dialect, &format!("\"{}\": {{\"A«\u{a0}»B\": \"c\"}}", key(Field::Env).expect("there")))),
    ));
    faults.into_iter().filter_map(|(code, server)| Some((code, server?))).collect()
}

fn faults(dialect: &'static Dialect) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (code, server) in of_servers(dialect) {
        faults.push(Fault { code, text: file(dialect, &[("\"s\"", server)]) });
    }
    let good = || process(dialect, "");
    let mut add = |code, text| faults.push(Fault { code, text });
    let is_map = dialect.collection == Collection::Map;
    // Names.
    add(&codes::NAME, file(dialect, &[("«\"\"»", good())]));
    if dialect.name_characters.is_some() {
        add(&codes::NAME, file(dialect, &[("«\"a b\"»", good())]));
    }
    if let Some(odd) = dialect.name_discouraged {
        add(&codes::NAME_DISCOURAGED, file(dialect, &[(&format!("«\"a{odd}b\"»"), good())]));
    }
    for name in dialect.reserved_names {
        add(&codes::NAME_RESERVED, file(dialect, &[(&format!("«\"{name}\"»"), good())]));
    }
    if dialect.policy.naming != Naming::Bare && dialect.name_characters.is_none() {
        add(&codes::NAME_CLASH, file(dialect, &[("\"a b\"", good()), ("«\"a.b\"»", good())]));
    }
    if dialect.untyped == Untyped::Rejected && is_map {
        add(&codes::TRANSPORT, file(dialect, &[("«\"s\"»", "{\"command\": \"x\"}".into())]));
    } else if is_map {
        add(&codes::MISSING, file(dialect, &[("«\"s\"»", "{}".into())]));
    } else {
        add(
            &codes::MISSING,
            file(dialect, &[("\"s\"", good())]).replace("{\"name\": \"s\", ", "«{").replace("}]}", "}»]}"),
        );
    }
    if !dialect.required.is_empty() {
        add(&codes::MISSING, file(dialect, &[("«\"s\"»", "{\"command\": \"node\"}".into())]));
    }
    // The file.
    let whole = file(dialect, &[("\"s\"", good())]);
    let first = dialect.roots[0][0];
    add(
        &codes::ROOT,
        whole.replacen(&format!("\"{first}\""), "«\"mcp_servers\"»", 1).replacen(
            "mcp_servers",
            if first == "mcp_servers" { "servers" } else { "mcp_servers" },
            1,
        ),
    );
    add(&codes::ROOT, "«»[]".into());
    add(&codes::VALUE_TYPE, file(dialect, &[]).replace("{}", "«7»").replace("[]", "«7»"));
    if matches!(dialect.root_keys, RootKeys::Section(_)) {
        add(&codes::NO_SERVERS, "«»{}".into());
    }
    if let (Files::All, Some(rest)) = (dialect.strict_files, whole.strip_prefix('{')) {
        let other = if first == "mcpServers" { "mcpServer" } else { "mcpServers" };
        add(&codes::KEY_REJECTED, format!("{{«\"{other}\"»: {{\"t\": {{}}}}, {rest}"));
    } else if let Some(rest) = whole.strip_prefix('{') {
        let other = if dialect.roots.contains(&&["mcpServers"][..]) { "mcpServer" } else { "mcpServers" };
        add(&codes::UNKNOWN_KEY, format!("{{«\"{other}\"»: {{\"t\": {{}}}}, {rest}"));
    }
    for missing in dialect.beside.iter().filter(|beside| beside.required) {
        let member = format!("\"{}\": \"{}\", ", missing.key, missing.value);
        add(&codes::MISSING, format!("«»{}", whole.replace(&member, "")));
    }
    if let (RootKeys::Known(_), Some(rest)) = (dialect.root_keys, whole.strip_prefix('{')) {
        add(&codes::EXTRA_KEY, format!("{{«\"theme\"»: 1, {rest}"));
    }
    if let (RootKeys::Known([known, ..]), Some(rest)) = (dialect.root_keys, whole.strip_prefix('{')) {
        add(&codes::UNKNOWN_KEY, format!("{{«\"{known}z\"»: 1, {rest}"));
    }
    if dialect.name_lists.is_some() {
        let and = |lists: &str| format!("{{\"mcp\": {{{lists}}}, {}", &whole[1..]);
        add(&codes::SERVER_UNKNOWN, and("\"allowed\": [\"s\", «\"ss\"»]"));
        add(&codes::SERVER_UNKNOWN, and("\"excluded\": [«\"other\"»]"));
        add(&codes::UNKNOWN_KEY, and("«\"exclude\"»: [\"s\"]"));
        add(&codes::VALUE_TYPE, and("\"excluded\": «\"s\"»"));
        add(&codes::VALUE_TYPE, and("\"allowed\": [\"s\", «7»]"));
    }
    if dialect.typed_objects {
        add(&codes::TRANSPORT, file(dialect, &[("\"s\"", "{«\"transport\"»: {\"command\": \"node\"}}".into())]));
    }
    if let Some(Profiles { key, servers, .. }) = dialect.profiles {
        let profile = format!("{{\"ref\": \"one\", \"{servers}\": {{\"t\": {{«\"url\"»: {GOOD}}}}}}}");
        add(&codes::TRANSPORT, format!("{{\"{key}\": [{profile}], {}", &whole[1..]));
        let server = "{\"command\": \"node\", «\"cwd\"»: \"/srv\"}";
        let profile = format!("{{\"ref\": \"one\", \"{servers}\": {{\"t\": {server}}}}}");
        add(&codes::KEY_REJECTED, format!("{{\"{key}\": [{profile}], {}", &whole[1..]));
    }
    if dialect.is_linked {
        let first = dialect.roots[0][0];
        add(&codes::VALUE_TYPE, format!("{{\"{first}\": [\"./a.json\", «7»]}}"));
        add(&codes::VALUE_TYPE, format!("{{\"{first}\": [«{{\"name\": \"a\", \"command\": \"x\"}}»]}}"));
    }
    if !is_map {
        add(&codes::DUPLICATE_SERVER, file(dialect, &[("\"s\"", good()), ("«\"s\"»", good())]));
    }
    if let Some(projects) = dialect.projects {
        let project = "{\"mcpServers\": {«\"t\"»: {}}}";
        add(&codes::MISSING, format!("{{\"{projects}\": {{\"/p\": {project}}}}}"));
    }
    if dialect.bare.is_some() {
        add(&codes::BARE, format!("«»{{\"s\": {}}}", good()));
    }
    if is_map {
        let is_yaml = dialect.syntax == Syntax::Yaml;
        let twice = file(dialect, &[("\"s\"", good()), ("«\"s\"»", good())]);
        add(if is_yaml { &codes::DUPLICATE } else { &codes::DUPLICATE_SERVER }, twice);
        if let Some(env) = key(dialect, Field::Env) {
            let server = process(dialect, &format!("\"{env}\": {{}}, «\"{env}\"»: {{}}"));
            add(if is_yaml { &codes::DUPLICATE } else { &codes::DUPLICATE_KEY }, file(dialect, &[("\"s\"", server)]));
        }
    }
    inputs::faults(dialect, &whole, &mut add);
    if dialect.agent {
        let and = |text: &str| format!("{}, {text}}}", &whole[..whole.len() - 1]);
        add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}], \"defaults\": {\"model\": «\"ones\"»}"));
        add(&codes::MODEL, and("\"models\": [«{}»]"));
        add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}, {\"ref\": «\"one\"»}]"));
        add(&codes::VALUE_TYPE, and("\"models\": «{}»"));
        add(&codes::SUBAGENT, and("«\"subagent\"»: {\"name\": \"a\"}"));
        add(&codes::SUBAGENT, and("\"subagent\": {\"name\": \"a\", \"description\": «\"\"»}"));
        let schema = "\"subagent\": {\"name\": \"a\", \"description\": \"b\", \"outputSchemaPath\": «\"gone.json\"»}";
        add(&codes::SUBAGENT, and(schema));
        add(&codes::VALUE_TYPE, and("\"subagent\": «[]»"));
    }
    texts(dialect, &whole, &mut add);
    faults
}

/// Faults in how the text is written.
fn texts(dialect: &'static Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    let (Syntax::Json(allowed) | Syntax::Either(allowed)) = dialect.syntax else {
        add(&codes::SYNTAX, format!("{whole}\n«»@"));
        return;
    };
    use crate::config::json::LibertyKind as Kind;
    let inner = &whole[1..whole.len() - 1];
    let all = [
        (Kind::ByteOrderMark, &codes::BYTE_ORDER_MARK, format!("«\u{feff}»{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("«// mine»\n{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("{{«/* mine */» {inner}}}")),
        (Kind::HashComment, &codes::JSON_COMMENT, format!("«# mine»\n{whole}")),
        (Kind::TrailingComma, &codes::JSON_COMMA, format!("{{{inner}«,»}}")),
        (Kind::SurplusComma, &codes::JSON_COMMA, format!("{{«,»{inner}}}")),
        (Kind::MissingComma, &codes::JSON_COMMA, format!("{{{inner} «\"»_note\": 1}}")),
        (Kind::SingleQuotes, &codes::JSON_FORM, format!("{{\"_note\": «'a'», {inner}}}")),
        (Kind::BareKey, &codes::JSON_FORM, format!("{{«_note»: 1, {inner}}}")),
        (Kind::BareValue, &codes::JSON_FORM, format!("{{\"_note\": «None», {inner}}}")),
        (Kind::NumberForm, &codes::JSON_FORM, format!("{{\"_note\": «0x10», {inner}}}")),
        (Kind::CurlyQuotes, &codes::JSON_FORM, format!("{{\"_note\": «“a”», {inner}}}")),
        (Kind::Blank, &codes::JSON_BLANK, format!("{{«\u{a0}»{inner}}}")),
        (Kind::UnknownEscape, &codes::JSON_FORM, format!("{{\"_note\": \"C:«\\U»sers\", {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("«{{»{inner}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{\"_note\": «[»1, {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{\"_note\": [1«,» {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{{inner}, \"_note\": [1«}}»")),
        (Kind::WrongBracket, &codes::JSON_UNCLOSED, format!("{{\"_note\": [1«}}», {inner}}}")),
        (Kind::SurplusBracket, &codes::JSON_AFTER, format!("{{\"_note\": [1]«]», {inner}}}")),
        (Kind::BareReference, &codes::JSON_FORM, format!("{{\"_note\": «{{env:A}}», {inner}}}")),
        (Kind::Fragment, &codes::JSON_FORM, format!("«\"_note\"»: 1, {inner}")),
        (Kind::TextAfter, &codes::JSON_AFTER, format!("{whole} «}}»")),
        (Kind::Nothing, &codes::SYNTAX, " «»".into()),
    ];
    for (kind, code, text) in all {
        if dialect.doubtful.contains(&kind) {
            add(&codes::JSON_DOUBTFUL, text);
        } else if !allowed.contains(&kind) {
            add(code, text);
        }
    }
    add(&codes::SYNTAX, format!("{{\"a\": «@», {inner}}}"));
}

#[test]
fn every_fault_is_found_where_it_is_in_every_dialect_that_has_it() {
    let machine = machine();
    let (mut told, mut seen, mut failed) = (String::new(), BTreeSet::new(), Vec::new());
    for dialect in ALL {
        let name = if dialect.syntax == Syntax::Yaml { "t.yaml" } else { "t.json" };
        for Fault { code, text } in faults(dialect) {
            let (text, span) = unmarked(&text);
            let source = Source::new(name, text.clone());
            let examined = examine(&source, Some(Path::new(name)), Some(dialect), Some(&machine));
            let found = examined.findings.iter().find(|finding| finding.code == code && finding.problem.span == span);
            let Some(Finding { problem: Problem { message, hint, .. }, .. }) = found else {
                let found = examined.findings.iter().map(|it| (it.code.name, it.problem.span, &it.problem.message));
                failed.push(format!(
                    "{} {} in {text} at {span:?}: {:?}",
                    dialect.name,
                    code.name,
                    found.collect::<Vec<_>>()
                ));
                continue;
            };
            let others = examined.findings.iter().filter(|it| it.code != code && it.code.name.starts_with("E-"));
            let others: Vec<_> = others.map(|finding| finding.code.name).collect();
            if !others.is_empty() && code.name != "E-SYNTAX" {
                failed.push(format!("{} {} in {text}: also {others:?}", dialect.name, code.name));
            }
            let Some(hint) = hint else {
                failed.push(format!("{} {}: {message}: no hint", dialect.name, code.name));
                continue;
            };
            writeln!(told, "{} {} {message} ({hint})", dialect.name, code.name).expect("a text");
            seen.insert(code.name);
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    // Only whoever connects finds that a server cannot be reached.
    let by_checks = codes::ALL.iter().map(|code| code.name).filter(|name| *name != codes::CONNECT.name);
    let unseen: Vec<_> = by_checks.filter(|name| !seen.contains(name)).collect();
    assert_eq!(unseen, [""; 0], "codes that no fault has");
    insta::assert_snapshot!("findings", told);
}
