//! A whole script: the items of a server and their answers.

use std::{path::Path, sync::Arc, time::Duration};

use super::{
    ActRules, AddedRule, Auth, BuiltinScript, Capabilities, Completion, FaultRule, HttpPolicy, Item, ItemKind, ItemRef,
    Limits, MethodItem, PromptItem, ResourceItem, ResourceTemplateItem, SkillItem, SkillResource, ToolItem,
    UsedFeatures, app, completion, keys::KEYS, reader::ScriptReader, repeat, skill,
};
use crate::handler::Handler;
use rehearse_document::template::Templates;
use rehearse_document::{Diagnostics, Node, Problem, Problems, Source, Span, nearest, parse_yaml};
use rehearse_protocol::{Era, Version};

/// How long the state of an unfinished call is valid, unless the script says otherwise.
const REQUEST_STATE_TTL: Duration = Duration::from_secs(600);

/// A parsed script.
///
/// ```
/// use rehearse_document::Source;
/// use rehearse_mock::script::Script;
///
/// let script = Script::parse(&Source::new("echo.yaml", "tools: [{ name: echo, reply: '{{ args.text }}' }]"))?;
/// assert_eq!(script.tools[0].item.name, "echo");
/// # Ok::<_, rehearse_document::Diagnostics>(())
/// ```
///
/// Each list has the declared items first, then their replacements.
#[derive(Debug)]
pub struct Script {
    /// The source text.
    pub source: Arc<Source>,
    /// The server's name.
    pub name: String,
    /// The MCP `Implementation` of the server as JSON text.
    pub server_info: String,
    /// The instructions for clients.
    pub instructions: Option<String>,
    /// The supported versions, oldest first. Never empty.
    pub versions: Vec<Version>,
    /// The number of items on a page; `None` for a single page.
    pub page_size: Option<usize>,
    /// The `ServerCapabilities` for each era.
    pub capabilities: Capabilities,
    /// The server's state at the start.
    pub state: serde_json::Map<String, serde_json::Value>,
    /// How the server uses streamable HTTP.
    pub http: HttpPolicy,
    /// The tokens that requests over the network need; `None` for a server without tokens.
    pub auth: Option<Auth>,
    /// How `rehearse check client` uses it.
    pub act: ActRules,
    /// How long the state of an unfinished call is valid.
    pub request_state_ttl: Duration,
    /// Whether a client's answers are refused without that state.
    pub request_state_required: bool,
    /// How large values can become.
    pub limits: Limits,
    /// Whether a request that no rule matches fails the verification.
    pub strict: bool,
    /// The tools.
    pub tools: Vec<ToolItem>,
    /// The resources.
    pub resources: Vec<ResourceItem>,
    /// The resource templates.
    pub resource_templates: Vec<ResourceTemplateItem>,
    /// The prompts.
    pub prompts: Vec<PromptItem>,
    /// The methods.
    pub methods: Vec<MethodItem>,
    /// The completions.
    pub completions: Vec<Completion>,
    /// The skills.
    pub skills: Vec<SkillItem>,
    /// The faults.
    pub faults: Vec<FaultRule>,
    /// The number of declared items of each kind.
    declared: [usize; 5],
    /// The number of all items.
    pub item_count: usize,
    /// The features that the script uses.
    pub uses: UsedFeatures,
    /// The templates of the script.
    pub templates: Templates,
    /// Whether another script may replace it in a running server.
    is_reloadable: bool,
    /// The handlers that its text names.
    handlers: Vec<Handler>,
}

/// The reason why a script cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {path}: {source}{hint}")]
    Read {
        /// The path of the file.
        path: String,
        /// The I/O error.
        source: std::io::Error,
        /// A hint for the user; may be empty.
        hint: String,
    },
    /// The script has mistakes.
    #[error("{0}")]
    Invalid(Diagnostics),
}

