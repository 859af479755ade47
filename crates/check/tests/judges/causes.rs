//! One fault of a server in all its answers is not dozens of findings.

use rehearse_conformance::{CheckVerdict, judge_all};

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
