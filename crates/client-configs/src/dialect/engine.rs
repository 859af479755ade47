//! The engine of aidk: servers as Cursor writes them, or in full with `transport`, `connection` and `auth`.

use super::prelude::*;

const CONNECTION: &[Key] = &[
    Key::process("command", Field::Command),
    Key::process("args", Field::Args),
    Key::process("env", Field::Env),
    Key::process("cwd", Field::Cwd),
    Key::remote("url", Field::Url(None)),
    Key::remote("headers", Field::Headers),
];

const AUTH: &[Key] = &[Key::new("type", Field::AuthKind), Key::new("token", Field::Bearer)];

pub(super) static DIALECT: Dialect = Dialect {
    name: "engine",
    program: "aidk engine",
    syntax: Syntax::Json(&[
        SyntaxExtensionKind::Comment,
        SyntaxExtensionKind::TrailingComma,
        SyntaxExtensionKind::SingleQuotes,
        SyntaxExtensionKind::BareKey,
    ]),
    keys: &[
        Key::new("serverName", Field::Own),
        Key::new("transport", Field::Transport),
        Key::process("command", Field::Command),
        Key::process("args", Field::Args),
        Key::process("env", Field::Env),
        Key::new("connection", Field::Object(CONNECTION)),
        Key::remote("auth", Field::Object(AUTH)),
    ],
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
