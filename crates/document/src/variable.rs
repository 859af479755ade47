//! References to variables in values, in the syntax of every supported program.
//!
//! They are replaced in the values of the parsed file, so a secret cannot change the structure of the file.

use std::ops::Range;

use super::text::boundary_before;

/// No reference is longer, in bytes; so a text of nothing but beginnings is not searched to its end for each of them.
const LONGEST: usize = 1024;

const CURLY: &str = "{env:";

/// How a reference is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Form {
    /// `$NAME`
    Bare,
    /// `${NAME}`
    Braced,
    /// `${NAME:-default}`, whose default is also used for an empty variable
    Defaulted,
    /// `${env:NAME}`
    Env,
    /// `${input:NAME}`, which the program asks its user for
    Input,
    /// `${{ secrets.NAME }}`
    Secret,
    /// `{env:NAME}`
    Curly,
}

/// A reference and its location in the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference<'t> {
    pub form: Form,
    pub name: &'t str,
    pub default: Option<&'t str>,
    pub range: Range<usize>,
}

/// The references that a program replaces; everything else is taken as it is written.
#[derive(Clone, Copy, Debug)]
pub struct Variables {
    pub forms: &'static [Form],
    /// Whether `$$` is a dollar sign.
    pub dollars_are_doubled: bool,
}

/// A variable without a value and without a default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not set")]
pub struct NotSet {
    pub name: String,
    /// The location of the reference in the value.
    pub range: Range<usize>,
}

impl Form {
    /// A reference of this form.
    pub fn written(self, name: &str) -> String {
        match self {
            Form::Bare => format!("${name}"),
            Form::Braced => format!("${{{name}}}"),
            Form::Defaulted => format!("${{{name}:-default}}"),
            Form::Env => format!("${{env:{name}}}"),
            Form::Input => format!("${{input:{name}}}"),
            Form::Curly => format!("{{env:{name}}}"),
            Form::Secret => format!("${{{{ secrets.{name} }}}}"),
        }
    }
}

impl<'t> Reference<'t> {
    /// The name up to the first character that cannot be part of a name: `X-y` in `${X-y}` may be a name and a value.
    pub fn variable(&self) -> &'t str {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        &self.name[..self.name.find(|c| !is_part(c)).unwrap_or(self.name.len())]
    }

    /// The reference for messages, without any part that may be a value.
    pub fn shown(&self, text: &str) -> String {
        let name = self.variable();
        match name.len() == self.name.len() && self.default.is_none() && self.is_clear() {
            true => text[self.range.clone()].to_owned(),
            false if self.form == Form::Bare => "$…".to_owned(),
            false => format!("${{{name}…}}"),
        }
    }

    /// Whether this is almost certainly a reference: after a single dollar sign, a name in capitals is a variable.
    pub fn is_clear(&self) -> bool {
        let is_capital = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        self.form != Form::Bare || self.name.chars().all(is_capital)
    }
}

/// Everything in `text` that any program treats as a reference, in order.
pub fn references(text: &str) -> impl Iterator<Item = Reference<'_>> {
    // The next brace that closes is looked for once, and not for each that opens.
    let (mut at, mut close) = (0, Some(0));
    std::iter::from_fn(move || {
        loop {
            let start = at + beginning(&text[at..])?;
            if close.is_some_and(|close| close < start) {
                close = text[start..].find('}').map(|length| start + length);
            }
            let is_braced = text[start..].starts_with("${") || text[start..].starts_with('{');
            if is_braced && close.is_none_or(|close| close - start > LONGEST + CURLY.len()) {
                at = start + 1;
                continue;
            }
            let Some((form, name, default, length)) = reference(&text[start..]) else {
                at = start + 1;
                continue;
            };
            at = start + length;
            return Some(Reference { form, name, default, range: start..at });
        }
    })
}

/// Where the next reference may begin.
pub fn beginning(text: &str) -> Option<usize> {
    text.match_indices(['$', '{'])
        .map(|(at, _)| at)
        .find(|at| text[*at..].starts_with(['$']) || text[*at..].starts_with(CURLY))
}

/// The reference at the beginning of a text, and its length.
pub fn reference(text: &str) -> Option<(Form, &str, Option<&str>, usize)> {
    if let Some(after) = text.strip_prefix(CURLY) {
        let name = text_before(after, '}').filter(|name| is_name(name))?;
        return Some((Form::Curly, name, None, CURLY.len() + name.len() + 1));
    }
    let after = text.strip_prefix('$')?;
    if let Some(inner) = after.strip_prefix("{{") {
        if !inner.trim_start().starts_with("secrets.") {
            return None;
        }
        let inner = text_before(inner, '}').filter(|name| inner[name.len()..].starts_with("}}"))?;
        let name = inner.trim().strip_prefix("secrets.").filter(|name| is_name(name))?;
        return Some((Form::Secret, name, None, inner.len() + 5));
    }
    let Some(inner) = after.strip_prefix('{') else {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = &after[..after.find(|c| !is_part(c)).unwrap_or(after.len())];
        return name.starts_with(|c: char| !c.is_ascii_digit()).then_some((Form::Bare, name, None, name.len() + 1));
    };
    // The name of an input may have blanks.
    if let Some(id) = inner.strip_prefix("input:").and_then(|id| text_before(id, '}'))
        && !id.trim().is_empty()
        && id.chars().all(|c| is_of_name(c) || c == ' ')
    {
        return Some((Form::Input, id, None, "${input:}".len() + id.len()));
    }
    let is_name_before = |end: usize| inner[end..].starts_with('}') || inner[..end].contains(":-");
    inner.find(|c| c == '}' || !is_of_name(c)).filter(|end| is_name_before(*end))?;
    let inner = text_before(inner, '}')?;
    let (form, name, default) = match inner.split_once(":-") {
        Some((name, default)) => (Form::Defaulted, name, Some(default)),
        None => match inner.split_once(':') {
            Some(("env", name)) => (Form::Env, name, None),
            Some(("input", name)) => (Form::Input, name, None),
            _ => (Form::Braced, inner, None),
        },
    };
    is_name(name).then_some((form, name, default, inner.len() + 3))
}

