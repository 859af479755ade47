//! References to variables: those that are not replaced, stand for nothing, or are not finished.

use std::{cell::LazyCell, ops::Range};

use super::{Subject, command::has_shell, lookalike::lookalikes};
use crate::config::{
    Form, Node, Reference,
    dialect::{ALL, Dialect, Field, Places, Syntax, Unset, VariableRule},
    expand_env,
    finding::{Finding, codes},
    lookalike::is_of_kind,
    server::{At, ServerConfig, Text},
};

/// So many references of one text are told of, and as many that have no name.
const MOST: usize = 20;

/// No extension asks for more.
const MOST_SETTINGS: usize = 200;

/// No server describes more.
const MOST_DESCRIBED: usize = 200;

/// How references begin that need a name, and how one is written with it.
const NAMED: [(Form, &str, &str); 2] =
    [(Form::Env, "${env:", "name the variable: ${env:NAME}"), (Form::Input, "${input:", "name the input: ${input:id}")];

pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    let is_remote = |word: &At<String>| word.value.starts_with("mcp-remote");
    let has_shell = LazyCell::new(|| has_shell(server) || server.args.iter().any(is_remote));
    for text in server.texts() {
        let rule = subject.dialect().rule(text.field);
        if text.at.value.contains('{') {
            undescribed(subject, server, text, findings);
        }
        // A shell replaces what is left over, and so does mcp-remote.
        let is_for_shell = || text.field == Field::Args && *has_shell;
        let mut told = 0;
        if let Some(range) = unclosed(rule, text).filter(|_| !is_for_shell()) {
            let message = "a reference without an end stays as it is written";
            findings.push(codes::VARIABLE_FORM.at(subject.part(text, range), message).hint("close it with }"));
        }
        let is_whole = |it: &Reference<'_>| !is_of_kind(&text.at.value, it);
        for reference in rule.references(&text.at.value).filter(is_whole) {
            if told == MOST {
                break;
            }
            let before = findings.len();
            match replaced(rule, text, &reference) {
                Ok(()) if rule.by_go && expand_env::is_only_of_go(reference.name) => {
                    findings.push(swallowed(subject, text, &reference));
                }
                Ok(()) => match mistaken(subject, text, &reference) {
                    Some(finding) => findings.push(finding),
                    None => unset(subject, server, text, &reference, findings),
                },
                Err(why) if !is_for_shell() && is_meant(text, &reference) => {
                    findings.push(kept(subject, text, &reference, why));
                }
                Err(_) => {}
            }
            told += findings.len() - before;
        }
        for reference in lookalikes(rule, &text.at.value).into_iter().filter(|_| !is_for_shell()).take(MOST) {
            let why = if rule.holds_in(text.field) { Why::Form } else { Why::Place };
            findings.push(kept(subject, text, &reference, why));
        }
    }
    nameless(subject, server, findings);
}

/// Tells of templates with a name that is neither the program's own nor described for the server.
fn undescribed(subject: &Subject<'_>, server: &ServerConfig, text: Text<'_>, findings: &mut Vec<Finding>) {
    let dialect = subject.dialect();
    let template = dialect.variables.template.and_then(|template| Some((template, template.described?)));
    let Some((template, (own, place))) = template.filter(|_| dialect.rule(text.field).holds_in(text.field)) else {
        return;
    };
    let all = dialect.servers(subject.root).and_then(Node::as_entries).unwrap_or_default();
    let at = all.partition_point(|entry| entry.key_span.start < server.name.span.start);
    // What an alias stands for is elsewhere.
    let Some(entry) = all.get(at).filter(|entry| entry.key_span == server.name.span) else { return };
    let described = entry.node.get(place).and_then(Node::as_entries).unwrap_or_default();
    if described.len() > MOST_DESCRIBED {
        return;
    }
    for range in template.ranges(&text.at.value).into_iter().take(MOST) {
        let name = text.at.value[range.start + template.open.len()..range.end - template.close.len()].trim();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name && !name.starts_with(own) && described.iter().all(|entry| entry.key != name) {
            let message =
                format!("{} puts nothing here: the server describes no `{place}` of this name", dialect.program);
            let hint = format!("describe it under `{place}`, or write a variable: ${{NAME}}");
            findings.push(codes::VARIABLE_FORM.at(subject.part(text, range), message).hint(hint));
        }
    }
}

