//! Faults that one server can have.

use super::sample::{self, GOOD, http, http_with, key, process, remote, with, word};
use crate::{
    codes,
    dialect::{
        AppliesTo, Collection, Dialect, Field, FileLocation, Outside, Unset, VariableScope, WhenBothGiven,
        WhenTypeMissing,
    },
    policy::{BothFilters, EmptyFilter, Patterns},
};
use rehearse_document::Form;
use rehearse_protocol::Transport;
use rehearse_report::findings::Code;

/// Every fault that the dialect has a place for, and a server with it.
pub(super) fn faults(dialect: &Dialect) -> Vec<(&'static Code, String)> {
    let mut faults = Vec::new();
    let mut add = |code, server: Option<String>| faults.extend(server.map(|server| (code, server)));
    types(dialect, &mut add);
    keys(dialect, &mut add);
    transports(dialect, &mut add);
    timeouts(dialect, &mut add);
    commands(dialect, &mut add);
    urls(dialect, &mut add);
    tools(dialect, &mut add);
    variables(dialect, &mut add);
    texts(dialect, &mut add);
    faults
}

fn types(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let with = |field, value: &str| with(dialect, field, value);
    let http = |url: &str, rest: &str| http(dialect, url, rest);
    let http_with = |field, value: &str| http_with(dialect, field, value);
    add(&codes::VALUE_TYPE, with(Field::Args, "«\"-y pkg\"»"));
    add(&codes::VALUE_TYPE, with(Field::Args, "[«1»]"));
    add(&codes::VALUE_TYPE, with(Field::Command, "«[\"node\"]»"));
    add(
        &codes::VALUE_TYPE,
        with(Field::CommandLine, "«\"node\"»").map(|it| it.replacen("\"command\": [\"node\"], ", "", 1)),
    );
    add(&codes::VALUE_TYPE, with(Field::Env, "«[\"A=b\"]»"));
    add(&codes::VALUE_TYPE, with(Field::Env, "{\"A\": «true»}"));
    add(&codes::VALUE_TYPE, with(Field::Cwd, "«7»"));
    let is_clamped = dialect.timeout.is_some_and(|rule| rule.outside == Outside::Clamped);
    let of_text = if is_clamped { &codes::IGNORED } else { &codes::VALUE_TYPE };
    add(of_text, with(Field::Timeout, "«\"soon\"»"));
    add(&codes::VALUE_TYPE, with(Field::CallTimeout, "«\"soon\"»"));
    add(&codes::VALUE_TYPE, with(Field::Disabled, "«\"true\"»"));
    add(&codes::VALUE_TYPE, with(Field::Enabled, "«\"yes\"»"));
    add(&codes::VALUE_TYPE, with(Field::AlwaysAllow, "«\"echo\"»"));
    add(&codes::VALUE_TYPE, with(Field::Include, "«\"echo\"»"));
    add(&codes::VALUE_TYPE, http("«7»", ""));
    add(&codes::VALUE_TYPE, http_with(Field::Headers, "«[]»"));
}

fn keys(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let (typo, extra) = match dialect.rejects_unknown_keys {
        true => (&codes::KEY_REJECTED, &codes::KEY_REJECTED),
        false => (&codes::UNKNOWN_KEY, &codes::EXTRA_KEY),
    };
    add(typo, Some(process(dialect, "«\"environmnt\"»: {}")));
    add(extra, Some(process(dialect, "«\"zzz\"»: 1")));
    add(&codes::VALUE_TYPE, Some("«7»".into()).filter(|_| dialect.collection == Collection::Map));
}

fn transports(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let key = |field| key(dialect, field);
    let http = |url: &str, rest: &str| http(dialect, url, rest);
    if let Some(kind) = key(Field::Transport) {
        let unknown = if dialect.ignores_unknown_transport { &codes::TRANSPORT_GUESSED } else { &codes::TRANSPORT };
        let command = sample::command(dialect);
        add(unknown, Some(format!("{{\"{kind}\": «\"pigeon\"», {command}}}")));
        add(&codes::VALUE_TYPE, Some(format!("{{\"{kind}\": «7», {command}}}")));
        let remote = word(dialect, Transport::Http).filter(|_| !dialect.ignores_unknown_transport);
        add(&codes::TRANSPORT, remote.map(|word| format!("{{\"{kind}\": «\"{word}\"», {command}}}")));
        let process = word(dialect, Transport::Stdio).filter(|_| dialect.name != "engine");
        let url = |word| format!("{{\"{kind}\": «\"{word}\"», \"{}\": {GOOD}}}", key(Field::Url(None)).expect("a URL"));
        add(&codes::TRANSPORT, process.filter(|_| key(Field::Url(None)).is_some()).map(url));
    }
    if dialect.when_type_missing != WhenTypeMissing::Rejected && !dialect.allows_partial_server {
        let meant = if dialect.rejects_unknown_keys { &codes::KEY_REJECTED } else { &codes::MISSING };
        add(meant, Some("{«\"comand\"»: \"node\"}".into()));
    }
    if dialect.when_type_missing == WhenTypeMissing::Process {
        let at = key(Field::Url(None)).unwrap_or("url");
        add(&codes::TRANSPORT, (dialect.name != "engine").then(|| format!("{{«\"{at}\"»: {GOOD}}}")));
    }
    if let (WhenBothGiven::Rejected, Some(command), Some(url)) =
        (dialect.when_both_given, key(Field::Command), key(Field::Url(None)))
    {
        add(&codes::FORBIDDEN, Some(format!("{{\"{command}\": \"x\", «\"{url}\"»: {GOOD}}}")));
    }
    let misplaced = dialect.keys.iter().filter_map(|key| match (key.field, key.applies_to) {
        (Field::Headers, AppliesTo::Remote) => Some(process(dialect, &format!("«\"{}\"»: {{\"A\": \"b\"}}", key.name))),
        (Field::Env, AppliesTo::Process) => http(GOOD, &format!("«\"{}\"»: {{\"A\": \"b\"}}", key.name)),
        _ => None,
    });
    let code = if dialect.rejects_misplaced_keys { &codes::FORBIDDEN } else { &codes::IGNORED };
    for server in misplaced {
        add(code, Some(server));
    }
}

