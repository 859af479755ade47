//! `rehearse mcp list-tools --cost`. Resources, prompts and completion are in `tests/console/mcp-offers.md`.

use serde_json::json;

use crate::{
    mcp::{json_of, mcp, stdio},
    rehearse::Rehearse,
};

#[test]
fn the_cost_of_tools_is_that_of_what_a_model_reads() {
    let tools =
        "tools: [{ name: a, title: Not for models, reply: x }, { name: b, description: Long enough., reply: x }]";
    let list = |args: &[&str]| mcp(["list-tools", "--cost"]).args(args.iter().copied()).args(stdio("t.yaml"));
    let found = json_of(list(&[]).file("t.yaml", tools), 0);
    let server = &found["servers"][0];
    let definition = |name: &str, description: &str| {
        let schema = &server["tools"][usize::from(name == "b")]["definition"]["inputSchema"];
        format!("{{\"name\":\"{name}\"{description},\"input_schema\":{schema}}}").len()
    };
    let [a, b] = [definition("a", ""), definition("b", ",\"description\":\"Long enough.\"")];
    assert_eq!([&server["tools"][0]["cost"]["bytes"], &server["tools"][1]["cost"]["bytes"]], [a, b]);
    assert_eq!((&found["cost"]["bytes"], &found["cost"]), (&json!(a + b), &server["cost"]));
    assert_eq!(found["cost"]["encoding"], "o200k");
    let tokens = |index: usize| server["tools"][index]["cost"]["tokens"].as_u64().expect("a number");
    assert_eq!(found["cost"]["tokens"], tokens(0) + tokens(1));
    // The dearest first, also without JSON; a tool that is filtered out costs nothing.
    let config = json!({ "mcpServers": { "one": { "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "t.yaml"], "enabledTools": ["b"] } } });
    let all = list(&[]).file("t.yaml", tools).run().code(0);
    assert!(all.stdout_text().find("│ b ") < all.stdout_text().find("│ a "), "{}", all.stdout_text());
    let filtered = mcp(["list-tools", "--cost", "--mcp-config", "cpe.config.json", "--dialect", "cpe"]);
    let filtered = filtered.file("t.yaml", tools).file("cpe.config.json", &config.to_string()).run().code(0);
    assert!(!filtered.stdout_text().contains("│ a "), "{}", filtered.stdout_text());
}
