//! The tags of a template, checked before MiniJinja parses it.
//!
//! MiniJinja knows filters and tests when they are called, so a misspelt one would be found by a client. And it parses
//! chains of operators recursively: some thousands of them overflow the stack, which nothing can catch.

use minijinja::{Environment, ErrorKind, Value};

use crate::{Node, Problems, nearest};

/// Words and signs in one tag; more than any real template has, and less than would overflow the stack of a thread.
const MAX_TOKENS: usize = 1000;
/// Branches of all conditions in one template; each is nested in the one before.
const MAX_BRANCHES: usize = 200;

const FILTERS: &[&str] = &[
    "abs",
    "attr",
    "bool",
    "chain",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "first",
    "float",
    "groupby",
    "int",
    "items",
    "join",
    "last",
    "length",
    "lines",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "repeat",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
];
const TESTS: &[&str] = &[
    "boolean",
    "defined",
    "divisibleby",
    "endingwith",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "safe",
    "sameas",
    "sequence",
    "startingwith",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Sign(char),
    Text,
}

/// Looks at every tag of a template.
///
/// # Errors
/// A tag or a chain of branches is too long; a filter or a test that does not exist.
pub(super) fn check_template(source: &str, node: &Node, environment: &Environment<'_>) -> Result<(), Problems> {
    let (mut rest, mut branches) = (source, 0);
    while let Some(open) = rest.find("{{").into_iter().chain(rest.find("{%")).chain(rest.find("{#")).min() {
        let (kind, inside) = (rest.as_bytes()[open + 1], &rest[open + 2..]);
        if kind == b'#' {
            rest = inside.split_once("#}").map_or("", |(_, rest)| rest);
            continue;
        }
        let close = if kind == b'%' { "%}" } else { "}}" };
        let (tokens, length) = tokens(inside, close);
        check(&tokens, node, environment)?;
        rest = &inside[length..];
        let first = tokens.iter().find(|token| !matches!(token, Token::Sign('-' | '+')));
        match first {
            Some(Token::Word("elif")) if kind == b'%' => branches += 1,
            Some(Token::Word("raw")) if kind == b'%' => {
                let end = rest.match_indices("{%").find(|(at, tag)| {
                    rest[at + tag.len()..].trim_start_matches(['-', '+']).trim_start().starts_with("endraw")
                });
                rest = end.map_or("", |(at, _)| &rest[at..]);
            }
            _ => {}
        }
        if branches > MAX_BRANCHES {
            let problem = node.problem(format!("template: more than {MAX_BRANCHES} branches"));
            return Err(problem.hint("use several rules").into());
        }
    }
    Ok(())
}

/// Looks at an expression without braces.
///
/// # Errors
/// Like [`check_template`].
pub(super) fn check_expression(source: &str, node: &Node, environment: &Environment<'_>) -> Result<(), Problems> {
    check(&tokens(source, "").0, node, environment)
}

/// The tokens until `close` (or the end), and how long all of it is.
fn tokens<'t>(inside: &'t str, close: &str) -> (Vec<Token<'t>>, usize) {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(next) = inside[at..].chars().next() {
        let rest = &inside[at..];
        if !close.is_empty() && rest.starts_with(close) {
            return (tokens, at + close.len());
        }
        let length = match next {
            '"' | '\'' => {
                tokens.push(Token::Text);
                let mut is_escaped = false;
                let ends = |c: char| match is_escaped {
                    true => {
                        is_escaped = false;
                        false
                    }
                    false => {
                        is_escaped = c == '\\';
                        c == next
                    }
                };
                rest[1..].find(ends).map_or(rest.len(), |end| end + 2)
            }
            _ if next.is_alphanumeric() || next == '_' => {
                let length = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
                tokens.push(Token::Word(&rest[..length]));
                length
            }
            _ => {
                if !next.is_whitespace() {
                    tokens.push(Token::Sign(next));
                }
                next.len_utf8()
            }
        };
        at += length;
    }
    (tokens, inside.len())
}

