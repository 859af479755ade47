//! Runs every `curl` of `docs/admin.md`, and compares the responses with the page.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::rehearse::{Rehearse, request};

const PAGE: &str = include_str!("../../docs/admin.md");

/// A block of code: its language and its text.
fn blocks() -> Vec<(&'static str, &'static str)> {
    let fenced = PAGE.split("\n```").skip(1).step_by(2);
    fenced.map(|block| block.split_once('\n').expect("a block has a first line")).collect()
}

/// The commands of a block; continuation lines are indented.
fn commands(block: &str) -> Vec<String> {
    let mut commands = Vec::<String>::new();
    for line in block.lines() {
        match commands.last_mut().filter(|_| line.starts_with(' ')) {
            Some(command) => *command += &format!("\n{line}"),
            None => commands.push(line.to_owned()),
        }
    }
    commands
}

/// The words of a command as a shell reads them; the text after `#` is one word.
fn words(line: &str, variables: &BTreeMap<String, String>) -> Vec<String> {
    let (mut words, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let (mut word, mut quote) = (String::new(), None);
        let mut length = rest.len();
        let mut letters = rest.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            match (quote, letter) {
                (None, ' ' | '\n' | '\\') => {
                    length = at;
                    break;
                }
                (None, '\'' | '"') => quote = Some(letter),
                (Some(open), letter) if letter == open => quote = None,
                (None | Some('"'), '$') => {
                    let mut name = String::new();
                    while let Some((_, letter)) = letters.next_if(|(_, it)| it.is_ascii_alphanumeric() || *it == '_') {
                        name.push(letter);
                    }
                    word += variables.get(&name).unwrap_or_else(|| panic!("{name} is set"));
                }
                (_, letter) => word.push(letter),
            }
        }
        assert_eq!(quote, None, "{line}");
        if !word.is_empty() || first == '\'' || first == '"' {
            words.push(word);
        }
        rest = rest[length..].trim_start_matches([' ', '\n', '\\']);
    }
    words
}

/// A request of the page, and its expected status.
#[derive(Default)]
struct Curl {
    method: Option<String>,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<String>,
    status: u16,
}

impl Curl {
    fn read(words: Vec<String>) -> Curl {
        let (mut curl, mut words) = (Curl::default(), words.into_iter().skip(1));
        while let Some(word) = words.next() {
            let mut value = || words.next().expect("a value");
            match word.as_str() {
                "-X" => curl.method = Some(value()),
                "-H" => curl.headers.extend(value().split_once(": ").map(|(name, it)| (name.into(), it.into()))),
                "-d" => curl.body = Some(value()),
                "#" => curl.status = value().parse().expect("a status"),
                url => curl.url = url.to_owned(),
            }
        }
        curl
    }

    fn method(&self) -> &str {
        self.method.as_deref().unwrap_or(if self.body.is_some() { "POST" } else { "GET" })
    }

    /// Sends the request and returns the status and the body.
    fn send(&self) -> (u16, String) {
        let (address, path) = self.url.strip_prefix("http://").and_then(|url| url.split_once('/')).expect("a URL");
        let mut headers: Vec<_> = self.headers.iter().map(|(name, it)| (name.as_str(), it.as_str())).collect();
        headers.push(("Host", address));
        let response =
            request(self.method(), address, &format!("/{path}"), &headers, self.body.as_deref().unwrap_or_default());
        let (head, body) = response.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status"), body.to_owned())
    }
}

/// Whether the response contains everything that the page shows.
fn contains(shown: &Json, received: &Json) -> bool {
    match (shown, received) {
        (Json::Object(shown), Json::Object(received)) => {
            shown.iter().all(|(name, value)| received.get(name).is_some_and(|it| contains(value, it)))
        }
        (Json::Array(shown), Json::Array(received)) => {
            shown.len() <= received.len()
                && shown.iter().zip(received).all(|(shown, received)| contains(shown, received))
        }
        (shown, received) => shown == received,
    }
}

#[test]
fn the_examples_of_the_page_are_correct() {
    let (_, script) = blocks().into_iter().find(|(language, _)| *language == "yaml").expect("a script");
    let args = ["mock", "shop.yaml", "--listen", ":0", "--admin", "--check", "--format", "json"];
    let mut mock = Rehearse::new().file("shop.yaml", script).args(args).start();
    let line: Json = serde_json::from_str(&mock.stdout_line("{")).expect("JSON");
    let text = |pointer: &str| line.pointer(pointer).and_then(Json::as_str).expect("a text").to_owned();
    let admin = text("/admin/url");
    let mut variables = BTreeMap::from([
        ("REHEARSE_URL".to_owned(), text("/http")),
        ("REHEARSE_ADMIN_URL".to_owned(), admin.clone()),
        ("REHEARSE_ADMIN_TOKEN".to_owned(), text("/admin/token")),
    ]);
    let (mut asked, mut index, mut received) = (Vec::new(), Json::Null, Json::Null);
    for (language, block) in blocks() {
        match language {
            "yaml" => {}
            "json" => {
                let shown: Json = serde_json::from_str(block).unwrap_or_else(|error| panic!("{error}: {block}"));
                assert!(contains(&shown, &received), "the page shows\n{shown:#}\nand this received:\n{received:#}");
            }
            "sh" => {
                for command in commands(block) {
                    if let Some((name, value)) = command.split_once('=').filter(|_| !command.starts_with("curl ")) {
                        variables.insert(name.to_owned(), words(value, &variables).concat());
                        continue;
                    }
                    let curl = Curl::read(words(&command, &variables));
                    let (status, body) = curl.send();
                    assert_eq!(status, curl.status, "{command}\n{body}");
                    assert_eq!(body.is_empty(), status == 204, "{command}\n{body}");
                    received = serde_json::from_str(&body).unwrap_or_default();
                    if curl.url == format!("{admin}/") {
                        index = received.clone();
                    }
                    asked.push((curl.method().to_owned(), curl.url));
                }
            }
            other => panic!("nothing runs a block of {other:?}"),
        }
    }
    for endpoint in index["endpoints"].as_array().expect("a list") {
        let (method, path) = endpoint["request"].as_str().and_then(|it| it.split_once(' ')).expect("a request");
        let url = format!("{admin}{}", path.replace("{id}", "r1"));
        assert!(asked.contains(&(method.to_owned(), url)), "the page has an example for {method} {path}");
    }
    mock.signal("TERM");
    mock.end().code(0);
}
