//! A profile: a file with the rules of a host, a provider or a directory.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::{
    condition::{Condition, Work},
    keys::KEYS,
};
use rehearse_client_configs::dialect;
use rehearse_document::{Fields, Node, Problems, Source, parse_yaml};
use rehearse_protocol::Transport;
use rehearse_report::profile::{Measurement, ProfileKind, RuleLevel};

/// The version of the format.
const VERSION: u32 = 1;

/// The rules of a host, a provider or a directory.
///
/// ```
/// use rehearse_diff::Surface;
/// use rehearse_document::Source;
/// use rehearse_profile::{Profile, ServerEvidence};
/// use rehearse_report::profile::Fit;
/// use serde_json::json;
///
/// let profile = Profile::parse(&Source::new("mine.yaml", "
/// profile: 1
/// name: mine
/// title: My host
/// kind: host
/// rules:
///   - { id: tool-name.length, level: blocks, toolName: { maxLength: 9 }, effect: My host leaves the tool out.,
///       source: 'https://example.com', seen: 2026-03-01 }
/// ")).map_err(|problems| format!("{problems:?}"))?;
/// let surface = Surface::from_json(&json!({ "tools": [{ "name": "search" }, { "name": "search_all" }] }));
/// let fit = profile.judge(&ServerEvidence::of(&surface));
/// assert_eq!((fit.fit, fit.findings[0].subject.as_deref()), (Fit::Degraded, Some("tool search_all")));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name, such as `claude-code`.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What it is of.
    pub kind: ProfileKind,
    /// The config dialects of the host, by name.
    pub dialects: Vec<String>,
    /// How the host introduces itself.
    pub client: Option<HostIdentity>,
    /// The name that a model sees, with `{server}` and `{tool}`, if no dialect says it.
    pub(crate) tool_name: Option<String>,
    pub(crate) rules: Vec<Rule>,
}

/// How a host introduces itself to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct HostIdentity {
    /// `clientInfo.name`.
    pub name: String,
    /// `clientInfo.version`.
    pub version: String,
    /// The version that it asks for.
    pub protocol_version: Option<String>,
    /// Its capabilities.
    pub capabilities: Map<String, Json>,
}

/// One rule.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) level: RuleLevel,
    /// Whether one item that breaks it concerns the whole server.
    pub(crate) is_of_server: bool,
    pub(crate) condition: Condition,
    pub(crate) effect: String,
    pub(crate) source: String,
    pub(crate) seen: String,
    pub(crate) measured: Option<Measurement>,
}

impl Profile {
    /// Reads a file.
    ///
    /// # Errors
    /// It is not YAML, or a key is unknown or missing.
    pub fn parse(source: &Source) -> Result<Profile, Problems> {
        let node = parse_yaml(source)?;
        let fields = KEYS.fields(&node, "profile")?;
        check_version(fields.required("profile")?)?;
        let kind = fields.required("kind")?;
        let kind = match kind.str()? {
            "host" => ProfileKind::Host,
            "provider" => ProfileKind::Provider,
            "directory" => ProfileKind::Directory,
            _ => return Err(kind.problem("write host, provider or directory").into()),
        };
        let dialects = fields.read_each("dialects", |node| Ok(node.str()?.to_owned()))?;
        Profile::read(&fields, kind, dialects)
    }

    /// Reads the file of a host.
    pub(crate) fn parse_host(source: &Source) -> Result<Profile, Problems> {
        let node = parse_yaml(source)?;
        let fields = KEYS.fields(&node, "host")?;
        check_version(fields.required("host")?)?;
        let name = |dialect: &Node| Ok(KEYS.fields(dialect, "dialect")?.required("name")?.str()?.to_owned());
        Profile::read(&fields, ProfileKind::Host, fields.read_each("config", name)?)
    }

    fn read(fields: &Fields<'_>, kind: ProfileKind, dialects: Vec<String>) -> Result<Profile, Problems> {
        let text = |key: &str| -> Result<String, Problems> { Ok(fields.required(key)?.str()?.to_owned()) };
        let mut seen = std::collections::BTreeSet::new();
        Ok(Profile {
            name: text("name")?,
            title: text("title")?,
            kind,
            dialects,
            client: fields.read("client", HostIdentity::read)?,
            tool_name: fields.read("toolName", |node| Ok(node.str()?.to_owned()))?,
            rules: fields.read_each("rules", |node| {
                let rule = Rule::read(node)?;
                if !seen.insert(rule.id.clone()) {
                    return Err(node.problem(format!("there is a rule `{}` above", rule.id)).into());
                }
                Ok(rule)
            })?,
        })
    }

