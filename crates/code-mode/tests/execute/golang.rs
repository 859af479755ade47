//! Programs in Go. They run if `REHEARSE_GO` names the `go` to use.

use std::time::Duration;

use rehearse_code_mode::{
    Execution, Limits, ProgramEnd,
    go::{Toolchain, definition, execute},
};

use crate::support::{Server, Test, is_success, limits, text, tools};

pub(crate) const TESTS: &[Test] = &[
    ("go_calls_tools_and_returns_content", || Box::pin(go_calls_tools_and_returns_content())),
    ("go_says_how_a_program_ended", || Box::pin(go_says_how_a_program_ended())),
];

pub(crate) fn program() -> Option<String> {
    std::env::var("REHEARSE_GO").ok()
}

async fn toolchain() -> Toolchain {
    Toolchain::find(&program().unwrap_or_default()).await.expect("go")
}

async fn ran(imports: &[&str], body: &str, limits: &Limits) -> Execution {
    let imports: String = imports.iter().map(|name| format!("\t{name:?}\n")).collect();
    let code = format!(
        "package main\n\nimport (\n\t\"context\"\n\t\"github.com/modelcontextprotocol/go-sdk/mcp\"\n{imports})\n\n\
         func Run(ctx context.Context) ([]mcp.Content, error) {{\n{body}\n}}\n"
    );
    let (toolchain, server) = (toolchain().await, Server::new());
    let folder = tempfile::tempdir().expect("a folder");
    execute(&toolchain, folder.path(), &code, &tools(), limits, |call| server.call(call)).await.expect("it starts")
}

async fn go_calls_tools_and_returns_content() {
    let body = r#"
        fmt.Println("printed")
        met := make(chan string)
        for range 2 {
            go func() { text, _ := Both(ctx, BothInput{N: 1}); met <- text }()
        }
        next, err := AddOne(ctx, AddOneInput{N: 41})
        if err != nil { return nil, err }
        _, failed := Fail(ctx, FailInput{})
        text := fmt.Sprint(next.N, <-met, <-met, failed)
        return []mcp.Content{&mcp.TextContent{Text: text}, &mcp.ImageContent{Data: []byte{0}, MIMEType: "image/png"}}, nil"#;
    let execution = ran(&["fmt"], body, &limits()).await;
    assert!(is_success(&execution), "{execution:?}");
    let image = r#"{"data":"AA==","mimeType":"image/png","type":"image"}"#;
    assert_eq!(text(&execution), format!("printed\n|42metmetIt is broken.|{image}"));
    let description = definition(&toolchain().await, &tools(), 300).description;
    assert!(description.contains("func AddOne(ctx context.Context, input AddOneInput) (AddOneOutput, error)"));
}

async fn go_says_how_a_program_ended() {
    let execution = ran(&["errors"], "println(1); return nil, errors.New(\"not today\")", &limits()).await;
    assert_eq!(text(&execution), "1\n\nexecution error: not today");
    let execution = ran(&["os"], "return nil, missing", &limits()).await;
    let ProgramEnd::CompileError(message) = &execution.outcome else { panic!("{execution:?}") };
    assert!(
        message.contains("./run.go:6:2: \"os\" imported and not used") && message.contains("undefined: missing"),
        "{message}"
    );
    let execution = ran(&[], "panic(\"no way\")", &limits()).await;
    assert_eq!(execution.outcome, ProgramEnd::Crashed("the program ended with exit code 2".to_owned()));
    assert!(execution.output.contains("panic: no way") && execution.output.contains("run.go:9"), "{execution:?}");
    let execution = ran(&[], "_, err := Die(ctx, DieInput{}); return nil, err", &limits()).await;
    assert_eq!(execution.outcome, ProgramEnd::Fatal("cannot connect to files".to_owned()));
    let short = Limits { time: Duration::from_millis(300), grace: Duration::from_millis(300), ..limits() };
    for body in ["println(1); for {}", "println(1); _, err := Wait(ctx, WaitInput{}); return nil, err"] {
        let execution = ran(&[], body, &short).await;
        assert_eq!(text(&execution), "1\n\nexecution timed out after 0.3 s", "{execution:?}");
    }
    let small = Limits { memory: 64 << 20, ..limits() };
    let execution = ran(&[], "all := [][]byte{}; for { all = append(all, make([]byte, 1<<20)) }", &small).await;
    assert!(execution.output.contains("ran out of memory"), "{execution:?}");
}
