//! URI templates (RFC 6570, all four levels): read with positions, expanded into URIs, and matched against them.
//!
//! Matching is expansion read backwards. What expansion leaves open is settled like this:
//!
//! - A variable with `*` is a list (of `?`, `&` and `;` also a mapping, if the names are other than its own); any other
//!   variable is a text. The type never depends on what the URI holds.
//! - A variable takes the shortest text with which the rest still matches.
//! - `{x}` and `{+x}` stand for one character at least, so that `items/{id}` is not `items/`. What begins with an
//!   operator's character (`{/x}`, `{?x}`) may be missing as a whole; missing variables are not in the result.
//! - `{x}` may hold every character but `/`, `?`, `#` and `&`, although clients should encode most of them.

mod expand;
mod matching;

use regex::Regex;

use crate::config::{Node, Problem, Problems, Span};

/// A template whose syntax is right.
#[derive(Debug)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    matcher: Regex,
}

/// What is wrong with a template, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TemplateError {
    pub offset: usize,
    pub message: String,
    pub hint: Option<&'static str>,
}

#[derive(Debug)]
enum Part {
    Literal(String),
    Expression(Expression),
}

/// `{` operator, variables, `}`.
#[derive(Debug)]
struct Expression {
    operator: Operator,
    variables: Vec<Variable>,
}

#[derive(Debug)]
struct Variable {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modifier {
    None,
    /// The first characters only, at most so many.
    Prefix(usize),
    Explode,
}

/// The columns of the table in RFC 6570, appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
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
    fn from_char(character: char) -> Option<Operator> {
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

    /// What stands before the first variable that is there.
    fn first(self) -> &'static str {
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

    fn separator(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Reserved | Operator::Fragment => ",",
            Operator::Label => ".",
            Operator::Path => "/",
            Operator::Parameters => ";",
            Operator::Query | Operator::Continuation => "&",
        }
    }

    /// Whether variables are written as `name=value`.
    fn is_named(self) -> bool {
        matches!(self, Operator::Parameters | Operator::Query | Operator::Continuation)
    }

    /// Whether reserved characters stay as they are.
    fn keeps_reserved(self) -> bool {
        matches!(self, Operator::Reserved | Operator::Fragment)
    }
}

impl UriTemplate {
    /// # Errors
    /// The first mistake: an expression that is not closed, an unknown operator, a name or a modifier that RFC 6570 does
    /// not allow, a character that no URI has.
    pub fn parse(text: &str) -> Result<UriTemplate, TemplateError> {
        let mut parts = Vec::new();
        let mut at = 0;
        while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
            if let Some(inner) = rest.strip_prefix('{') {
                let end = inner.find('}').ok_or_else(|| error(at, "`{` is not closed", None))?;
                parts.push(Part::Expression(Expression::parse(&inner[..end], at + 1)?));
                at += end + 2;
            } else {
                let end = rest.find('{').unwrap_or(rest.len());
                check_literal(&rest[..end], at)?;
                parts.push(Part::Literal(rest[..end].to_owned()));
                at += end;
            }
        }
        let matcher = matching::matcher(&parts).map_err(|_| error(0, "the template is too long", None))?;
        Ok(UriTemplate { text: text.to_owned(), parts, matcher })
    }

    /// Reads the template that stands at `node`.
    ///
    /// # Errors
    /// This is no text; or as [`UriTemplate::parse`], pointing into the text where it is written as it is.
    pub fn read(node: &Node) -> Result<UriTemplate, Problems> {
        let text = node.str()?;
        UriTemplate::parse(text).map_err(|error| {
            let quotes = (node.span.end - node.span.start).checked_sub(text.len());
            let span = match quotes {
                Some(0) => Span { start: node.span.start + error.offset, ..node.span },
                Some(2) => Span { start: node.span.start + error.offset + 1, ..node.span },
                _ => node.span,
            };
            let problem = Problem::new(span, format!("not a URI template: {}", error.message));
            error.hint.map_or(problem.clone(), |hint| problem.hint(hint)).into()
        })
    }

    /// The template as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The names of the variables in the order in which they first occur.
    pub fn variables(&self) -> Vec<&str> {
        let all = self.expressions().flat_map(|expression| &expression.variables);
        all.fold(Vec::new(), |mut names, variable| {
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
            names
        })
    }

    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Expression(expression) => Some(expression),
            Part::Literal(_) => None,
        })
    }
}

fn error(offset: usize, message: impl Into<String>, hint: Option<&'static str>) -> TemplateError {
    TemplateError { offset, message: message.into(), hint }
}

