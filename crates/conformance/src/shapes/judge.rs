//! Compares messages with their shapes.

use std::{collections::HashSet, fmt::Write};

use serde_json::{Map, Value};

use super::{Kind, Member, Owner, SHAPES, Shape};
use crate::{
    Call, EventRef, Evidence, Judgement, Kind as MessageKind, Level,
    areas::{answered, is_base64, shown},
    check::{Check, Role},
    checks,
    formats::{is_scheme, is_template, is_uri},
    method::method,
};
use rehearse_protocol::Version;

/// The data of errors, each with its version, its shape and its check.
const ERRORS: &[(i64, Version, &str, &str)] = &[
    (-32022, Version::V2026_07_28, "UnsupportedVersionData", "schema.error.unsupported-version"),
    (-32021, Version::V2026_07_28, "MissingCapabilityData", "schema.error.missing-capability"),
    (-32042, Version::V2025_11_25, "UrlElicitationData", "schema.error.url-elicitation"),
];

const CLIENT_CAPABILITIES: &str = "/params/_meta/io.modelcontextprotocol~1clientCapabilities";
const CLIENT_INFO: &str = "/params/_meta/io.modelcontextprotocol~1clientInfo";

const BAD_SCHEME: [Owner; 1] = [Owner { check: "res.list.custom-scheme-rfc3986", method: Some("resources/list") }];
const SERVER_INFO: &str = "/_meta/io.modelcontextprotocol~1serverInfo";

/// Whether the params of a notification have a check of their own.
pub(crate) fn has_check(evidence: &Evidence<'_>, notification: &str) -> bool {
    let shape = method(Role::Server, MessageKind::Notification, notification).and_then(|it| it.shape);
    shape
        .is_some_and(|(_, check)| checks().iter().any(|it| it.id == check && it.levels.contains_key(&evidence.version)))
}

/// Whether a check says something of what has another check.
fn concerns(check: &str, root: &str) -> bool {
    let is_content = ["schema.result.tools-call", "schema.result.prompts-get", "schema.result.resources-read"];
    match check.split('.').nth(1) {
        _ if check == root || root.starts_with("client-") => true,
        Some("request") => is_content.contains(&root),
        Some("content") => is_content.contains(&root) || root == "schema.request.sampling",
        Some("capabilities") => ["schema.result.initialize", "schema.result.discover"].contains(&root),
        Some("ids") => !["schema.result.tools-list", "schema.result.prompts-list"].contains(&root),
        _ => false,
    }
}

/// Checks everything that the checked side sent with what the check says of its shape.
pub(crate) fn judge(evidence: &Evidence<'_>, j: &mut Judgement, check: &'static str) {
    let mut seen = HashSet::new();
    let mut compare = |message: Compared<'_>| {
        let path = Vec::new();
        Comparison { evidence, j: &mut *j, wanted: check, seen: &mut seen, path, message: &message }.run();
    };
    match evidence.facts.role {
        Role::Server => answers_of_server(evidence, check, &mut compare),
        Role::Client => answers_of_client(evidence, check, &mut compare),
        Role::Issuer | Role::Gateway => return,
    }
    for message in evidence.own() {
        let (MessageKind::Notification | MessageKind::Request, Some(name)) = (message.kind, message.method()) else {
            continue;
        };
        let known = method(evidence.facts.role, message.kind, name);
        if let Some((shape, root)) = known.and_then(|it| it.shape).filter(|(_, root)| concerns(check, root)) {
            let value = message.value.get("params");
            let compared = Compared::new(evidence, shape, root, name, value, vec![message.place]);
            compare(Compared { prefix: "params", ..compared });
        }
        if evidence.facts.role == Role::Client && evidence.is_modern() && message.kind == MessageKind::Request {
            for (pointer, shape) in [(CLIENT_CAPABILITIES, "ModernCapabilities"), (CLIENT_INFO, "Implementation")] {
                let root = "client-rpc.schema.request-valid";
                if let Some(value) = message.value.pointer(pointer) {
                    compare(Compared::new(evidence, shape, root, name, Some(value), vec![message.place]));
                }
            }
        }
    }
}

fn answers_of_client(evidence: &Evidence<'_>, check: &str, compare: &mut impl FnMut(Compared<'_>)) {
    for asked in answered(evidence) {
        let known = method(Role::Client, MessageKind::Response, asked.method);
        let Some((shape, root)) = known.and_then(|it| it.shape) else { continue };
        let root = if evidence.is_modern() { "client-mrtr.retry.responses-shape" } else { root };
        if let Some(result) = asked.result.filter(|_| concerns(check, root)) {
            compare(Compared::new(evidence, shape, root, asked.method, Some(result), asked.places));
        }
    }
}