fn check(tokens: &[Token<'_>], node: &Node, environment: &Environment<'_>) -> Result<(), Problems> {
    if tokens.len() > MAX_TOKENS {
        let problem = node.problem(format!("template: an expression of more than {MAX_TOKENS} words and signs"));
        return Err(problem.hint("keep data in `state`, and branches in rules").into());
    }
    let mut state = environment.empty_state();
    let none = Value::UNDEFINED;
    for (index, token) in tokens.iter().enumerate() {
        let Token::Word(word) = token else { continue };
        let before = |back: usize| index.checked_sub(back).map(|index| tokens[index]);
        let is_tested = before(1) == Some(Token::Word("is"))
            || (before(1) == Some(Token::Word("not")) && before(2) == Some(Token::Word("is")));
        let unknown = if before(1) == Some(Token::Sign('|')) {
            let applied = state.apply_filter(word, std::slice::from_ref(&none));
            applied.is_err_and(|error| error.kind() == ErrorKind::UnknownFilter).then_some(("filter", FILTERS))
        } else if is_tested && *word != "not" {
            let tested = state.perform_test(word, std::slice::from_ref(&none));
            tested.is_err_and(|error| error.kind() == ErrorKind::UnknownTest).then_some(("test", TESTS))
        } else {
            None
        };
        if let Some((what, known)) = unknown {
            let problem = node.problem(format!("template: there is no {what} `{word}`"));
            return Err(match nearest(word, known) {
                Some(near) => problem.hint(format!("did you mean `{near}`?")),
                None => problem.hint(format!("the {what}s are {}", known.join(", "))),
            }
            .into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, Span, Value as Data};

    fn problem(source: &str) -> Option<String> {
        let node = Node { span: Span::default(), value: Data::String(source.into()) };
        let environment = super::super::templates::environment();
        let found = check_template(source, &node, &environment).err()?;
        Some(found.in_source(&Source::new("t", source)).to_string())
    }

    #[test]
    fn filters_and_tests_that_do_not_exist_are_found_and_those_that_do_are_not() {
        for (source, expected) in [
            ("{{ args.x | uper }}", "t:1:1: template: there is no filter `uper` (did you mean `upper`?)"),
            ("{{ 1 is evn }}", "t:1:1: template: there is no test `evn` (did you mean `even`?)"),
            (
                "a {%- if x is not definde %}{% endif %}",
                "t:1:1: template: there is no test `definde` (did you mean `defined`?)",
            ),
        ] {
            assert_eq!(problem(source).as_deref(), Some(expected));
        }
        for source in [
            "{{ a | upper | default('|nope') }} | nope {{ 'a\\' | nope' }} is nope",
            "{# | nope #}{% raw %}{{ a | nope }}{% endraw %}{{ 1 is not even }}{{ not a }}",
            "{{ a is divisibleby(3) or a is in [1] }}{% for a in b|sort %}{% endfor %}",
        ] {
            assert_eq!(problem(source), None, "{source}");
        }
        assert!(problem("{% raw %}{% endraw %}{{ a | nope }}").is_some());
    }

    #[test]
    fn all_that_is_offered_as_a_hint_exists() {
        for name in FILTERS {
            assert_eq!(problem(&format!("{{{{ a | {name} }}}}")), None);
        }
        for name in TESTS {
            assert_eq!(problem(&format!("{{{{ a is {name} }}}}")), None);
        }
    }

    #[test]
    fn a_template_that_would_overflow_the_stack_is_refused_before_parsing() {
        for link in ["not ", "-", "1 + ", "1 ~ ", "1 and ", "1 ** "] {
            let source = format!("{{{{ {}1 }}}}", link.repeat(20_000));
            assert!(problem(&source).is_some_and(|problem| problem.contains("more than 1000 words")), "{link}");
        }
        let branches = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(20_000));
        assert!(problem(&branches).is_some_and(|problem| problem.contains("more than 200 branches")));
    }

    #[test]
    fn the_deepest_allowed_template_fits_the_stack_of_a_worker() {
        let longest = |link: &str| format!("{{{{ {}1 }}}}", link.repeat(MAX_TOKENS / link.split(' ').count() - 1));
        let mut sources: Vec<_> =
            ["not ", "-", "1 + ", "1 ~ ", "1 and ", "1 ** ", "0 is not defined and "].map(longest).to_vec();
        sources.push(format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(MAX_BRANCHES)));
        let render = move || {
            for source in sources {
                let environment = super::super::templates::environment();
                let node = Node { span: Span::default(), value: Data::String(source.clone()) };
                check_template(&source, &node, &environment).expect("short enough");
                let _ = environment.render_str(&source, ());
            }
        };
        // The default of tokio.
        std::thread::Builder::new().stack_size(2 << 20).spawn(render).expect("a thread").join().expect("no overflow");
    }
}