/// A reference that is opened and never closed.
fn unclosed(rule: &VariableRule, text: Text<'_>) -> Option<Range<usize>> {
    let value = &text.at.value;
    let is_braced = |form: &Form| matches!(form, Form::Braced | Form::Defaulted | Form::Env | Form::Input);
    if rule.by_go || !rule.holds_in(text.field) || !rule.forms.iter().any(is_braced) {
        return None;
    }
    let (start, kind, name) = open(value)?;
    let is_known = rule.known.contains(&name);
    let is_upper = name.len() > 1 && !name.contains(char::is_lowercase);
    // Of other texts nobody knows whether a variable is meant.
    let is_meant = if kind.is_empty() { is_known || is_upper } else { !name.is_empty() };
    is_meant.then(|| start..start + "${".len() + kind.len() + name.len())
}

/// Where the reference begins that a text leaves open, if there is one; its kind, with a colon, and its name.
fn open(text: &str) -> Option<(usize, &str, &str)> {
    let start = text.rfind("${").filter(|start| !text[*start..].contains('}'))?;
    let inner = &text[start + 2..];
    let kind = ["env:", "input:"].into_iter().find(|kind| inner.starts_with(kind)).unwrap_or_default();
    let name = &inner[kind.len()..];
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-' && kind == "input:";
    Some((start, kind, &name[..name.find(|c| !is_part(c)).unwrap_or(name.len())]))
}

/// The input that a reference means which the text leaves open.
pub(super) fn unclosed_input(text: &str) -> Option<&str> {
    open(text).filter(|(_, kind, _)| *kind == "input:").map(|(.., name)| name)
}

/// What Go takes for a variable that nobody can have meant.
fn swallowed(subject: &Subject<'_>, text: Text<'_>, reference: &Reference<'_>) -> Finding {
    let program = subject.dialect().program;
    let what = if reference.form == Form::Braced { "what stands in the braces" } else { "it" };
    let message = match reference.name {
        "" => format!("{program} leaves out a brace without a name or an end, with its dollar sign"),
        _ => {
            format!("{program} takes {what} for the name of a variable, which is not set: nothing is put in its place")
        }
    };
    let inner = reference.name.trim_matches(['{', ' ']);
    let last = inner.rsplit([':', '.']).next().filter(|name| name.len() < inner.len() && is_variable(name));
    let hint = match reference.name.split_once(":-") {
        None if let Some(name) = last => format!("write ${{{name}}}, and set {name} before you start it"),
        Some((name, _)) => format!("{program} has no defaults: write ${{{name}}}, and set {name} before you start it"),
        None => format!("{program} has no way to write a `$`: put the whole value into a variable"),
    };
    codes::VARIABLE_UNSET.at(subject.part(text, reference.range.clone()), message).hint(hint)
}

/// Whether this can be the name of a variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Why a reference is not replaced.
enum Why {
    Form,
    Blocked,
    Place,
    NotWhole,
}

fn replaced(rule: &VariableRule, text: Text<'_>, reference: &Reference<'_>) -> Result<(), Why> {
    if !rule.forms.contains(&reference.form) && !rule.is_known(reference) {
        let is_elsewhere = rule.places != Places::Nowhere && !rule.holds_in(text.field);
        return Err(if is_elsewhere { Why::Place } else { Why::Form });
    }
    if rule.blocked.contains(&reference.name) {
        return Err(Why::Blocked);
    }
    let here = rule.holds_in(text.field);
    match (here, rule.whole && reference.range.len() < text.at.value.len()) {
        (false, _) => Err(Why::Place),
        (true, true) => Err(Why::NotWhole),
        (true, false) => Ok(()),
    }
}