impl Script {
    /// Reads the script in a file, or the built-in script of that name if there is no such file.
    ///
    /// # Errors
    /// [`ScriptError::Read`] if there is neither; [`ScriptError::Invalid`] with every mistake in it.
    pub fn load(path: &Path, builtins: &[BuiltinScript]) -> Result<Script, ScriptError> {
        let builtin = |name: &str| builtins.iter().find(|script| script.name == name);
        let source = match (Source::read(path), path.to_str().and_then(builtin)) {
            (Ok(source), _) => source,
            (Err(_), Some(BuiltinScript { name, text })) => Source::new(format!("<{name}>"), *text),
            (Err(source), None) => {
                let names: Vec<_> = builtins.iter().map(|script| script.name).collect();
                let near = path.to_str().and_then(|path| nearest(path, &names));
                let begun = path.to_str().and_then(|path| names.iter().copied().find(|name| name.starts_with(path)));
                let hint = match near.or(begun) {
                    Some(name) => format!(" (did you mean the built-in script `{name}`?)"),
                    None if path.extension().is_none() && !names.is_empty() => {
                        " (`rehearse mock --list` shows the built-in scripts)".to_owned()
                    }
                    None => String::new(),
                };
                return Err(ScriptError::Read { path: path.display().to_string(), source, hint });
            }
        };
        Script::parse(&source).map_err(ScriptError::Invalid)
    }

    /// Reads a script.
    ///
    /// # Errors
    /// Every mistake that was found, each with its position and a hint.
    pub fn parse(source: &Arc<Source>) -> Result<Script, Diagnostics> {
        Script::parse_with(source, Vec::new())
    }

    /// Reads the script of a builder, which may name these handlers.
    ///
    /// # Errors
    /// Like [`Script::parse`].
    pub(crate) fn parse_with(source: &Arc<Source>, handlers: Vec<Handler>) -> Result<Script, Diagnostics> {
        Script::read(source, &[], handlers)
    }

    /// The script with more rules before its own, the last one first.
    ///
    /// # Errors
    /// The mistakes in the first invalid rule, with positions in its text.
    pub fn with_rules(&self, rules: &[Arc<AddedRule>]) -> Result<Script, Diagnostics> {
        let script = Script::read(&self.source, rules, self.handlers.clone())?;
        Ok(if self.is_reloadable { script.reloadable() } else { script })
    }

