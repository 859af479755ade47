//! What an SDK does, whatever the author of a peer that uses it does.
//!
//! A violation comes from an SDK if the message that violates has the words or the code of that SDK. Where others may say
//! the same, and of what shows in no message, such as silence, other messages must show that the peer uses the SDK.

use std::{collections::BTreeSet, sync::LazyLock};

use rehearse_document::text::matches_wildcard;
use rehearse_protocol::{Direction, Trace};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Check, CheckOutcome, Evidence, Violation};

/// A trait by which an SDK is known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Fingerprint {
    sdk: String,
    /// The checks that the SDK violates.
    checks: BTreeSet<String>,
    /// What its message has, by JSON pointer. In a text `*` stands for anything.
    #[serde(default)]
    message: Map<String, Value>,
    /// What is found, with `*` for anything.
    found: Option<String>,
    /// The case after which it is found, with `*` for anything.
    case: Option<String>,
    /// Whether other software may say the same, so that other messages must show the SDK.
    #[serde(default)]
    weak: bool,
    /// Whether nothing but the SDK says this. Of what is neither this nor weak, two must be seen.
    #[serde(default)]
    sure: bool,
    /// What it is a form of: several forms of one thing are seen as one.
    #[serde(default, rename = "trait")]
    form_of: Option<String>,
}

static FINGERPRINTS: LazyLock<Vec<Fingerprint>> = LazyLock::new(|| {
    include_str!("../checks/sdks.jsonl").lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
});

/// Says of each violation whether it comes from an SDK.
pub fn attribute(evidence: &Evidence<'_>, outcomes: &mut [(&'static Check, CheckOutcome)]) {
    if outcomes.iter().all(|(_, outcome)| outcome.judgement.violations.is_empty()) {
        return;
    }
    let known = known(evidence);
    for (check, outcome) in outcomes {
        let about: Vec<_> = FINGERPRINTS.iter().filter(|it| it.checks.contains(&check.id)).collect();
        for violation in outcome.judgement.violations.iter_mut().filter(|_| !about.is_empty()) {
            let found = about.iter().find(|it| it.explains(evidence, violation, &known));
            violation.sdk = found.map(|it| it.sdk.as_str());
        }
    }
}

/// The SDKs that messages of the peer show, here or in other traffic of it.
pub(crate) fn known(evidence: &Evidence<'_>) -> BTreeSet<&'static str> {
    let own: Vec<_> = evidence.own().map(|message| &message.value).collect();
    shown(&own).into_iter().chain(evidence.facts.sdks.iter().copied()).collect()
}

/// The SDKs that the messages of a peer show in these traces: those in one direction.
pub fn sdks<'t>(traces: impl IntoIterator<Item = &'t Trace>, direction: Direction) -> BTreeSet<&'static str> {
    let frames = traces.into_iter().flat_map(Trace::frames);
    let sent = frames.filter(|frame| frame.direction == direction);
    let messages: Vec<Value> = sent.filter_map(|frame| serde_json::from_slice(&frame.bytes).ok()).collect();
    shown(&messages.iter().collect::<Vec<_>>())
}

fn shown(messages: &[&Value]) -> BTreeSet<&'static str> {
    let seen: Vec<_> =
        FINGERPRINTS.iter().filter(|it| !it.weak && messages.iter().any(|message| it.is_of(message))).collect();
    let forms = |it: &Fingerprint| {
        let own = seen.iter().filter(|other| other.sdk == it.sdk);
        own.enumerate().map(|(at, it)| it.form_of.clone().unwrap_or_else(|| at.to_string())).collect::<BTreeSet<_>>()
    };
    let is_known = |it: &&&Fingerprint| it.sure || forms(it).len() > 1;
    seen.iter().filter(is_known).map(|fingerprint| fingerprint.sdk.as_str()).collect()
}

impl Fingerprint {
    fn explains(&self, evidence: &Evidence<'_>, violation: &Violation, known: &BTreeSet<&str>) -> bool {
        let is_of_case = |case: &String| matches_wildcard(case, violation.subject.as_deref().unwrap_or_default());
        if !self.case.as_ref().is_none_or(is_of_case) {
            return false;
        }
        match &self.found {
            Some(found) => matches_wildcard(found, &violation.found),
            None if (self.message.is_empty() || self.weak) && !known.contains(self.sdk.as_str()) => false,
            None if self.message.is_empty() => true,
            None => evidence.own().any(|it| violation.places.contains(&it.place) && self.is_of(&it.value)),
        }
    }

