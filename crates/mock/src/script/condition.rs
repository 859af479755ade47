//! Conditions: when a rule answers, and when a fault applies.

use std::{cell::OnceCell, time::Duration};

use http::HeaderMap;
use serde_json::Value as Json;

use super::{ScriptReader, keys::KEYS};
use rehearse_document::{Node, Problems, Value, json_schema::Mismatch, matcher::Matcher};
use rehearse_protocol::{Era, Transport, Version};

/// A condition on a request. All of its members must hold.
#[derive(Debug, Default)]
pub struct Condition {
    args: Option<Matcher>,
    params: Option<Matcher>,
    headers: Vec<(String, Matcher)>,
    eras: Vec<Era>,
    versions: Vec<Version>,
    transports: Vec<Transport>,
    capabilities: Option<Matcher>,
    call: Option<CallNumbers>,
    state: Option<Matcher>,
    probability: Option<f64>,
    time: Option<(Duration, Duration)>,
}

/// A set of call numbers, which are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CallNumbers {
    OneOf(Vec<u64>),
    Range(u64, u64),
    Every(u64),
}

/// The values that a condition can test. Nothing is parsed before a condition reads it.
pub struct RequestFacts<'a> {
    /// The arguments of the call.
    pub args: LazyJson<'a>,
    /// The params of the request.
    pub params: LazyJson<'a>,
    /// The HTTP headers, if the transport has headers.
    pub headers: Option<&'a HeaderMap>,
    /// The protocol version of the request.
    pub version: Version,
    /// The transport of the request.
    pub transport: Transport,
    /// The declared capabilities of the client.
    pub capabilities: LazyJson<'a>,
    /// The number of the call, for the item of the rule or for the fault, counted from 1.
    pub call: u64,
    /// The server's state.
    pub state: LazyJson<'a>,
    /// Time since the mock was started.
    pub at: Duration,
    /// A number from 0 to below 1 that the seed and the call decide.
    pub draw: f64,
}

/// A value that is created when it is read.
pub struct LazyJson<'a>(OnceCell<Json>, Box<dyn Fn() -> Json + 'a>);

impl<'a> LazyJson<'a> {
    /// A value that `make` creates when it is read.
    pub fn new(make: impl Fn() -> Json + 'a) -> Self {
        LazyJson(OnceCell::new(), Box::new(make))
    }

    /// The value.
    pub fn get(&self) -> &Json {
        self.0.get_or_init(&self.1)
    }
}

impl Condition {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<Condition, Problems> {
        Condition::read_fields(&KEYS.fields(node, "when")?, reader)
    }

    /// Reads the keys of a condition from an object that may have others.
    pub(super) fn read_fields(
        fields: &rehearse_document::Fields<'_>,
        reader: &mut ScriptReader,
    ) -> Result<Condition, Problems> {
        let header = |entry: &rehearse_document::Entry| Ok((entry.key.to_lowercase(), Matcher::read(&entry.node)?));
        let headers = fields.get("headers").map_or(Ok(&[][..]), Node::entries)?;
        reader.uses.caller |= !headers.is_empty() || fields.get("capabilities").is_some();
        Ok(Condition {
            args: fields.read("args", Matcher::read)?,
            params: fields.read("params", Matcher::read)?,
            headers: Problems::collect(headers.iter().map(header))?,
            eras: fields.read("era", |node| node.one_or_more(Node::parsed))?.unwrap_or_default(),
            versions: fields.read("version", |node| node.one_or_more(Node::parsed))?.unwrap_or_default(),
            transports: fields.read("transport", |node| node.one_or_more(Node::parsed))?.unwrap_or_default(),
            capabilities: fields.read("capabilities", Matcher::read)?,
            call: fields.read("call", CallNumbers::read)?,
            state: fields.read("state", Matcher::read)?,
            probability: fields.read("probability", read_probability)?,
            time: fields.read("time", read_time)?,
        })
    }

    /// Whether all members hold, without `call` and `probability`, which select among the matching requests.
    pub fn covers(&self, facts: &RequestFacts<'_>) -> bool {
        self.mismatches(facts).iter().all(|it| matches!(&*it.pointer, "call" | "probability"))
    }

    /// All differences of the request; empty if the condition holds.
    pub fn mismatches(&self, facts: &RequestFacts<'_>) -> Vec<Mismatch> {
        let mut found = Vec::new();
        let mut other = |what: &str, holds: bool, actual: String| {
            if !holds {
                found.push(Mismatch { pointer: what.into(), message: format!("it is {actual}") });
            }
        };
        let (version, transport) = (facts.version, facts.transport);
        other("era", self.eras.is_empty() || self.eras.contains(&version.era()), version.era().to_string());
        other("version", self.versions.is_empty() || self.versions.contains(&version), version.to_string());
        other("transport", self.transports.is_empty() || self.transports.contains(&transport), transport.to_string());
        other("call", self.call.as_ref().is_none_or(|numbers| numbers.contains(facts.call)), facts.call.to_string());
        let in_time = self.time.is_none_or(|(after, until)| (after..until).contains(&facts.at));
        other("time", in_time, format!("{:.3} s after the start", facts.at.as_secs_f64()));
        other(
            "probability",
            self.probability.is_none_or(|limit| facts.draw < limit),
            format!("drawn {:.3}", facts.draw),
        );
        let mut json = |what: &str, matcher: Option<&Matcher>, value: &LazyJson<'_>| {
            let mismatches = matcher.map(|matcher| matcher.mismatches(Some(value.get()))).unwrap_or_default();
            found.extend(mismatches.into_iter().map(|it| Mismatch { pointer: format!("{what}{}", it.pointer), ..it }));
        };
        json("", self.args.as_ref(), &facts.args);
        json("params", self.params.as_ref(), &facts.params);
        json("capabilities", self.capabilities.as_ref(), &facts.capabilities);
        json("state", self.state.as_ref(), &facts.state);
        for (name, matcher) in &self.headers {
            let value = facts.headers.and_then(|headers| headers.get(name));
            let value = value.map(|value| Json::from(String::from_utf8_lossy(value.as_bytes())));
            let mismatches = matcher.mismatches(value.as_ref()).into_iter();
            found.extend(mismatches.map(|it| Mismatch { pointer: format!("header {name}{}", it.pointer), ..it }));
        }
        found
    }
}

