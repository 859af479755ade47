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

/// What a reference stands for, however it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning<'t> {
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
    // By where they begin, with their ends: the other program may take them for something else, which is told already.
    let mut kept = HashMap::new();
    let mut end = 0;
    for (range, meaning) in references {
        written.push_str(&text[end..range.start]);
        end = range.end;
        let original = &text[range];
        let result = match &refusal {
            Some(reason) => Err(reason.clone()),
            None => to.write(meaning),
        };
        let start = written.len();
        match result {
            Ok((reference, left)) => {
                written.push_str(&reference);
                expected.push((start..written.len(), left));
                if left != meaning {
                    troubles
                        .push(format!("the default of {} is lost: {program} has none", describe(meaning, original)));
                }
            }
            Err(reason) => {
                written.push_str(original);
                kept.insert(start, written.len());
                troubles.push(format!("{} stays as it is written: {reason}", describe(meaning, original)));
            }
        }
    }
    written.push_str(&text[end..]);
    let read = to.references(&written);
    let is_among = |(range, meaning): &(Range<usize>, Meaning<'_>), others: &[(Range<usize>, Meaning<'_>)]| {
        let place = others.binary_search_by_key(&range.start, |(other, _)| other.start);
        place.is_ok_and(|place| others[place].0.end == range.end && others[place].1 == *meaning)
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
fn describe(meaning: Meaning<'_>, written: &str) -> String {
    // Another name may have in it what was meant as a default, or be a part of a password.
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let is_clear =
        written.starts_with('{') || written.starts_with("${") || !written.contains(|c: char| c.is_lowercase());
    match meaning {
        Meaning::Variable { name, .. }
            if !is_clear || !name.chars().all(is_name) || expand_env::is_only_of_go(name) =>
        {
            "a reference".into()
        }
        Meaning::Variable { name, .. } => format!("the reference to `{name}`"),
        Meaning::Known(name) => format!("`${{{name}}}`"),
        Meaning::Input(name) => format!("the question for `{name}`"),
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
    fn references<'t>(&self, text: &'t str) -> Vec<(Range<usize>, Meaning<'t>)> {
        let rule = self.rule();
        let (mut found, mut at) = (Vec::new(), 0);
        if rule.by_go {
            let meaning = |it: Reference<'t>| (it.range, Meaning::Variable { name: it.name, default: None });
            return expand_env::references(text).map(meaning).collect();
        }
        while let Some(length) = self.is_replaced().then(|| variable::beginning(&text[at..])).flatten() {
            let start = at + length;
            at = start + 1;
            let Some((form, name, default, length)) = variable::reference(&text[start..]) else { continue };
            let meaning = match form {
                Form::Braced if rule.known.contains(&name) || rule.known.contains(&kind(name)) => Meaning::Known(name),
                _ if !rule.forms.contains(&form) || rule.blocked.contains(&name) => continue,
                Form::Input => Meaning::Input(name),
                _ => Meaning::Variable { name, default },
            };
            at = start + length;
            found.push((start..at, meaning));
        }
        match rule.whole && !is_whole(text, &found) {
            true => Vec::new(),
            false => found,
        }
    }

    /// Why no reference can be written in such a value.
    fn refusal(&self, text: &str, references: &[(Range<usize>, Meaning<'_>)]) -> Option<String> {
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

    /// The reference as the program writes it, and what is left of its meaning.
    fn write<'t>(&self, meaning: Meaning<'t>) -> Result<(String, Meaning<'t>), String> {
        let (rule, program) = (self.rule(), self.dialect.program);
        let has = |form| rule.forms.contains(&form);
        match meaning {
            // Only the grammar that has `${input:…}` says anything about other names with an argument.
            Meaning::Known(name)
                if rule.known.contains(&name) || (has(Form::Input) && rule.known.contains(&kind(name))) =>
            {
                Ok((format!("${{{name}}}"), meaning))
            }
            Meaning::Known(_) => Err(format!("{program} does not know it")),
            Meaning::Input(name) if has(Form::Input) => Ok((Form::Input.written(name), meaning)),
            Meaning::Input(_) => Err(format!("{program} asks for nothing")),
            Meaning::Variable { name, .. } if !rule.by_go && expand_env::is_only_of_go(name) => {
                Err(format!("{program} takes it for something else, or for nothing"))
            }
            Meaning::Variable { name, default: Some(default) } if has(Form::Defaulted) => {
                Ok((format!("${{{name}:-{default}}}"), meaning))
            }
            Meaning::Variable { name, .. } => {
                let forms = [Form::Env, Form::Curly, Form::Braced, Form::Secret, Form::Bare];
                let form = forms.into_iter().find(|form| has(*form));
                let form = form.ok_or_else(|| format!("{program} replaces no variables"))?;
                Ok((form.written(name), Meaning::Variable { name, default: None }))
            }
        }
    }
}

/// Whether a value is one reference and nothing else.
fn is_whole(text: &str, references: &[(Range<usize>, Meaning<'_>)]) -> bool {
    matches!(references, [(range, _)] if *range == (0..text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::by_name;

    fn place(dialect: &str, field: Field) -> ValueContext {
        ValueContext { dialect: by_name(dialect).expect(dialect), field }
    }

    fn of_header(text: &str, from: &str, to: &str) -> (String, Vec<String>) {
        let translated = translate(text, place(from, Field::Headers), place(to, Field::Headers));
        (translated.text, translated.troubles)
    }

    #[test]
    fn a_reference_is_written_as_the_other_program_reads_it() {
        for (from, text, to, expected) in [
            ("claude-code", "Bearer ${TOKEN}", "cursor", "Bearer ${env:TOKEN}"),
            ("cursor", "Bearer ${env:TOKEN}", "claude-code", "Bearer ${TOKEN}"),
            ("cpe", "a $TOKEN b", "vscode", "a ${env:TOKEN} b"),
            ("cpe", "$A$B", "claude-code", "${A}${B}"),
            ("claude-code", "${A:-x}/${B}", "gemini", "${A:-x}/${B}"),
            ("opencode", "Bearer {env:TOKEN}", "claude-code", "Bearer ${TOKEN}"),
            ("cursor", "Bearer ${env:TOKEN}", "opencode", "Bearer {env:TOKEN}"),
            ("claude-code", "${A}", "continue", "${{ secrets.A }}"),
            ("continue", "${{ secrets.A }}", "roo", "${env:A}"),
            ("cursor", "${workspaceFolder}/x", "vscode", "${workspaceFolder}/x"),
            ("cursor", "${workspaceFolder:api}/x", "vscode", "${workspaceFolder:api}/x"),
            ("claude-code", "costs $5", "zed", "costs $5"),
        ] {
            assert_eq!(of_header(text, from, to), (expected.into(), vec![]), "{from} {to}");
        }
    }

    #[test]
    fn what_cannot_be_written_stays_and_is_told() {
        for (from, text, to, expected, trouble) in [
            (
                "claude-code",
                "${A:-x}",
                "cursor",
                "${env:A}",
                "the default of the reference to `A` is lost: Cursor has none",
            ),
            (
                "claude-code",
                "${A}",
                "zed",
                "${A}",
                "the reference to `A` stays as it is written: Zed replaces no variables",
            ),
            (
                "vscode",
                "${input:key}",
                "cursor",
                "${input:key}",
                "the question for `key` stays as it is written: Cursor asks for nothing",
            ),
            (
                "cursor",
                "${userHome}",
                "claude-code",
                "${userHome}",
                "`${userHome}` stays as it is written: Claude Code does not know it",
            ),
            (
                "opencode",
                "{file:~/.token}",
                "cursor",
                "{file:~/.token}",
                "`{file:…}` stays as it is written: only OpenCode knows it",
            ),
            (
                "cursor",
                "a {env:TOKEN}",
                "opencode",
                "a {env:TOKEN}",
                "OpenCode replaces a `{env:…}` that means itself here, and has no escape for it",
            ),
            (
                "zed",
                "pa$word",
                "gemini",
                "pa$word",
                "Gemini CLI replaces a `$` that means itself here, and has no escape for it",
            ),
            (
                "cursor",
                "${env:CLAUDE_PLUGIN_ROOT}",
                "claude-code",
                "${CLAUDE_PLUGIN_ROOT}",
                "Claude Code replaces a `$` that means itself here, and has no escape for it",
            ),
        ] {
            let (text, troubles) = of_header(text, from, to);
            assert_eq!((text.as_str(), troubles[0].as_str()), (expected, trouble), "{from} {to}");
        }
    }

    #[test]
    fn a_name_with_an_argument_is_known_only_where_arguments_are() {
        for reference in ["${workspaceFolder:api}", "${config:editor.tabSize}", "${command:foo}"] {
            for (to, program) in [("cursor", "Cursor"), ("claude-code", "Claude Code"), ("roo", "Roo Code")] {
                let trouble = format!("`{reference}` stays as it is written: {program} does not know it");
                assert_eq!(of_header(reference, "vscode", to), (reference.into(), vec![trouble]));
            }
        }
        let (text, troubles) = of_header("${userHome} $5 ${x}", "cursor", "claude-code");
        assert_eq!((text.as_str(), troubles.len()), ("${userHome} $5 ${x}", 2), "{troubles:?}");
    }

    #[test]
    fn what_another_program_would_ask_for_is_told() {
        let trouble = "Visual Studio Code replaces a `$` that means itself here, and has no escape for it";
        for from in ["cursor", "claude-code", "zed"] {
            assert_eq!(of_header("${input:key}", from, "vscode"), ("${input:key}".into(), vec![trouble.into()]));
        }
    }

    #[test]
    fn a_tilde_is_the_home_folder_for_only_one_of_them() {
        let of = |text, field, from, to| translate(text, place(from, field), place(to, field)).troubles.concat();
        for field in [Field::Command, Field::Args, Field::Cwd] {
            let lost = of("~/x", field, "vscode", "roo");
            assert_eq!(lost, "`~` stays as it is written: Roo Code does not expand it");
            assert_eq!(of("~", field, "vscode", "roo"), lost);
            assert_eq!(of("~/x", field, "roo", "vscode"), "Visual Studio Code takes `~` for the home folder");
            assert_eq!(of("~x", field, "vscode", "roo"), "");
            assert_eq!(of("a~/x", field, "vscode", "roo"), "");
            assert_eq!(of("~/x", field, "cursor", "roo"), "");
        }
        assert_eq!(of("~/x", Field::Env, "vscode", "roo"), "");
    }

    #[test]
    fn templates_of_the_program_are_told() {
        let lost = |text: &str, from| of_header(text, from, "cursor").1;
        let known = |template, program| vec![format!("{template} stays as it is written: only {program} knows it")];
        assert_eq!(lost("${{ inputs.KEY }}", "continue"), known("`${{ inputs.KEY }}`", "Continue"));
        assert_eq!(lost("{{LIBRECHAT_USER_ID}}", "librechat"), known("`{{LIBRECHAT_USER_ID}}`", "LibreChat"));
        assert_eq!(lost("{{LIBRECHAT_USER_ID}}", "cline"), [""; 0]);
    }

    #[test]
    fn places_and_whole_values_are_those_of_the_program() {
        let command =
            translate("${A}", place("claude-code", Field::Command), place("code_agent", Field::Command)).troubles;
        assert_eq!(command, ["the reference to `A` stays as it is written: code_agent replaces no variables here"]);
        let env = |text| {
            let translated = translate(text, place("claude-code", Field::Env), place("mcpilot", Field::Env));
            (translated.text, translated.troubles.len())
        };
        assert_eq!(env("${A}"), ("${A}".into(), 0));
        assert_eq!(env("x${A}"), ("x${A}".into(), 1));
        let back = translate("x${A}", place("mcpilot", Field::Env), place("claude-code", Field::Env));
        assert_eq!((back.text.as_str(), back.troubles.len()), ("x${A}", 1));
    }
}
