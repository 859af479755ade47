//! The shapes of what a server sends: a table, and its judge.

use std::{collections::HashMap, sync::LazyLock};

use rehearse_protocol::Version;

mod judge;

pub(crate) use judge::{has_check, judge};

/// The shape of an object.
#[derive(Debug, Default)]
struct Shape {
    /// The check of the violations in it.
    check: Option<&'static str>,
    /// The member whose value selects one of several shapes, and the value that stands for none.
    by: Option<(&'static str, Option<&'static str>)>,
    members: Vec<Member>,
}

/// A member, or one of several shapes.
#[derive(Debug)]
struct Member {
    name: &'static str,
    is_required: bool,
    kind: Kind,
    since: Version,
    until: Version,
    reported_by: Vec<Owner>,
}

/// A check that says it already, of the results of a method or of everything.
#[derive(Debug)]
struct Owner {
    check: &'static str,
    method: Option<&'static str>,
}

/// What a value is.
#[derive(Debug, PartialEq)]
enum Kind {
    Any,
    String,
    Number,
    Boolean,
    Object,
    /// A string or a number.
    Id,
    Uri,
    Template,
    Base64,
    /// Not a value, but one of the names of the member.
    Either,
    OneOf(Vec<&'static str>),
    Array(Box<Kind>),
    Map(Box<Kind>),
    /// One, or an array.
    OneOrMore(Box<Kind>),
    Nullable(Box<Kind>),
    Shape(&'static str),
}

static SHAPES: LazyLock<HashMap<&'static str, Shape>> = LazyLock::new(|| parse(include_str!("../../shapes.txt")));

impl Member {
    fn is_in(&self, version: Version) -> bool {
        (self.since..=self.until).contains(&version)
    }
}

fn parse(text: &'static str) -> HashMap<&'static str, Shape> {
    let mut shapes = HashMap::new();
    let mut name = "";
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if line.starts_with(' ') {
            let shape: &mut Shape = shapes.entry(name).or_default();
            shape.members.extend(member(line));
            continue;
        }
        let (head, check) = line.split_once(" @").map_or((line, None), |(head, check)| (head, Some(check)));
        let mut words = head.split_whitespace();
        name = words.next().unwrap_or_default();
        let by = words.nth(1).map(|by| (by, words.next()));
        shapes.insert(name, Shape { check, by, members: Vec::new() });
    }
    shapes
}

fn member(line: &'static str) -> Option<Member> {
    let mut words = line.split_whitespace();
    let (name, kind) = (words.next()?, kind(words.next()?));
    let (mut since, mut until, mut reported_by) = (Version::V2024_11_05, Version::LATEST, Vec::new());
    for word in words {
        match (word.strip_prefix('@'), word.split_once("..")) {
            (Some(checks), _) => reported_by = checks.split(',').map(owner).collect(),
            (None, Some((from, to))) => {
                since = from.parse().unwrap_or(since);
                until = to.parse().unwrap_or(until);
            }
            (None, None) => return None,
        }
    }
    let (name, is_required) = name.strip_suffix('?').map_or((name, true), |name| (name, false));
    Some(Member { name, is_required, kind, since, until, reported_by })
}

fn owner(text: &'static str) -> Owner {
    match text.split_once(':') {
        Some((method, check)) => Owner { check, method: Some(method) },
        None => Owner { check: text, method: None },
    }
}

fn kind(text: &'static str) -> Kind {
    let inner = |text, end| Box::new(kind(str::strip_suffix(text, end).unwrap_or(text)));
    match text {
        "any" => Kind::Any,
        "string" => Kind::String,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "object" => Kind::Object,
        "id" => Kind::Id,
        "uri" => Kind::Uri,
        "template" => Kind::Template,
        "base64" => Kind::Base64,
        "either" => Kind::Either,
        _ if text.ends_with('*') => Kind::OneOrMore(inner(text, "*")),
        _ if text.ends_with("|null") => Kind::Nullable(inner(text, "|null")),
        _ => match text.as_bytes().first() {
            Some(b'[') => Kind::Array(inner(text.get(1..).unwrap_or_default(), "]")),
            Some(b'{') => Kind::Map(inner(text.get(1..).unwrap_or_default(), "}")),
            Some(b'"') => Kind::OneOf(text.split('|').map(|it| it.trim_matches('"')).collect()),
            _ => Kind::Shape(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes_of(kind: &Kind) -> Option<&'static str> {
        match kind {
            Kind::Array(kind) | Kind::Map(kind) | Kind::OneOrMore(kind) | Kind::Nullable(kind) => shapes_of(kind),
            Kind::Shape(name) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn every_line_of_the_table_is_understood_and_names_shapes_that_exist() {
        let text = include_str!("../../shapes.txt");
        let members = text.lines().filter(|line| line.starts_with(' ')).count();
        assert_eq!(SHAPES.values().map(|shape| shape.members.len()).sum::<usize>(), members);
        for (name, shape) in SHAPES.iter() {
            for member in &shape.members {
                let inner = shapes_of(&member.kind);
                assert!(inner.is_none_or(|inner| SHAPES.contains_key(inner)), "{name}.{}: {inner:?}", member.name);
                assert!(member.since <= member.until, "{name}.{}", member.name);
            }
        }
        let tool = &SHAPES["Tool"];
        let title = tool.members.iter().find(|member| member.name == "title").expect("a title");
        assert!(!title.is_required && !title.is_in(Version::V2025_03_26) && title.is_in(Version::LATEST));
    }
}
