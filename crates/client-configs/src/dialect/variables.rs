//! What a program replaces in the values of its servers.

use std::ops::Range;

use serde::Deserialize;

use super::{Field, all};
use crate::{expand_env, slice::slice};
use rehearse_document::{Form, Reference, references};

/// The variables that Windows sets itself.
const OF_WINDOWS: &[&str] = &[
    "APPDATA",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Which references are replaced, where, and what an unset variable is.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default, bound(deserialize = "'de: 'static"))]
pub struct VariableRule {
    #[serde(deserialize_with = "slice")]
    pub forms: &'static [Form],
    /// `${NAME}` that the program knows by itself: `workspaceFolder`.
    #[serde(deserialize_with = "slice")]
    pub known: &'static [&'static str],
    /// Variables that the program does not give away: a reference to one stays as it is written.
    #[serde(deserialize_with = "slice")]
    pub blocked: &'static [&'static str],
    /// Whether a value must be one reference and nothing else.
    pub whole: bool,
    /// Whether it is Go's `os.ExpandEnv` that replaces them: any text between braces is a name.
    pub by_go: bool,
    /// Whether they are replaced in the text of the file before it is parsed, so that a value without
    /// quotes may become anything.
    pub in_text: bool,
    pub scope: VariableScope,
    pub unset: UnsetVariable,
    pub empty: EmptyVariable,
    /// What the program replaces by something that is not a variable of the environment.
    pub template: Option<Template>,
}

/// How templates are written: `{{USER_ID}}`, `${{ inputs.NAME }}`, `{file:PATH}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Template {
    pub open: &'static str,
    pub close: &'static str,
    /// What their names begin with.
    pub prefix: &'static str,
}

/// What a program does with a variable that is set to an empty string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EmptyVariable {
    /// The value is empty, unless the reference has a default.
    #[default]
    Nothing,
    /// The value is empty, and the default is ignored.
    Set,
    /// The variable counts as unset.
    Unset,
}

/// The values in which references are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'static"))]
pub enum VariableScope {
    #[default]
    Nowhere,
    Everywhere,
    /// In those of these fields.
    Fields(#[serde(deserialize_with = "slice")] &'static [Field]),
}

/// What a program does with a variable that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnsetVariable {
    /// The value is empty.
    Empty,
    /// The program rejects the config.
    Rejected,
    /// The reference stays as it is written.
    #[default]
    Kept,
    /// It is not documented.
    Unknown,
}

impl VariableRule {
    /// Whether anything is replaced in values of this field.
    pub fn holds_in(&self, field: Field) -> bool {
        let field = match field {
            Field::Url(_) => Field::Url(None),
            Field::CommandLine => Field::Command,
            field => field,
        };
        match self.scope {
            VariableScope::Nowhere => false,
            VariableScope::Everywhere => true,
            VariableScope::Fields(fields) => fields.contains(&field),
        }
    }

    /// The references for this program, or for another that the user may think of.
    pub(crate) fn references<'t>(&self, text: &'t str) -> impl Iterator<Item = Reference<'t>> + use<'t> {
        let by_go = self.by_go.then(|| expand_env::references(text));
        let usual = (!self.by_go).then(|| references(text));
        by_go.into_iter().flatten().chain(usual.into_iter().flatten())
    }

    /// Whether it is something that the program knows by itself. `${config:editor.tabSize}` is one of those that begin
    /// with `config`, and `${user_config.KEY}` one of `user_config`.
    pub(crate) fn is_known(&self, reference: &Reference<'_>) -> bool {
        let kind = kind(reference.name);
        reference.form == Form::Braced && [reference.name, kind].iter().any(|name| self.known.contains(name))
    }

    /// Whether this is the name of something that other programs replace, such as `workspaceFolder`, and this one does not.
    /// Words of small letters may be variables.
    pub(crate) fn is_of_others(&self, name: &str) -> bool {
        let is_known = |rule: &VariableRule| rule.known.contains(&kind(name));
        let is_name = name.starts_with(char::is_lowercase)
            && (!self.forms.contains(&Form::Braced) || name.contains(char::is_uppercase));
        is_name && !is_known(self) && all().any(|other| is_known(&other.variables))
    }

    /// Where the program replaces something in a text: references and templates, in no order.
    pub(crate) fn replaced_in(&self, text: &str) -> Vec<Range<usize>> {
        let is_replaced = |it: &Reference<'_>| self.forms.contains(&it.form) || self.is_known(it);
        let references = self.references(text).filter(is_replaced).map(|reference| reference.range);
        let templates = self.template.iter().flat_map(|template| template.ranges(text));
        references.chain(templates).collect()
    }

    /// Whether the program replaces something in a text.
    pub(crate) fn is_replaced_in(&self, text: &str) -> bool {
        !self.replaced_in(text).is_empty()
    }
}

impl Template {
    /// Where the templates of a text are, in its order. What is open twice begins where it is open last.
    pub(crate) fn ranges(self, text: &str) -> Vec<Range<usize>> {
        let Template { open, close, prefix, .. } = self;
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(length) = text[at..].find(open) {
            let inner = at + length + open.len();
            let Some(length) = text[inner..].find(close) else { break };
            let end = inner + length;
            let inner = text[inner..end].rfind(open).map_or(inner, |last| inner + last + open.len());
            let name = text[inner..end].trim();
            if !name.is_empty() && name.starts_with(prefix) {
                found.push(inner - open.len()..end + close.len());
            }
            at = end + close.len();
        }
        found
    }
}

/// A variable as the shell of Windows has it, such as `%APPDATA%`. Other signs may be those of a URL or of a format.
pub(crate) fn variable_of_windows(text: &str) -> Option<Range<usize>> {
    let signs: Vec<_> = text.match_indices('%').map(|(at, _)| at).collect();
    let is_name = |name: &str| {
        let is_constant = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let is_own = name.contains('_') && name.starts_with(char::is_alphabetic) && name.chars().all(is_constant);
        is_own || OF_WINDOWS.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    let pairs = signs.windows(2).map(|pair| pair[0]..pair[1] + 1);
    pairs.into_iter().find(|range| is_name(&text[range.start + 1..range.end - 1]))
}

/// Whether a path begins in the home folder, where `~` is replaced.
pub(crate) fn is_from_home(path: &str) -> bool {
    path == "~" || path.starts_with("~/") || path.starts_with("~\\")
}

/// What a name with an argument is one of: `workspaceFolder` for `workspaceFolder:api`, `user_config` for
/// `user_config.KEY`.
pub(crate) fn kind(name: &str) -> &str {
    name.split([':', '.']).next().unwrap_or_default()
}
