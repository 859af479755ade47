//! Programs in JavaScript.

use std::{
    io::Write,
    process::Stdio,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use rehearse_code_mode::{
    Execution, Limits, ProgramEnd, Tool,
    quickjs::{Worker, definition, execute},
};
use serde_json::json;

use crate::support::{Server, Test, is_success, limits, text, tools, worker};

pub(crate) const TESTS: &[Test] = &[
    ("output_is_before_what_a_program_returns", || Box::pin(output_is_before_what_a_program_returns())),
    ("tools_are_async_functions", || Box::pin(tools_are_async_functions())),
    ("errors_have_the_line_of_the_program", || Box::pin(errors_have_the_line_of_the_program())),
    ("half_a_character_is_replaced", || Box::pin(half_a_character_is_replaced())),
    ("a_wrong_argument_throws", || Box::pin(a_wrong_argument_throws())),
    ("a_result_does_not_wait_for_timers", || Box::pin(a_result_does_not_wait_for_timers())),
    ("limits_stop_a_program", || Box::pin(limits_stop_a_program())),
    ("a_program_has_nothing_but_its_tools", || Box::pin(a_program_has_nothing_but_its_tools())),
    ("a_fatal_call_ends_the_program", || Box::pin(a_fatal_call_ends_the_program())),
    ("a_dropped_execution_kills_its_processes", || Box::pin(a_dropped_execution_kills_its_processes())),
    ("a_worker_ends_with_its_input", || Box::pin(a_worker_ends_with_its_input())),
    ("a_loop_of_the_engine_ends_with_its_input", || Box::pin(a_loop_of_the_engine_ends_with_its_input())),
    ("a_worker_that_is_not_one_is_reported", || Box::pin(a_worker_that_is_not_one_is_reported())),
];

async fn limited(code: &str, limits: &Limits) -> Execution {
    let server = Server::new();
    execute(&worker(), code, &tools(), limits, |call| server.call(call)).await.expect("it starts")
}

async fn ran(code: &str) -> Execution {
    limited(code, &limits()).await
}

async fn succeeds(code: &str, expected: &str) {
    let execution = ran(code).await;
    assert!(is_success(&execution), "{execution:?}");
    assert_eq!(text(&execution), expected, "{code}");
}

async fn output_is_before_what_a_program_returns() {
    succeeds(
        "console.log('a', { b: [1, null] }, new Map([[1, 2]]), undefined); return 'c'",
        "a {\"b\":[1,null]} Map [[1,2]] undefined\n|c",
    )
    .await;
    succeeds("return { n: 1, s: 'x' } // a comment", "{\"n\":1,\"s\":\"x\"}").await;
    succeeds("return [1, 2]", "[1,2]").await;
    succeeds("await null", "").await;
    let image = r#"{"type":"image","data":"AA==","mimeType":"image/png"}"#;
    succeeds(
        &format!("console.error('x'); return [{{ type: 'text', text: 'y' }}, {image}]"),
        &format!("x\n|y|{image}"),
    )
    .await;
    succeeds("return { type: 'image', data: 1 }", "{\"type\":\"image\",\"data\":1}").await;
    succeeds(
        "const t = Date.now(); await new Promise((done) => setTimeout(done, 20)); return Date.now() - t >= 20",
        "true",
    )
    .await;
}

async fn tools_are_async_functions() {
    succeeds("const { n } = await add_one({ n: 41 }); return await echo({ n })", "{\"n\":42}").await;
    // Each waits for the other.
    succeeds("return (await Promise.all([both({ n: 1 }), both({ n: 2 })])).join()", "met,met").await;
    succeeds("try { await fail({ n: 1 }) } catch (error) { return 'caught ' + error.message }", "caught It is broken.")
        .await;
    succeeds("const all = []; for (let n = 0; n < 200; n++) all.push(add_one({ n })); return (await Promise.all(all))[199].n", "200").await;
    // Without `await` at the top: the program is over when nothing can happen any more.
    succeeds("async function main() { console.log(await echo({ n: 1 })) } main()", "{\"n\":1}\n").await;
}

async fn errors_have_the_line_of_the_program() {
    let exception = async |code: &str| match ran(code).await.outcome {
        ProgramEnd::Exception(message) => message,
        other => panic!("{other:?}"),
    };
    let message = exception("const a = 1;\na.b.c();").await;
    assert!(message.starts_with("TypeError: ") && message.contains("program.js:2:"), "{message}");
    let first = exception("a.b.c();").await;
    assert_eq!(first, exception("\na.b.c();").await.replace("program.js:2:", "program.js:1:"));
    let message = exception("console.log(1);\n\nawait fail({ n: 1 });").await;
    assert!(message.starts_with("Error: It is broken.") && message.contains("program.js:3:"), "{message}");
    assert_eq!(exception("throw 'a text'").await, "thrown: a text");
    // Nobody waits for this promise.
    let message = exception("async function main() {\n  throw new Error('lost') }\nmain()").await;
    assert!(message.starts_with("Error: lost") && message.contains("program.js:2:"), "{message}");
    assert_eq!(exception("await new Promise(() => {})").await, "the program waits for a promise that nothing settles");
    assert!(exception("return 1n").await.starts_with("TypeError: "));
    let execution = ran("console.log('before');\nlet x: number = 1;").await;
    assert!(
        matches!(&execution.outcome, ProgramEnd::CompileError(text) if text.contains("SyntaxError") && text.contains("program.js:2:")),
        "{execution:?}"
    );
    assert_eq!(execution.output, "");
}

async fn half_a_character_is_replaced() {
    const HALF: &str = "'\u{1f600}'.slice(0, 1)";
    succeeds(&format!("return {HALF}"), "\u{fffd}").await;
    succeeds(&format!("console.log({HALF}, '\u{1f600}')"), "\u{fffd} \u{1f600}\n").await;
    succeeds(&format!("return [{HALF}]"), "[\"\u{fffd}\"]").await;
    succeeds(&format!("return await echo({{ n: {HALF} }})"), "{\"n\":\"\u{fffd}\"}").await;
    // This is no such escape.
    succeeds("return ['\\\\ud83d']", "[\"\\\\ud83d\"]").await;
    let execution = ran(&format!("throw new Error({HALF})")).await;
    assert!(
        matches!(&execution.outcome, ProgramEnd::Exception(text) if text.contains("Error: \u{fffd}")),
        "{execution:?}"
    );
}

async fn a_wrong_argument_throws() {
    let deep = "let deep = {}; for (let n = 0; n < 500; n++) deep = { deep };";
    for (code, message) in [
        ("await echo('x')", "TypeError: echo takes an object, not \"x\""),
        ("await add_one([1])", "TypeError: add_one takes an object, not [1]"),
        ("await echo(() => 1)", "TypeError: echo takes an object, not function"),
        ("await echo(new Date(0))", "TypeError: echo takes an object"),
        (&format!("{deep} await echo(deep)"), "RangeError: the arguments of echo are nested too deeply"),
        (
            &format!("{deep} return {{ type: 'text', text: '', _meta: deep }}"),
            "RangeError: what the program returned is nested too deeply",
        ),
    ] {
        let execution = ran(code).await;
        assert!(
            matches!(&execution.outcome, ProgramEnd::Exception(text) if text.starts_with(message)),
            "{code}: {execution:?}"
        );
    }
    succeeds("try { await echo('x') } catch { return await echo({ n: 1 }) }", "{\"n\":1}").await;
}

async fn a_result_does_not_wait_for_timers() {
    succeeds("setTimeout(() => console.log('late'), 1e9); return 'here'", "here").await;
    succeeds("setTimeout(() => console.log('soon'), 1)", "soon\n").await;
    // A timer without a delay comes after what promises have queued, and after answers.
    let forever = "let goes = true; const again = () => { if (goes) setTimeout(again, 0) }; again();";
    succeeds(&format!("{forever} await null; await echo({{ n: 1 }}); goes = false; return 'here'"), "here").await;
}

async fn limits_stop_a_program() {
    let short = Limits { time: Duration::from_millis(300), ..limits() };
    for code in [
        "console.log('here');\nwhile (true) {}",
        "console.log('here');\nawait null;\nfor (;;) {}",
        "console.log('here'); await wait({ n: 1 })",
        "console.log('here'); JSON.stringify(new Array(1e8))",
        "console.log('here'); await new Promise((done) => setTimeout(done, 1e9))",
    ] {
        let execution = limited(code, &short).await;
        assert!(matches!(execution.outcome, ProgramEnd::TimedOut(_)), "{code}: {execution:?}");
        assert!(text(&execution).starts_with("here\n\nexecution timed out after 0.3 s"), "{execution:?}");
    }
    let small = Limits { memory: 16 << 20, ..limits() };
    for code in [
        "const all = []; while (true) all.push('x'.repeat(1000))",
        "await null; const all = []; while (true) all.push([1, 2, 3])",
    ] {
        let execution = limited(code, &small).await;
        assert!(
            matches!(&execution.outcome, ProgramEnd::Exception(text) if text.contains("out of memory")),
            "{execution:?}"
        );
    }
    let execution = limited("function f() { return f() + 1 } f()", &limits()).await;
    assert!(matches!(&execution.outcome, ProgramEnd::Exception(text) if text.contains("call stack")), "{execution:?}");
    let quiet = Limits { output: 10, ..limits() };
    let execution = limited("for (let n = 0; n < 1e4; n++) console.log('1234567'); return 'end'", &quiet).await;
    assert_eq!(text(&execution), "1234567\n12\n[79990 more bytes of output are lost]|end");
    let narrow = Limits { message: 1000, ..limits() };
    let execution = limited("return 'x'.repeat(2000)", &narrow).await;
    assert!(matches!(&execution.outcome, ProgramEnd::Crashed(text) if text.contains("1000 bytes")), "{execution:?}");
}

async fn a_program_has_nothing_but_its_tools() {
    succeeds(
        "return ['require', 'process', 'fetch', 'std', 'os', 'Deno'].filter((name) => name in globalThis).length",
        "0",
    )
    .await;
    let execution = ran("return await import('fs')").await;
    assert!(matches!(execution.outcome, ProgramEnd::Exception(_)), "{execution:?}");
}

async fn a_fatal_call_ends_the_program() {
    let execution = ran("console.log('x'); try { await die({ n: 1 }) } catch { } return 1").await;
    assert_eq!(execution.outcome, ProgramEnd::Fatal("cannot connect to files".to_owned()));
    assert_eq!(text(&execution), "fatal execution error: x\n\ncannot connect to files");
}

async fn a_dropped_execution_kills_its_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    // The pipe ends with the last process that has it.
    let script = r#"exec 9> "$0"; echo '{"call":1,"tool":"wait","arguments":{}}'; /bin/sleep 1000 & wait"#;
    let args = ["-c", script, &pipe.display().to_string()].map(str::to_owned).to_vec();
    let server = Arc::new(Server::new());
    let here = Arc::clone(&server);
    let task = tokio::spawn(async move {
        let worker = Worker { program: "/bin/sh".into(), args };
        execute(&worker, "", &tools(), &limits(), |call| here.call(call)).await
    });
    let end = tokio::task::spawn_blocking(|| std::fs::read(pipe));
    server.called.notified().await;
    task.abort();
    assert!(task.await.is_err_and(|error| error.is_cancelled()));
    assert_eq!(server.open.load(Ordering::SeqCst), 0);
    assert_eq!(end.await.expect("it reads").expect("a pipe"), b"");
}