/// Whether somebody means a variable by it: a lone dollar before a word may be part of a password.
fn is_meant(text: Text<'_>, reference: &Reference<'_>) -> bool {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':' | '-'));
    let is_upper = |name: &str| !name.contains(|c: char| c.is_ascii_lowercase());
    match reference.form {
        Form::Bare => {
            let before = text.at.value[..reference.range.start].chars().next_back();
            reference.name.len() > 1 && is_upper(reference.name) && before.is_none_or(|c| !c.is_alphanumeric())
        }
        Form::Secret => true,
        _ => is_name(reference.name),
    }
}

fn kept(subject: &Subject<'_>, text: Text<'_>, reference: &Reference<'_>, why: Why) -> Finding {
    let (program, rule) = (subject.dialect().program, subject.dialect().rule(text.field));
    let written = reference.shown(&text.at.value);
    let (message, hint) = match why {
        Why::Form => {
            let message = format!("{program} does not replace `{written}`, which stays as it is written");
            let form = rule.forms.iter().find(|form| **form != Form::Input && rule.places != Places::Nowhere);
            let lacks_default = reference.default.is_some() && !rule.forms.contains(&Form::Defaulted);
            match form {
                Some(form) if lacks_default => {
                    let instead = form.written(variable_meant(reference.name));
                    (message, format!("{program} has no defaults: write {instead}"))
                }
                _ if let Some(hint) = meant(rule, reference.name) => (message, hint),
                Some(Form::Defaulted) | None => (message, format!("{program} knows no variables in this file")),
                Some(form) => {
                    let instead = form.written(variable_meant(reference.name));
                    let end = instead.strip_prefix(&text.at.value[reference.range.clone()]);
                    (message, end.map_or_else(|| format!("write {instead}"), |end| format!("close it with {end}")))
                }
            }
        }
        Why::Blocked => {
            let message = format!("`{written}` stays as it is written: {program} gives it to no server");
            (message, "put the value into a variable of another name".to_owned())
        }
        Why::Place => {
            let message = format!("{program} does not replace `{written}` here, which stays as it is written");
            let is_other = |it: &&&Dialect| it.program == program && it.variables.places == Places::Everywhere;
            let other = ALL.iter().find(is_other).and_then(|it| Some((it, it.variables.forms.first()?)));
            let hint = match other {
                Some((dialect, form)) => {
                    let instead = form.written(variable_meant(reference.name));
                    let syntax = if dialect.syntax == Syntax::Yaml { "YAML" } else { "other" };
                    format!("in its {syntax} files it replaces {instead}; or write the value itself")
                }
                None => "write the value itself".to_owned(),
            };
            (message, hint)
        }
        Why::NotWhole => {
            let message = format!("{program} replaces `{written}` only if it is the whole value");
            (message, "put all of the value into the variable".to_owned())
        }
    };
    codes::VARIABLE_FORM.at(subject.part(text, reference.range.clone()), message).hint(hint)
}

/// What to write for a name in braces that is nearly what the program replaces.
fn meant(rule: &VariableRule, name: &str) -> Option<String> {
    if rule.places == Places::Nowhere {
        return None;
    }
    if let Some(known) = rule.known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
        return Some(format!("write ${{{known}}}"));
    }
    if rule.is_of_others(name) {
        return Some(instead_of_others(rule, name));
    }
    let (kind, name) = name.split_once(['.', ':']).unwrap_or((name, ""));
    match kind.to_ascii_lowercase().as_str() {
        "env" if rule.forms.contains(&Form::Env) => {
            Some(format!("write {}", Form::Env.written(if name.is_empty() { "NAME" } else { variable_meant(name) })))
        }
        "input" | "inputs" if rule.forms.contains(&Form::Input) && name.is_empty() => {
            Some("write ${input:id}, with the `id` of one of the `inputs`".to_owned())
        }
        "input" | "inputs" if rule.forms.contains(&Form::Input) => Some(format!("write {}", Form::Input.written(name))),
        _ => None,
    }
}

