//! The schema of the value of a key.

use serde_json::{Value as Json, json};

use super::{described, text};
use crate::{
    dialect::{AppliesTo, Dialect, Field, Key, MissingType, OutOfRange, SettingType, Syntax},
    policy::{EmptyFilter, Patterns},
};

impl Dialect {
    /// An object in a server.
    fn nested(&self, keys: &[Key]) -> Json {
        let mut object = self.object(keys);
        let mut kinds = keys.iter().filter(|key| key.field == Field::Transport && self.typed_objects);
        if let Some(kind) = kinds.next() {
            object["required"] = json!([kind.name]);
        }
        object
    }

    /// The value of a key, with a description that editors show.
    pub(super) fn value(&self, key: &Key) -> Json {
        let list = || json!({ "type": "array", "items": text() });
        let pairs = |values: Json| json!({ "type": "object", "additionalProperties": values });
        let loose = match self.loose_values {
            // Its reader of YAML takes any scalar for a string.
            _ if self.variables.by_go => json!({ "type": ["string", "number", "boolean", "null"] }),
            true => json!({ "type": ["string", "number", "null"] }),
            false => text(),
        };
        let tools = || match self.policy.empty_filter {
            EmptyFilter::Rejected => json!({ "type": "array", "items": text(), "minItems": 1 }),
            EmptyFilter::Literal => list(),
        };
        let schema = match key.field {
            Field::Transport => {
                let words: Vec<_> = self.words().into_iter().chain(self.elsewhere_word).collect();
                let words = [&words[..], if self.empty_type_is_absent { &[""] } else { &[] }].concat();
                let words = json!({ "enum": words });
                // Editors still offer the words.
                if self.ignores_unknown_transport { json!({ "anyOf": [words, text()] }) } else { words }
            }
            Field::Name
            | Field::Command
            | Field::EnvFile
            | Field::Cwd
            | Field::Url(_)
            | Field::AuthKind
            | Field::Bearer
            | Field::ClientId
            | Field::ClientSecret
            | Field::MetadataUrl
            | Field::ScopeText => text(),
            Field::CommandLine => json!({ "type": "array", "items": text(), "minItems": 1 }),
            Field::Args | Field::AlwaysAllow | Field::Scopes => list(),
            Field::Env if self.null_env => json!({ "anyOf": [pairs(loose), { "type": "null" }] }),
            Field::Env | Field::Headers => pairs(loose),
            // Anything but a number is the default.
            Field::Timeout if self.timeout.is_some_and(|rule| rule.outside == OutOfRange::Clamped) => json!({}),
            Field::Timeout | Field::CallTimeout | Field::StartTimeout if self.coerces_scalars => {
                or_text(self.number(), "^[0-9.]+$|\\$")
            }
            Field::Timeout | Field::CallTimeout | Field::StartTimeout => self.number(),
            Field::ToolTimeouts => pairs(self.number()),
            Field::Include | Field::Exclude => tools(),
            Field::Trust | Field::Debug if self.coerces_scalars => {
                or_text(json!({ "type": "boolean" }), "^([Tt]rue|[Ff]alse|.*\\$.*)$")
            }
            Field::Enabled => json!({ "type": "boolean", "default": true }),
            Field::Disabled | Field::Trust | Field::Debug => json!({ "type": "boolean", "default": false }),
            Field::CallbackPort => json!({ "type": "integer", "minimum": 0, "maximum": u16::MAX }),
            Field::Object(keys) => self.nested(keys),
            Field::Own => json!({}),
            Field::RejectedBearer(_) => json!({ "not": {} }),
            Field::Setting(kind) => setting(kind),
        };
        let may_be_anything = self.variables.in_text && !matches!(self.syntax, Syntax::Json(_));
        let schema = if may_be_anything && !key.field.is_text() { or_text(schema, "\\$") } else { schema };
        described(schema, self.describe(key))
    }

    /// A timeout. The description says what the program clamps or ignores.
    fn number(&self) -> Json {
        let is_whole = self.timeout.is_some_and(|rule| rule.whole);
        let mut number = json!({ "type": if is_whole { "integer" } else { "number" } });
        if let Some(rule) = &self.timeout {
            number["minimum"] = rule.least.into();
            if rule.most != u64::MAX {
                number["maximum"] = rule.most.into();
            }
        }
        number
    }

