//! From a URI to values.
//!
//! A template becomes one regular expression, whose time is linear in the URI, with one group for each expression. The
//! match of a group is then split.

use regex::Regex;
use serde_json::{Map, Value as Json};

use super::{
    expand::encode,
    syntax::{Expression, Modifier, Operator, Part, Variable, expressions, is_triplet},
};

/// # Errors
/// The regular expression would be too large.
pub(super) fn matcher(parts: &[Part]) -> Result<Regex, regex::Error> {
    let mut pattern = String::from(r"\A");
    for part in parts {
        match part {
            Part::Literal(text) => push_literal(text, &mut pattern),
            Part::Expression(expression) => pattern.push_str(&expression.pattern()),
        }
    }
    pattern.push_str(r"\z");
    Regex::new(&pattern)
}

/// A character may be percent-encoded, with digits in either case, or plain.
fn push_literal(text: &str, pattern: &mut String) {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (one, tail) = rest.split_at(if is_triplet(rest) { 3 } else { character.len_utf8() });
        rest = tail;
        match character {
            '%' => pattern.push_str(&format!("(?i:{one})")),
            _ if character.is_ascii() => pattern.push_str(&regex::escape(one)),
            _ => {
                let mut encoded = String::new();
                encode(one, true, &mut encoded);
                pattern.push_str(&format!("(?:{one}|(?i:{encoded}))"));
            }
        }
    }
}

impl Operator {
    /// The characters that a value does not have unless they are encoded, as written in a character class.
    fn excluded_characters(self) -> &'static str {
        match self {
            Operator::Simple | Operator::Label | Operator::Path => "/?#&",
            Operator::Parameters => "/?#&;",
            Operator::Query | Operator::Continuation => "#&",
            Operator::Reserved | Operator::Fragment => "",
        }
    }
}

/// A character of a value or its code.
fn character(excluded: &str) -> String {
    format!("(?:[^%{excluded}]|%[0-9A-Fa-f]{{2}})")
}

impl Expression {
    fn has_explode(&self) -> bool {
        self.variables.iter().any(|variable| variable.modifier == Modifier::Explode)
    }

    /// Whether the only variable takes everything, so that no separator divides it.
    fn is_whole(&self) -> bool {
        self.variables.len() == 1 && !self.has_explode()
    }

    fn pattern(&self) -> String {
        let separator = regex::escape(self.operator.separator());
        let first = regex::escape(self.operator.first());
        let excluded = self.operator.excluded_characters();
        // Shortest first everywhere, see the module's documentation.
        let more = match self.has_explode() {
            true => ["*?".to_owned(), "+?".to_owned()],
            false => [0, 1].map(|least| format!("{{{least},{}}}?", (self.variables.len() - 1).max(least))),
        };
        if self.operator.is_named() {
            let name = match self.has_explode() {
                true => format!("(?:[^=%{excluded}]|%[0-9A-Fa-f]{{2}})+?"),
                false => {
                    let names: Vec<_> = self.variables.iter().map(|variable| regex::escape(&variable.name)).collect();
                    format!("(?:{})", names.join("|"))
                }
            };
            let parameter = format!("{name}(?:={}*?)?", character(excluded));
            return format!("(?:{first}({parameter}(?:{separator}{parameter}){}))?", more[0]);
        }
        if self.is_whole() {
            let character = character(excluded);
            return if first.is_empty() { format!("({character}+?)") } else { format!("(?:{first}({character}*?))?") };
        }
        let character = character(&format!("{excluded}{}", self.operator.separator()));
        let next = format!("(?:{separator}{character}*?)");
        match first.is_empty() {
            true => format!("({character}+?{next}{}|{next}{})", more[0], more[1]),
            false => format!("(?:{first}({character}*?{next}{}))?", more[0]),
        }
    }