    fn read(source: &Arc<Source>, added: &[Arc<AddedRule>], handlers: Vec<Handler>) -> Result<Script, Diagnostics> {
        let in_source = |problems: Problems| problems.in_source(source);
        let root = parse_yaml(source).map_err(in_source)?;
        if root.is_null() {
            let problem = Problem::new(Span::default(), "the script is empty");
            return Err(in_source(problem.hint("start with `server: { name: my-server }`").into()));
        }
        let root = &*repeat::expand(&root, source).map_err(in_source)?;
        if root.get("steps").is_some() && root.get("servers").is_some() {
            let problem = root.problem("this is a scenario, not a mock script").hint("run it with `rehearse run`");
            return Err(in_source(problem.into()));
        }
        let fields = KEYS.fields(root, "script").map_err(in_source)?;
        let mut reader = ScriptReader::new(source);
        reader.handlers.clone_from(&handlers);
        let mut problems = Vec::new();
        let server = note(&mut problems, fields.read("server", read_server));
        let (name, server_info) = server.unwrap_or_else(|| implementation("mock", None, ""));
        let instructions = note(&mut problems, fields.read("instructions", |node| Ok(node.str()?.to_owned())));
        let versions = note(&mut problems, fields.read("protocol", read_versions));
        let page_size = note(&mut problems, fields.read("pageSize", read_page_size));
        let state = note(&mut problems, fields.read("state", read_state));
        let http = note(&mut problems, fields.read("http", HttpPolicy::read));
        let auth = note(&mut problems, fields.read("auth", Auth::read));
        let request_state = note(&mut problems, fields.read("requestState", read_request_state));
        let (request_state_ttl, request_state_required) = request_state.unwrap_or_default();
        let limits = note(&mut problems, fields.read("limits", Limits::read)).unwrap_or_default();
        reader.templates.limit_output(limits.output);
        let strict = note(&mut problems, fields.read("unexpected", read_strict));
        let act = note(&mut problems, fields.read("act", ActRules::read));
        let mut tools = reader.read_items(&fields, ItemKind::Tool, ToolItem::read, &mut problems);
        let mut resources = reader.read_items(&fields, ItemKind::Resource, ResourceItem::read, &mut problems);
        let mut resource_templates =
            reader.read_items(&fields, ItemKind::ResourceTemplate, ResourceTemplateItem::read, &mut problems);
        let mut prompts = reader.read_items(&fields, ItemKind::Prompt, PromptItem::read, &mut problems);
        let mut methods = reader.read_items(&fields, ItemKind::Method, MethodItem::read, &mut problems);
        let completions = fields.read_each("completions", |node| Completion::read(node, &mut reader));
        let completions = note(&mut problems, completions.map(Some)).unwrap_or_default();
        let skills = note(&mut problems, fields.read("skills", skill::read_all)).unwrap_or_default();
        let files = || skills.iter().flat_map(|skill| &skill.resources);
        problems
            .extend(fields.get(ItemKind::Resource.list_key()).into_iter().flat_map(|list| skill_files(list, files())));
        let pages = std::mem::take(&mut reader.pages);
        let uris = resources.iter().map(|it| it.item.name.as_str()).chain(files().map(|file| file.uri.as_str()));
        problems.extend(app::clashes(&pages, uris));
        resources.extend(files().map(|file| reader.literal(&file.uri, &file.definition, &file.contents)));
        resources.extend(pages.iter().map(|page| reader.literal(&page.uri, &page.definition, &page.contents)));
        let faults = fields.read_each("faults", |node| FaultRule::read(node, &mut reader));
        let faults = note(&mut problems, faults.map(Some)).unwrap_or_default();
        for kind in ItemKind::ALL {
            problems.extend(duplicates(fields.get(kind.list_key()), kind.name_key()));
        }
        problems.extend(reader.unknown_names(root));
        problems.extend(completion::mistakes(root));
        problems.extend(reader.scopes.filter(|_| fields.get("auth").is_none()).map(|span| {
            let problem = Problem::new(span, "`scopes` need tokens that have them");
            problem.hint("add `auth: { tokens: [{ token: …, scopes: […] }] }`")
        }));
        for added in added.iter().filter(|_| problems.is_empty()) {
            let rule = added.read(root, &tools, &mut reader)?;
            // It also applies to the replacements of the item.
            let later = &mut reader.replacements;
            let items = (tools.iter_mut().chain(&mut later.tools).map(|it| (ItemKind::Tool, &mut it.item)))
                .chain(resources.iter_mut().chain(&mut later.resources).map(|it| (ItemKind::Resource, &mut it.item)))
                .chain(
                    (resource_templates.iter_mut().chain(&mut later.resource_templates))
                        .map(|it| (ItemKind::ResourceTemplate, &mut it.item)),
                )
                .chain(prompts.iter_mut().chain(&mut later.prompts).map(|it| (ItemKind::Prompt, &mut it.item)))
                .chain(methods.iter_mut().map(|it| (ItemKind::Method, &mut it.item)));
            for (_, item) in items.filter(|(kind, item)| *kind == added.kind && item.name == added.name) {
                item.rules.insert(0, rule.clone());
                item.added += 1;
            }
        }
        let declared = [tools.len(), resources.len(), resource_templates.len(), prompts.len(), methods.len()];
        let has = |kind: ItemKind| declared[kind as usize] > 0;
        let capabilities = Capabilities::from_features(&reader.uses, has, !completions.is_empty(), !skills.is_empty());
        let patched = note(&mut problems, fields.read("capabilities", |node| capabilities.patched(node)));
        if !problems.is_empty() {
            problems.sort_by_key(|problem| problem.span.start);
            // Repeated items have the same mistakes.
            problems.dedup();
            return Err(in_source(Problems(problems)));
        }
        tools.append(&mut reader.replacements.tools);
        resources.append(&mut reader.replacements.resources);
        resource_templates.append(&mut reader.replacements.resource_templates);
        prompts.append(&mut reader.replacements.prompts);
        Ok(Script {
            name,
            server_info,
            instructions,
            versions: versions.unwrap_or_else(|| Version::ALL.to_vec()),
            page_size,
            capabilities: patched.unwrap_or(capabilities),
            state: state.unwrap_or_default(),
            http: http.unwrap_or_default(),
            auth,
            act: act.unwrap_or_default(),
            request_state_ttl: request_state_ttl.unwrap_or(REQUEST_STATE_TTL),
            request_state_required: request_state_required.unwrap_or(true),
            limits,
            strict: strict.unwrap_or(false),
            tools,
            resources,
            resource_templates,
            prompts,
            methods,
            completions,
            skills,
            faults,
            declared,
            item_count: reader.item_count,
            uses: reader.uses,
            templates: reader.templates,
            source: source.clone(),
            handlers,
            is_reloadable: false,
        })
    }

