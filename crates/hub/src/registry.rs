//! The registry of tools: from the lists of servers to the names for a model. No IO.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};

use rehearse_client::check_item;
use rehearse_client_configs::{
    policy::{Duplicates, Naming, Policy},
    server::ToolFilter,
};
use rehearse_document::{
    Problems, Source,
    mirrored::{ANNOTATION, MirroredParameters},
    parse_yaml,
};
use rehearse_llm::{Aliases, Origin, ToolDefinition, Violation, validate::Validator};

/// The listed tools of one server.
#[derive(Clone, Copy, Debug)]
pub struct ServerTools<'a> {
    /// The name of the server.
    pub server: &'a Arc<str>,
    /// The filter of its tools.
    pub filter: &'a ToolFilter,
    /// How the filter is applied.
    pub policy: &'a Policy,
    /// The definitions, verbatim.
    pub tools: &'a [Box<RawValue>],
    /// The calls that the config allows without approval.
    pub always_allow: AllowedCalls<'a>,
    /// Whether calls mirror parameters in headers, as over modern HTTP.
    pub mirrors: bool,
}

/// Calls that need no approval.
#[derive(Clone, Copy, Debug)]
pub enum AllowedCalls<'a> {
    All,
    /// Of the tools with these original names.
    Of(&'a [String]),
}

/// The tools of all servers with distinct names, in the order of the config.
#[derive(Debug, Default)]
pub struct Registry {
    tools: Vec<Arc<RegisteredTool>>,
    by_name: HashMap<String, usize>,
    /// Tools whose name another server has, in order.
    shadowed: Vec<Arc<RegisteredTool>>,
    /// Tools that were left out or renamed, in order.
    pub notices: Vec<Notice>,
}

/// A registered tool.
#[derive(Clone, Debug)]
pub struct RegisteredTool {
    /// The name of its server.
    pub server: Arc<str>,
    /// The registered name, for the model.
    pub name: String,
    /// The name of the tool at its server.
    pub original: String,
    /// The description from its server; if the policy wants it, with the name of the server.
    pub description: Option<String>,
    /// Whether the config allows its calls without approval.
    pub always_allow: bool,
    /// The hints from its server.
    pub annotations: Annotations,
    /// The input schema, a JSON object, verbatim.
    pub input_schema: Box<RawValue>,
    /// The whole definition, verbatim.
    pub definition: Box<RawValue>,
}

/// Hints of a server about its tool; not reliable unless the server is trusted (2025-03-26, Tools: `ToolAnnotations`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Annotations {
    /// The tool only reads.
    #[serde(rename = "readOnlyHint")]
    pub read_only: bool,
    /// The tool may be called again with the same arguments.
    #[serde(rename = "idempotentHint")]
    pub idempotent: bool,
    /// Whether the tool may delete or overwrite something; `None` if the server does not say.
    #[serde(rename = "destructiveHint")]
    pub destructive: Option<bool>,
}

/// What a tool may do, as its server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It only reads.
    ReadOnly,
    /// It adds, and neither deletes nor overwrites.
    Additive,
    /// It may delete or overwrite.
    Destructive,
    /// The server does not say.
    Unknown,
}

impl Annotations {
    /// Whether a second call with the same arguments does no harm.
    pub fn may_repeat(&self) -> bool {
        self.read_only || self.idempotent
    }

    /// The effect of the tool.
    pub fn effect(&self) -> Effect {
        match (self.read_only, self.destructive) {
            (true, _) => Effect::ReadOnly,
            (false, Some(false)) => Effect::Additive,
            (false, Some(true)) => Effect::Destructive,
            (false, None) => Effect::Unknown,
        }
    }
}

impl Effect {
    /// One word, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Effect::ReadOnly => "read-only",
            Effect::Additive => "additive",
            Effect::Destructive => "destructive",
            Effect::Unknown => "unknown",
        }
    }
}

/// A tool that was left out or renamed. `Display` is a log message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Tools that the filter of the server excludes.
    Filtered { server: Arc<str>, tools: Vec<String> },
    /// A tool that was skipped because of its duplicate name.
    Duplicate { tool: String, server: Arc<str>, first: Arc<str> },
    /// A tool that replaces an earlier one of the same name.
    Replaced { tool: String, server: Arc<str>, first: Arc<str> },
    /// A tool that was renamed because of its duplicate name.
    Renamed { tool: String, server: Arc<str>, first: Arc<str>, name: String },
    /// A tool with an invalid definition; it may have no name.
    Unusable { server: Arc<str>, tool: Option<String>, why: String },
}

