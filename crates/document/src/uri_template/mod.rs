//! URI templates (RFC 6570, all four levels): read with positions, expanded into URIs, and matched against them.
//!
//! Matching reverses expansion. These rules resolve ambiguities:
//!
//! - A variable with `*` is an array (of `?`, `&` and `;` also an object, if the names are other than its own); any other
//!   variable is a string. The type never depends on the URI.
//! - A variable takes the shortest text with which the rest still matches.
//! - `{x}` and `{+x}` match at least one character, so that `items/{id}` is not `items/`. An expression with an
//!   operator (`{/x}`, `{?x}`) may be missing as a whole; missing variables are not in the result.
//! - `{x}` may hold every character but `/`, `?`, `#` and `&`, although clients should encode most of them.

mod expand;
mod matching;
mod syntax;

use regex::Regex;
use serde_json::{Map, Value as Json};
pub use syntax::TemplateError;
use syntax::{Expression, Part, check_literal, error, expressions};

use crate::{Node, Problem, Problems, Span};

/// A valid URI template.
#[derive(Debug)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    matcher: Regex,
}

impl UriTemplate {
    /// # Errors
    /// The first mistake: an expression that is not closed, an unknown operator, a name or a modifier that RFC 6570
    /// does not allow, a character that no URI has.
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

    /// Reads the template at `node`.
    ///
    /// # Errors
    /// This is not a string; or as [`UriTemplate::parse`], with a position in the string if it is written without
    /// escapes.
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
        let all = expressions(&self.parts).flat_map(|expression| &expression.variables);
        all.fold(Vec::new(), |mut names, variable| {
            if !names.contains(&variable.name.as_str()) {
                names.push(&variable.name);
            }
            names
        })
    }

    /// Expands the template with these values (RFC 6570, section 3).
    ///
    /// Null, a missing value, an empty array and an empty object are all undefined. A prefix length does not apply to
    /// arrays and objects.
    pub fn expand(&self, values: &Map<String, Json>) -> String {
        expand::expand(&self.parts, values)
    }

    /// The variables' values in the order in which the template names them, if the template matches the URI; strings
    /// are decoded. Takes time in proportion to the length of the URI.
    pub fn match_uri(&self, uri: &str) -> Option<Vec<(String, Json)>> {
        matching::match_uri(&self.matcher, &self.parts, &self.variables(), uri)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Source, parse_yaml};
    use rehearse_testing::table;

    fn mistake(text: &str) -> (usize, String) {
        let error = UriTemplate::parse(text).expect_err(text);
        (error.offset, error.message)
    }

    #[test]
    fn mistakes_have_an_offset_and_a_sentence() {
        for [text, offset, message] in table::all(include_str!("mistakes.txt")) {
            assert_eq!(mistake(&text), (offset.parse().expect("a number"), message), "{text}");
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
            let expected = "not a URI template: '-' cannot be here in a variable's name \
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