fn answers_of_server(evidence: &Evidence<'_>, check: &str, compare: &mut impl FnMut(Compared<'_>)) {
    // What is not a request has no result of its own.
    let is_malformed = |call: &Call<'_>| call.request.case.is_some_and(|case| case.starts_with("malformed/"));
    let is_of_era = |call: &Call<'_>| !(evidence.is_modern() && call.method() == "initialize");
    let is_judged =
        |call: &Call<'_>| call.request.kind == MessageKind::Request && !is_malformed(call) && is_of_era(call);
    for call in evidence.calls().filter(is_judged) {
        if let Some(result) = call.result().filter(|result| result.is_object()) {
            results(evidence, check, &call, result, compare);
        } else if let Some(response) = call.response
            && let Some((.., shape, root)) =
                ERRORS.iter().find(|it| Some(it.0) == response.error_code() && it.1 == evidence.version)
            && concerns(check, root)
        {
            let value = response.error().and_then(|error| error.get("data"));
            let message = Compared::new(evidence, shape, root, call.method(), value, call.places());
            compare(Compared { prefix: "data", ..message });
        }
    }
}

fn results(
    evidence: &Evidence<'_>,
    check: &str,
    call: &Call<'_>,
    result: &Value,
    compare: &mut impl FnMut(Compared<'_>),
) {
    let Some((shape, root)) = result_shape(evidence, call, result).filter(|(_, root)| concerns(check, root)) else {
        return;
    };
    if let Some(info) = result.pointer(SERVER_INFO).filter(|_| evidence.is_modern()) {
        let message = Compared::new(evidence, "Implementation", root, call.method(), Some(info), call.places());
        compare(Compared { prefix: "_meta.io.modelcontextprotocol/serverInfo", ..message });
    }
    let mut message = Compared::new(evidence, shape, root, call.method(), Some(result), call.places());
    if call.method() == "initialize"
        && let Some(version) = result["protocolVersion"].as_str().and_then(|it| it.parse().ok())
    {
        message.version = version;
    }
    message.subject = ["/params/name", "/params/uri"].iter().find_map(|it| call.request.at(it).as_str());
    message.arguments = call.request.at("/params/arguments").as_object();
    compare(message);
}

/// The shape of a result, and its check. Results of extensions have none.
fn result_shape(evidence: &Evidence<'_>, call: &Call<'_>, result: &Value) -> Option<(&'static str, &'static str)> {
    let (shape, check) = method(Role::Server, MessageKind::Response, call.method())?.shape?;
    let is_task = evidence.version == Version::V2025_11_25 && result.get("task").is_some();
    match result.get("resultType").and_then(Value::as_str).filter(|_| evidence.is_modern()) {
        Some("input_required") => Some(("InputRequiredResult", check)),
        Some("complete") | None if is_task && call.method() == "tools/call" => {
            Some(("CreateTaskResult", "schema.result.task-types"))
        }
        Some("complete") | None => Some((shape, check)),
        Some(_) => None,
    }
}

/// What is compared with a shape.
struct Compared<'v> {
    /// Nothing is compared as an empty object.
    value: Option<&'v Value>,
    /// What stands before a path.
    prefix: &'static str,
    version: Version,
    method: &'v str,
    subject: Option<&'v str>,
    /// What the prober sent to the tool or prompt.
    arguments: Option<&'v Map<String, Value>>,
    places: Vec<EventRef>,
    shape: &'static str,
    check: &'static str,
}

impl<'v> Compared<'v> {
    fn new(
        evidence: &Evidence<'_>,
        shape: &'static str,
        check: &'static str,
        method: &'v str,
        value: Option<&'v Value>,
        places: Vec<EventRef>,
    ) -> Compared<'v> {
        let (version, prefix, subject, arguments) = (evidence.version, "", None, None);
        Compared { value, prefix, version, method, subject, arguments, places, shape, check }
    }
}

enum Step<'v> {
    Name(&'v str),
    Index(usize),
}

/// One comparison, for one check.
struct Comparison<'c, 'v, 't> {
    evidence: &'c Evidence<'t>,
    j: &'c mut Judgement,
    /// The check whose violations are wanted.
    wanted: &'static str,
    /// What was found already, in other messages too.
    seen: &'c mut HashSet<String>,
    path: Vec<Step<'v>>,
    message: &'c Compared<'v>,
}

static EMPTY: Value = Value::Null;