fn timeouts(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let key = |field| key(dialect, field);
    let with = |field, value: &str| with(dialect, field, value);
    if let Some(rule) = dialect.timeout {
        let field = if key(Field::Timeout).is_some() { Field::Timeout } else { Field::CallTimeout };
        let outside = if rule.outside == Outside::Rejected { &codes::TIMEOUT } else { &codes::TIMEOUT_UNIT };
        add(outside, with(field, "«-1»"));
        let other = match (rule.unit, rule.most) {
            (1000, u64::MAX) => Some("«1000»"),
            (1000, _) => None,
            _ => Some("«60»"),
        };
        add(&codes::TIMEOUT_UNIT, other.and_then(|other| with(field, other)));
        if rule.most < u64::MAX {
            add(outside, with(field, &format!("«{}»", rule.most + 1)));
        }
    }
}

fn commands(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let key = |field| key(dialect, field);
    let with = |field, value: &str| with(dialect, field, value);
    add(&codes::ENV_NAME, with(Field::Env, "{«\"A=B\"»: \"c\"}"));
    add(&codes::ENV_NAME, with(Field::Env, "{«\"\"»: \"c\"}"));
    add(&codes::ENV_NAME, with(Field::Env, "{«\"A B\"»: \"c\"}"));
    add(&codes::COMMAND_LINE, with(Field::Command, "«\"/usr/bin/env node\"»"));
    add(&codes::COMMAND_LINE, with(Field::Args, "[«\"-y pkg\"»]"));
    add(&codes::MISSING, with(Field::Command, "«\"\"»"));
    add(&codes::COMMAND_LINE, with(Field::Command, "«\"npx -y pkg\"»"));
    add(&codes::COMMAND_LINE, with(Field::Args, "[\"a\", «\"&&\"»]"));
    add(&codes::COMMAND_NOT_FOUND, with(Field::Command, "«\"nowhere\"»"));
    add(&codes::COMMAND_NOT_FOUND, with(Field::Command, "«\"/bin/nowhere\"»"));
    add(&codes::DIRECTORY, with(Field::Cwd, "«\"/nowhere\"»"));
    add(&codes::HOME, with(Field::Args, "[«\"~/x\"»]").filter(|_| !dialect.expands_home_in.contains(&Field::Args)));
    if dialect.files.iter().any(|place| matches!(place, FileLocation::Project(_))) {
        add(&codes::MACHINE_PATH, with(Field::Args, "[«\"/home/ada/x\"»]"));
    }
    if let (Some(command), Some(args_key)) = (key(Field::Command), key(Field::Args)) {
        let server = process(dialect, &format!("\"{command}\": \"npx\", \"{args_key}\": [«\"pkg\"», \"-y\"]"));
        add(&codes::PACKAGE_PROMPT, Some(server));
        let server = process(dialect, &format!("\"{command}\": \"docker\", \"{args_key}\": [«\"run\"», \"image\"]"));
        add(&codes::CONTAINER_INPUT, Some(server));
        let npx =
            |args: &str| Some(process(dialect, &format!("\"{command}\": \"npx\", \"{args_key}\": [\"-y\", {args}]")));
        add(&codes::PACKAGE_UNPINNED, npx("«\"some-mcp\"»"));
        add(&codes::WIDE_ACCESS, npx("\"@modelcontextprotocol/server-filesystem@1.0.0\", «\"/\"»"));
        let script = process(dialect, &format!("\"{command}\": \"node\", \"{args_key}\": [«\"build/index.js\"»]"));
        add(&codes::RELATIVE_PATH, Some(script).filter(|_| dialect.is_desktop));
    }
}