/// Two servers have a tool of the same name, and the policy rejects duplicates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("duplicate tool name {tool:?}: found in both {first:?} and {second:?}")]
pub struct DuplicateTool {
    /// The name of the tool.
    pub tool: String,
    /// The earlier server.
    pub first: Arc<str>,
    /// The later server.
    pub second: Arc<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition {
    name: String,
    description: Option<String>,
    input_schema: Box<RawValue>,
    annotations: Option<Annotations>,
}

impl RegisteredTool {
    /// How the arguments of a call break the input schema; empty if they are valid, or if the schema is not.
    pub fn violations(&self, arguments: Option<&Map<String, Value>>) -> Vec<Violation> {
        let schema = serde_json::from_str(self.input_schema.get()).unwrap_or_default();
        let none = Map::new();
        Validator::new(schema).violations(arguments.unwrap_or(&none))
    }

    /// The definition for a model, with the registered name.
    pub fn for_model(&self) -> ToolDefinition<'_> {
        ToolDefinition {
            name: &self.name,
            description: self.description.as_deref(),
            input_schema: &self.input_schema,
            origin: Some(Origin { server: &self.server, tool: &self.original }),
            examples: &[],
        }
    }
}

impl Registry {
    /// The name of a renamed duplicate; a number may follow.
    pub(super) const RENAMED: Naming = Naming::Qualified("{server}__{tool}");

    /// Builds a registry in the order of the servers: applies filters, then names, then the rule for duplicates.
    ///
    /// # Errors
    /// [`DuplicateTool`] if `duplicates` rejects one.
    pub fn build<'a>(
        listed: impl IntoIterator<Item = ServerTools<'a>>,
        naming: Naming,
        duplicates: Duplicates,
    ) -> Result<Registry, DuplicateTool> {
        let mut registry = Registry::default();
        for ServerTools { server, filter, policy, tools, always_allow, mirrors } in listed {
            let mut filtered = Vec::new();
            for (index, definition) in tools.iter().enumerate() {
                match parse_tool(server, index, definition, mirrors) {
                    Ok(tool) if !filter.offers(policy, &tool.original) => filtered.push(tool.original),
                    Ok(mut tool) => {
                        tool.name = naming.name(server, &tool.original);
                        tool.always_allow = match always_allow {
                            AllowedCalls::All => true,
                            AllowedCalls::Of(names) => names.contains(&tool.original),
                        };
                        if policy.describes_server {
                            let description = tool.description.take().unwrap_or_default();
                            tool.description =
                                Some(format!("{description} (MCP server: {server})").trim_start().to_owned());
                        }
                        registry.add(tool, duplicates)?;
                    }
                    Err(notice) => registry.notices.push(notice),
                }
            }
            if !filtered.is_empty() {
                registry.notices.push(Notice::Filtered { server: server.clone(), tools: filtered });
            }
        }
        if duplicates == Duplicates::LastWins {
            registry.remove_replaced();
        }
        Ok(registry)
    }

    fn add(&mut self, mut tool: RegisteredTool, duplicates: Duplicates) -> Result<(), DuplicateTool> {
        let place = self.tools.len();
        if let Some(known) = self.by_name.get(&tool.name).copied() {
            let (name, server, first) = (tool.name.clone(), tool.server.clone(), self.tools[known].server.clone());
            match duplicates {
                Duplicates::FirstWins => {
                    self.notices.push(Notice::Duplicate { tool: name, server, first });
                    self.shadowed.push(Arc::new(tool));
                    return Ok(());
                }
                Duplicates::Rejected => return Err(DuplicateTool { tool: name, first, second: server }),
                Duplicates::LastWins => self.notices.push(Notice::Replaced { tool: name, server, first }),
                Duplicates::Qualified => {
                    tool.name = self.free_name(&server, &tool.original);
                    let renamed = tool.name.clone();
                    self.notices.push(Notice::Renamed { tool: name, server, first, name: renamed });
                }
            }
        }
        self.by_name.insert(tool.name.clone(), place);
        self.tools.push(Arc::new(tool));
        Ok(())
    }

    /// A free name with the name of the server.
    fn free_name(&self, server: &str, tool: &str) -> String {
        let qualified = Registry::RENAMED.name(server, tool);
        let numbered = (2..).map(|number| format!("{qualified}_{number}"));
        let mut names = std::iter::once(qualified.clone()).chain(numbered);
        names.find(|name| !self.by_name.contains_key(name)).unwrap_or(qualified)
    }

    fn remove_replaced(&mut self) {
        let winners: HashSet<usize> = self.by_name.values().copied().collect();
        let mut place = 0;
        let is_winner = |_: &Arc<RegisteredTool>| {
            place += 1;
            winners.contains(&(place - 1))
        };
        (self.tools, self.shadowed) = std::mem::take(&mut self.tools).into_iter().partition(is_winner);
        self.by_name = self.tools.iter().enumerate().map(|(place, tool)| (tool.name.clone(), place)).collect();
    }

    /// The tool that is registered under a name.
    pub fn get(&self, name: &str) -> Option<&Arc<RegisteredTool>> {
        self.by_name.get(name).map(|place| &self.tools[*place])
    }

    /// Aliases of all names that every model provider accepts.
    pub fn aliases(&self) -> Aliases {
        Aliases::new(self.tools.iter().map(|tool| &*tool.name))
    }

    /// All tools, in the order of the config and of each server's list.
    pub fn tools(&self) -> &[Arc<RegisteredTool>] {
        &self.tools
    }

    /// Tools that are not registered because another server has their name. They have the name of that tool.
    pub fn shadowed(&self) -> &[Arc<RegisteredTool>] {
        &self.shadowed
    }

    /// The tool of a server by its original name, also if another server's tool shadows it.
    pub fn find(&self, server: &str, original: &str) -> Option<&Arc<RegisteredTool>> {
        self.tools.iter().chain(&self.shadowed).find(|tool| &*tool.server == server && tool.original == original)
    }

    /// The tools of one server.
    pub fn server_tools<'r>(&'r self, server: &'r str) -> impl Iterator<Item = &'r Arc<RegisteredTool>> {
        self.tools.iter().filter(move |tool| &*tool.server == server)
    }
}