impl<'v> Comparison<'_, 'v, '_> {
    fn run(&mut self) {
        let message = self.message;
        if message.check == self.wanted {
            self.j.exercised += 1;
        }
        if !message.prefix.is_empty() {
            self.path.push(Step::Name(message.prefix));
        }
        match message.value {
            Some(Value::Object(members)) => self.shape(message.shape, members, message.check),
            Some(value) => self.wrong(message.check, &[], value, "an object"),
            None => {
                let shape = SHAPES.get(message.shape);
                let required = shape.into_iter().flat_map(|it| &it.members).any(|it| it.is_required);
                if required {
                    self.report(message.check, &[], None, |path| format!("no `{path}`"));
                }
            }
        }
    }

    fn shape(&mut self, name: &str, members: &'v Map<String, Value>, outer: &'static str) {
        let Some(shape) = SHAPES.get(name) else { return };
        let own = shape.check.filter(|check| self.is_judged(check));
        let check = own.unwrap_or(outer);
        if own == Some(self.wanted) && self.wanted != self.message.check {
            self.j.exercised += 1;
        }
        match shape.by {
            Some((key, default)) => self.variant(shape, key, default, members, check, outer),
            None => shape.members.iter().for_each(|member| self.member(member, members, check)),
        }
    }

    fn variant(
        &mut self,
        shape: &Shape,
        key: &'static str,
        default: Option<&'static str>,
        members: &'v Map<String, Value>,
        check: &'static str,
        outer: &'static str,
    ) {
        let value = members.get(key);
        let selected = value.map_or(default, Value::as_str);
        let version = self.message.version;
        let found = shape.members.iter().find(|it| Some(it.name) == selected && it.is_in(version));
        if let Some(Kind::Shape(name)) = found.map(|it| &it.kind) {
            return self.shape(name, members, outer);
        }
        self.path.push(Step::Name(key));
        match value {
            Some(value) => self.report(check, &[], None, |path| format!("`{path}: {}`", shown(value))),
            None => self.report(check, &[], None, |path| format!("no `{path}`")),
        }
        self.path.pop();
    }

    fn member(&mut self, member: &'static Member, members: &'v Map<String, Value>, check: &'static str) {
        if !member.is_in(self.message.version) {
            return;
        }
        if member.kind == Kind::Either {
            let found = member.name.split('|').filter(|name| members.contains_key(*name)).count();
            let level = (found > 1).then_some(Level::Derived);
            if found != 1 {
                let names = member.name.replace('|', "` and `");
                let found = if found == 0 { "neither" } else { "both" };
                self.report(check, &member.reported_by, level, |path| format!("{found} of `{names}` in `{path}`"));
            }
            return;
        }
        match members.get_key_value(member.name) {
            Some((name, value)) => {
                self.path.push(Step::Name(name));
                self.value(&member.kind, value, check, &member.reported_by);
            }
            None if member.is_required => {
                self.path.push(Step::Name(member.name));
                self.report(check, &member.reported_by, None, |path| format!("no `{path}`"));
            }
            None => return,
        }
        self.path.pop();
    }

    fn value(&mut self, kind: &'static Kind, value: &'v Value, check: &'static str, owners: &'static [Owner]) {
        let expected = match (kind, value) {
            (Kind::Any | Kind::Either, _)
            | (Kind::String, Value::String(_))
            | (Kind::Number, Value::Number(_))
            | (Kind::Boolean, Value::Bool(_))
            | (Kind::Object, Value::Object(_))
            | (Kind::Id, Value::String(_) | Value::Number(_))
            | (Kind::Nullable(_), Value::Null) => return,
            (Kind::OneOf(values), Value::String(text)) if values.contains(&text.as_str()) => return,
            (Kind::Shape(name), Value::Object(members)) => return self.shape(name, members, check),
            (Kind::Array(inner) | Kind::OneOrMore(inner), Value::Array(items)) => {
                return self.items(
                    inner,
                    items.iter().enumerate().map(|(at, it)| (Step::Index(at), it)),
                    check,
                    owners,
                );
            }
            (Kind::Map(inner), Value::Object(members)) => {
                return self.items(inner, members.iter().map(|(key, it)| (Step::Name(key), it)), check, owners);
            }
            (Kind::OneOrMore(inner) | Kind::Nullable(inner), _) => return self.value(inner, value, check, owners),
            (Kind::Uri, Value::String(_)) if self.evidence.facts.role == Role::Client => return,
            (Kind::Uri, Value::String(text)) => return self.uri(text),
            (Kind::Template, Value::String(text)) => {
                let check = "schema.ids.uri-template-format";
                return self.format(check, &[], is_template(text), None, text, "no URI template");
            }
            (Kind::Base64, Value::String(text)) if is_base64(text) => return,
            (Kind::Base64, Value::String(text)) => {
                let is_wrapped = is_base64(&text.split_ascii_whitespace().collect::<String>());
                let level = is_wrapped.then_some(Level::Derived);
                let why = if is_wrapped { "base64 with white space" } else { "no base64" };
                return self.report(check, owners, level, |path| format!("`{path}: {}`, which is {why}", shown(value)));
            }
            (Kind::String | Kind::Uri | Kind::Template | Kind::Base64, _) => "a string".to_owned(),
            (Kind::Number, _) => "a number".to_owned(),
            (Kind::Boolean, _) => "a boolean".to_owned(),
            (Kind::Object | Kind::Shape(_) | Kind::Map(_), _) => "an object".to_owned(),
            (Kind::Id, _) => "a string or a number".to_owned(),
            (Kind::Array(_), _) => "an array".to_owned(),
            (Kind::OneOf(values), _) => match values.as_slice() {
                [one] => format!("{one:?}"),
                _ => format!("one of {}", values.join(", ")),
            },
        };
        self.wrong(check, owners, value, &expected);
    }

