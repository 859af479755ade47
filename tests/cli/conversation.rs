//! `rehearse conversation`, and what `rehearse serve` saves for it.

use std::path::Path;

use serde_json::{Value as Json, json};

use crate::{
    rehearse::{Rehearse, Run},
    serve::{call, greet, result, serve},
};

fn conversation(args: &[&str], file: &Path) -> Run {
    Rehearse::new().args(args.iter().copied()).args(["--file", file.to_str().expect("UTF-8")]).run()
}

fn parsed(run: &Run) -> Json {
    serde_json::from_str(run.stdout_text()).expect("JSON")
}

/// The newest conversation of a file, as JSON.
pub(crate) fn last_exported(file: &Path) -> String {
    let listed = parsed(&conversation(&["conversation", "list", "--format", "json"], file).code(0));
    let id = listed["conversations"][0]["id"].as_str().expect("an id");
    let exported = conversation(&["conversation", "export", id, "--format", "json"], file).code(0);
    exported.stdout_text().to_owned()
}

/// Replaces each random id by its number, and all times.
fn redacted(text: &str) -> String {
    let mut text = text.to_owned();
    for key in ["id", "messageId", "parentId", "runId", "label", "createdAt", "timestamp"] {
        let compact = text.replace("\": \"", "\":\"");
        for (number, rest) in compact.split(&format!("\"{key}\":\"")).skip(1).enumerate() {
            let value = rest.split('"').next().expect("a value");
            let name =
                if ["createdAt", "timestamp"].contains(&key) { "time".to_owned() } else { format!("{key}-{number}") };
            text = text.replace(&format!("\"{value}\""), &format!("\"{name}\""));
        }
    }
    text
}

#[test]
fn a_scripted_run_has_the_same_traces_each_time() {
    let traces = || {
        let mut running = serve().start();
        greet(&mut running);
        running.send(r#"{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}"#);
        running.stdout_line("\"id\":2");
        for (id, prompt) in [(3, "look"), (4, "wrong"), (5, "look")] {
            call(&mut running, id, &json!({ "prompt": prompt }));
            result(&mut running, id);
        }
        running.close_stdin();
        let run = running.end().code(0);
        (run.stdout_text().to_owned(), last_exported(&run.path(".cpeconvo")))
    };
    let (first, second) = (traces(), traces());
    assert!(first.0.contains("message_saved") && first.1.contains("tool_result"), "{first:?}");
    assert!(first.0 != second.0 && first.1 != second.1, "ids differ");
    assert_eq!(redacted(&first.0), redacted(&second.0));
    assert_eq!(redacted(&first.1), redacted(&second.1));
}

#[test]
fn runs_are_saved_also_those_that_fail_and_that_are_killed() {
    let mut running = serve().start();
    greet(&mut running);
    for (id, prompt) in [(2, "look"), (3, "x")] {
        call(&mut running, id, &json!({ "prompt": prompt }));
        result(&mut running, id);
    }
    call(&mut running, 4, &json!({ "prompt": "hang" }));
    running.stderr_line("→ hang");
    running.signal("KILL");
    let served = running.end();
    let file = served.path(".cpeconvo");

    let listed = conversation(&["conversation", "list", "--format", "json"], &file).code(0);
    let listed = parsed(&listed)["conversations"].as_array().expect("a list").clone();
    let shown: Vec<_> = listed.iter().map(|it| (it["text"].as_str(), it["messages"].as_u64())).collect();
    assert_eq!(shown, [(Some("hang"), Some(2)), (Some("x"), Some(2)), (Some("look"), Some(4))]);
    let labels: Vec<_> = listed.iter().map(|it| it["label"].as_str().expect("a label")).collect();
    assert!(
        labels.iter().all(|label| label.len() == 8 + "subagent:coder:".len() && label.starts_with("subagent:coder:"))
    );
    assert!(labels[0] != labels[1] && labels[1] != labels[2]);

    let tree = conversation(&["convo", "ls"], &file).code(0);
    let lines: Vec<_> = tree.stdout_text().lines().collect();
    assert_eq!(lines.len(), 8 + 3, "{lines:?}");
    assert!(lines[0].ends_with(&format!("[USER] hang ({})", labels[0])), "{lines:?}");
    assert!(lines[8].ends_with("[TOOL_RESULT] at sea") && lines[10] == "------", "{lines:?}");

    let last = listed[2]["id"].as_str().expect("an id");
    let printed = conversation(&["conv", "show", last], &file).code(0);
    let printed = printed.stdout_has("# Conversation History\n").stdout_has("**Tool Call:**").stdout_has("> I look.");
    printed.stdout_has("TOOL RESULT ✓").stdout_has("at sea").stdout_has(&format!("[`{last}`]"));
    let exported = parsed(&conversation(&["conversation", "export", last, "--format", "json"], &file).code(0));
    let messages = exported["messages"].as_array().expect("messages");
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().expect("a role")).collect();
    assert_eq!(roles, ["user", "assistant", "tool_result", "assistant"]);
    assert_eq!((&messages[2]["tool"], &messages[3]["id"]), (&json!("look"), &json!(last)));
    assert_eq!(exported["statistics"], json!({ "turns": 2, "toolCalls": 1, "failedCalls": 0 }));

    let unknown = conversation(&["conversation", "print", "nobody"], &file);
    unknown.stdout("").stderr_has("there is no message nobody in ").code(2);
    let text = served.path("model.yaml");
    conversation(&["conversation", "list"], &text).stderr_has("model.yaml: file is not a database").code(3);
    let none = Rehearse::new().args(["conversation", "list"]).run();
    none.stdout("").stderr_has("there is no conversation file .cpeconvo").code(2);
}

#[test]
fn a_run_that_cannot_be_saved_goes_on() {
    let mut running = serve().args(["--conversations", "none/file", "--quiet"]).start();
    running.stderr_line("warning: failed to save subagent trace: none/file: ");
    greet(&mut running);
    call(&mut running, 2, &json!({ "prompt": "look" }));
    assert_eq!(result(&mut running, 2)["structuredContent"]["verdict"], "at sea");
}