    /// Whether a message has it.
    fn is_of(&self, message: &Value) -> bool {
        let at = |pointer: &str| message.pointer(pointer).unwrap_or(&Value::Null);
        let has = |(pointer, wanted): (&String, &Value)| match (at(pointer), wanted) {
            (Value::String(found), Value::String(wanted)) => matches_wildcard(wanted, found),
            (found, Value::String(wanted)) if wanted == "*" => !found.is_null(),
            (found, wanted) => found == wanted,
        };
        !self.message.is_empty() && self.message.iter().all(has)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rehearse_protocol::{Transport, Version};

    use super::*;
    use crate::{Facts, checks, judge_all};

    /// What a server of the TypeScript SDK answers to a wrong type, and an author's own error of the same code.
    const OF_SDK: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"[\n  {\n    \"path\": [\n      \"uri\"\n    ]\n  }\n]"}}"#;
    const OF_AUTHOR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it does not work"}}"#;

    /// The SDKs of the violations of the checks about what was sent as these cases.
    fn sdks(answers: &[(&str, &str)]) -> Vec<(String, Option<&'static str>, Option<&'static str>)> {
        let mut trace = Trace::default();
        let mut push = |direction, text: &str| {
            trace.push_frame(Duration::ZERO, direction, bytes::Bytes::copy_from_slice(text.as_bytes()));
        };
        push(Direction::ClientToServer, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        push(
            Direction::ServerToClient,
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{}}}}"#,
        );
        for (id, (case, answer)) in (1..).zip(answers) {
            trace.push(Duration::ZERO, rehearse_protocol::EventKind::Case((*case).into()));
            let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":{id}}}}}"#);
            trace.push_frame(Duration::ZERO, Direction::ClientToServer, request.into());
            trace.push_frame(Duration::ZERO, Direction::ServerToClient, (*answer).to_owned().into());
        }
        let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
        let violated = judge_all(&evidence).into_iter().filter(|(_, it)| !it.judgement.violations.is_empty());
        let is_about = |id: &str| {
            matches!(id, "res.read.missing-uri" | "rpc.invalid.params-wrong-type-32602" | "rpc.id.echo-value")
        };
        let about = violated.filter(|(check, _)| is_about(&check.id));
        about.map(|(check, it)| (check.id.clone(), it.judgement.violations[0].sdk, it.cause)).collect()
    }

    #[test]
    fn the_id_of_the_errors_of_a_transport_shows_its_sdk() {
        let error = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":"{id}","error":{{"code":-32600,"message":"no"}}}}"#);
        for (id, sdk) in [("server-error", Some("Python SDK")), ("server-failure", None)] {
            let found = sdks(&[("bad-params/resources/read", &error(id))]);
            let found: Vec<_> =
                found.iter().filter(|(check, ..)| check == "rpc.id.echo-value").map(|it| it.1).collect();
            assert_eq!(found, [sdk], "{id}");
        }
    }

    #[test]
    fn the_message_that_violates_shows_whose_fault_it_is() {
        let found = sdks(&[("bad-params/resources/read", OF_SDK)]);
        assert!(!found.is_empty() && found.iter().all(|(_, sdk, _)| *sdk == Some("TypeScript SDK")), "{found:?}");
        let found = sdks(&[("bad-params/resources/read", OF_AUTHOR)]);
        assert!(!found.is_empty() && found.iter().all(|(_, sdk, _)| sdk.is_none()), "{found:?}");
    }

    #[test]
    fn what_others_may_say_too_comes_from_an_sdk_only_if_another_message_shows_it() {
        let unknown = r#"{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"no such thing"}}"#;
        let python = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"Invalid request parameters"}}"#;
        let tool = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"Unknown tool: x"}],"isError":true}}"#;
        let by_hand = r#"{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"Method not found","data":"a/b"}}"#;
        let weak = FINGERPRINTS.iter().find(|it| it.weak && it.message.get("/error/code") == Some(&Value::from(0)));
        let evidence = |answers: &[&str]| {
            let mut trace = Trace::default();
            for answer in answers {
                trace.push_frame(Duration::ZERO, Direction::ServerToClient, (*answer).to_owned().into());
            }
            trace
        };
        for (answers, expected) in [
            (&[unknown][..], false),
            (&[unknown, by_hand], false),
            (&[unknown, python], false),
            (&[unknown, python, python], false),
            (&[unknown, python, tool], true),
        ] {
            let trace = evidence(answers);
            let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
            let place = evidence.own().next().map(|message| message.place);
            let (level, wrong_code, sdk) = (None, None, None);
            let (subject, found, places) = (None, "error 0".to_owned(), place.into_iter().collect());
            let violation = Violation { subject, found, places, level, wrong_code, sdk, awaits_answer: false };
            let known = known(&evidence);
            assert_eq!(weak.is_some_and(|it| it.explains(&evidence, &violation, &known)), expected, "{answers:?}");
        }
    }

    #[test]
    fn what_an_sdk_does_in_one_case_is_the_author_s_in_another() {
        let trait_of_case = FINGERPRINTS.iter().find(|it| it.case.as_deref() == Some("malformed/*")).expect("a trait");
        let trace = Trace::default();
        let evidence = Evidence::new(&[&trace], Version::V2025_11_25, Transport::Stdio, Facts::default());
        let explains = |case: Option<&str>, known: &[&str]| {
            let (level, wrong_code, sdk) = (None, None, None);
            let (subject, found, places) = (case.map(ToOwned::to_owned), "the end".to_owned(), Vec::new());
            let violation = Violation { subject, found, places, level, wrong_code, sdk, awaits_answer: false };
            trait_of_case.explains(&evidence, &violation, &known.iter().copied().collect())
        };
        assert!(explains(Some("malformed/number"), &["Go SDK"]));
        assert!(!explains(Some("malformed/number"), &[]), "the SDK is not known");
        assert!(!explains(None, &["Go SDK"]) && !explains(Some("calls/parallel/a"), &["Go SDK"]));
    }

    #[test]
    fn a_client_shows_its_sdk_in_words_that_only_this_sdk_has() {
        let answered = |error: &str| {
            let mut trace = Trace::default();
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            trace.push_frame(Duration::ZERO, Direction::ClientToServer, text.into());
            super::sdks([&trace], Direction::ClientToServer)
        };
        assert_eq!(answered(r#"{"code":-32600,"message":"List roots not supported"}"#), ["Python SDK"].into());
        assert_eq!(
            answered(r#"{"code":-32602,"message":"Invalid request parameters","data":""}"#),
            ["Python SDK"].into()
        );
        let method_as_data = |method: &str| {
            let mut trace = Trace::default();
            let error = format!(r#"{{"code":-32601,"message":"Method not found","data":"{method}"}}"#);
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
            trace.push_frame(Duration::ZERO, Direction::ClientToServer, text.into());
            trace
        };
        let traces = [method_as_data("ping"), method_as_data("rehearse/unknown")];
        assert_eq!(super::sdks(&traces, Direction::ClientToServer), [].into(), "two forms of one thing");
        for of_others in
            ["-32601,\"message\":\"Method not found\"", "-32602,\"message\":\"Invalid request parameters\""]
        {
            assert_eq!(answered(&format!("{{\"code\":{of_others}}}")), [].into());
        }
        let (mut legacy, batch) = (Trace::default(), r#"[{"jsonrpc":"2.0","id":"b","method":"ping"}]"#);
        for (direction, at, text) in [
            (Direction::ClientToServer, 0, r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#),
            (
                Direction::ServerToClient,
                0,
                r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#,
            ),
            (Direction::ServerToClient, 0, batch),
            (Direction::ClientToServer, 9, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        ] {
            legacy.push_frame(Duration::from_secs(at), direction, text.into());
        }
        for sdks in [&[][..], &["Python SDK"]] {
            let facts = Facts { role: crate::Role::Client, sdks: sdks.iter().copied().collect(), ..Facts::default() };
            let evidence = Evidence::new(&[&legacy], Version::V2025_03_26, Transport::Stdio, facts);
            let judged = judge_all(&evidence);
            let found = judged.iter().find(|(check, _)| check.id == "client-rpc.batch.receives").expect("the check");
            assert_eq!(found.1.judgement.violations[0].sdk, sdks.first().copied());
        }
    }

    #[test]
    fn every_fingerprint_is_read_and_names_checks_that_exist() {
        assert_eq!(FINGERPRINTS.len(), include_str!("../checks/sdks.jsonl").lines().count());
        let known = |id: &String| checks().iter().any(|check| check.id == *id);
        let unknown: Vec<_> = FINGERPRINTS.iter().flat_map(|it| &it.checks).filter(|id| !known(id)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
