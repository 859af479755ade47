//! `rehearse mcp` with a hundred servers at once, over every transport.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Map, json};

use crate::{
    mcp::{json_of, listening, mcp},
    mcp_faults::assert_no_processes_in,
    rehearse::Rehearse,
};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The number of open connections of a process.
fn connections(process: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{process}/fd")).expect("runs").flatten();
    let is_socket =
        |file: &fs::DirEntry| fs::read_link(file.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"));
    files.filter(is_socket).count()
}

#[test]
fn a_hundred_servers_are_listed_and_disconnected() {
    let (server, address) = listening("tools.yaml");
    let before = connections(server.id());
    let servers = (0..100).map(|number| {
        let config = match number % 4 {
            0 => json!({ "type": "stdio", "command": Rehearse::BINARY, "args": ["mock", "tools.yaml"] }),
            1 => json!({ "type": "http", "url": format!("http://{address}/mcp") }),
            2 => json!({ "type": "sse", "url": format!("http://{address}/sse") }),
            _ => json!({ "type": "ws", "url": format!("ws://{address}/ws") }),
        };
        (format!("s{number:02}"), config)
    });
    let config = json!({ "mcpServers": servers.collect::<Map<_, _>>() }).to_string();
    let story = || mcp(["list-tools", "--protocol", "2025-11-25"]).file(".mcp.json", &config);
    let listed = json_of(story(), 0);
    let servers = listed["servers"].as_array().expect("a list");
    for (number, server) in servers.iter().enumerate() {
        assert_eq!((&server["server"], &server["total"]), (&json!(format!("s{number:02}")), &json!(9)), "{server}");
    }
    assert_eq!((servers.len(), &listed["unreachable"]), (100, &json!([])), "{listed}");

    let run = story().args(["--trace"]).run().code(0);
    assert_no_processes_in(&run.path(""));
    let times = |what: &str| run.stderr().lines().filter(|line| line.contains(what)).count();
    assert_eq!((times("\"method\":\"initialize\""), times("HTTP DELETE /mcp")), (100, 25));
    assert_eq!((times("HTTP GET /sse"), times("HTTP GET /ws")), (25, 25));
    let at = |line: &str| line.split_once(" ms ").and_then(|(time, _)| time.trim().parse::<f64>().ok());
    let at: Vec<_> = run.stderr().lines().filter_map(at).collect();
    assert!(at.len() > 100 * 3 && at.is_sorted(), "lines of all servers are in the order of time: {at:?}");
    // The server notices it later.
    let deadline = Instant::now() + TIMEOUT;
    while connections(server.id()) > before {
        assert!(Instant::now() < deadline, "{} connections are left of {before}", connections(server.id()));
        thread::yield_now();
    }
}
