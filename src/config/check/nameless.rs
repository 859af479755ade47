//! References in which a name is missing.

use std::ops::Range;

use super::Subject;
use crate::config::{
    Form,
    finding::{Finding, codes},
    server::ServerConfig,
};

/// How references begin that need a name, and how one is written with it.
const KINDS: &[(Form, &str, &str)] = &[
    (Form::Env, "${env:", "name the variable: ${env:NAME}"),
    (Form::Input, "${input:", "name the input: ${input:id}"),
];

/// So many of one text are told of.
const MOST: usize = 20;

pub(super) fn check(subject: &Subject<'_>, server: &ServerConfig, findings: &mut Vec<Finding>) {
    for text in server.texts() {
        let rule = subject.dialect().rule(text.field);
        if !rule.holds_in(text.field) {
            continue;
        }
        for (_, begin, hint) in KINDS.iter().filter(|(form, ..)| rule.forms.contains(form)) {
            for range in nameless(&text.at.value, begin).take(MOST) {
                let message = "a reference without a name stands for nothing";
                findings.push(codes::VARIABLE_FORM.at(subject.part(text, range), message).hint(*hint));
            }
        }
    }
}

/// Where references without a name are, closed or at the end of the text.
fn nameless(text: &str, begin: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(begin).filter_map(move |(start, _)| {
        let end = start + begin.len();
        match text[end..].chars().next() {
            Some('}') => Some(start..end + 1),
            None => Some(start..end),
            Some(_) => None,
        }
    })
}