    fn describe(&self, key: &Key) -> String {
        let program = self.program;
        let unit = match &self.timeout {
            Some(rule) if rule.unit == 1000 => "seconds",
            _ => "milliseconds",
        };
        let range = match &self.timeout {
            Some(rule) if rule.most != u64::MAX => format!(", from {} to {}", rule.least, rule.most),
            Some(rule) if rule.least > 0 => format!(", at least {}", rule.least),
            _ => String::new(),
        };
        let patterns = match self.policy.patterns {
            Patterns::Exact => "",
            Patterns::Globs => " `*` matches any characters.",
            Patterns::Star => " `*` alone matches all.",
        };
        let what = match key.field {
            Field::Name => "The name of the server.".into(),
            Field::Transport => match self.when_type_missing {
                MissingType::Rejected => "How the server is reached.".into(),
                MissingType::Process => "How the server is reached. Without it, the server is started.".into(),
                MissingType::Inferred(transport) => {
                    format!("How the server is reached. Without it, a command is started, and a URL is {transport}.")
                }
            },
            Field::Command => "The program that is the server.".into(),
            Field::CommandLine => "The program that is the server, and its arguments.".into(),
            Field::Args => "The arguments of the program, one string each.".into(),
            Field::Env => "Environment variables of the program.".into(),
            Field::EnvFile => "A file with environment variables.".into(),
            Field::Cwd => "The folder in which the program runs.".into(),
            Field::Url(Some(transport)) => format!("The URL of a server that speaks {transport}."),
            Field::Url(None) => "The URL of the server.".into(),
            Field::Headers => "Headers of every request.".into(),
            Field::Timeout => format!("How long to wait for the server, in {unit}{range}."),
            Field::StartTimeout => format!("How long to wait for the start of the server, in {unit}{range}."),
            Field::ToolTimeouts => format!("How long to wait for a call of each of these tools, in {unit}{range}."),
            Field::CallTimeout => format!("How long to wait for a call, in {unit}{range}."),
            Field::Include => format!("The only tools that may be used.{patterns}"),
            Field::Exclude => format!("Tools that may not be used.{patterns}"),
            Field::Enabled => "Whether the server is used.".into(),
            Field::Disabled => "Whether the server is switched off.".into(),
            Field::Trust => "Whether the tools are called without asking.".into(),
            Field::AlwaysAllow => "The tools that are called without asking.".into(),
            Field::Debug => "Whether more is logged.".into(),
            Field::AuthKind => "What the token is for: `bearer` or `api_key`.".into(),
            Field::Bearer => "The token for `Authorization: Bearer`.".into(),
            Field::RejectedBearer(instead) => format!("{program} rejects it; `{instead}` names the variable."),
            Field::ClientId => "The OAuth client's id.".into(),
            Field::ClientSecret => "The OAuth client's secret.".into(),
            Field::Scopes => "The OAuth scopes to ask for.".into(),
            Field::ScopeText => "The OAuth scopes to ask for, in one string, separated by spaces.".into(),
            Field::CallbackPort => "The local port to which OAuth returns.".into(),
            Field::MetadataUrl => "Where the metadata of the authorization server are.".into(),
            Field::Object(_) | Field::Own | Field::Setting(_) => format!("A setting of {program}."),
        };
        match key.applies_to {
            AppliesTo::All => what,
            AppliesTo::Process => format!("{what} For local servers."),
            AppliesTo::Remote => format!("{what} For remote servers."),
        }
    }
}

/// What a value of this kind is.
fn setting(kind: SettingType) -> Json {
    match kind {
        SettingType::Text => text(),
        SettingType::Flag => json!({ "type": "boolean" }),
        SettingType::Count(least) => json!({ "type": "integer", "minimum": least }),
        SettingType::TextOrFlag => json!({ "type": ["string", "boolean"] }),
        SettingType::WordOrCount(words) => json!({ "anyOf": [{ "enum": words }, { "type": "integer", "minimum": 0 }] }),
        SettingType::Plain => json!({ "type": "string", "pattern": "^[a-zA-Z0-9 ]+$" }),
        SettingType::Pairs => json!({ "type": "object", "additionalProperties": text() }),
        SettingType::Object => json!({ "type": "object" }),
    }
}

/// A value that may be written as a text of this form too.
fn or_text(value: Json, pattern: &str) -> Json {
    json!({ "anyOf": [value, { "type": "string", "pattern": pattern }] })
}