impl CallNumbers {
    fn read(node: &Node) -> Result<CallNumbers, Problems> {
        match &node.value {
            Value::Mapping(_) if node.get("every").is_some() => {
                let every = KEYS.fields(node, "every")?.required("every")?;
                match every.integer()? {
                    0 => Err(every.problem("`every: 1` is every call, `every: 2` every second one").into()),
                    every => Ok(CallNumbers::Every(every)),
                }
            }
            Value::Mapping(_) => {
                let fields = KEYS.fields(node, "call")?;
                let min = fields.read("min", read_number)?.unwrap_or(1);
                let max = fields.read("max", read_number)?.unwrap_or(u64::MAX);
                if max < min {
                    return Err(node.problem("no number is in this range").into());
                }
                Ok(CallNumbers::Range(min, max))
            }
            _ => Ok(CallNumbers::OneOf(node.one_or_more(read_number)?)),
        }
    }

    fn contains(&self, number: u64) -> bool {
        match self {
            CallNumbers::OneOf(numbers) => numbers.contains(&number),
            CallNumbers::Range(min, max) => (*min..=*max).contains(&number),
            CallNumbers::Every(every) => number.is_multiple_of(*every),
        }
    }
}

fn read_number(node: &Node) -> Result<u64, Problems> {
    match node.integer()? {
        0 => Err(node.problem("calls are counted from 1").into()),
        number => Ok(number),
    }
}

fn read_probability(node: &Node) -> Result<f64, Problems> {
    let number = match &node.value {
        Value::Number(text) => text.parse().ok(),
        _ => None,
    };
    let number = number.filter(|number| (0.0..=1.0).contains(number));
    number.ok_or_else(|| node.problem("a probability must be a number from 0 to 1").into())
}

fn read_time(node: &Node) -> Result<(Duration, Duration), Problems> {
    let fields = KEYS.fields(node, "time")?;
    let after = fields.read("after", Node::duration)?.unwrap_or_default();
    let until = fields.read("until", Node::duration)?.unwrap_or(Duration::MAX);
    if after >= until {
        return Err(node.problem("`after` must be before `until`").into());
    }
    Ok((after, until))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use rehearse_document::{Source, parse_yaml};

    fn condition(text: &str) -> Result<Condition, String> {
        let source = Source::new("m", text);
        let mut reader = ScriptReader::new(&source);
        let read = parse_yaml(&source).and_then(|node| Condition::read(&node, &mut reader));
        read.map_err(|problems| problems.in_source(&source).to_string())
    }

    fn mismatch_texts(text: &str) -> Vec<String> {
        let mut headers = HeaderMap::new();
        headers.insert("x-tenant", http::HeaderValue::from_static("acme"));
        let facts = RequestFacts {
            args: LazyJson::new(|| json!({ "city": "Paris" })),
            params: LazyJson::new(|| json!({ "name": "t" })),
            headers: Some(&headers),
            version: Version::LATEST,
            transport: Transport::Http,
            capabilities: LazyJson::new(|| json!({ "sampling": {} })),
            call: 4,
            state: LazyJson::new(|| json!({ "step": "paid" })),
            at: Duration::from_secs(7),
            draw: 0.25,
        };
        condition(text).expect(text).mismatches(&facts).iter().map(Mismatch::to_string).collect()
    }

    #[test]
    fn every_member_of_a_condition_must_match() {
        for holds in [
            "{}",
            "{ args: { city: Paris }, params: { name: t }, state: { step: paid }, capabilities: { sampling: {} } }",
            "{ headers: { X-Tenant: acme, x-other: { exists: false } } }",
            "{ era: modern, version: [2025-11-25, 2026-07-28], transport: [http, ws] }",
            "{ call: 4 }",
            "{ call: [1, 4] }",
            "{ call: { min: 3 } }",
            "{ call: { every: 2 } }",
            "{ time: { after: 5s, until: 10s }, probability: 0.3 }",
        ] {
            assert_eq!(mismatch_texts(holds), [""; 0], "{holds}");
        }
    }

    #[test]
    fn mismatches_name_the_difference() {
        assert_eq!(
            mismatch_texts(
                "{ era: legacy, call: { every: 3 }, time: { until: 5s }, probability: 0.2, transport: stdio }"
            ),
            [
                "era: it is modern",
                "transport: it is http",
                "call: it is 4",
                "time: it is 7.000 s after the start",
                "probability: it is drawn 0.250",
            ]
        );
        assert_eq!(
            mismatch_texts("{ args: { city: Rome }, state: { step: open }, headers: { x-tenant: other } }"),
            [
                r#"/city: expected "Rome", found "Paris""#,
                r#"state/step: expected "open", found "paid""#,
                r#"header x-tenant: expected "other", found "acme""#,
            ]
        );
    }
}