/// As if the process that started it was killed.
async fn a_worker_ends_with_its_input() {
    ends_with_its_input("for (;;) {}").await;
}

/// The engine does not look at its limits in there.
async fn a_loop_of_the_engine_ends_with_its_input() {
    ends_with_its_input("JSON.stringify(new Array(1e8))").await;
}

async fn ends_with_its_input(code: &str) {
    let Worker { program, args } = worker();
    let mut command = std::process::Command::new(program);
    let command = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let first = json!({ "code": code, "tools": [], "milliseconds": 30_000, "memory": 1 << 28 });
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(format!("{first}\n").as_bytes()).expect("it reads");
    drop(stdin);
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await.expect("no panic").expect("it ends");
    // Not at its limit of time, which it would report.
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

async fn a_worker_that_is_not_one_is_reported() {
    let execute = |program: &str| {
        let worker = Worker { program: program.into(), args: Vec::new() };
        async move { execute(&worker, "", &[] as &[Tool], &limits(), |_| async { Ok(json!({})) }).await }
    };
    assert!(
        execute("/no/such/program").await.is_err_and(|error| error.to_string().starts_with("cannot start /no/such"))
    );
    let ended = execute("false").await.expect("it starts");
    assert_eq!(ended.outcome, ProgramEnd::Crashed("the program ended with exit code 1".to_owned()));
    let description = definition(&tools(), 300).description;
    assert!(
        description.contains("declare function add_one(input: AddOneInput): Promise<AddOneOutput>;"),
        "{description}"
    );
}
