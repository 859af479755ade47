//! `rehearse serve --listen`.

use crate::{mcp::mcp, serve::serve};

#[test]
fn the_same_answer_comes_over_the_network_in_both_eras() {
    let mut running = serve().args(["--listen", ":0"]).start();
    let line = running.stderr_line("serving http://");
    let url = line.split_whitespace().find(|word| word.ends_with("/mcp")).expect("a URL").to_owned();
    for protocol in ["2025-11-25", "2026-07-28"] {
        let args = ["call-tool", "--http", &url, "--protocol", protocol, "coder", "prompt=look"];
        let run = mcp(args).run();
        run.stdout_has("at sea").stderr_has("turn 1: calls look").code(0);
    }
    running.signal("INT");
    running.end().stdout("").code(0);
}

#[test]
fn callers_over_the_network_need_the_token_and_read_only_what_is_allowed() {
    let story = serve().file("shared/note.txt", "a note").env("REHEARSE_SERVE_TOKEN", "s3cret");
    let args = ["--listen", ":0", "--allow-input", "shared", "--max-runs", "1"];
    let folder = story.folder().display().to_string();
    let mut running = story.args(args).start();
    let line = running.stderr_line("serving http://");
    let url = line.split_whitespace().find(|word| word.ends_with("/mcp")).expect("a URL").to_owned();
    let call = |arguments: &[&str]| {
        let header = ["--header", "Authorization: Bearer s3cret"];
        mcp(["call-tool", "--http", &url, "coder"]).args(arguments.iter().copied()).args(header)
    };
    mcp(["call-tool", "--http", &url, "coder", "prompt=look"]).run().stderr_has("requires authorization").code(3);
    let inputs = |file: &str| format!(r#"inputs=["{file}"]"#);
    call(&["prompt=look", &inputs(&format!("{folder}/shared/note.txt"))]).run().stdout_has("at sea").code(0);
    for input in [format!("{folder}/in.txt"), "/etc/passwd".to_owned(), format!("{url}/x")] {
        call(&["prompt=look", &inputs(&input)]).run().stdout_has(&format!("input {input} is refused")).code(1);
    }
    let hanging = call(&["prompt=hang"]).start();
    running.stderr_line("→ hang");
    call(&["prompt=look"]).run().stdout_has("1 run is in progress").code(1);
    drop(hanging);
    running.signal("INT");
    running.end().code(0);
    for token in ["", "a b"] {
        serve().args(["--listen", ":0", "--token", token]).run().stderr_has("--token: a token is not empty").code(2);
    }
}
