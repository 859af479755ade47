//! Reads the section `headless` of a host's file.

use std::{path::Path, sync::LazyLock, time::Duration};

use regex::Regex;

use super::{
    FailurePattern, FailureSource, Headless, HomeFile, ModelApi, Package, Registry, Start, ToolNameForm,
    failure::JsonLines,
    values::{PLACEHOLDERS, SERVER, placeholder},
};
use crate::{
    convert::Notation,
    dialect::{KEYS as KEYS_OF_DIALECTS, by_name},
    policy::Naming,
};
use rehearse_document::{Entry, Fields, Node, Problems, Source, Span, Value, keys::KeyTable, parse_yaml};

static KEYS: LazyLock<KeyTable> = LazyLock::new(|| KeyTable::parse(KEYS_OF_DIALECTS));

const START_LIMIT: Duration = Duration::from_secs(15);

/// The title of a host, and how it is started, if its file says that.
pub(super) fn host(source: &Source) -> Result<Option<(String, Start)>, Problems> {
    let node = parse_yaml(source)?;
    let title = node.get("title").and_then(Node::as_str).unwrap_or_default().to_owned();
    let start = match (node.get("headless"), node.get("notHeadless")) {
        (Some(headless), _) => Start::Headless(Box::new(Headless::read(headless, form(&node))?)),
        (None, Some(reason)) => Start::Not(reason.str()?.to_owned()),
        (None, None) => return Ok(None),
    };
    Ok(Some((title, start)))
}

/// The form of the names of tools.
fn form(host: &Node) -> String {
    if let Some(form) = host.get("toolName").and_then(Node::as_str) {
        return form.to_owned();
    }
    let first = host.get("config").and_then(Node::as_items).and_then(<[Node]>::first);
    let dialect = first.and_then(|dialect| by_name(dialect.get("name")?.as_str()?));
    match dialect.map(|dialect| dialect.policy.naming) {
        Some(Naming::Qualified(form) | Naming::Literal(form)) => form.to_owned(),
        Some(Naming::Bare) | None => "{tool}".to_owned(),
    }
}

impl Headless {
    fn read(node: &Node, form: String) -> Result<Headless, Problems> {
        let fields = KEYS.fields(node, "headless")?;
        let command = fields.required("command")?.one_or_more(|node| text(node, true))?;
        let env = fields.get("env").map_or(Ok(&[][..]), Node::entries)?;
        let env = env.iter().map(|entry| Ok((entry.key.clone(), text(&entry.node, false)?)));
        Ok(Headless {
            package: Package::read(fields.required("package")?, &command[0])?,
            env: Problems::collect(env)?.into_iter().collect(),
            files: fields.required("files")?.one_or_more(HomeFile::read)?,
            model: ModelApi::read(fields.required("model")?)?,
            tool_names: ToolNameForm::read(fields.get("toolNames"), form)?,
            failures: fields.read_each("failures", FailurePattern::read)?,
            redact: fields.read_each("redact", regex)?,
            needs_account: fields.read_each("needsAccount", regex)?,
            start_limit: fields.read("startLimit", Node::duration)?.unwrap_or(START_LIMIT),
            command,
        })
    }
}

impl Package {
    fn read(node: &Node, program: &str) -> Result<Package, Problems> {
        let fields = KEYS.fields(node, "package")?;
        let name = fields.exactly_one(&KEYS.choices("package"))?;
        let (registry, folder) = match &*name.key {
            "npm" => (Registry::Npm, "node_modules/.bin"),
            _ => (Registry::PyPi, "bin"),
        };
        let version = fields.required("version")?.str()?.to_owned();
        Ok(Package { registry, name: name.node.str()?.to_owned(), version, program: format!("{folder}/{program}") })
    }
}

impl HomeFile {
    fn read(node: &Node) -> Result<HomeFile, Problems> {
        let fields = KEYS.fields(node, "headlessFile")?;
        let place = fields.required("path")?;
        let path = text(place, false)?;
        let servers = fields.read("servers", |node| {
            let dialect = by_name(node.str()?).ok_or_else(|| node.problem("there is no such config dialect"))?;
            match Notation::for_file(dialect, Some(Path::new(&path))) {
                Ok(_) => Ok(dialect),
                Err(wrong) => Err(place.problem(wrong.to_string()).into()),
            }
        })?;
        Ok(HomeFile { servers, each_server: object(&fields, "eachServer")?, with: object(&fields, "with")?, path })
    }
}

