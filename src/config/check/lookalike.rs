//! What somebody meant for a reference, and nobody reads as one.

use std::ops::Range;

use super::Subject;
use crate::config::{
    Form, Reference, Span,
    dialect::VariableRule,
    finding::{Finding, codes},
    lookalike::{is_of_kind, lookalikes_in, marks},
    references,
};

/// In a longer text nobody looks for them.
const LONGEST: usize = 10_000;

/// So many letters and digits beside one are more than the rest of it.
const FEW: usize = 4;

/// What looks like references in a text, and is none for this program or any other.
pub(super) fn lookalikes<'t>(rule: &VariableRule, text: &'t str) -> Vec<Reference<'t>> {
    if text.len() > LONGEST || marks(text).next().is_none() {
        return Vec::new();
    }
    let mut is_taken = vec![false; text.len()];
    let others = references(text).filter(|it| !is_of_kind(text, it));
    let taken = rule.references(text).filter(|it| !is_of_kind(text, it)).chain(others).map(|it| it.range);
    taken.chain(rule.replaced_in(text)).for_each(|range| is_taken[range].fill(true));
    if marks(text).all(|at| is_taken[at]) {
        return Vec::new();
    }
    let is_free = |range: &Range<usize>| !is_taken[range.clone()].contains(&true);
    let found = lookalikes_in(text).filter(|(range, _)| is_free(range));
    found.map(|(range, name)| Reference { form: Form::Braced, name, default: None, range }).collect()
}

/// Takes back that something like a reference is a secret, of what was found since `before`.
pub(super) fn clear(subject: &Subject<'_>, before: usize, findings: &mut Vec<Finding>) {
    let spans = |code| findings[before..].iter().filter(move |it| it.code == code).map(|it| it.problem.span);
    if spans(&codes::SECRET).next().is_none() {
        return;
    }
    let mut references: Vec<_> = spans(&codes::VARIABLE_FORM).collect();
    references.sort_unstable_by_key(|span| span.start);
    let text = &subject.source.text;
    let letters = |start: usize, end: usize| {
        text.get(start..end).unwrap_or_default().chars().filter(|c| c.is_alphanumeric()).count()
    };
    let is_one = |secret: Span| {
        let within = &references[references.partition_point(|it| it.start < secret.start)..];
        let mut within = within.iter().take_while(|it| it.start < secret.end);
        within.any(|it| letters(secret.start, it.start) + letters(it.end, secret.end) < FEW)
    };
    findings.extract_if(before.., |it| it.code == &codes::SECRET && is_one(it.problem.span)).for_each(drop);
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::{Source, examine};

    /// `CODE what it points at hint` of what is said of a value in `env`.
    fn told(path: &str, open: &str, value: &str, close: &str) -> Vec<String> {
        let text = format!("{open}{value}{close}");
        let examined = examine(&Source::new(path, text.clone()), Some(Path::new(path)), None, None);
        let shown = |it: &crate::config::finding::Finding| {
            let (span, hint) = (it.problem.span, it.problem.hint.clone().unwrap_or_default());
            format!("{} {} {hint}", it.code.name, text[span.start..span.end].trim_matches('"'))
        };
        examined.findings.iter().map(shown).collect()
    }

    fn claude(value: &str) -> Vec<String> {
        let open = r#"{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": ""#;
        told(".mcp.json", open, value, r#""}}}}"#)
    }

    fn opencode(value: &str) -> Vec<String> {
        let open = r#"{"mcp": {"s": {"type": "local", "command": ["x"], "environment": {"API_KEY": ""#;
        told("opencode.json", open, value, r#""}}}}"#)
    }

    fn continues(value: &str) -> Vec<String> {
        let open = "name: a\nversion: 1.0.0\nmcpServers:\n  - name: s\n    url: https://a.example\n    requestOptions:\n      headers:\n        Authorization: \"";
        told(".continue/config.yaml", open, value, "\"\n")
    }

    #[test]
    fn what_looks_like_a_reference_is_told_with_one_that_is_replaced() {
        for value in
            ["${env.API_KEY}", "{env.API_KEY}", "%API_KEY%", "${ API_KEY }", "${{ secrets.API_KEY }}", "${{ API_KEY }}"]
        {
            assert_eq!(claude(value), [format!("W-VARIABLE-FORM {value} write ${{API_KEY}}")], "{value}");
        }
        for value in ["{env.API_KEY}", "%API_KEY%"] {
            assert_eq!(opencode(value), [format!("W-VARIABLE-FORM {value} write {{env:API_KEY}}")], "{value}");
        }
        assert_eq!(opencode("{env:API_KEY"), ["W-VARIABLE-FORM {env:API_KEY close it with }"]);
        assert_eq!(continues("Bearer ${{ secrets.A }"), ["W-VARIABLE-FORM ${{ secrets.A } close it with }"]);
        for written in ["${{ secret.A }}", "${{ env.A }}", "${{ A }}", "${ secrets.A }}"] {
            let expected = format!("W-VARIABLE-FORM {written} write ${{{{ secrets.A }}}}");
            assert_eq!(continues(&format!("Bearer {written}")), [expected], "{written}");
        }
    }

    #[test]
    fn what_is_not_replaced_there_or_has_no_end_is_told_once_with_what_helps() {
        let open = r#"{"servers": {"s": {"command": "x", "args": [""#;
        let told_once = told(".vscode/mcp.json", open, "${env:ZED", r#""]}}}"#);
        assert_eq!(told_once, ["W-VARIABLE-FORM ${env:ZED close it with }"]);
        let open = r#"{"mcpServers": {"s": {"command": "x", "args": [""#;
        let elsewhere = told(".amazonq/mcp.json", open, "${ZED}", r#""]}}}"#);
        assert_eq!(elsewhere, ["W-VARIABLE-FORM ${ZED} write the value itself"]);
    }

    #[test]
    fn what_is_to_be_filled_in_is_no_secret() {
        for value in ["{{API_KEY}}", "{API_KEY}", "__API_KEY__", "@@API_KEY@@"] {
            assert_eq!(claude(value), [format!("W-PLACEHOLDER {value} write what belongs there")], "{value}");
        }
        assert_eq!(continues("Bearer {{ secrets.A }}").len(), 1);
    }

    #[test]
    fn other_texts_are_no_references() {
        for value in ["${API_KEY}", "%Y%m%d", "50% of %a", "{id}", "f({env: a})", "${API_KEY:-x}"] {
            assert!(claude(value).iter().all(|it| it.starts_with("W-SECRET")), "{value}");
        }
        assert_eq!(opencode("{env:API_KEY}"), [""; 0]);
        assert_eq!(continues("Bearer ${{ secrets.A }} ${{ inputs.B }}"), [""; 0]);
        let shell = r#"{"mcpServers": {"s": {"command": "cmd", "args": ["/c", "%APPDATA%"]}}}"#;
        assert_eq!(told(".mcp.json", shell, "", ""), [""; 0]);
    }

    #[test]
    fn a_secret_beside_what_looks_like_a_reference_is_told() {
        let found = claude("{env.A} ghp_0123456789abcdefghijABCDEFGHIJ012345");
        assert_eq!(found.iter().filter(|it| it.starts_with("W-SECRET")).count(), 1, "{found:?}");
        let cursor = r#"{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": ""#;
        let found = told(".cursor/mcp.json", cursor, "${A:-ghp_0123456789abcdefghijABCDEFGHIJ012345}", r#""}}}}"#);
        assert_eq!(found.iter().filter(|it| it.starts_with("W-SECRET")).count(), 1, "{found:?}");
    }
}
