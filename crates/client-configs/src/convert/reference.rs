//! References to variables, from one program's writing to another's.

use std::{collections::HashMap, ops::Range};

use super::template::templates;
use crate::{
    dialect::{Dialect, Field, VariableRule, is_from_home, kind},
    expand_env,
};
use rehearse_document::{Form, Reference, variable};

/// A value as another program has to write it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Translated {
    pub(super) text: String,
    /// What it does not say as the original did, in sentences without any value.
    pub(super) troubles: Vec<String>,
}

/// A field of a program's servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueContext {
    pub(super) dialect: &'static Dialect,
    pub(super) field: Field,
}

/// The kind of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReferenceKind<'t> {
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
    /// Something that the program knows by itself.
    Known(&'t str),
    /// Something that the program asks its user for.
    Input(&'t str),
}

/// Writes the value of one program's field for another's.
///
/// What cannot be said there stays as it is written.
pub(super) fn translate(text: &str, from: ValueContext, to: ValueContext) -> Translated {
    let mut troubles = Vec::new();
    troubles.extend(home(text, from, to));
    for template in templates(text, from.rule().template) {
        troubles.push(format!("{template} stays as it is written: only {} knows it", from.dialect.program));
    }
    let program = to.dialect.program;
    let references = from.references(text);
    if references.is_empty() && to.references(text).is_empty() {
        return Translated { text: text.to_owned(), troubles };
    }
    let refusal = to.refusal(text, &references);
    let (mut written, mut expected) = (String::with_capacity(text.len()), Vec::new());
    // By where they begin, with their ends: the other program may take them for something else, which is reported already.
    let mut kept = HashMap::new();
    let mut end = 0;
    for (range, kind) in references {
        written.push_str(&text[end..range.start]);
        end = range.end;
        let original = &text[range];
        let result = match &refusal {
            Some(reason) => Err(reason.clone()),
            None => to.write(kind),
        };
        let start = written.len();
        match result {
            Ok((reference, left)) => {
                written.push_str(&reference);
                expected.push((start..written.len(), left));
                if left != kind {
                    troubles.push(format!("the default of {} is lost: {program} has none", describe(kind, original)));
                }
            }
            Err(reason) => {
                written.push_str(original);
                kept.insert(start, written.len());
                troubles.push(format!("{} stays as it is written: {reason}", describe(kind, original)));
            }
        }
    }
    written.push_str(&text[end..]);
    let read = to.references(&written);
    let is_among = |(range, kind): &(Range<usize>, ReferenceKind<'_>), others: &[(Range<usize>, ReferenceKind<'_>)]| {
        let place = others.binary_search_by_key(&range.start, |(other, _)| other.start);
        place.is_ok_and(|place| others[place].0.end == range.end && others[place].1 == *kind)
    };
    let is_kept = |range: &Range<usize>| kept.get(&range.start).is_some_and(|end| range.end <= *end);
    if let Some((range, _)) = read.iter().find(|it| !is_kept(&it.0) && !is_among(it, &expected)) {
        let what = if written[range.clone()].starts_with('$') { "a `$`" } else { "a `{env:…}`" };
        troubles.push(format!("{program} replaces {what} that means itself here, and has no escape for it"));
    }
    for reference in expected.iter().filter(|reference| !is_among(reference, &read)) {
        troubles
            .push(format!("{} cannot be written for {program}", describe(reference.1, &written[reference.0.clone()])));
    }
    Translated { text: written, troubles }
}

/// What is to say of a `~` that is the home folder for only one of the programs.
fn home(text: &str, from: ValueContext, to: ValueContext) -> Option<String> {
    let is_home = |place: ValueContext| place.dialect.expands_home_in.contains(&place.field);
    if !is_from_home(text) {
        return None;
    }
    match (is_home(from), is_home(to)) {
        (true, false) => Some(format!("`~` stays as it is written: {} does not expand it", to.dialect.program)),
        (false, true) => Some(format!("{} takes `~` for the home folder", to.dialect.program)),
        _ => None,
    }
}