/// What people write before the name of a variable of the environment.
const OF_ENVIRONMENT: [&str; 3] = ["env:", "env.", "process.env."];

/// The name that is meant by what stands in braces: `FOO` in `env:FOO`, `FOO:x` and `FOO-x`.
fn variable_meant(inner: &str) -> &str {
    let name = OF_ENVIRONMENT.iter().find_map(|kind| inner.strip_prefix(kind)).unwrap_or(inner);
    let (before, after) = name.split_at(name.find([':', '-']).unwrap_or(name.len()));
    // A name may have a hyphen, in the same letters as the rest of it.
    let is_name = after.starts_with('-') && before.contains(char::is_lowercase) == after.contains(char::is_lowercase);
    if before.is_empty() || is_name { name } else { before }
}

/// What to write in the place of what only other programs replace.
fn instead_of_others(rule: &VariableRule, name: &str) -> String {
    const FOLDERS: [&str; 3] = ["workspaceFolder", "workspaceRoot", "workspacePath"];
    let is_of_machine = |form: &&Form| matches!(form, Form::Bare | Form::Braced | Form::Env | Form::Curly);
    let known = rule.known.iter().find(|known| FOLDERS.contains(known) && FOLDERS.contains(&name));
    match (rule.forms.iter().find(is_of_machine), known) {
        (Some(form), _) if name == "userHome" => format!("write {}", form.written("HOME")),
        (_, Some(known)) => format!("write ${{{known}}}"),
        _ => "write the value itself".to_owned(),
    }
}

/// What to say of a name in braces that is taken for a variable's and was hardly meant as one.
fn mistaken(subject: &Subject<'_>, text: Text<'_>, reference: &Reference<'_>) -> Option<Finding> {
    let (program, rule) = (subject.dialect().program, subject.dialect().rule(text.field));
    let is_braced = matches!(reference.form, Form::Braced | Form::Defaulted | Form::Env);
    if !is_braced || rule.is_known(reference) {
        return None;
    }
    let is_set = subject.machine.is_some_and(|machine| machine.variables.contains_key(reference.name));
    let name = variable_meant(reference.name);
    let has_kind = OF_ENVIRONMENT.iter().any(|kind| reference.name.starts_with(kind));
    let hint = if reference.form == Form::Braced && rule.is_of_others(reference.name) {
        instead_of_others(rule, reference.name)
    } else if name.len() == reference.name.len() || name.is_empty() || rule.by_go {
        return None;
    } else if rule.forms.contains(&Form::Defaulted) && (reference.default.is_some() || !has_kind) {
        format!("write {}", Form::Defaulted.written(name))
    } else if has_kind {
        format!("write {}", reference.form.written(name))
    } else {
        format!("{program} has no defaults: write {}", reference.form.written(name))
    };
    let written = reference.shown(&text.at.value);
    let message = format!("{program} takes what stands in `{written}` for the name of a variable");
    let finding = codes::VARIABLE_FORM.at(subject.part(text, reference.range.clone()), message);
    Some(finding.hint(hint)).filter(|_| !is_set)
}