/// The text before the next `end`, if that is not too far away.
fn text_before(text: &str, end: char) -> Option<&str> {
    let near = &text[..boundary_before(text, LONGEST)];
    near.find(end).map(|length| &text[..length])
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(is_of_name)
}

fn is_of_name(c: char) -> bool {
    !(c.is_whitespace() || matches!(c, '{' | '$' | '"' | '\'' | '`'))
}

impl Variables {
    /// The references of our own files: `${NAME}`, `${NAME:-default}`, and `$$` for a dollar sign.
    pub const OURS: Variables = Variables { forms: &[Form::Braced, Form::Defaulted], dollars_are_doubled: true };

    /// The text with every reference of these forms replaced by what `lookup` gives.
    ///
    /// # Errors
    /// [`NotSet`] is the first variable that has neither a value nor a default.
    pub fn substitute(&self, text: &str, lookup: impl Fn(&Reference<'_>) -> Option<String>) -> Result<String, NotSet> {
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        while let Some(length) = beginning(&text[at..]) {
            out.push_str(&text[at..at + length]);
            at += length;
            if self.dollars_are_doubled && text[at..].starts_with("$$") {
                out.push('$');
                at += 2;
                continue;
            }
            let found = reference(&text[at..]).filter(|(form, ..)| self.forms.contains(form));
            let Some((form, name, default, length)) = found else {
                out.push_str(&text[at..=at]);
                at += 1;
                continue;
            };
            let reference = Reference { form, name, default, range: at..at + length };
            let value = lookup(&reference).filter(|value| default.is_none() || !value.is_empty());
            match value.or(default.map(str::to_owned)) {
                Some(value) => out.push_str(&value),
                None => return Err(NotSet { name: name.to_owned(), range: reference.range }),
            }
            at += length;
        }
        out.push_str(&text[at..]);
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lookup(reference: &Reference<'_>) -> Option<String> {
        match reference.name {
            "HOST" => Some("h".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_and_other_dollars_kept() {
        assert_eq!(
            Variables::OURS
                .substitute("http://${HOST}:${PORT:-80}/$1 $$5 ${EMPTY:-x}${EMPTY} $HOST", lookup)
                .as_deref(),
            Ok("http://h:80/$1 $5 x $HOST")
        );
        assert_eq!(
            Variables::OURS.substitute("a ${NOPE}", lookup).map_err(|unset| (unset.to_string(), unset.range)),
            Err(("the environment variable NOPE is not set".into(), 2..9))
        );
        assert_eq!(Variables::OURS.substitute("${open $", lookup).as_deref(), Ok("${open $"));
    }

    #[test]
    fn each_program_has_its_forms() {
        let all = "$HOST ${HOST} ${HOST:-d} ${env:HOST} ${input:HOST} ${{ secrets.HOST }} $$ $(HOST) ${a b} $";
        let replaced = |forms: &'static [Form]| {
            Variables { forms, dollars_are_doubled: false }.substitute(all, lookup).expect("set")
        };
        assert_eq!(
            replaced(&[Form::Bare]),
            "h ${HOST} ${HOST:-d} ${env:HOST} ${input:HOST} ${{ secrets.HOST }} $$ $(HOST) ${a b} $"
        );
        assert_eq!(
            replaced(&[Form::Env, Form::Input]),
            "$HOST ${HOST} ${HOST:-d} h h ${{ secrets.HOST }} $$ $(HOST) ${a b} $"
        );
        assert_eq!(
            replaced(&[Form::Secret]),
            "$HOST ${HOST} ${HOST:-d} ${env:HOST} ${input:HOST} h $$ $(HOST) ${a b} $"
        );
        let names: Vec<_> = references(all).map(|found| (found.form, &all[found.range])).collect();
        assert_eq!(names.len(), 6, "{names:?}");
        assert_eq!(names[2], (Form::Defaulted, "${HOST:-d}"));
    }

    #[test]
    fn a_reference_is_shown_without_what_may_be_a_value() {
        let shown = |text: &str| references(text).next().map(|it| it.shown(text));
        for text in ["$A_1", "${A}", "${env:A}", "${a}", "{env:A}"] {
            assert_eq!(shown(text).as_deref(), Some(text));
        }
        for text in ["${A-x}", "${A:=x}", "${A:-x}", "${A:x}"] {
            assert_eq!(shown(text).as_deref(), Some("${A…}"), "{text}");
        }
        assert_eq!(shown("pass$word1").as_deref(), Some("$…"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic_and_without_forms_nothing_changes(text in "[${}:\\-a-zA-Z é.]{0,40}") {
            for found in references(&text) {
                prop_assert!(text[found.range].starts_with('$'));
            }
            let none = Variables { forms: &[], dollars_are_doubled: false };
            prop_assert_eq!(none.substitute(&text, |_| None), Ok(text.clone()));
            let _ = Variables::OURS.substitute(&text, |_| Some(String::new()));
        }
    }
}