    /// Splits the match of the expression. `None` if that is impossible: a code that is not UTF-8, a prefix that is too
    /// long, a variable with two values.
    fn bind(&self, matched: &str, found: &mut BoundVariables) -> Option<()> {
        if self.operator.is_named() {
            return self.bind_named(matched, found);
        }
        if self.is_whole() {
            return found.text(&self.variables[0], decode(matched)?);
        }
        let pieces = matched.split(self.operator.separator()).map(decode).collect::<Option<Vec<_>>>()?;
        let exploding = self.variables.iter().position(|variable| variable.modifier == Modifier::Explode);
        let spare = (pieces.len() + 1).saturating_sub(self.variables.len());
        let mut pieces = pieces.into_iter();
        for (index, variable) in self.variables.iter().enumerate() {
            let taken = if Some(index) == exploding { spare } else { 1 };
            let mut taken = pieces.by_ref().take(taken).peekable();
            match variable.modifier {
                _ if taken.peek().is_none() => {}
                Modifier::Explode => found.bind(&variable.name, taken.map(Json::String).collect(), true)?,
                _ => found.text(variable, taken.next()?)?,
            }
        }
        Some(())
    }

    fn bind_named(&self, matched: &str, found: &mut BoundVariables) -> Option<()> {
        let exploding = self.variables.iter().filter(|variable| variable.modifier == Modifier::Explode);
        let mut lists: Vec<(&str, Vec<Json>)> = exploding.map(|it| (it.name.as_str(), Vec::new())).collect();
        let mut members = Map::new();
        for parameter in matched.split(self.operator.separator()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let value = decode(value)?;
            if let Some((_, list)) = lists.iter_mut().find(|(variable, _)| *variable == name) {
                list.push(value.into());
            } else if let Some(variable) = self.variables.iter().find(|variable| variable.name == name) {
                found.text(variable, value)?;
            } else if members.insert(decode(name)?, value.into()).is_some() {
                return None;
            }
        }
        if !members.is_empty() {
            let free = lists.iter().position(|(_, list)| list.is_empty())?;
            found.bind(lists.swap_remove(free).0, members.into(), true)?;
        }
        for (name, list) in lists.into_iter().filter(|(_, list)| !list.is_empty()) {
            found.bind(name, list.into(), true)?;
        }
        Some(())
    }
}

/// The values found so far, and whether each is the whole value or its beginning only.
#[derive(Default)]
struct BoundVariables(Vec<(String, Json, bool)>);

impl BoundVariables {
    fn text(&mut self, variable: &Variable, text: String) -> Option<()> {
        let complete = match variable.modifier {
            Modifier::Prefix(length) => {
                let characters = text.chars().count();
                if characters > length {
                    return None;
                }
                characters < length
            }
            _ => true,
        };
        self.bind(&variable.name, text.into(), complete)
    }

    /// A variable that occurs twice has one value, or is the beginning of it.
    fn bind(&mut self, name: &str, value: Json, complete: bool) -> Option<()> {
        let Some((_, known, known_complete)) = self.0.iter_mut().find(|(known, ..)| known == name) else {
            self.0.push((name.to_owned(), value, complete));
            return Some(());
        };
        let begins = |short: &Json, long: &Json| match (short.as_str(), long.as_str()) {
            (Some(short), Some(long)) => long.starts_with(short),
            _ => false,
        };
        if *known == value {
            *known_complete |= complete;
        } else if !*known_complete && begins(known, &value) {
            (*known, *known_complete) = (value, complete);
        } else if complete || !begins(&value, known) {
            return None;
        }
        Some(())
    }
}

/// The variables' values in this order, if the URI matches.
pub(super) fn match_uri(matcher: &Regex, parts: &[Part], order: &[&str], uri: &str) -> Option<Vec<(String, Json)>> {
    let captures = matcher.captures(uri)?;
    let mut found = BoundVariables::default();
    for (index, expression) in expressions(parts).enumerate() {
        if let Some(matched) = captures.get(index + 1) {
            expression.bind(matched.as_str(), &mut found)?;
        }
    }
    found.0.sort_by_key(|(name, ..)| order.iter().position(|known| known == name));
    Some(found.0.into_iter().map(|(name, value, _)| (name, value)).collect())
}