fn urls(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let key = |field| key(dialect, field);
    let http = |url: &str, rest: &str| http(dialect, url, rest);
    let http_with = |field, value: &str| http_with(dialect, field, value);
    add(if dialect.ignores_empty_url { &codes::PLACEHOLDER } else { &codes::MISSING }, http("«\"\"»", ""));
    add(&codes::URL, http("«\"mcp.example.com/mcp\"»", ""));
    add(&codes::URL, http("«\"https://\"»", ""));
    add(&codes::URL_SCHEME, http("«\"ftp://mcp.example.com\"»", ""));
    add(&codes::URL_HOST, http("«\"http://0.0.0.0:8080/mcp\"»", ""));
    if let Some(headers) = key(Field::Headers) {
        let places = dialect.variables.scope;
        let form = dialect.variables.forms.iter().find(|_| places != VariableScope::Nowhere);
        let token = form.map_or("<TOKEN>".into(), |form| form.written("SET"));
        let rest = format!("\"{headers}\": {{\"Authorization\": \"Bearer {token}\"}}");
        add(&codes::PLAIN_HTTP, http("«\"http://mcp.example.com/mcp\"»", &rest));
    }
    add(&codes::URL_SCHEME, remote(dialect, Transport::Ws, "«\"ftp://a.example\"»", ""));
    add(&codes::URL, http("«\"https:/mcp.example.com/mcp\"»", ""));
    add(&codes::HEADER, http_with(Field::Headers, "{«\"X-A: b\"»: \"c\"}"));
    add(&codes::HEADER, http_with(Field::Headers, "{\"X-A\": «\"b\\nc\"»}"));
}

fn tools(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let key = |field| key(dialect, field);
    let with = |field, value: &str| with(dialect, field, value);
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
        add(code, Some(process(dialect, &text)));
    }
    let empty = if policy.empty_filter == EmptyFilter::Rejected { &codes::FILTER } else { &codes::FILTER_EMPTY };
    add(empty, with(Field::Include, "«[]»"));
    if policy.patterns != Patterns::Globs {
        add(&codes::FILTER_PATTERN, with(Field::Include, "[«\"get_*\"»]"));
        add(&codes::FILTER_PATTERN, with(Field::Exclude, "[«\"get_*\"»]"));
    }
}

fn variables(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let with = |field, value: &str| with(dialect, field, value);
    let rule = &dialect.variables;
    if let Some(form) = rule.forms.iter().find(|form| matches!(form, Form::Bare | Form::Braced | Form::Env)) {
        let code = if rule.unset == Unset::Rejected { &codes::VARIABLE_REJECTED } else { &codes::VARIABLE_UNSET };
        add(code, with(Field::Env, &format!("{{\"A\": «\"{}\"»}}", form.written("UNSET"))));
        if !rule.whole {
            add(code, with(Field::Env, &format!("{{\"A\": \"é «{}» b\"}}", form.written("UNSET"))));
        }
    }
    add(
        &codes::VARIABLE_FORM,
        with(Field::Env, "{\"A\": \"\\u0041 «${{ secrets.X }}» b\"}")
            .filter(|_| !rule.forms.contains(&Form::Secret) && !rule.by_go),
    );
    if let Some(name) = rule.blocked.first() {
        add(&codes::VARIABLE_FORM, with(Field::Env, &format!("{{\"A\": \"b «${{{name}}}»\"}}")));
    }
    if rule.by_go {
        add(&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": «\"${A:-b}\"»}"));
        add(&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": \"é «$5» b\"}"));
        add(&codes::VARIABLE_UNSET, with(Field::Env, "{\"A\": \"«${»A\"}"));
    }
}

fn texts(dialect: &Dialect, add: &mut impl FnMut(&'static Code, Option<String>)) {
    let with = |field, value: &str| with(dialect, field, value);
    let http = |url: &str, rest: &str| http(dialect, url, rest);
    let http_with = |field, value: &str| http_with(dialect, field, value);
    add(&codes::SECRET, with(Field::Env, "{\"A_TOKEN\": «\"ghp_0123456789abcdefghij\"»}"));
    add(&codes::SECRET, with(Field::Args, "[\"--api-key\", «\"0123456789abcdef\"»]"));
    add(&codes::SECRET, http_with(Field::Headers, "{\"Authorization\": \"Bearer «0123456789abcdef»\"}"));
    add(&codes::SECRET, http("\"https://mcp.example.com/mcp?api_key=«0123456789abcdef»\"", ""));
    add(&codes::PLACEHOLDER, with(Field::Env, "{\"A\": «\"<your-token>\"»}"));
    add(&codes::PLACEHOLDER, with(Field::Args, "[\"--root=«/path/to»/x\"]"));
    add(&codes::INVISIBLE, with(Field::Args, "[\"a«\u{200b}»b\"]"));
    add(&codes::INVISIBLE, with(Field::Args, "[«\" a\"»]"));
    add(&codes::INVISIBLE, with(Field::Env, "{\"A«\u{a0}»B\": \"c\"}"));
}
