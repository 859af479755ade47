//! Tests of the binary, by its output and exit codes.

mod admin_docs;
mod bench;
mod calls;
mod chat;
mod check;
mod check_client;
mod circles;
mod codegen;
mod config_convert;
mod config_docs;
mod config_show;
mod conformance_client;
mod conversation;
mod coverage;
mod diff;
mod evals;
mod final_answer;
mod full_disk;
mod fuzz;
mod hub;

mod init;
mod issuer;
mod mcp;
mod mcp_app;
mod mcp_auth;
mod mcp_connections;
mod mcp_faults;
mod mcp_hostile;
mod mcp_interrupts;
mod mcp_many;
mod mcp_models;
mod mcp_offers;
mod mcp_policy;
mod mock;
mod mock_exec;
mod mock_scripts;
mod model;
mod oauth_transports;
mod orphans;
mod otlp;
mod pages;
mod parity;
mod profile;
mod redaction;
mod rehearse;
mod repl;
mod repl_forms;
mod report;
mod requirements;
mod result_cache;
mod run;
mod run_servers;
mod run_watch;
mod rust_docs;
mod schema;
mod script_schema;
mod serve;
mod serve_code_mode;
mod serve_network;
mod server_messages;
mod source_configs;
mod subagents;
mod terminal;
mod trace_files;
mod trace_import;
mod traces;
mod validate_config;

use rehearse::Rehearse;

#[test]
fn without_a_command_the_help_is_shown_as_a_usage_error() {
    Rehearse::new().run().stdout("").stderr_has("Usage: rehearse [OPTIONS] <COMMAND>").code(2);
}

#[test]
fn help_names_the_commands_and_the_exit_codes() {
    Rehearse::new().args(["--help"]).run().stdout_has("mock").stdout_has("Exit codes:").code(0);
}

#[test]
fn an_unknown_flag_is_a_usage_error() {
    Rehearse::new().args(["mock", "basic", "--listne", "1"]).run().stdout("").stderr_has("'--listen'").code(2);
}

#[test]
fn the_words_after_two_dashes_are_the_command_of_a_server() {
    let server = ["--", Rehearse::BINARY, "mock", "basic"];
    let run = |words: &[&str]| Rehearse::new().args([words, &server].concat()).run();
    run(&["mcp", "list-tools"]).stdout_has("json_response").code(0);
    run(&["mcp", "call", "echo", "text=hi"]).stdout("hi\n").code(0);
    run(&["check", "--only", "tools.list"]).stdout_has("passed").code(0);
    run(&["bench", "discovery", "--requests", "1"]).stdout_has("rehearse").code(0);
    run(&["check", "--mcp-config", "x.json"]).stderr_has("cannot be used with").code(2);
    let env = ["mcp", "list-tools", "--env", "A=b", "--", Rehearse::BINARY, "mock", "basic"];
    Rehearse::new().args(env).run().code(0);
}

