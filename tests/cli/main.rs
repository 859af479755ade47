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
mod final_answer;
mod full_disk;
mod hub;
mod issuer;
mod mcp;
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
mod parity;
mod redaction;
mod rehearse;
mod repl;
mod repl_forms;
mod report;
mod requirements;
mod result_cache;
mod run;
mod run_servers;
mod rust_docs;
mod schema;
mod script_schema;
mod serve;
mod server_messages;
mod source_configs;
mod subagents;
mod terminal;
mod trace_files;
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
