//! References to variables: those that the program does not replace, and variables that are not set.

use super::{CheckedConfig, bridge::is_bridge, command::has_shell};
use crate::{
    ConfiguredServer, codes,
    dialect::{BatchFiles, Field, UnsetVariable, VariableRule, VariableScope, variable_of_windows},
    expand_env,
    server::Text,
};
use rehearse_document::{Form, Node, Reference};
use rehearse_report::findings::Finding;

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let has_shell = has_shell(server) || server.args.iter().any(is_bridge);
    for text in server.texts() {
        let rule = checked.dialect().rule(text.field);
        // A shell replaces what is left over, and so does mcp-remote.
        let is_for_shell = text.field == Field::Args && has_shell;
        if let Some(range) = unclosed(rule, text).filter(|_| !is_for_shell) {
            let finding = codes::VARIABLE_FORM.at(checked.part(text, range), "this reference is never closed");
            findings.push(finding.hint("add the missing `}`"));
        }
        let is_for_cmd = matches!(text.field, Field::Command | Field::Args)
            && (has_shell || checked.dialect().batch_files == BatchFiles::ByCmd);
        if let Some(range) = variable_of_windows(&text.at.value).filter(|_| !is_for_cmd) {
            let message =
                format!("{} does not replace variables that are written as %NAME%", checked.dialect().program);
            let form = rule.forms.iter().find(|form| **form != Form::Input && rule.holds_in(text.field));
            let hint = form
                .map_or_else(|| "write the value itself".to_owned(), |form| format!("write {}", form.written("NAME")));
            findings.push(codes::VARIABLE_FORM.at(checked.part(text, range), message).hint(hint));
        }
        for reference in rule.references(&text.at.value) {
            match obstacle(rule, text, &reference) {
                None if rule.by_go && expand_env::is_only_of_go(reference.name) => {
                    let message =
                        format!("{} takes this for an unset variable and removes it", checked.dialect().program);
                    let finding = codes::VARIABLE_UNSET.at(checked.part(text, reference.range.clone()), message);
                    findings.push(finding.hint("write ${NAME} without a default; this format cannot escape `$`"));
                }
                None if reference.form == Form::Braced && rule.is_of_others(reference.name) => {
                    findings.push(unreplaced(checked, text, &reference, &Obstacle::Form));
                }
                None => check_set(checked, server, text, &reference, findings),
                Some(obstacle) if !is_for_shell && is_meant(text, &reference) => {
                    findings.push(unreplaced(checked, text, &reference, &obstacle));
                }
                Some(_) => {}
            }
        }
    }
}

/// A reference that is opened and never closed.
fn unclosed(rule: &VariableRule, text: Text<'_>) -> Option<std::ops::Range<usize>> {
    let value = &text.at.value;
    let is_braced = |form: &Form| matches!(form, Form::Braced | Form::Defaulted | Form::Env | Form::Input);
    if rule.by_go || !rule.holds_in(text.field) || !rule.forms.iter().any(is_braced) {
        return None;
    }
    let start = value.rfind("${").filter(|start| !value[*start..].contains('}'))?;
    let inner = &value[start + 2..];
    let kind = ["env:", "input:"].into_iter().find(|kind| inner.starts_with(kind)).unwrap_or_default();
    let name = &inner[kind.len()..];
    let name = &name[..name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(name.len())];
    let is_constant = name.len() > 1 && !name.contains(char::is_lowercase);
    (!kind.is_empty() || is_constant || rule.known.contains(&name)).then(|| start..start + 2 + kind.len() + name.len())
}

/// Why a reference is not replaced.
enum Obstacle {
    Form,
    Blocked,
    Field,
    NotWhole,
}

fn obstacle(rule: &VariableRule, text: Text<'_>, reference: &Reference<'_>) -> Option<Obstacle> {
    let is_elsewhere = rule.scope != VariableScope::Nowhere && !rule.holds_in(text.field);
    if is_elsewhere {
        return Some(Obstacle::Field);
    }
    if !rule.forms.contains(&reference.form) && !rule.is_known(reference) || !rule.holds_in(text.field) {
        return Some(Obstacle::Form);
    }
    if rule.blocked.contains(&reference.name) {
        return Some(Obstacle::Blocked);
    }
    (rule.whole && reference.range.len() < text.at.value.len()).then_some(Obstacle::NotWhole)
}

