//! Continue: the JSON files in `.continue/mcpServers` (read in continuedev/continue, June 2026). They are as other programs
//! have them; the YAML files beside them are those of the dialect `continue`.

use super::{Both, Dialect, Field, Key, Of, Place, Places, RootKeys, Syntax, Untyped, VariableRule};
use crate::{
    config::{
        Form,
        json::LibertyKind,
        policy::{Environment, Naming, Policy},
    },
    transport::Transport,
};

const PROCESS: Of = Of::Process { strict: false };
const REMOTE: Of = Of::Remote { strict: false };

pub(super) static DIALECT: Dialect = Dialect {
    name: "continue-json",
    program: "Continue",
    syntax: Syntax::Json(&[LibertyKind::Comment]),
    // The latter has servers in a form of its own, which nobody should use any more.
    files: &[Place::Section(".continue/mcpServers/*.json"), Place::Section(".continue/config.json")],
    root_keys: RootKeys::Section(&[]),
    lone: true,
    keys: &[
        Key::new("type", Field::Transport),
        Key::of("command", Field::Command, PROCESS),
        Key::of("args", Field::Args, PROCESS),
        Key::of("env", Field::Env, PROCESS),
        Key::of("url", Field::Url(None), REMOTE),
        Key::of("headers", Field::Headers, REMOTE),
    ],
    transports: &[("stdio", Transport::Stdio), ("http", Transport::Http), ("sse", Transport::Sse)],
    untyped: Untyped::Inferred(Transport::Http),
    both: Both::Dialled,
    variables: VariableRule { forms: &[Form::Braced], places: Places::In(&[Field::Env]), ..VariableRule::NONE },
    policy: Policy {
        naming: Naming::Bare,
        environment: Environment::Only(&["HOME", "USER", "USERPROFILE", "LOGNAME", "USERNAME", "PATH"]),
        ..Policy::USUAL
    },
    ..Dialect::PLAIN
};
