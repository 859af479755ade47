//! What must hold on every system. Nothing here needs a shell, so that it also runs on Windows.

use std::{
    fs,
    io::{BufRead, BufReader, copy, sink},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::{Duration, Instant},
};

const REHEARSE: &str = env!("CARGO_BIN_EXE_rehearse");
/// Longer than any step takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(3 * 60);

fn rehearse(words: &[&str]) -> Command {
    let mut command = Command::new(REHEARSE);
    command.args(words).stdin(Stdio::null());
    command
}

fn texts(output: Output) -> (String, String) {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (text(output.stdout), text(output.stderr))
}

/// What a command that succeeds prints.
fn printed(mut command: Command) -> String {
    let output = command.output().expect("starts");
    let status = output.status;
    let (stdout, stderr) = texts(output);
    assert!(status.success(), "{status}: {stdout}{stderr}");
    stdout
}

/// The address that a process prints on its standard error.
fn address(process: &mut Child) -> String {
    let mut stderr = BufReader::new(process.stderr.take().expect("piped"));
    let mut line = String::new();
    loop {
        line.clear();
        assert!(stderr.read_line(&mut line).expect("UTF-8") > 0, "no address");
        if let Some((_, rest)) = line.split_once("http://") {
            let end = rest.find(|c: char| !(c.is_ascii_digit() || ".:".contains(c))).unwrap_or(rest.len());
            // It must not wait for a reader.
            std::thread::spawn(move || copy(&mut stderr, &mut sink()));
            return rest[..end].to_owned();
        }
    }
}

/// A script beside a program that Windows runs with `cmd.exe`, and other systems with a shell. It starts a mock with its
/// own arguments.
fn write_program(folder: &Path) {
    let (name, text) = match cfg!(windows) {
        true => ("mcp-things.cmd", format!("@\"{REHEARSE}\" mock %*\r\n")),
        false => ("mcp-things", format!("#!/bin/sh\nexec '{REHEARSE}' mock \"$@\"\n")),
    };
    let path = folder.join(name);
    fs::write(&path, text).expect("writes");
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("changes");
}

/// `PATH` with the folder first.
fn path_with(folder: &Path) -> std::ffi::OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    std::env::join_paths(folders).expect("no separators")
}

#[test]
fn a_tool_is_called_over_every_transport() {
    let mut mock = rehearse(&["mock", "basic", "--listen", ":0"]).stderr(Stdio::piped()).spawn().expect("starts");
    let address = address(&mut mock);
    let urls = [
        ["--http".to_owned(), format!("http://{address}/mcp")],
        ["--sse".to_owned(), format!("http://{address}/sse")],
        ["--ws".to_owned(), format!("ws://{address}/ws")],
    ];
    for [option, url] in urls {
        let mut command = rehearse(&["mcp", "call-tool", "echo", "text=naïve 世界"]);
        command.args([&option, &url]);
        assert_eq!(printed(command), "naïve 世界\n", "{option}");
    }
    mock.kill().expect("is killed");
    mock.wait().expect("has ended");
    let command = rehearse(&["mcp", "call-tool", "echo", "text=naïve 世界", "--", REHEARSE, "mock", "basic"]);
    assert_eq!(printed(command), "naïve 世界\n");
}

#[test]
fn a_killed_program_leaves_no_server_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut recorder = rehearse(&["record", "--trace-file"]);
    recorder.arg(folder.path().join("trace.jsonl")).args(["--", REHEARSE, "mock", "basic", "--listen", ":0"]);
    let recorder = recorder.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut recorder = recorder.expect("starts");
    let address = address(&mut recorder);
    TcpStream::connect(&address).expect("the server listens");
    recorder.kill().expect("is killed");
    recorder.wait().expect("has ended");
    let deadline = Instant::now() + TIMEOUT;
    while TcpStream::connect(&address).is_ok() {
        assert!(Instant::now() < deadline, "the server still listens");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_is_found_by_its_name_and_its_arguments_are_only_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    write_program(folder.path());
    let call = |argument: &str| {
        let mut command = rehearse(&["mcp", "call-tool", "echo", "text=hi", "--", "mcp-things", "basic", argument]);
        command.env("PATH", path_with(folder.path())).current_dir(folder.path());
        command
    };
    assert_eq!(printed(call("--seed=1")), "hi\n");
    for argument in
        ["&echo>caught", "\"&echo>caught", "%PATH%|echo>caught", "^&echo>caught", "$(echo>caught)", "`echo>caught`"]
    {
        // Either it is no option of the mock, or it cannot be passed on at all.
        let (stdout, stderr) = texts(call(argument).output().expect("starts"));
        assert!(stdout.is_empty() && stderr.contains("error: "), "{argument}: {stdout}{stderr}");
        assert!(!folder.path().join("caught").exists(), "{argument}");
    }
}

#[test]
fn lines_may_end_as_on_windows_and_what_is_printed_does_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = include_str!("../../mock-servers/basic.yaml").replace('\r', "");
    let path = folder.path().join("crlf.yaml");
    fs::write(&path, format!("\u{feff}{}", script.replace('\n', "\r\n"))).expect("writes");
    let mut command = rehearse(&["mcp", "list-tools", "--", REHEARSE, "mock"]);
    command.arg(&path);
    let listed = printed(command);
    let expected = printed(rehearse(&["mcp", "list-tools", "--", REHEARSE, "mock", "basic"]));
    assert_eq!(listed, expected);
    assert!(listed.ends_with('\n') && !listed.contains('\r'), "{listed:?}");
}
