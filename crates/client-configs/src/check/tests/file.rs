//! Faults in a file around its servers: in their names, their place, and what stands beside them.

use super::sample::{self, GOOD, file, key, process};
use crate::{
    codes,
    dialect::{Collection, Dialect, Field, Files, Profiles, RootKeys, Syntax, WhenTypeMissing},
    policy::Naming,
};
use rehearse_report::findings::Code;

/// Every fault that the dialect has a place for, in `whole`, a file without one.
pub(super) fn faults(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    names(dialect, add);
    place(dialect, whole, add);
    beside(dialect, whole, add);
    sets(dialect, whole, add);
    twice(dialect, add);
}

fn names(dialect: &Dialect, add: &mut impl FnMut(&'static Code, String)) {
    let good = || process(dialect, "");
    let is_map = dialect.collection == Collection::Map;
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
    if dialect.when_type_missing == WhenTypeMissing::Rejected && is_map {
        add(&codes::TRANSPORT, file(dialect, &[("«\"s\"»", format!("{{{}}}", sample::command(dialect)))]));
    } else if is_map {
        add(&codes::MISSING, file(dialect, &[("«\"s\"»", "{}".into())]));
    } else {
        add(
            &codes::MISSING,
            file(dialect, &[("\"s\"", good())]).replace("{\"name\": \"s\", ", "«{").replace("}]}", "}»]}"),
        );
    }
    if !dialect.required_keys.is_empty() {
        add(&codes::MISSING, file(dialect, &[("«\"s\"»", "{\"command\": \"node\"}".into())]));
    }
}

/// Where the servers are.
fn place(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
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
}

/// What stands beside the servers.
fn beside(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    for missing in dialect.companions.iter().filter(|beside| beside.required) {
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
}

/// Servers that are not simply in the one place of all.
fn sets(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
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
    if dialect.links_to_file {
        let first = dialect.roots[0][0];
        add(&codes::VALUE_TYPE, format!("{{\"{first}\": [\"./a.json\", «7»]}}"));
        add(&codes::VALUE_TYPE, format!("{{\"{first}\": «[{{\"name\": \"a\", \"command\": \"x\"}}]»}}"));
    }
    if let Some(projects) = dialect.projects {
        let project = "{\"mcpServers\": {«\"t\"»: {}}}";
        add(&codes::MISSING, format!("{{\"{projects}\": {{\"/p\": {project}}}}}"));
    }
    if dialect.bare_map_note.is_some() {
        add(&codes::BARE, format!("«»{{\"s\": {}}}", process(dialect, "")));
    }
}

/// What stands there twice.
fn twice(dialect: &Dialect, add: &mut impl FnMut(&'static Code, String)) {
    let servers = file(dialect, &[("\"s\"", process(dialect, "")), ("«\"s\"»", process(dialect, ""))]);
    let (of_servers, of_keys) = match (&dialect.collection, dialect.syntax) {
        (Collection::List { .. }, _) => return add(&codes::DUPLICATE_SERVER, servers),
        (Collection::Map, Syntax::Yaml) => (&codes::DUPLICATE, &codes::DUPLICATE),
        (Collection::Map, _) => (&codes::DUPLICATE_SERVER, &codes::DUPLICATE_KEY),
    };
    add(of_servers, servers);
    if let Some(env) = key(dialect, Field::Env) {
        let server = process(dialect, &format!("\"{env}\": {{}}, «\"{env}\"»: {{}}"));
        add(of_keys, file(dialect, &[("\"s\"", server)]));
    }
}