/// Whether it is certainly a reference: a single dollar before a word may be part of a password.
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

fn unreplaced(checked: &CheckedConfig<'_>, text: Text<'_>, reference: &Reference<'_>, obstacle: &Obstacle) -> Finding {
    let (program, rule) = (checked.dialect().program, checked.dialect().rule(text.field));
    let written = reference.shown(&text.at.value);
    let (message, hint) = match obstacle {
        Obstacle::Form => {
            let form = rule.forms.iter().find(|form| **form != Form::Input && rule.scope != VariableScope::Nowhere);
            let name = reference.name.rsplit([':', '.']).next().unwrap_or_default();
            let name = if reference.default.is_some() { reference.variable() } else { name };
            let hint = match form {
                Some(_) if rule.is_of_others(reference.name) => "write the value itself".to_owned(),
                Some(form) => format!("write {}", form.written(name)),
                None => format!("{program} replaces no variables in this file"),
            };
            (format!("{program} does not replace `{written}`"), hint)
        }
        Obstacle::Blocked => {
            let message = format!("{program} does not replace `{written}`: it gives this variable to no server");
            (message, "put the value into a variable of another name".to_owned())
        }
        Obstacle::Field => {
            (format!("{program} does not replace `{written}` in this key"), "write the value itself".to_owned())
        }
        Obstacle::NotWhole => {
            let message = format!("{program} replaces `{written}` only if it is the whole value");
            (message, "put the whole value into the variable".to_owned())
        }
    };
    codes::VARIABLE_FORM.at(checked.part(text, reference.range.clone()), message).hint(hint)
}

/// Reports a variable that is not set on this machine.
fn check_set(
    checked: &CheckedConfig<'_>,
    server: &ConfiguredServer,
    text: Text<'_>,
    reference: &Reference<'_>,
    findings: &mut Vec<Finding>,
) {
    let rule = checked.dialect().rule(text.field);
    let is_of_machine =
        matches!(reference.form, Form::Bare | Form::Braced | Form::Env | Form::Curly) && reference.default.is_none();
    let Some(machine) = checked.machine_for(server).filter(|_| is_of_machine) else { return };
    let is_set = machine.variable(reference.name).is_some() || is_setting(checked.root, reference.name);
    if rule.is_known(reference) || is_set {
        return;
    }
    let program = checked.dialect().program;
    let (code, fate) = match rule.unset {
        // In its other forms the program replaces nothing.
        UnsetVariable::Rejected if checked.dialect().is_second_choice(checked.root) => {
            (&codes::VARIABLE_UNSET, "the reference stays as it is written".into())
        }
        UnsetVariable::Rejected => (&codes::VARIABLE_REJECTED, format!("{program} rejects the config")),
        UnsetVariable::Empty => (&codes::VARIABLE_UNSET, "its value is empty".into()),
        UnsetVariable::Kept => (&codes::VARIABLE_UNSET, "the reference stays as it is written".into()),
        UnsetVariable::Unknown => (&codes::VARIABLE_UNSET, format!("{program} does not document what happens")),
    };
    let name = reference.variable();
    // The text after such a name may be a value, and a single dollar sign may be part of a password.
    let message = match reference.is_clear() && !name.is_empty() {
        true => format!("the variable {name} is not set here: {fate}"),
        false => format!("this variable is not set here: {fate}"),
    };
    let finding = code.at(checked.part(text, reference.range.clone()), message);
    findings.push(finding.hint(format!("set it before you start {program}")));
}

/// Whether an extension of Gemini CLI asks for it when it is installed.
fn is_setting(root: &Node, name: &str) -> bool {
    let settings = root.get("settings").and_then(Node::as_items).unwrap_or_default();
    settings.iter().any(|setting| setting.get("envVar").and_then(Node::as_str) == Some(name))
}