/// What a reference is called that is written like this.
fn describe(kind: ReferenceKind<'_>, written: &str) -> String {
    // Another name may have in it what was meant as a default, or be a part of a password.
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_clear =
        written.starts_with('{') || written.starts_with("${") || !written.contains(|c: char| c.is_lowercase());
    match kind {
        ReferenceKind::Variable { name, .. }
            if !is_clear || !name.chars().all(is_name) || expand_env::is_only_of_go(name) =>
        {
            "a reference".into()
        }
        ReferenceKind::Variable { name, .. } => format!("the reference to `{name}`"),
        ReferenceKind::Known(name) => format!("`${{{name}}}`"),
        ReferenceKind::Input(name) => format!("the question for `{name}`"),
    }
}

impl ValueContext {
    fn rule(&self) -> &'static VariableRule {
        self.dialect.rule(self.field)
    }

    fn is_replaced(&self) -> bool {
        self.rule().holds_in(self.field)
    }

    /// What the program replaces in a value of this field.
    fn references<'t>(&self, text: &'t str) -> Vec<(Range<usize>, ReferenceKind<'t>)> {
        let rule = self.rule();
        let (mut found, mut at) = (Vec::new(), 0);
        if rule.by_go {
            let kind = |it: Reference<'t>| (it.range, ReferenceKind::Variable { name: it.name, default: None });
            return expand_env::references(text).map(kind).collect();
        }
        while let Some(length) = self.is_replaced().then(|| variable::beginning(&text[at..])).flatten() {
            let start = at + length;
            at = start + 1;
            let Some((form, name, default, length)) = variable::reference(&text[start..]) else { continue };
            let kind = match form {
                Form::Braced if rule.known.contains(&name) || rule.known.contains(&kind(name)) => {
                    ReferenceKind::Known(name)
                }
                _ if !rule.forms.contains(&form) || rule.blocked.contains(&name) => continue,
                Form::Input => ReferenceKind::Input(name),
                _ => ReferenceKind::Variable { name, default },
            };
            at = start + length;
            found.push((start..at, kind));
        }
        match rule.whole && !is_whole(text, &found) {
            true => Vec::new(),
            false => found,
        }
    }

    /// Why no reference can be written in such a value.
    fn refusal(&self, text: &str, references: &[(Range<usize>, ReferenceKind<'_>)]) -> Option<String> {
        let program = self.dialect.program;
        if self.rule().forms.is_empty() {
            return Some(format!("{program} replaces no variables"));
        }
        if !self.is_replaced() {
            return Some(format!("{program} replaces no variables here"));
        }
        (self.rule().whole && !is_whole(text, references))
            .then(|| format!("{program} replaces a variable only where it is the whole value"))
    }

    /// The reference as the program writes it, and what is left of its kind.
    fn write<'t>(&self, reference: ReferenceKind<'t>) -> Result<(String, ReferenceKind<'t>), String> {
        let (rule, program) = (self.rule(), self.dialect.program);
        let has = |form| rule.forms.contains(&form);
        match reference {
            // Only the grammar that has `${input:…}` says anything about other names with an argument.
            ReferenceKind::Known(name)
                if rule.known.contains(&name) || (has(Form::Input) && rule.known.contains(&kind(name))) =>
            {
                Ok((format!("${{{name}}}"), reference))
            }
            ReferenceKind::Known(_) => Err(format!("{program} does not know it")),
            ReferenceKind::Input(name) if has(Form::Input) => Ok((Form::Input.written(name), reference)),
            ReferenceKind::Input(_) => Err(format!("{program} asks for nothing")),
            ReferenceKind::Variable { name, .. } if !rule.by_go && expand_env::is_only_of_go(name) => {
                Err(format!("{program} takes it for something else, or for nothing"))
            }
            ReferenceKind::Variable { name, default: Some(default) } if has(Form::Defaulted) => {
                Ok((format!("${{{name}:-{default}}}"), reference))
            }
            ReferenceKind::Variable { name, .. } => {
                let forms = [Form::Env, Form::Curly, Form::Braced, Form::Secret, Form::Bare];
                let form = forms.into_iter().find(|form| has(*form));
                let form = form.ok_or_else(|| format!("{program} replaces no variables"))?;
                Ok((form.written(name), ReferenceKind::Variable { name, default: None }))
            }
        }
    }
}

/// Whether a value is one reference and nothing else.
fn is_whole(text: &str, references: &[(Range<usize>, ReferenceKind<'_>)]) -> bool {
    matches!(references, [(range, _)] if *range == (0..text.len()))
}
