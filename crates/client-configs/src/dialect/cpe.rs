//! CPE: YAML (or JSON) with models, defaults, and the servers under `mcpServers`.

use super::prelude::*;

pub(super) static DIALECT: Dialect = CPE;

/// The same, with the rule of its transports: a server without `type`, or with an empty one, is local.
pub(super) static LENIENT: Dialect = Dialect {
    name: "cpe-lenient",
    files: &[],
    when_type_missing: MissingType::Process,
    empty_type_is_absent: true,
    ..CPE
};

const CPE: Dialect = Dialect {
    name: "cpe",
    program: "CPE",
    syntax: Syntax::JsonOrYaml,
    files: &[
        FileLocation::Project("cpe.yaml"),
        FileLocation::Project("cpe.yml"),
        FileLocation::Config("cpe/cpe.yaml"),
        FileLocation::Config("cpe/cpe.yml"),
        FileLocation::Named("*.cpe.yaml"),
        FileLocation::Named("*.cpe.yml"),
    ],
    root_keys: RootKeys::Section(&["models", "subagent", "defaults"]),
    rejects_misplaced_keys: true,
    empty_is_absent: true,
    keys: keys! {
        All "type" Transport;
        Process "command" Command, "args" Args, "env" Env;
        Remote "url" Url(None), "headers" Headers;
        All "timeout" StartTimeout, "enabledTools" Include, "disabledTools" Exclude;
    },
    companions: &[Companion { key: "version", value: "1.0", required: false }],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    // Of its own tools, in some of its versions.
    elsewhere_word: Some("builtin"),
    when_type_missing: MissingType::Rejected,
    timeout: Some(TimeoutRule { default: 60, whole: true, ..TimeoutRule::SECONDS }),
    variables: VariableRule {
        forms: &[Form::Bare, Form::Braced],
        by_go: true,
        in_text: true,
        scope: VariableScope::Everywhere,
        unset: UnsetVariable::Empty,
        empty: EmptyVariable::Nothing,
        ..VariableRule::NONE
    },
    profiles: Some(Profiles {
        key: "models",
        servers: "mcpServers",
        when_type_missing: MissingType::Process,
        rejects_unknown_keys: true,
    }),
    describes_agent: true,
    policy: Policy {
        both_filters: BothFilters::Rejected,
        empty_filter: EmptyFilter::Rejected,
        naming: Naming::Bare,
        unreachable: Unreachable::Fatal,
        approval: ApprovalRule::Never,
        concurrency: NonZeroUsize::MIN,
        client_info: ClientInfo::Named { name: "cpe", title: Some("CPE"), version: None },
        projection: Projection::Cpe,
        waits_for_tools: true,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