    /// The checks of a member say nothing of objects in it.
    fn items(
        &mut self,
        kind: &'static Kind,
        items: impl Iterator<Item = (Step<'v>, &'v Value)>,
        check: &'static str,
        owners: &'static [Owner],
    ) {
        let owners = if matches!(kind, Kind::Shape(_)) { &[] } else { owners };
        for (step, item) in items {
            self.path.push(step);
            self.value(kind, item, check, owners);
            self.path.pop();
        }
    }

    fn uri(&mut self, text: &'v str) {
        let level = (is_uri(text) && !text.is_ascii()).then_some(Level::Derived);
        let holds = is_uri(text) && text.is_ascii();
        let why = if level.is_some() { "no URI: it has letters that are not ASCII" } else { "no URI" };
        // A server may well return what it was given.
        let mut given = self.message.arguments.into_iter().flat_map(Map::values).filter_map(Value::as_str);
        if !holds && given.any(|it| !it.is_empty() && text.contains(it)) {
            return;
        }
        let has_bad_scheme = text.split_once(':').is_some_and(|(scheme, _)| !is_scheme(scheme));
        let owners = if has_bad_scheme { &BAD_SCHEME[..] } else { &[] };
        self.format("schema.ids.uri-format", owners, holds, level, text, why);
    }

    fn format(
        &mut self,
        check: &'static str,
        owners: &[Owner],
        holds: bool,
        level: Option<Level>,
        text: &'v str,
        why: &str,
    ) {
        if check == self.wanted {
            self.j.exercised += 1;
        }
        if !holds {
            self.report(check, owners, level, |path| format!("`{path}: {text:?}`, which is {why}"));
        }
    }

    fn wrong(&mut self, check: &'static str, owners: &[Owner], value: &Value, expected: &str) {
        self.report(check, owners, None, |path| format!("`{path}: {}` in place of {expected}", shown(value)));
    }

    fn report(
        &mut self,
        check: &'static str,
        owners: &[Owner],
        level: Option<Level>,
        found: impl FnOnce(&str) -> String,
    ) {
        let is_reported = owners
            .iter()
            .any(|it| it.method.is_none_or(|method| method == self.message.method) && self.is_judged(it.check));
        if check != self.wanted || is_reported {
            return;
        }
        let subject = self.item().or(self.message.subject).unwrap_or(self.message.method);
        let found = found(&self.path_text());
        if self.seen.insert(format!("{subject} {found}")) {
            self.j.check_at(false, Some(subject), self.message.places.clone(), || found);
            if let Some(level) = level {
                self.j.at_level(level);
            }
        }
    }

    /// Whether a check says of this version what the server MUST do.
    fn is_judged(&self, check: &str) -> bool {
        let is_this = |it: &&Check| it.id == check && it.role() == self.evidence.facts.role;
        let found = checks().iter().find(|it| is_this(it) && it.not_applicable(self.evidence).is_none());
        let level = found.and_then(|it| it.levels.get(&self.evidence.version));
        matches!(level, Some(Level::Must | Level::MustNot))
    }

    /// The name of the listed item that the path leads into.
    fn item(&self) -> Option<&'v str> {
        let [Step::Name(list), Step::Index(at), ..] = self.path.as_slice() else { return None };
        let item = self.message.value.unwrap_or(&EMPTY).get(*list)?.get(*at)?;
        ["name", "uri", "uriTemplate"].iter().find_map(|key| item.get(*key)?.as_str())
    }

    fn path_text(&self) -> String {
        let mut text = String::new();
        for step in &self.path {
            let dot = if text.is_empty() { "" } else { "." };
            // Writing to a string does not fail.
            let _ = match step {
                Step::Name(name) => write!(text, "{dot}{name}"),
                Step::Index(at) => write!(text, "[{at}]"),
            };
        }
        text
    }
}