/// Percent-decoded; `None` if that is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = if is_triplet(rest) {
            bytes.push(u8::from_str_radix(&rest[1..3], 16).ok()?);
            3
        } else {
            let length = character.len_utf8();
            bytes.extend_from_slice(&rest.as_bytes()[..length]);
            length
        };
        rest = &rest[length..];
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::UriTemplate, *};
    use rehearse_testing::table;

    fn matched(template: &str, uri: &str) -> Option<Json> {
        let template = UriTemplate::parse(template).expect(template);
        template.match_uri(uri).map(|values| Json::Object(values.into_iter().collect()))
    }

    #[test]
    fn a_template_matches_what_it_describes_and_nothing_else() {
        for [template, uri, values] in table::all(include_str!("matching.txt")) {
            let values: Json = serde_json::from_str(&values).expect("JSON");
            assert_eq!(matched(&template, &uri), Some(values).filter(|it| !it.is_null()), "{template} on {uri}");
        }
    }

    #[test]
    fn values_stand_in_the_order_of_the_template() {
        let template = UriTemplate::parse("{z}{?b,a}").expect("valid");
        let names: Vec<_> =
            template.match_uri("1?a=2&b=3").expect("a match").into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["z", "b", "a"]);
    }

    #[test]
    fn many_ways_to_match_take_no_longer_than_one() {
        let template: String = (0..30).map(|number| format!("{{v{number}}}")).collect();
        assert_eq!(matched(&template, &("a".repeat(5_000) + "/")), None);
        assert_eq!(matched("{+a}{+b}{+c*}{/d*}{?e*}!", &"/,?&=".repeat(1_000)), None);
    }

    #[test]
    fn a_template_too_large_to_match_is_refused() {
        let template = format!("{{{}}}", (0..20_000).map(|number| format!("v{number}")).collect::<Vec<_>>().join(","));
        assert_eq!(UriTemplate::parse(&template).expect_err("too large").message, "the template is too long");
    }

    proptest! {
        #[test]
        fn a_match_gives_back_what_was_expanded(
            parts in prop::collection::vec(("[^\0]{1,8}", "[a-z/]{0,3}", 0..4_usize), 1..4),
            query in prop::option::of("\\PC{0,8}"),
            list in prop::collection::vec("\\PC{1,6}", 0..4),
        ) {
            let mut template = "test:/".to_owned();
            let mut values = Map::new();
            for (index, (value, literal, operator)) in parts.iter().enumerate() {
                let operator = ["", "/", ";", "."][*operator];
                template += &format!("{literal}/{{{operator}v{index}}}");
                values.insert(format!("v{index}"), value.clone().into());
            }
            template += "/list{/list*}{?query}";
            values.insert("list".into(), list.clone().into());
            values.extend(query.map(|query| ("query".to_owned(), Json::from(query))));
            let template = UriTemplate::parse(&template).expect("valid");
            let uri = template.expand(&values);
            if list.is_empty() {
                values.remove("list");
            }
            let found = template.match_uri(&uri).map(|values| values.into_iter().collect::<Map<_, _>>());
            prop_assert_eq!(found.map(Json::Object), Some(Json::Object(values)), "{}", uri);
        }

        #[test]
        fn a_path_survives_in_a_reserved_expression(path in "[a-zA-Z0-9/ äß.,;=&?@:-]{1,20}") {
            let template = UriTemplate::parse("file:///{+path}").expect("valid");
            let values = Map::from_iter([("path".to_owned(), Json::from(path))]);
            let found = template.match_uri(&template.expand(&values)).expect("a match");
            prop_assert_eq!(found.into_iter().collect::<Map<_, _>>(), values);
        }
    }
}