#[test]
fn an_unquoted_command_is_shown_as_it_is_right() {
    for (line, hint) in [
        ("check --stdio sh dist/server.js", "`--stdio 'sh dist/server.js'`, or at the end `-- sh dist/server.js`"),
        ("check --stdio sh -x a --strict", "rehearse check --strict -- sh -x a\n"),
        ("check sh server.js", "as in `-- sh …`"),
        ("check server.js", "as in `-- node server.js`"),
        ("mcp list-tools sh server.js", "rehearse mcp list-tools -- sh server.js\n"),
        ("mcp list-tools --stdio sh server.js", "`--stdio 'sh server.js'`"),
        ("mcp call-tool --stdio sh server.js echo", "`--stdio 'sh server.js echo'`"),
        ("mcp --stdio sh server.js", "rehearse mcp list-tools -- sh server.js\n"),
        ("bench --stdio sh server.js", "rehearse bench discovery -- sh server.js\n"),
        ("bench -- sh server.js", "rehearse bench discovery -- sh server.js\n"),
        ("sh server.js", "rehearse check -- sh server.js\n"),
        ("mcp read-resource x:y sh server.js", "rehearse mcp read-resource x:y -- sh server.js\n"),
        ("check --strict --stdio sh -x a --only rpc", "rehearse check --strict --only rpc -- sh -x a\n"),
        ("chat --model M sh server.js", "starts the server after `--`: rehearse chat --model M -- sh server.js\n"),
        (
            "check client sh server.js {url}",
            "starts the client after `--`: rehearse check client -- sh server.js '{url}'\n",
        ),
        ("record --trace-file t sh server.js", "rehearse record --trace-file t -- sh server.js\n"),
        ("mcp call-tool forecast city=Oslo sh server.js", "after `--`, as in `-- sh …`"),
        ("mcp get-prompt greet name=a sh server.js", "after `--`, as in `-- sh …`"),
        ("repl sh -x", "rehearse repl -- sh -x\n"),
        ("run -- sh server.js", "`rehearse check -- sh …`"),
        ("bench --http URL", "--http belongs after a subcommand, as in `rehearse bench discovery --http`"),
    ] {
        let rehearse = Rehearse::new().env("HOME", "home").file("server.js", "").args(line.split(' '));
        let run = rehearse.run().stderr_has(hint).code(2);
        assert!(!run.stderr().contains("as a value"), "{line}");
    }
    let one_argument = ["mcp", "list-tools", "sh server.js"];
    Rehearse::new().env("HOME", "home").args(one_argument).run().stderr_has("as in `-- sh server.js`").code(2);
    for line in ["check", "mcp list-tools", "record --trace-file t.jsonl", "check client", "mock basic --exec"] {
        let hint = "write it without quotes: -- sh server.js\n";
        Rehearse::new().args(line.split(' ').chain(["--", "sh server.js"])).run().stderr_has(hint).code(2);
    }
    Rehearse::new().args(["check", "--stdio", "sh", "--strcit"]).run().stderr_has("'--strict'").code(2);
}

#[test]
fn a_command_of_another_name_or_place_is_found() {
    Rehearse::new().args(["lint", "x.json"]).run().stdout_has("there is no such file").code(2);
    for (line, part) in [
        ("mcp tools nope", "no MCP servers configured"),
        ("config lint x.json", "hint: it is `rehearse validate-config`"),
        ("list-tools", "hint: it is `rehearse mcp list-tools`"),
        ("test", "hint: `rehearse run` runs scenarios"),
        ("mcp list", "hint: it is `rehearse mcp list-tools`"),
        ("mcp ls", "hint: it is `rehearse mcp list-tools`"),
        ("call forecast", "hint: it is `rehearse mcp call-tool`"),
        ("check --url http://x/mcp", "hint: it is `--http http://x/mcp`"),
        ("check --junit out.xml -- node s.js", "hint: it is `--report out.xml`"),
        ("check --junit=out.xml", "hint: it is `--report out.xml`"),
        ("check --junit -- node s.js", "hint: it is `--report FILE.xml`"),
        ("run -k tools", "hint: it is `--filter tools`"),
        ("record --output t.jsonl -- node s.js", "hint: it is `--trace-file t.jsonl`"),
        ("mcp call-tool forecast --city Oslo -- node s.js", "without dashes: city=Oslo"),
        ("config list", "unrecognized subcommand"),
        ("bench tools", "hint: it is `rehearse mcp list-tools`"),
        ("export a1", "hint: it is `rehearse conversation export`"),
        ("mcp list-tools -v -- node s.js", "unexpected argument '-v'"),
    ] {
        let run = Rehearse::new().env("HOME", "home").args(line.split(' ')).run().stderr_has(part).code(2);
        for wrong in ["as a value", "conversation list"] {
            assert!(!run.stderr().contains(wrong), "{line}");
        }
    }
}