    /// The script for a server that may replace it while running: it declares that its lists change.
    #[must_use]
    pub fn reloadable(self) -> Script {
        Script { capabilities: self.capabilities.with_list_changed(), is_reloadable: true, ..self }
    }

    /// The number of declared items of a kind; the items after them are replacements.
    pub fn declared(&self, kind: ItemKind) -> usize {
        self.declared[kind as usize]
    }

    /// The names of the declared items of a kind.
    pub fn names(&self, kind: ItemKind) -> impl Iterator<Item = &str> {
        (0..self.declared(kind)).map(move |index| self.item(ItemRef { kind, index }).name.as_str())
    }

    /// The number of items of a kind, including replacements.
    pub fn count(&self, kind: ItemKind) -> usize {
        match kind {
            ItemKind::Tool => self.tools.len(),
            ItemKind::Resource => self.resources.len(),
            ItemKind::ResourceTemplate => self.resource_templates.len(),
            ItemKind::Prompt => self.prompts.len(),
            ItemKind::Method => self.methods.len(),
        }
    }

    /// An item.
    pub fn item(&self, ItemRef { kind, index }: ItemRef) -> &Item {
        match kind {
            ItemKind::Tool => &self.tools[index].item,
            ItemKind::Resource => &self.resources[index].item,
            ItemKind::ResourceTemplate => &self.resource_templates[index].item,
            ItemKind::Prompt => &self.prompts[index].item,
            ItemKind::Method => &self.methods[index].item,
        }
    }

    /// The MCP definition of an item as JSON text; empty for a method, which has none.
    pub fn definition(&self, ItemRef { kind, index }: ItemRef, era: Era) -> &str {
        match kind {
            ItemKind::Tool => self.tools[index].definition_for(era),
            ItemKind::Resource => &self.resources[index].definition,
            ItemKind::ResourceTemplate => &self.resource_templates[index].definition,
            ItemKind::Prompt => &self.prompts[index].definition,
            ItemKind::Method => "",
        }
    }

    /// Every item, kind after kind.
    pub fn all_items(&self) -> impl Iterator<Item = (ItemRef, &Item)> {
        let refs =
            ItemKind::ALL.into_iter().flat_map(|kind| (0..self.count(kind)).map(move |index| ItemRef { kind, index }));
        refs.map(|item| (item, self.item(item)))
    }
}

/// The value, if there is one; its mistakes are added to the problems.
fn note<T>(problems: &mut Vec<Problem>, read: Result<Option<T>, Problems>) -> Option<T> {
    read.unwrap_or_else(|found| {
        problems.extend(found.0);
        None
    })
}

fn implementation(name: &str, version: Option<&str>, more: &str) -> (String, String) {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let version = version.unwrap_or("0.0.0");
    (name.to_owned(), format!("{{\"name\":{},\"version\":{}{more}}}", quote(name), quote(version)))
}

fn read_server(node: &Node) -> Result<(String, String), Problems> {
    let fields = KEYS.fields(node, "server")?;
    let name = fields.required("name")?.str()?;
    let version = fields.read("version", Node::str)?;
    let more = node.entries()?.iter().filter(|entry| !matches!(entry.key.as_str(), "name" | "version"));
    let more: String = more.map(|entry| format!(",\"{}\":{}", entry.key, entry.node.to_json_text())).collect();
    Ok(implementation(name, version, &more))
}

