//! The parts of a template.

/// A mistake in a template, and its byte offset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub offset: usize,
    pub message: String,
    pub hint: Option<&'static str>,
}

#[derive(Debug)]
pub(super) enum Part {
    Literal(String),
    Expression(Expression),
}

/// `{` operator, variables, `}`.
#[derive(Debug)]
pub(super) struct Expression {
    pub(super) operator: Operator,
    pub(super) variables: Vec<Variable>,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    pub(super) modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    /// The first characters only, at most so many.
    Prefix(usize),
    Explode,
}

/// The columns of the table in RFC 6570, appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Simple,
    Reserved,
    Fragment,
    Label,
    Path,
    Parameters,
    Query,
    Continuation,
}

impl Operator {
    pub(super) fn from_char(character: char) -> Option<Operator> {
        Some(match character {
            '+' => Operator::Reserved,
            '#' => Operator::Fragment,
            '.' => Operator::Label,
            '/' => Operator::Path,
            ';' => Operator::Parameters,
            '?' => Operator::Query,
            '&' => Operator::Continuation,
            _ => return None,
        })
    }

    /// The prefix of the first variable that has a value.
    pub(super) fn first(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved => "",
            Operator::Fragment => "#",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Parameters => ";",
            Operator::Query => "?",
            Operator::Continuation => "&",
        }
    }

    pub(super) fn separator(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved | Operator::Fragment => ",",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Parameters => ";",
            Operator::Query | Operator::Continuation => "&",
        }
    }

    /// Whether variables are written as `name=value`.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Operator::Parameters | Operator::Query | Operator::Continuation)
    }

    /// Whether reserved characters stay as they are.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Operator::Reserved | Operator::Fragment)
    }
}

/// The expressions of a template.
pub(super) fn expressions(parts: &[Part]) -> impl Iterator<Item = &Expression> {
    parts.iter().filter_map(|part| match part {
        Part::Expression(expression) => Some(expression),
        Part::Literal(_) => None,
    })
}

pub(super) fn error(offset: usize, message: impl Into<String>, hint: Option<&'static str>) -> TemplateError {
    TemplateError { offset, message: message.into(), hint }
}

/// RFC 6570, section 2.1, with the apostrophe, which erratum 6937 adds.
pub(super) fn check_literal(text: &str, at: usize) -> Result<(), TemplateError> {
    for (offset, character) in text.char_indices() {
        match character {
            '}' => return Err(error(at + offset, "`}` without `{`", None)),
            '%' if !is_triplet(&text[offset..]) => {
                return Err(error(at + offset, "`%` without two hexadecimal digits", Some("write %25")));
            }
            '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '\0'..=' ' | '\x7f'..='\u{9f}' => {
                let message = format!("{character:?} cannot be in a URI");
                return Err(error(at + offset, message, Some("write it percent-encoded")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the text begins with `%` and two hexadecimal digits.
pub(super) fn is_triplet(text: &str) -> bool {
    matches!(text.as_bytes(), [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

impl Expression {
    pub(super) fn parse(text: &str, at: usize) -> Result<Expression, TemplateError> {
        let first = text.chars().next().ok_or_else(|| error(at, "`{}` names no variable", None))?;
        if matches!(first, '=' | ',' | '!' | '@' | '|') {
            return Err(error(
                at,
                format!("the operator `{first}` has no meaning"),
                Some("it is one of + # . / ; ? &"),
            ));
        }
        let operator = Operator::from_char(first);
        let skipped = operator.map_or(0, |_| 1);
        let mut at = at + skipped;
        let mut variables = Vec::new();
        for variable in text[skipped..].split(',') {
            variables.push(Variable::parse(variable, at)?);
            at += variable.len() + 1;
        }
        Ok(Expression { operator: operator.unwrap_or(Operator::Simple), variables })
    }
}

impl Variable {
    pub(super) fn parse(text: &str, at: usize) -> Result<Variable, TemplateError> {
        let (name, modifier) = match text.split_once(':') {
            Some((name, length)) => {
                let digits = length.bytes().all(|byte| byte.is_ascii_digit()) && !length.starts_with('0');
                let length = length.parse().ok().filter(|length| digits && *length < 10_000);
                let message = "the length after `:` is a number from 1 to 9999";
                (name, Modifier::Prefix(length.ok_or_else(|| error(at + name.len() + 1, message, None))?))
            }
            None => match text.strip_suffix('*') {
                Some(name) => (name, Modifier::Explode),
                None => (text, Modifier::None),
            },
        };
        check_name(name, at)?;
        Ok(Variable { name: name.to_owned(), modifier })
    }
}

/// RFC 6570, section 2.3.
pub(super) fn check_name(name: &str, at: usize) -> Result<(), TemplateError> {
    if name.is_empty() {
        return Err(error(at, "a variable has no name", None));
    }
    let hint = Some("a name has letters, digits and _, with single dots between them");
    let mut after_dot = true;
    for (offset, character) in name.char_indices() {
        let allowed = match character {
            '.' => !after_dot && offset + 1 < name.len(),
            '%' => is_triplet(&name[offset..]),
            _ => character == '_' || character.is_ascii_alphanumeric(),
        };
        if !allowed {
            return Err(error(at + offset, format!("{character:?} cannot be here in a variable's name"), hint));
        }
        after_dot = character == '.';
    }
    Ok(())
}