    /// The name that a model sees of a tool.
    pub fn tool_name(&self, server: &str, tool: &str) -> String {
        if let Some(template) = &self.tool_name {
            return template.replace("{server}", server).replace("{tool}", tool);
        }
        let dialect = self.dialects.first().and_then(|name| dialect::by_name(name));
        dialect.map_or_else(|| tool.to_owned(), |dialect| dialect.policy.naming.name(server, tool))
    }

    /// Its rules as the table of a page in Markdown.
    pub fn to_markdown(&self) -> String {
        let row = |rule: &Rule| {
            let Rule { id, effect, source, seen, level, measured, .. } = rule;
            let measured = measured.as_ref().map(|it| format!(", {it}")).unwrap_or_default();
            format!("| `{id}` | {} | {effect} | [{seen}]({source}){measured} |\n", level.as_str())
        };
        let rows: String = self.rules.iter().map(row).collect();
        format!("| rule | level | what happens | seen |\n| --- | --- | --- | --- |\n{rows}")
    }

    /// The transports that the host has, if a rule says so.
    pub fn transports(&self) -> Option<&[Transport]> {
        self.rules.iter().find_map(|rule| match &rule.condition {
            Condition::Transports(known) if rule.level == RuleLevel::Blocks => Some(known.as_slice()),
            _ => None,
        })
    }

    /// How long the host waits for the result of a call, if a rule says so.
    pub fn call_time(&self) -> Option<Duration> {
        self.time(|of| matches!(of, Work::Call))
    }

    /// How long the host waits for the start of a server, if a rule says so.
    pub fn start_time(&self) -> Option<Duration> {
        self.time(|of| matches!(of, Work::Start))
    }

    fn time(&self, is_meant: impl Fn(&Work) -> bool) -> Option<Duration> {
        let times = self.rules.iter().filter_map(|rule| match &rule.condition {
            Condition::Time { of, max } if is_meant(of) && rule.level > RuleLevel::Advice => Some(*max),
            _ => None,
        });
        times.min()
    }

    /// How many rules it has.
    pub fn rule_count(&self) -> usize {
        self.rules.len()
    }
}

fn check_version(version: &Node) -> Result<(), Problems> {
    match version.integer::<u32>()? {
        VERSION => Ok(()),
        _ => Err(version.problem(format!("this program reads version {VERSION} of profiles")).into()),
    }
}

fn measurement(node: &Node) -> Result<Measurement, Problems> {
    let fields = KEYS.fields(node, "measurement")?;
    let text = |key: &str| -> Result<String, Problems> { Ok(fields.required(key)?.str()?.to_owned()) };
    Ok(Measurement { version: text("version")?, date: text("date")? })
}

impl HostIdentity {
    fn read(node: &Node) -> Result<HostIdentity, Problems> {
        let fields = KEYS.fields(node, "client")?;
        let text = |key: &str| fields.read(key, |node| Ok(node.str()?.to_owned()));
        let capabilities = fields.get("capabilities").map(Node::to_json);
        Ok(HostIdentity {
            name: fields.required("name")?.str()?.to_owned(),
            version: text("version")?.unwrap_or_else(|| "1.0.0".to_owned()),
            protocol_version: text("protocolVersion")?,
            capabilities: capabilities.and_then(|it| it.as_object().cloned()).unwrap_or_default(),
        })
    }
}

impl Rule {
    fn read(node: &Node) -> Result<Rule, Problems> {
        let fields = KEYS.fields(node, "rule")?;
        let text = |key: &str| -> Result<String, Problems> { Ok(fields.required(key)?.str()?.to_owned()) };
        let level = fields.required("level")?;
        let level = match level.str()? {
            "blocks" => RuleLevel::Blocks,
            "degrades" => RuleLevel::Degrades,
            "advice" => RuleLevel::Advice,
            _ => return Err(level.problem("write blocks, degrades or advice").into()),
        };
        let is_of_server = match fields.get("scope") {
            None => false,
            Some(scope) if scope.str()? == "server" => true,
            Some(scope) => return Err(scope.problem("write server, or leave it out").into()),
        };
        Ok(Rule {
            id: text("id")?,
            level,
            is_of_server,
            condition: Condition::read(fields.exactly_one(&KEYS.choices("rule"))?)?,
            effect: text("effect")?,
            source: text("source")?,
            seen: text("seen")?,
            measured: fields.read("measured", measurement)?,
        })
    }
}