fn read_request_state(node: &Node) -> Result<(Option<Duration>, Option<bool>), Problems> {
    let fields = KEYS.fields(node, "requestState")?;
    Ok((fields.read("ttl", Node::duration)?, fields.read("required", Node::bool)?))
}

fn read_versions(node: &Node) -> Result<Vec<Version>, Problems> {
    let mut versions = node.one_or_more(Node::parsed)?;
    versions.sort_unstable();
    versions.dedup();
    Ok(versions)
}

fn read_page_size(node: &Node) -> Result<usize, Problems> {
    match node.integer()? {
        0 => Err(node.problem("a page must hold at least one item").into()),
        size => Ok(size),
    }
}

fn read_strict(node: &Node) -> Result<bool, Problems> {
    match node.str()? {
        "fail" => Ok(true),
        "error" => Ok(false),
        _ => Err(node
            .problem("`unexpected` must be `error` (answer it as the protocol says) or `fail` (the verification, too)")
            .into()),
    }
}

fn read_state(node: &Node) -> Result<serde_json::Map<String, serde_json::Value>, Problems> {
    Ok(node.entries()?.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
}

fn duplicates(list: Option<&Node>, key: &str) -> Vec<Problem> {
    let mut seen = std::collections::HashSet::new();
    let mut problems = Vec::new();
    for item in list.and_then(|list| list.as_items()).into_iter().flatten() {
        let Some((node, name)) = item.get(key).and_then(|node| Some((node, node.as_str()?))) else { continue };
        let repeats = item.get(repeat::KEY).is_some();
        if name.contains("{{") && !repeats {
            let problem = node.problem(format!("a `{key}` has no templates"));
            problems.push(problem.hint("unless there are many: `repeat: 3`, and `{{ n }}` is the number of each"));
        } else if !seen.insert(name) {
            let problem = node.problem(format!("`{name}` is defined twice"));
            problems.push(match repeats {
                true => problem.hint("with `repeat`, put `{{ n }}` into it"),
                false => problem.hint("answer differently by argument with `rules:` in one definition"),
            });
        }
    }
    problems
}

/// Resources with the URI of a file of a skill.
fn skill_files<'s>(resources: &Node, files: impl Iterator<Item = &'s SkillResource>) -> Vec<Problem> {
    let files: std::collections::HashSet<_> = files.map(|file| file.uri.as_str()).collect();
    let uris =
        resources.as_items().unwrap_or_default().iter().filter_map(|item| item.get(ItemKind::Resource.name_key()));
    let taken = uris.filter(|uri| uri.as_str().is_some_and(|uri| files.contains(uri)));
    taken.map(|uri| uri.problem("a skill has a file of this URI").hint("keep one of them")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each script in `mistakes.txt` has these mistakes.
    #[test]
    fn every_mistake_is_reported_in_the_order_of_the_file_with_a_hint() {
        for case in include_str!("mistakes.txt").trim_end().split("\n\n") {
            let (said, script): (Vec<_>, Vec<_>) = case.lines().partition(|line| line.starts_with("! "));
            let error = Script::parse(&Source::new("m", script.join("\n"))).expect_err(case).to_string();
            assert_eq!(error.lines().map(|line| format!("! {line}")).collect::<Vec<_>>(), said, "{case}");
        }
    }

    #[test]
    fn a_pasted_tools_list_is_a_valid_script() {
        let text = r#"{"tools":[{"name":"t","title":"T","description":"d","inputSchema":{"type":"object","x-vendor":1.0},"annotations":{"readOnlyHint":true},"_meta":{"k":1}}]}"#;
        let script = Script::parse(&Source::new("t", text)).expect("valid");
        let expected = text.strip_prefix("{\"tools\":[").and_then(|rest| rest.strip_suffix("]}"));
        assert_eq!(Some(script.tools[0].definition.as_str()), expected);
    }
}