/// A variable without a value on this machine.
fn unset(
    subject: &Subject<'_>,
    server: &ServerConfig,
    text: Text<'_>,
    reference: &Reference<'_>,
    findings: &mut Vec<Finding>,
) {
    let rule = subject.dialect().rule(text.field);
    let is_of_machine =
        matches!(reference.form, Form::Bare | Form::Braced | Form::Env | Form::Curly) && reference.default.is_none();
    let Some(machine) = subject.machine_for(server).filter(|_| is_of_machine) else { return };
    let is_set = machine.variables.contains_key(reference.name) || is_setting(subject.root, reference.name);
    if rule.is_known(reference) || is_set {
        return;
    }
    let program = subject.dialect().program;
    let (code, fate) = match rule.unset {
        // In its other forms nothing is replaced, and nobody looks.
        Unset::Rejected if subject.dialect().is_second_choice(subject.root) => {
            (&codes::VARIABLE_UNSET, "the reference stays as it is written".into())
        }
        Unset::Rejected => (&codes::VARIABLE_REJECTED, format!("{program} rejects the config")),
        Unset::Empty => (&codes::VARIABLE_UNSET, "nothing is put in its place".into()),
        Unset::Kept => (&codes::VARIABLE_UNSET, "the reference stays as it is written".into()),
        Unset::Unknown => (&codes::VARIABLE_UNSET, format!("{program} does not say what it makes of it")),
    };
    let name = reference.variable();
    // What follows such a name may have been meant as a value, and a lone dollar sign may be part of a password.
    let is_clear = reference.is_clear() && !name.is_empty();
    let message = match is_clear {
        true => format!("the variable {name} is not set here: {fate}"),
        false => format!("this is a variable that is not set here: {fate}"),
    };
    let hint = match rule.forms.contains(&Form::Defaulted) && is_clear {
        true => format!("set it before you start {program}, or write ${{{name}:-default}}"),
        false => format!("set it before you start {program}"),
    };
    findings.push(code.at(subject.part(text, reference.range.clone()), message).hint(hint));
}

/// Whether an extension of Gemini CLI asks for it when it is installed.
fn is_setting(root: &Node, name: &str) -> bool {
    let settings = root.get("settings").and_then(Node::as_items).unwrap_or_default();
    settings.iter().take(MOST_SETTINGS).any(|setting| setting.get("envVar").and_then(Node::as_str) == Some(name))
}

/// Tells of references in which a name is missing.
fn nameless(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    for text in server.texts() {
        let rule = subject.dialect().rule(text.field);
        if !rule.holds_in(text.field) {
            continue;
        }
        for (_, begin, hint) in NAMED.iter().filter(|(form, ..)| rule.forms.contains(form)) {
            for range in without_name(&text.at.value, begin).take(MOST) {
                let message = "a reference without a name stands for nothing";
                findings.push(codes::VARIABLE_FORM.at(subject.part(text, range), message).hint(*hint));
            }
        }
    }
}

/// Where references without a name are, closed or at the end of the text.
fn without_name(text: &str, begin: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(begin).filter_map(move |(start, _)| {
        let end = start + begin.len();
        match text[end..].chars().next() {
            Some('}') => Some(start..end + 1),
            None => Some(start..end),
            Some(_) => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Source, examine};

    #[test]
    fn what_librechat_puts_in_must_be_its_own_or_described() {
        let of = |rest: &str| {
            let server = "version: 1.2.8\nmcpServers:\n  s:\n    type: streamable-http\n    url: https://a.example\n";
            let text = format!("{server}{rest}");
            let path = "librechat.yaml";
            let examined = examine(&Source::new(path, text.clone()), Some(Path::new(path)), None, None);
            let shown = |it: &crate::config::finding::Finding| {
                format!("{} {}", it.code.name, &text[it.problem.span.start..it.problem.span.end])
            };
            examined.findings.iter().map(shown).collect::<Vec<_>>()
        };
        let header = |name: &str| format!("    headers:\n      Authorization: \"Bearer {{{{{name}}}}}\"\n");
        assert_eq!(of(&header("PAT")), ["W-VARIABLE-FORM {{PAT}}"]);
        assert_eq!(of(&header(" LIBRECHAT_USER_ID ")), [""; 0]);
        let described = "    customUserVars:\n      PAT:\n        title: a\n        description: b\n";
        assert_eq!(of(&format!("{described}{}", header("PAT"))), [""; 0]);
    }
}