impl ModelApi {
    fn read(node: &Node) -> Result<ModelApi, Problems> {
        let name = node.str()?;
        let names = ModelApi::ALL.map(ModelApi::as_str).join(", ");
        let found = ModelApi::ALL.into_iter().find(|api| api.as_str() == name);
        Ok(found.ok_or_else(|| node.problem(format!("write one of {names}")))?)
    }
}

impl ToolNameForm {
    fn read(node: Option<&Node>, form: String) -> Result<ToolNameForm, Problems> {
        let Some(node) = node else { return Ok(ToolNameForm { form, namespace: None, keeps: None, longest: None }) };
        let fields = KEYS.fields(node, "modelToolNames")?;
        let text = |key| fields.read(key, |node| Ok(node.str()?.to_owned()));
        let (namespace, keeps) = (text("namespace")?, text("keeps")?);
        let form = if namespace.is_some() { "{tool}".to_owned() } else { form };
        Ok(ToolNameForm { form, namespace, keeps, longest: fields.read("longest", Node::integer)? })
    }
}

impl FailurePattern {
    fn read(node: &Node) -> Result<FailurePattern, Problems> {
        let fields = KEYS.fields(node, "failurePattern")?;
        let from = fields.required("from")?;
        let from = match from.as_str() {
            Some("stdout") => FailureSource::Stdout,
            Some("stderr") => FailureSource::Stderr,
            Some(_) => return Err(from.problem("write stdout, stderr or { file: … }").into()),
            None => {
                let path = KEYS.fields(from, "failureFile")?.required("file")?;
                FailureSource::File(text(path, true)?)
            }
        };
        let pointer = |key| fields.read(key, |node| Ok(node.str()?.to_owned()));
        let when = fields.get("when").map_or(Ok(&[][..]), Node::entries)?;
        let when = when.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect();
        let lines = JsonLines { each: pointer("each")?, when, server: pointer("server")?, reason: pointer("reason")? };
        let pattern = fields.read("pattern", regex)?;
        let has_lines = lines.server.is_some() || lines.reason.is_some();
        if !has_lines && pattern.is_none() {
            return Err(node.problem("a failure needs a `pattern`, or a `server` or `reason` in each line").into());
        }
        Ok(FailurePattern { from, pattern, lines: has_lines.then_some(lines) })
    }
}

fn regex(node: &Node) -> Result<Regex, Problems> {
    let wrong = |error| node.problem(format!("not a regular expression: {error}"));
    Ok(Regex::new(node.str()?).map_err(wrong)?)
}

/// A text whose placeholders are known.
fn text(node: &Node, may_repeat: bool) -> Result<String, Problems> {
    let text = node.str()?;
    check(text, node.span, may_repeat)?;
    Ok(text.to_owned())
}

fn check(text: &str, span: Span, may_repeat: bool) -> Result<(), Problems> {
    let mut rest = text;
    while let Some((name, _, after)) = placeholder(rest) {
        let node = Node { span, value: Value::Null };
        if !PLACEHOLDERS.contains(&name) {
            let known = PLACEHOLDERS.map(|name| format!("{{{name}}}")).join(", ");
            let problem = node.problem(format!("there is no placeholder `{{{name}}}`"));
            return Err(problem.hint(format!("the placeholders are {known}")).into());
        }
        if name == SERVER && !may_repeat {
            let problem = node.problem("nothing says which server `{server}` is here");
            return Err(problem.hint("it stands in an item of a list or in a key, which is repeated").into());
        }
        rest = after;
    }
    Ok(())
}

/// The object at a key, or an empty one, whose placeholders are known.
fn object(fields: &Fields<'_>, key: &str) -> Result<Node, Problems> {
    fn check_all(node: &Node, may_repeat: bool) -> Result<(), Problems> {
        match &node.value {
            Value::String(text) => check(text, node.span, may_repeat),
            Value::Sequence(items) => Problems::collect(items.iter().map(|item| check_all(item, true))).map(drop),
            Value::Mapping(entries) => {
                let entry = |entry: &Entry| {
                    check(&entry.key, entry.key_span, true)?;
                    check_all(&entry.node, false)
                };
                Problems::collect(entries.iter().map(entry)).map(drop)
            }
            _ => Ok(()),
        }
    }
    let Some(node) = fields.get(key) else {
        return Ok(Node { span: Span::default(), value: Value::Mapping(Vec::new()) });
    };
    node.entries()?;
    check_all(node, false)?;
    Ok(node.clone())
}