/// RFC 6570, section 2.1, with the apostrophe, which erratum 6937 adds.
fn check_literal(text: &str, at: usize) -> Result<(), TemplateError> {
    for (offset, character) in text.char_indices() {
        match character {
            '}' => return Err(error(at + offset, "`}` without `{`", None)),
            '%' if !is_triplet(&text[offset..]) => {
                return Err(error(at + offset, "`%` without two hexadecimal digits", Some("write %25")));
            }
            '"' | '<' | '>' | '\\' | '^' | '`' | '|' | '\0'..=' ' | '\x7f'..='\u{9f}' => {
                let message = format!("{character:?} cannot stand in a URI");
                return Err(error(at + offset, message, Some("write it percent-encoded")));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether the text begins with `%` and two hexadecimal digits.
fn is_triplet(text: &str) -> bool {
    matches!(text.as_bytes(), [b'%', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit())
}

impl Expression {
    fn parse(text: &str, at: usize) -> Result<Expression, TemplateError> {
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
    fn parse(text: &str, at: usize) -> Result<Variable, TemplateError> {
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
fn check_name(name: &str, at: usize) -> Result<(), TemplateError> {
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
            return Err(error(at + offset, format!("{character:?} cannot stand here in a variable's name"), hint));
        }
        after_dot = character == '.';
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{Source, parse_yaml};

    fn mistake(text: &str) -> (usize, String) {
        let error = UriTemplate::parse(text).expect_err(text);
        (error.offset, error.message)
    }

    #[test]
    fn mistakes_have_an_offset_and_a_sentence() {
        for (text, offset, message) in [
            ("test://{a", 7, "`{` is not closed"),
            ("test://a}", 8, "`}` without `{`"),
            ("{}", 1, "`{}` names no variable"),
            ("{?}", 2, "a variable has no name"),
            ("{a,}", 3, "a variable has no name"),
            ("{!a}", 1, "the operator `!` has no meaning"),
            ("{=a}", 1, "the operator `=` has no meaning"),
            ("x/{user-id}", 7, "'-' cannot stand here in a variable's name"),
            ("{a b}", 2, "' ' cannot stand here in a variable's name"),
            ("{.a..b}", 4, "'.' cannot stand here in a variable's name"),
            ("{a.}", 2, "'.' cannot stand here in a variable's name"),
            ("{a%4}", 2, "'%' cannot stand here in a variable's name"),
            ("{a{b}", 2, "'{' cannot stand here in a variable's name"),
            ("{??a}", 2, "'?' cannot stand here in a variable's name"),
            ("{*a?}", 1, "'*' cannot stand here in a variable's name"),
            ("{a:2*}", 3, "the length after `:` is a number from 1 to 9999"),
            ("{a:0}", 3, "the length after `:` is a number from 1 to 9999"),
            ("{a:+1}", 3, "the length after `:` is a number from 1 to 9999"),
            ("{a:10000}", 3, "the length after `:` is a number from 1 to 9999"),
            ("test://a b/{c}", 8, "' ' cannot stand in a URI"),
            ("é%zz", 2, "`%` without two hexadecimal digits"),
        ] {
            assert_eq!(mistake(text), (offset, message.to_owned()), "{text}");
        }
    }

    #[test]
    fn variables_are_named_once_in_the_order_of_the_template() {
        let template = UriTemplate::parse("{b}/{a:3,b*}{?c.d,%41}").expect("valid");
        assert_eq!(template.variables(), ["b", "a", "c.d", "%41"]);
        assert_eq!(template.as_str(), "{b}/{a:3,b*}{?c.d,%41}");
        assert!(UriTemplate::parse("").expect("valid").variables().is_empty());
    }

    #[test]
    fn problems_of_a_file_point_into_the_template() {
        for (text, position) in
            [("u: test://{a-b}", "t:1:13: "), ("u: 'test://{a-b}'", "t:1:14: "), ("u: \"test://\\x7Ba-b}\"", "t:1:4: ")]
        {
            let source = Source::new("t", text);
            let root = parse_yaml(&source).expect("valid");
            let problem = UriTemplate::read(root.get("u").expect("u")).expect_err(text).in_source(&source).to_string();
            let expected = "not a URI template: '-' cannot stand here in a variable's name \
                            (a name has letters, digits and _, with single dots between them)";
            assert_eq!(problem, format!("{position}{expected}"));
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(
            text in "([a-c%4é/]{0,3}\\{[+#./;?&é]?[a-c%4é:*,.]{0,6}\\}?){0,3}[{}%é]{0,2}",
            uri in "[a-c%4é:,.=#/;?&]{0,20}",
        ) {
            if let Ok(template) = UriTemplate::parse(&text) {
                template.match_uri(&uri);
                template.expand(&serde_json::Map::new());
            }
        }
    }
}