/// Reads a definition, which has this index in the list of its server.
fn parse_tool(server: &Arc<str>, index: usize, definition: &RawValue, mirrors: bool) -> Result<RegisteredTool, Notice> {
    let unusable = |tool: Option<&str>, why: String| Notice::Unusable {
        server: server.clone(),
        tool: tool.map(str::to_owned),
        why,
    };
    let parsed = check_item("tools", index, definition).map_err(|malformed| malformed.to_string());
    let parsed = parsed.and_then(|()| serde_json::from_str(definition.get()).map_err(|error| error.to_string()));
    let Definition { name, description, input_schema, annotations } = parsed.map_err(|why| {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let named = serde_json::from_str::<Named>(definition.get()).ok();
        unusable(named.as_ref().map(|named| &*named.name), why)
    })?;
    if mirrors && input_schema.get().contains(ANNOTATION) {
        headers_of(&input_schema).map_err(|why| unusable(Some(&name), why))?;
    }
    Ok(RegisteredTool {
        server: server.clone(),
        name: name.clone(),
        original: name,
        description,
        always_allow: false,
        annotations: annotations.unwrap_or_default(),
        input_schema,
        definition: definition.to_owned(),
    })
}

/// Checks that the parameters can be mirrored in headers (2026-07-28, Tools: x-mcp-header). Otherwise an HTTP client must
/// leave out the tool.
fn headers_of(schema: &RawValue) -> Result<(), String> {
    let source = Source::new("inputSchema", schema.get());
    let node = parse_yaml(&source).map_err(|problems| problems.in_source(&source).to_string())?;
    let message =
        |problems: Problems| problems.0.into_iter().map(|problem| problem.message).collect::<Vec<_>>().join("; ");
    MirroredParameters::read(&node).map(drop).map_err(message)
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Filtered { server, tools } => {
                write!(f, "the filter of server '{server}' excludes {}", tools.join(", "))
            }
            Notice::Duplicate { tool, server, first } => write!(
                f,
                "skipping duplicate tool name '{tool}' in server '{server}' (already registered from server '{first}')"
            ),
            Notice::Replaced { tool, server, first } => {
                write!(f, "the tool '{tool}' of server '{server}' replaces that of server '{first}'")
            }
            Notice::Renamed { tool, server, first, name } => write!(
                f,
                "the tool '{tool}' of server '{server}' is renamed to '{name}': server '{first}' has a tool of that name"
            ),
            Notice::Unusable { server, tool: Some(tool), why } => {
                write!(f, "the tool '{tool}' of server '{server}' cannot be used: {why}")
            }
            Notice::Unusable { server, tool: None, why } => {
                write!(f, "a tool of server '{server}' cannot be used: {why}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use rehearse_client_configs::server::At;
    use rehearse_document::Span;

    fn tools(names: &[&str]) -> Vec<Box<RawValue>> {
        let definition = |name: &&str| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"x":1.0}}"#);
        names.iter().map(|name| RawValue::from_string(definition(name)).expect("JSON")).collect()
    }

    fn listed<'a>(server: &'a Arc<str>, filter: &'a ToolFilter, tools: &'a [Box<RawValue>]) -> ServerTools<'a> {
        let always_allow = AllowedCalls::Of(&[]);
        ServerTools { server, filter, policy: &Policy::USUAL, tools, always_allow, mirrors: false }
    }

    fn excluding(names: &[&str]) -> ToolFilter {
        let at = |value: &&str| At { value: (*value).to_owned(), span: Span::default() };
        let exclude = At { value: names.iter().map(at).collect(), span: Span::default() };
        ToolFilter { include: None, exclude: Some(exclude) }
    }

    /// Two servers, of which both have `read`, and the first filters out `write`.
    fn registered(naming: Naming, duplicates: Duplicates) -> Result<Registry, DuplicateTool> {
        let (first, second) = (tools(&["read", "write"]), tools(&["write", "read", "list"]));
        let (one, two): (Arc<str>, Arc<str>) = ("server1".into(), "server2".into());
        let (filter, all) = (excluding(&["write"]), ToolFilter::default());
        let listed = [listed(&one, &filter, &first), listed(&two, &all, &second)];
        Registry::build(listed, naming, duplicates)
    }

    fn names(registry: &Registry) -> Vec<String> {
        registry.tools().iter().map(|tool| format!("{}:{}={}", tool.server, tool.original, tool.name)).collect()
    }

    #[test]
    fn the_first_tool_of_a_name_wins_and_filtered_tools_are_no_duplicates() {
        let registry = registered(Naming::Bare, Duplicates::FirstWins).expect("registers");
        assert_eq!(names(&registry), ["server1:read=read", "server2:write=write", "server2:list=list"]);
        let notices: Vec<_> = registry.notices.iter().map(ToString::to_string).collect();
        assert_eq!(
            notices,
            [
                "the filter of server 'server1' excludes write",
                "skipping duplicate tool name 'read' in server 'server2' (already registered from server 'server1')",
            ]
        );
        let tool = registry.get("read").expect("registered");
        assert_eq!((&*tool.server, tool.definition.get().contains("\"x\":1.0")), ("server1", true));
    }

    #[test]
    fn the_last_tool_of_a_name_can_win_or_none_or_both() {
        let last = registered(Naming::Bare, Duplicates::LastWins).expect("registers");
        assert_eq!(names(&last), ["server2:write=write", "server2:read=read", "server2:list=list"]);
        assert_eq!(last.get("read").map(|tool| &*tool.server), Some("server2"));
        let both = registered(Naming::Bare, Duplicates::Qualified).expect("registers");
        assert_eq!(names(&both)[2], "server2:read=server2__read");
        assert_eq!(both.get("server2__read").map(|tool| &*tool.original), Some("read"));
        let error = registered(Naming::Bare, Duplicates::Rejected).expect_err("a duplicate");
        assert_eq!(error.to_string(), r#"duplicate tool name "read": found in both "server1" and "server2""#);
    }

    #[test]
    fn code_agent_names_the_server_after_the_tool_and_in_its_description() {
        let server: Arc<str> = "filesystem".into();
        let tool = |about: &str| format!(r#"{{"name":"read_file"{about},"inputSchema":{{"type":"object"}}}}"#);
        let policy = &rehearse_client_configs::dialect::by_name("code_agent").expect("a dialect").policy;
        let seen = |about: &str| {
            let tools = [RawValue::from_string(tool(about)).expect("JSON")];
            let filter = ToolFilter::default();
            let listed = ServerTools { policy, ..listed(&server, &filter, &tools) };
            let registry = Registry::build([listed], policy.naming, policy.duplicates).expect("registers");
            let tool = registry.get("read_file@filesystem").expect("its name").for_model();
            tool.description.map(str::to_owned)
        };
        assert_eq!(seen(r#","description":"Reads.""#).as_deref(), Some("Reads. (MCP server: filesystem)"));
        assert_eq!(seen("").as_deref(), Some("(MCP server: filesystem)"));
    }

    #[test]
    fn policies_with_server_names_have_no_duplicates() {
        for (naming, expected) in [
            (Naming::Literal("{tool}@{server}"), "read@server2"),
            (Naming::Qualified("mcp_{server}_{tool}"), "mcp_server2_read"),
            (Naming::Literal("{server}::{tool}"), "server2::read"),
            (Naming::Literal("{server}.{tool}"), "server2.read"),
        ] {
            let registry = registered(naming, Duplicates::Rejected).expect("no duplicates");
            let tool = registry.get(expected).expect(expected);
            assert_eq!((&*tool.server, &*tool.original), ("server2", "read"));
        }
    }

    #[test]
    fn the_record_of_a_tool_says_whether_its_calls_are_always_allowed() {
        let (server, filter, both): (Arc<str>, _, _) = ("s".into(), ToolFilter::default(), tools(&["read", "write"]));
        for (always_allow, expected) in
            [(AllowedCalls::Of(&["read".to_owned()]), [true, false]), (AllowedCalls::All, [true, true])]
        {
            let listed = ServerTools { always_allow, ..listed(&server, &filter, &both) };
            let registry = Registry::build([listed], Naming::Bare, Duplicates::FirstWins).expect("registers");
            let allowed: Vec<_> = registry.tools().iter().map(|tool| tool.always_allow).collect();
            assert_eq!(allowed, expected);
        }
    }

    #[test]
    fn an_invalid_definition_is_skipped_and_reported() {
        let server: Arc<str> = "s".into();
        let raw = |text: &str| RawValue::from_string(text.to_owned()).expect("JSON");
        let tools = [raw("7"), raw(r#"{"name":"a"}"#), raw(r#"{"name":"b","inputSchema":true}"#), raw(r#"{"name":7}"#)];
        let filter = ToolFilter::default();
        let listed = listed(&server, &filter, &tools);
        let registry = Registry::build([listed], Naming::Bare, Duplicates::FirstWins).expect("registers");
        assert!(registry.tools().is_empty());
        let notices: Vec<_> = registry.notices.iter().map(ToString::to_string).collect();
        assert_eq!(notices.len(), 4, "{notices:?}");
        assert_eq!(notices[1], "the tool 'a' of server 's' cannot be used: /tools/1/inputSchema is missing");
        assert_eq!(notices[3], "a tool of server 's' cannot be used: /tools/3/name is not a string");
    }

    #[test]
    fn a_tool_with_invalid_header_parameters_is_skipped_over_http() {
        let server: Arc<str> = "s".into();
        let tool = |name: &str, kind: &str, header: &str| {
            let property = format!(r#"{{"type":"{kind}","x-mcp-header":"{header}"}}"#);
            let schema = format!(r#"{{"type":"object","properties":{{"p":{property}}}}}"#);
            RawValue::from_string(format!(r#"{{"name":"{name}","inputSchema":{schema}}}"#)).expect("JSON")
        };
        let tools = [tool("good", "string", "Region"), tool("a", "string", ""), tool("b", "number", "N")];
        let filter = ToolFilter::default();
        let count = |mirrors| {
            let listed = ServerTools { mirrors, ..listed(&server, &filter, &tools) };
            let registry = Registry::build([listed], Naming::Bare, Duplicates::FirstWins).expect("registers");
            let notices: Vec<_> = registry.notices.iter().map(ToString::to_string).collect();
            (registry.tools().len(), notices)
        };
        assert_eq!(count(false), (3, vec![]));
        let (registered, notices) = count(true);
        assert_eq!((registered, notices.len()), (1, 2));
        assert_eq!(notices[0], "the tool 'a' of server 's' cannot be used: an x-mcp-header must not be empty");
    }

    proptest! {
        #[test]
        fn every_tool_is_found_by_its_name_under_every_policy(
            lists in proptest::collection::vec(proptest::collection::vec("[ab_]{1,3}", 0..5), 0..4),
            which in 0..3_usize,
        ) {
            let servers: Vec<Arc<str>> = (0..lists.len()).map(|index| format!("s{index}").into()).collect();
            let definitions: Vec<_> =
                lists.iter().map(|names| tools(&names.iter().map(String::as_str).collect::<Vec<_>>())).collect();
            let filter = ToolFilter::default();
            let listed = servers.iter().zip(&definitions).map(|(server, tools)| {
                listed(server, &filter, tools)
            });
            let duplicates = [Duplicates::FirstWins, Duplicates::LastWins, Duplicates::Qualified][which];
            let registry = Registry::build(listed, Naming::Bare, duplicates).expect("registers");
            for tool in registry.tools() {
                prop_assert!(Arc::ptr_eq(tool, registry.get(&tool.name).expect("by its name")));
            }
            let all: usize = lists.iter().map(Vec::len).sum();
            let notices = registry.notices.iter().filter(|notice| !matches!(notice, Notice::Renamed { .. })).count();
            prop_assert_eq!(registry.tools().len() + notices, all);
        }
    }
}
