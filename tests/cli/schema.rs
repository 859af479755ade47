//! `rehearse schema` and `rehearse mock --faults` at the command line.

use serde_json::Value as Json;

use crate::rehearse::Rehearse;

#[test]
fn the_schema_of_a_script_is_json_and_describes_tools() {
    let schema: Json =
        serde_json::from_str(Rehearse::new().args(["schema", "script"]).run().code(0).stdout_text()).expect("JSON");
    assert!(schema["$schema"].as_str().is_some_and(|uri| uri.contains("json-schema.org")), "{schema}");
    assert!(schema["properties"]["tools"].is_object() && schema["properties"]["faults"].is_object());
    Rehearse::new().args(["schema", "scripts"]).run().stderr_has("script").code(2);
    let none = Rehearse::new().args(["schema", "scenario"]).run().stdout("");
    none.stderr_has("scenarios have no JSON Schema yet; `rehearse run --list FILE`").code(2);
}

#[test]
fn every_fault_is_listed_with_an_example() {
    let listed = Rehearse::new().args(["mock", "--faults"]).run().code(0);
    let listed = listed.stdout_has("truncate").stdout_has("faults: [{ on: { tool: echo }, do: { delay: ");
    let json = Rehearse::new().args(["mock", "--faults", "--format", "json"]).run().code(0);
    let faults: Json = serde_json::from_str(json.stdout_text()).expect("JSON");
    for fault in faults.as_array().expect("a list") {
        let text = |value: &Json| value.as_str().is_some_and(|text| listed.stdout_text().contains(text));
        assert!(text(&fault["name"]) && text(&fault["summary"]) && text(&fault["example"]), "{fault}");
        assert!(fault["options"].as_object().expect("options").values().all(text), "{fault}");
    }
    Rehearse::new().args(["mock", "--faults", "basic"]).run().stderr_has("cannot be used with").code(2);
}

#[test]
fn each_program_has_a_config_schema() {
    let schema = |dialect: &str| {
        let run = Rehearse::new().args(["schema", "config", "--dialect", dialect]).run().code(0);
        serde_json::from_str::<Json>(run.stdout_text()).expect("JSON")
    };
    assert!(schema("vscode")["properties"]["servers"].is_object());
    let code_agent = &schema("code_agent")["properties"];
    assert!(code_agent["mcp"]["properties"]["servers"].is_object());
    assert_eq!(code_agent["mcp"]["properties"]["enabled"]["type"], "boolean");
    assert_eq!(code_agent["enabled"]["type"], "boolean");
    Rehearse::new()
        .args(["schema", "config"])
        .run()
        .stdout("")
        .stderr_has("claude-code, claude-desktop, vscode")
        .code(2);
    let wrong = Rehearse::new().args(["schema", "config", "--dialect", "vscod"]).run();
    wrong.stderr_has("did you mean `vscode`?").code(2);
    let other = Rehearse::new().args(["schema", "script", "--dialect", "vscode"]).run();
    other.stdout("").stderr_has("`--dialect` is for `rehearse schema config`").code(2);
}
