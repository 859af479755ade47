//! The engine of aidk: servers as Cursor writes them, or in full with `transport`, `connection` and `auth`.

use super::prelude::*;

const CONNECTION: &[Key] = keys! {
    Process "command" Command, "args" Args, "env" Env, "cwd" Cwd;
    Remote "url" Url(None), "headers" Headers;
};

const AUTH: &[Key] = keys! { All "type" AuthKind, "token" Bearer };

pub(super) static DIALECT: Dialect = Dialect {
    name: "engine",
    program: "aidk engine",
    syntax: Syntax::Json(&[
        SyntaxExtensionKind::Comment,
        SyntaxExtensionKind::TrailingComma,
        SyntaxExtensionKind::SingleQuotes,
        SyntaxExtensionKind::BareKey,
    ]),
    keys: keys! {
        All "serverName" Own, "transport" Transport;
        Process "command" Command, "args" Args, "env" Env;
        All "connection" Object(CONNECTION);
        Remote "auth" Object(AUTH);
    },
    // Over HTTP it is Streamable HTTP.
    transports: &[
        ("stdio", Transport::Stdio),
        ("sse", Transport::Sse),
        ("websocket", Transport::Ws),
        ("websocket", Transport::Http),
    ],
    when_type_missing: MissingType::Process,
    policy: Policy {
        both_filters: BothFilters::IncludeWins,
        naming: Naming::Bare,
        duplicates: Duplicates::LastWins,
        approval: ApprovalRule::Never,
        environment: Environment::SDK,
        client_info: ClientInfo::Named { name: "aidk-engine", title: None, version: Some("1.0.0") },
        projection: Projection::Engine,
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
