use std::{
    collections::HashSet,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

use parking_lot::Mutex;
use rehearse_llm::model::{Block, Media, Message, ToolCall, ToolResult};
use rusqlite::Connection;

use super::{ConversationSink, ConversationStore, ConversationSummary, FILE_NAME, StoreError};
use crate::{Event, EventSink, RunLabel};

/// Names the file for the processes that the tests start.
const FILE_VARIABLE: &str = "REHEARSE_TEST_CONVERSATIONS";
const WRITERS: usize = 4;
const MESSAGES: usize = 25;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(FILE_NAME);
    (folder, path)
}

fn call(id: &str, arguments: &str) -> Block {
    Block::ToolCall(ToolCall { id: id.into(), name: "read".into(), arguments: arguments.into() })
}

fn image(name: Option<&str>, mime_type: &str) -> Block {
    Block::Media(Media { mime_type: mime_type.into(), data: "aGk=".into(), name: name.map(str::to_owned) })
}

fn dialog() -> Vec<Message> {
    let thinking =
        |signature: Option<&str>| Block::Thinking { text: "hm".into(), signature: signature.map(str::to_owned) };
    let result = |id: &str, content, is_error| {
        Message::ToolResult(ToolResult { call_id: id.into(), tool: "read".into(), content, is_error })
    };
    vec![
        Message::User { content: vec![Block::text("Read it."), image(Some("a.pdf"), "application/pdf")] },
        Message::Assistant {
            content: vec![
                thinking(Some("s")),
                thinking(None),
                Block::text("Yes."),
                call("c1", r#"{"b":1,  "a":1.0}"#),
                call("c2", "{broken"),
            ],
        },
        result("c1", vec![Block::text("no"), image(None, "video/mp4")], true),
        result("c2", vec![Block::text("")], false),
        Message::Assistant { content: vec![Block::text("Done.")] },
    ]
}

/// Adds messages one after the other; the id of the last one.
fn append_all(store: &ConversationStore, label: Option<&str>, messages: &[Message]) -> String {
    let mut last: Option<String> = None;
    for message in messages {
        last = Some(store.append(last.as_deref(), label, message).expect("saved"));
    }
    last.expect("messages")
}

#[test]
fn a_conversation_is_the_same_after_it_was_saved() {
    let (_folder, path) = folder();
    let label = "subagent:coder:Ab12Cd34";
    let last = append_all(&ConversationStore::open(&path).expect("new"), Some(label), &dialog());
    let store = ConversationStore::read(&path).expect("there");
    let stored = store.load(&last).expect("there");
    assert_eq!(stored.iter().map(|stored| stored.message.clone()).collect::<Vec<_>>(), dialog());
    for (index, stored_message) in stored.iter().enumerate() {
        assert!(stored_message.id.len() == 6 && stored_message.id.chars().all(|char| char.is_ascii_alphanumeric()));
        assert_eq!(stored_message.parent_id.as_deref(), index.checked_sub(1).map(|before| &*stored[before].id));
        assert_eq!(stored_message.label.as_deref(), Some(label));
    }
    assert_eq!(store.load(&stored[1].id).expect("there").len(), 2, "a session resumes at any message");
    let listed = ConversationSummary::of_messages(&store.list().expect("readable"));
    let shown: Vec<_> = listed.iter().map(|it| (&*it.id, it.label.as_deref(), it.messages, &*it.text)).collect();
    assert_eq!(shown, [(&*last, Some(label), 5, "Read it.")]);
}

#[test]
fn a_conversation_with_two_ends_is_two_and_the_latest_is_first() {
    let (_folder, path) = folder();
    let store = ConversationStore::open(&path).expect("new");
    let root = store.append(None, None, &Message::user("root")).expect("saved");
    let ends = ["one", "two"].map(|text| store.append(Some(&root), None, &Message::user(text)).expect("saved"));
    let other = store.append(None, None, &Message::user("other")).expect("saved");
    let listed = ConversationSummary::of_messages(&store.list().expect("readable"));
    let shown: Vec<_> = listed.iter().map(|it| (&*it.id, it.messages, &*it.text)).collect();
    assert_eq!(shown, [(&*other, 1, "other"), (&*ends[1], 2, "root"), (&*ends[0], 2, "root")]);
}

#[cfg(unix)]
#[test]
fn a_file_is_for_its_owner_alone_and_is_not_waited_for_long() {
    let (folder, path) = folder();
    let store = ConversationStore::open(&path).expect("a file");
    append_all(&store, None, &dialog());
    use std::os::unix::fs::PermissionsExt;
    let mode = |entry: std::fs::DirEntry| entry.metadata().expect("a file").permissions().mode() & 0o777;
    let modes: Vec<_> = folder.path().read_dir().expect("a folder").map(|entry| mode(entry.expect("a file"))).collect();
    assert!(modes.len() > 1 && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
    for store in [store, ConversationStore::read(&path).expect("a file")] {
        let limit = store.connection.lock().pragma_query_value(None, "busy_timeout", |row| row.get::<_, i64>(0));
        assert_eq!(limit, Ok(1000));
    }
}

#[test]
fn what_is_not_there_is_an_error() {
    let (folder, path) = folder();
    assert!(matches!(ConversationStore::read(&path), Err(StoreError::NoFile(_))));
    assert!(!path.exists(), "reading creates nothing");
    let store = ConversationStore::open(&path).expect("new");
    let missing = format!("there is no message none00 in {}", path.display());
    assert_eq!(store.load("none00").expect_err("missing").to_string(), missing);
    let error = store.append(Some("none00"), None, &Message::user("x")).expect_err("missing");
    assert_eq!(error.to_string(), missing);
    assert_eq!(store.list().expect("readable"), []);
    let text = folder.path().join("text");
    std::fs::write(&text, "this is no database, but a text that is long enough to be one".repeat(20)).expect("written");
    let error = ConversationStore::open(&text).expect_err("a text").to_string();
    assert_eq!(error, format!("{}: file is not a database", text.display()));
    assert!(ConversationStore::open(folder.path()).is_err());
}

/// Both forms that cpe has had, as its programs write them.
#[test]
fn files_of_cpe_are_read_and_continued() {
    for (column, mark, label) in [
        ("title TEXT", "'subagent:coder:12345678'", "subagent:coder:12345678"),
        ("is_subagent BOOLEAN NOT NULL DEFAULT 0", "1", "subagent"),
    ] {
        let (_folder, path) = folder();
        let connection = Connection::open(&path).expect("new");
        let name = column.split(' ').next().expect("a name");
        let sql = format!(
            "CREATE TABLE messages (id TEXT PRIMARY KEY, parent_id TEXT REFERENCES messages(id), {column}, role TEXT NOT NULL,
               tool_result_error BOOLEAN NOT NULL DEFAULT 0, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);
             CREATE TABLE blocks (id TEXT, message_id TEXT NOT NULL REFERENCES messages(id), block_type TEXT NOT NULL,
               modality_type INTEGER NOT NULL, mime_type TEXT NOT NULL, content TEXT NOT NULL, extra_fields TEXT,
               sequence_order INTEGER NOT NULL, created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
               PRIMARY KEY (message_id, sequence_order));
             INSERT INTO messages (id, role, {name}) VALUES ('aaaaaa', 'assistant', {mark});
             INSERT INTO blocks (id, message_id, block_type, modality_type, mime_type, content, sequence_order) VALUES
               ('c', 'aaaaaa', 'tool_call', 0, 'text/plain', '{{\"name\":\"ls\",\"parameters\":{{\"a\":1}}}}', 0);"
        );
        connection.execute_batch(&sql).expect("valid");
        drop(connection);
        let store = ConversationStore::open(&path).expect("one of cpe");
        let content = vec![Block::text("b")];
        let result = ToolResult { call_id: "c".into(), tool: "ls".into(), content, is_error: false };
        let last = store.append(Some("aaaaaa"), Some("subagent:coder:12345678"), &Message::ToolResult(result.clone()));
        let stored = store.load(&last.expect("saved")).expect("there");
        let called = ToolCall { id: "c".into(), name: "ls".into(), arguments: r#"{"a":1}"#.into() };
        assert_eq!(stored[0].message, Message::Assistant { content: vec![Block::ToolCall(called)] });
        assert_eq!(stored[1].message, Message::ToolResult(result));
        assert!(stored.iter().all(|stored| stored.label.as_deref() == Some(label)), "{stored:?}");
    }
}

fn expect_whole(path: &Path, writers: usize) {
    let store = ConversationStore::read(path).expect("there");
    let listed = ConversationSummary::of_messages(&store.list().expect("readable"));
    assert_eq!(listed.iter().map(|it| it.messages).collect::<Vec<_>>(), vec![MESSAGES; writers]);
    let labels: HashSet<_> = listed.iter().map(|it| it.label.clone()).collect();
    assert_eq!(labels.len(), writers);
    for conversation in listed {
        let texts: Vec<_> = store.load(&conversation.id).expect("there").iter().map(|it| it.message.text()).collect();
        assert_eq!(texts, (0..MESSAGES).map(|number| number.to_string()).collect::<Vec<_>>());
    }
}

fn write_many(path: &Path, label: &str) {
    let messages: Vec<_> = (0..MESSAGES).map(|number| Message::user(number.to_string())).collect();
    append_all(&ConversationStore::open(path).expect("opens"), Some(label), &messages);
}

/// The file of a process that a test has started.
fn file_of_child() -> Option<PathBuf> {
    std::env::var_os(FILE_VARIABLE).map(PathBuf::from)
}

/// Starts this test program once more, to run the test `name`, which finds a file.
fn child(name: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let name = format!("store::tests::{name}");
    command.args(["--exact", &name, "--nocapture"]).env(FILE_VARIABLE, path).stdout(Stdio::piped());
    command
}

#[test]
fn processes_lose_nothing() {
    if let Some(path) = file_of_child() {
        return write_many(&path, &std::process::id().to_string());
    }
    let (_folder, path) = folder();
    let children: Vec<_> =
        (0..WRITERS).map(|_| child("processes_lose_nothing", &path).spawn().expect("starts")).collect();
    for mut child in children {
        assert!(child.wait().expect("ends").success());
    }
    expect_whole(&path, WRITERS);
}

#[test]
fn a_killed_process_leaves_what_it_has_saved() {
    if let Some(path) = file_of_child() {
        return write_without_end(&path);
    }
    let (_folder, path) = folder();
    let mut writer = child("a_killed_process_leaves_what_it_has_saved", &path).spawn().expect("starts");
    let lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines();
    let saved: Vec<_> = lines.filter_map(|line| Some(line.ok()?.strip_prefix("saved ")?.to_owned())).take(20).collect();
    writer.kill().expect("runs");
    writer.wait().expect("ends");
    let store = ConversationStore::open(&path).expect("there");
    assert_eq!(store.load(&saved[19]).expect("there").len(), 20);
    let all = store.list().expect("readable");
    assert_eq!(store.load(&all.last().expect("some").id).expect("whole").len(), all.len());
    store.append(Some(&saved[19]), None, &Message::user("on")).expect("goes on");
}

fn write_without_end(path: &Path) {
    let store = ConversationStore::open(path).expect("opens");
    let mut last: Option<String> = None;
    loop {
        let id = store.append(last.as_deref(), None, &Message::user("x")).expect("saved");
        // One line in one write, also when the harness has begun a line.
        if std::io::stdout().write_all(format!("\nsaved {id}\n").as_bytes()).is_err() {
            return;
        }
        last = Some(id);
    }
}

fn label(run_id: &str) -> RunLabel {
    RunLabel { agent: "coder".into(), run_id: run_id.into() }
}

#[tokio::test]
async fn each_run_is_a_conversation_even_if_two_have_the_same_id() {
    let (_folder, path) = folder();
    let store = ConversationStore::open(&path).expect("new");
    let sink = ConversationSink::of_subagent(store, |error| panic!("{error}"));
    let runs = [label("same"), label("same"), label("other")];
    for text in ["1", "2"] {
        for run in &runs {
            sink.emit(run, Event::Started).await.expect("taken");
            sink.emit(run, Event::Message(&Message::user(text))).await.expect("taken");
        }
    }
    let store = ConversationStore::read(&path).expect("there");
    let listed = ConversationSummary::of_messages(&store.list().expect("readable"));
    let shown: Vec<_> = listed.iter().rev().map(|it| (it.label.as_deref().unwrap_or_default(), it.messages)).collect();
    assert_eq!(shown, [("subagent:coder:same", 2), ("subagent:coder:same", 2), ("subagent:coder:other", 2)]);
}

#[tokio::test]
async fn a_session_goes_on_where_it_was_left() {
    let (_folder, path) = folder();
    let open = || ConversationStore::open(&path).expect("opens");
    let first = ConversationSink::of_session(open(), None, |error| panic!("{error}"));
    first.emit(&label("a"), Event::Message(&Message::user("1"))).await.expect("taken");
    let second = ConversationSink::of_session(open(), first.last(), |error| panic!("{error}"));
    for run in ["b", "c"] {
        second.emit(&label(run), Event::Message(&Message::user(run))).await.expect("taken");
    }
    let texts = open().load(&second.last().expect("saved")).expect("there").into_iter();
    let texts: Vec<_> = texts.map(|stored| (stored.message.text(), stored.label)).collect();
    assert_eq!(texts, [("1".into(), None), ("b".into(), None), ("c".into(), None)]);
}

#[tokio::test]
async fn a_message_that_cannot_be_saved_is_reported_and_the_run_goes_on() {
    let (_folder, path) = folder();
    let errors = Arc::new(Mutex::new(Vec::new()));
    let reported = errors.clone();
    let store = ConversationStore::open(&path).expect("new");
    let sink = ConversationSink::of_session(store, Some("none00".into()), move |error| {
        reported.lock().push(error.to_string());
    });
    assert_eq!(sink.emit(&label("a"), Event::Message(&Message::user("1"))).await, Ok(()));
    assert_eq!(*errors.lock(), [format!("there is no message none00 in {}", path.display())]);
}
