//! One fault of a server in all its answers is not dozens of findings.

use rehearse_conformance::{CheckVerdict, judge_all};
use rehearse_protocol::Transport;

use crate::mutants::{Mutant, all_bases, evidence, mutate, targets};

/// How many findings such a fault may give: what it hides of the handshake may be missed elsewhere.
const MOST: usize = 5;

/// Faults of all answers, each with the check that names it.
const FAULTS: [&str; 5] = [
    r#"{ "check": "rpc.error.code-integer", "on": "*", "set": { "/error/code": "x" } }"#,
    r#"{ "check": "rpc.error.code-integer", "on": "*", "set": { "/error": null } }"#,
    r#"{ "check": "rpc.error.message-string", "on": "*", "remove": ["/error/message"] }"#,
    r#"{ "check": "rpc.envelope.version-field", "on": "*", "set": { "/jsonrpc": "1.0" } }"#,
    r#"{ "check": "rpc.envelope.result-xor-error", "on": "*", "set": { "/result": {}, "/error": { "code": 1, "message": "x" } } }"#,
];

/// Deaths, each with the check that alone reports it: another one that looks at what the server would have answered later
/// has it as its cause, and the line in the middle of which a process dies is no finding of its own.
const DEATHS: [&str; 3] = [
    r#"{ "check": "io.crash.none", "on": "bad-method/unknown", "close": "broken", "drop": true, "transport": "stdio" }"#,
    r#"{ "check": "io.crash.none", "on": "bad-method/unknown", "close": "broken", "raw": "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"message\":\"é", "transport": "stdio" }"#,
    r#"{ "check": "io.crash.none", "on": "malformed/large", "close": "broken", "raw": "{", "transport": "stdio" }"#,
];

#[tokio::test]
async fn a_death_is_one_finding() {
    let bases = all_bases().await;
    for death in DEATHS {
        let death: Mutant = serde_json::from_str(death).expect("a mutant");
        for base in bases.iter().filter(|base| base.transport == Transport::Stdio) {
            let conformant = evidence(&base.run.traces.iter().collect::<Vec<_>>(), base);
            let traces = mutate(&death, &base.run.traces, &targets(&death, &conformant));
            let outcomes = judge_all(&evidence(&traces.iter().collect::<Vec<_>>(), base));
            let found = outcomes.iter().filter(|(_, it)| it.verdict <= CheckVerdict::Warn);
            let found: Vec<_> = found.map(|(check, _)| check.id.as_str()).collect();
            assert_eq!(found, [death.check.as_str()], "{} {}", death.on, base.run.version);
        }
    }
}

#[tokio::test]
async fn a_fault_of_all_answers_is_named_and_gives_few_findings() {
    let bases = all_bases().await;
    let mut wrong = Vec::new();
    for fault in FAULTS {
        let fault: Mutant = serde_json::from_str(fault).expect("a mutant");
        for base in bases {
            let conformant = evidence(&base.run.traces.iter().collect::<Vec<_>>(), base);
            let traces = mutate(&fault, &base.run.traces, &targets(&fault, &conformant));
            let outcomes = judge_all(&evidence(&traces.iter().collect::<Vec<_>>(), base));
            let found: Vec<_> = outcomes.iter().filter(|(_, it)| it.verdict <= CheckVerdict::Warn).collect();
            let caused = outcomes.iter().filter(|(_, it)| it.cause == Some(fault.check.as_str())).count();
            if found.iter().all(|(check, _)| check.id != fault.check) || found.len() > MOST {
                let ids: Vec<_> = found.iter().map(|(check, _)| check.id.as_str()).collect();
                wrong.push(format!(
                    "{}: {ids:?}, {caused} follow ({} {})",
                    fault.check, base.transport, base.run.version
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
