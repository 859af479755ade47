//! A secret that is typed in any way appears in nothing that a command prints or writes.

use std::path::Path;

use crate::{
    mcp::listening,
    rehearse::{Rehearse, Running},
};

const SECRET: &str = "Zq7kd83hfGeheim42";
const REPORTS: [&str; 6] = ["html", "xml", "md", "json", "sarif", "txt"];

/// How a server is named with the secret: the words for most commands, and one word for `diff`.
struct Way {
    name: &'static str,
    words: Vec<String>,
    word: Option<String>,
}

fn ways(address: &str) -> Vec<Way> {
    let server = format!("exec '{}' mock basic", Rehearse::BINARY);
    let quoted = format!("sh -c \"{server}\" x --token {SECRET}");
    let url = format!("http://ada:{SECRET}@{address}/mcp?api_key={SECRET}");
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let header = format!("Authorization: Bearer {SECRET}");
    vec![
        Way { name: "argument", words: words(&["--stdio", &quoted]), word: Some(quoted.clone()) },
        Way {
            name: "env",
            words: words(&[
                "--stdio",
                &format!("sh -c \"echo key $API_TOKEN >&2; {server}\""),
                "--env",
                &format!("API_TOKEN={SECRET}"),
            ]),
            word: None,
        },
        Way { name: "url", words: words(&["--http", &url]), word: Some(url.clone()) },
        Way {
            name: "header",
            words: words(&["--http", &format!("http://{address}/mcp"), "--header", &header]),
            word: None,
        },
        Way { name: "config", words: words(&["--mcp-config", "config.json"]), word: None },
    ]
}

fn config() -> String {
    let args =
        ["-c", &format!("echo key $API_TOKEN >&2; exec '{}' mock basic", Rehearse::BINARY), "x", "--token", SECRET];
    serde_json::json!({ "mcpServers": { "s": { "command": "sh", "args": args, "env": { "API_TOKEN": SECRET } } } })
        .to_string()
}

fn commands(way: &Way) -> Vec<(&'static str, Vec<String>)> {
    let with = |first: &[&str], last: &[&str]| {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        [own(first), way.words.clone(), own(last)].concat()
    };
    let mut all = vec![
        ("check", with(&["check", "--only", "tools"], &["--verbose"])),
        ("bench", with(&["bench", "call", "--list-tools", "--requests", "9", "--warmup", "0s"], &[])),
        ("fuzz", with(&["fuzz", "--budget", "1s", "--cases", "3", "--allow-tool", "*"], &["--write", "written"])),
        ("mcp", with(&["mcp", "list-tools"], &["--trace", "--trace-file", "trace.jsonl"])),
        ("servers", with(&["mcp", "list-servers", "--format", "json"], &[])),
        ("surface", with(&["surface"], &[])),
        ("init", with(&["init", "written"], &[])),
    ];
    match way.name {
        "argument" => {
            let words = [
                "check",
                "client",
                "--act",
                "clean",
                "--verbose",
                "--",
                Rehearse::BINARY,
                "mcp",
                "list-tools",
                "--http",
                "{url}",
            ];
            let words =
                words.into_iter().map(str::to_owned).chain(["--header".to_owned(), format!("X-Token: {SECRET}")]);
            all.push(("check client", words.collect()));
            all.push(("validate-config", with(&["validate-config", "--connect"], &["server.json"])));
            let command =
                ["record", "--trace-file", "trace.jsonl", "--", Rehearse::BINARY, "mock", "basic", "--token", SECRET];
            all.push(("record", command.map(str::to_owned).to_vec()));
        }
        "config" => {
            all.push(("validate-config", ["validate-config", "--connect", "config.json"].map(str::to_owned).to_vec()))
        }
        _ => {}
    }
    let diff = |old: &str| {
        ["diff".to_owned(), old.to_owned(), way.word.clone().unwrap_or_default(), "--verbose".to_owned()].to_vec()
    };
    if way.word.is_some() {
        all.extend([("diff", diff("surface.json")), ("diff of two", diff(way.word.as_deref().unwrap_or_default()))]);
    }
    all
}

fn assert_hidden(what: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    assert!(!text.contains(SECRET), "{what}: {}", text.lines().find(|line| line.contains(SECRET)).unwrap_or_default());
}

fn assert_hidden_in(what: &str, folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => assert_hidden_in(what, &path),
            false if path.ends_with("config.json") => {}
            false => assert_hidden(&format!("{what}: {}", path.display()), &std::fs::read(&path).expect("reads")),
        }
    }
}

#[test]
fn a_secret_that_is_typed_is_in_no_output_and_no_report() {
    let (_running, url): (Running, String) = listening("basic");
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let surface = Rehearse::new().args(["surface", "--http", &format!("http://{address}/mcp")]).run().code(0);
    for way in ways(&address) {
        for (command, words) in commands(&way) {
            let has_reports = ["check", "check client", "bench", "fuzz", "diff", "diff of two"].contains(&command);
            let reports = REPORTS.iter().filter(|it| has_reports && **it != "txt");
            let reports = reports.filter(|it| **it != "sarif" || command.starts_with("diff"));
            let reports = reports.flat_map(|it| ["--report".to_owned(), format!("report.{it}")]);
            let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
            let mut words = words.clone();
            words.splice(at..at, reports);
            let story = Rehearse::new().file("config.json", &config()).file("surface.json", surface.stdout_text());
            let run = story.args(words).run();
            let what = format!("{command}, {}", way.name);
            assert_hidden(&what, run.stdout_text().as_bytes());
            assert_hidden(&what, run.stderr().as_bytes());
            assert_hidden_in(&what, &run.path(""));
            assert!(!has_reports || run.path("report.html").is_file(), "{what}: {}", run.stderr());
        }
    }
}
