//! `rehearse init` with a server.

use super::rehearse::{Rehearse, Run};

/// Runs shell commands in a folder with this mock script; `$R` is the program.
fn shell(script: &str, commands: &str) -> Run {
    let commands = format!("export R='{}'; {commands}", Rehearse::BINARY);
    Rehearse::new().program("sh").args(["-c", &commands]).file("server.yaml", script).env("CI", "").run()
}

const SHOP: &str = r#"
server: { name: "my shop!", version: 1.0.0 }
tools:
  - name: price
    annotations: { readOnlyHint: true }
    inputSchema: { type: object, properties: { item: { type: string } }, required: [item] }
    reply: "{{ args.item }} costs {{ env.PID }} euro"
  - name: buy
    inputSchema: { type: object, properties: { item: { enum: [pear, fig] } }, required: [item] }
    reply: bought
resources: [{ uri: "shop://hours", text: 9-17 }]
prompts: [{ name: greet, arguments: [{ name: who, required: true }], messages: [{ role: user, content: "Hi {{ args.who }}" }] }]
"#;

#[test]
fn a_server_gets_its_scenario_a_mock_and_a_workflow() {
    let start = r#"'PID=$$ exec "$R" mock server.yaml'"#;
    let init = format!(r#""$R" init -- sh -c {start}"#);
    let check = r#""$R" run && "$R" mock --validate mocks/*.yaml && grep -q Install .github/workflows/rehearse.yml"#;
    let run = shell(SHOP, &format!("{init} && {check}")).code(0);
    let run = run.stdout_has("1 passed").stdout_has("rehearse run scenarios/my-shop.yaml --update");
    let scenario = run.read("scenarios/my-shop.yaml");
    for part in [
        "# Tests of the server my-shop. Run them with: rehearse run\n",
        "  - { discover: {}, snapshot: tools }\n",
        "  - { call: { tool: price, args: { item: test } }, snapshot: call-price }\n",
        "  - { list_resources: {}, snapshot: resources }\n",
        "  - { read_resource: \"shop://hours\", snapshot: read-shop-hours }\n",
        "  - { get_prompt: { name: greet, args: { who: test } }, snapshot: prompt-greet }\n",
        "  - call: { tool: price, args: {} }\n    expect: { isError: true }\n",
        "  # - { call: {\"tool\":\"buy\",\"args\":{\"item\":\"pear\"}}, snapshot: call-buy }\n",
    ] {
        assert!(scenario.contains(part), "{part}: {scenario}");
    }
    assert!(run.read("snapshots/my-shop/call-price.snap").contains("test costs [redacted] euro"));
    assert!(run.read("mocks/my-shop.yaml").contains("name: buy"));
    let changed = format!("{init} && sed -i 's/bought/sold/; s/costs/is/' server.yaml && \"$R\" run");
    shell(SHOP, &changed).stdout_has("the result differs from the snapshot `call-price`").code(1);
    let allowed = shell(SHOP, &format!("\"$R\" init --allow-tool buy -- sh -c {start}")).code(0);
    assert!(allowed.read("scenarios/my-shop.yaml").contains("call: { tool: buy, args: { item: pear } }"));
    assert!(!allowed.read("scenarios/my-shop.yaml").contains("# -"));
}

#[test]
fn no_file_is_overwritten_unless_that_is_asked_for() {
    let init = r#""$R" init -- "$R" mock basic"#;
    let twice = shell("", &format!("{init} && echo mine > scenarios/basic.yaml && {init}")).code(2);
    let twice = twice.stderr_has("scenarios/basic.yaml exists; --force overwrites it");
    assert_eq!(twice.read("scenarios/basic.yaml"), "mine\n");
    let forced =
        format!("{init} && echo mine > scenarios/basic.yaml && \"$R\" init --force -- \"$R\" mock basic && \"$R\" run");
    let forced = shell("", &forced).stderr_has("exists .github/workflows/rehearse.yml").code(0);
    assert!(forced.read("scenarios/basic.yaml").contains("call: { tool: no_such_tool, args: {} }"));
}

#[test]
fn a_server_json_is_written_from_a_server_and_says_what_is_missing() {
    let script = "server: { name: weather, title: Weather, version: 1.2.3 }\n";
    let npx = r#"mkdir bin; printf '#!/bin/sh\nexec "$R" mock server.yaml\n' > bin/npx; chmod +x bin/npx; export PATH="$PWD/bin:$PATH""#;
    let init = |package: &str, more: &str| {
        shell(script, &format!("{npx}; \"$R\" init --server-json -- npx -y {package} {more}"))
    };
    let run = init("weather", "").code(0).stdout_has("wrote server.json\n");
    let run = run.stderr_has("server.json: name: `weather` is no name of a server: write a domain in reverse");
    let run = run.stderr_has("server.json: description: `description` has 0 characters");
    let run = run.stderr_has("server.json: packages[0]: `version` is missing: add `version`");
    assert!(run.read("server.json").contains("\"title\": \"Weather\""), "{}", run.read("server.json"));
    let filled = "&& sed -i 's|name\": \"|&io.github.ada/|; s|\"\"|\"Tells it.\"|' server.json \
                  && \"$R\" validate-config server.json --connect --strict";
    init("weather@1.2.3", filled).code(0).stdout_has("Release file is valid").stdout_has("npm weather@1.2.3: 0 tools");
    let twice = init("weather@1.2.3", "&& echo mine > server.json && \"$R\" init --server-json -- npx x").code(2);
    assert_eq!(twice.stderr_has("server.json exists; --force overwrites it").read("server.json"), "mine\n");
    let other = shell(script, "\"$R\" init --server-json -- \"$R\" mock server.yaml").code(0);
    other.stderr_has("server.json: packages: the command says nothing of a package: use one of npx -y NAME@VERSION");
    shell(script, "\"$R\" init --server-json").code(2).stderr_has("--server-json needs a server");
}
