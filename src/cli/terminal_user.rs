//! The user at the terminal, who approves calls and answers server requests.
//!
//! Only one conversation runs at a time: it holds the keyboard until the last answer, while the REPL waits.

mod form;
mod keyboard;
mod line_event;
mod plain_input;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use self::form::Form;
pub(super) use self::keyboard::{Editor, Keyboard, KeyboardGuard, PlainHighlighter, is_coloured};
pub(super) use self::line_event::LineEvent;
use super::style::{self, BAD, DIM, STRONG, printable};
use rehearse_client::{Answer, CallOptions, Content, Failure, InputHandler, InputKind, InputRequest};
use rehearse_hub::{ApprovalDecision, ApprovalMode, ApprovalRequest, Approver};
use rehearse_protocol::RpcError;
use rehearse_report::text::printable_lines;

/// The error code for a rejected request (2025-11-25, Sampling: Error Handling).
const REJECTED: i64 = -1;
/// The maximum time that the user may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
/// The minimum interval of timeout checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The user at the terminal. Clones are the same user.
#[derive(Clone)]
pub(super) struct TerminalUser(Arc<Inner>);

struct Inner {
    keyboard: Keyboard,
    /// The only root, if the user shares it.
    folder: PathBuf,
    /// Whether the user shares the folder, by server.
    root_consent: Mutex<HashMap<String, bool>>,
    clock: Mutex<AnswerClock>,
}

/// The total time of all conversations.
#[derive(Default)]
struct AnswerClock {
    total: Duration,
    /// The number of open conversations, including waiting ones.
    open: usize,
    since: Option<Instant>,
}

/// A conversation; its time counts until it is dropped.
struct Conversation<'p> {
    keyboard: KeyboardGuard,
    _timer: ConversationTimer<'p>,
}

struct ConversationTimer<'p>(&'p TerminalUser);

impl Drop for ConversationTimer<'_> {
    fn drop(&mut self) {
        let mut clock = self.0.0.clock.lock();
        clock.open -= 1;
        if clock.open == 0
            && let Some(since) = clock.since.take()
        {
            clock.total += since.elapsed();
        }
    }
}

/// How to approve calls that the config does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ApprovalChoice {
    /// Ask on the terminal; deny without one
    Ask,
    /// Allow every call
    Always,
    /// Deny every call
    Never,
}

impl ApprovalChoice {
    pub(super) fn approval(self, person: Option<&TerminalUser>) -> ApprovalMode {
        match (self, person) {
            (ApprovalChoice::Always, _) => ApprovalMode::AllowAll,
            (ApprovalChoice::Ask, Some(person)) => ApprovalMode::Ask(person.approver()),
            (ApprovalChoice::Ask, None) => ApprovalMode::NoApprover,
            (ApprovalChoice::Never, _) => ApprovalMode::DeniedBySetting("--approve never"),
        }
    }
}

impl TerminalUser {
    pub(super) fn new(keyboard: Keyboard, folder: PathBuf) -> TerminalUser {
        let (root_consent, clock) = (Mutex::default(), Mutex::default());
        TerminalUser(Arc::new(Inner { keyboard, folder, root_consent, clock }))
    }

    /// The user in the current folder; `None` without a terminal.
    pub(super) fn detect() -> Option<TerminalUser> {
        Some(TerminalUser::new(Keyboard::detect()?, std::env::current_dir().unwrap_or_default()))
    }

    pub(super) fn keyboard(&self) -> &Keyboard {
        &self.0.keyboard
    }

    /// Makes a call with a timeout that excludes the time of conversations with the user.
    ///
    /// # Errors
    /// The error of the call; [`Failure::Timeout`] after the limit.
    pub(super) async fn with_timeout<T, E: From<Failure>>(
        person: Option<&TerminalUser>,
        limit: Duration,
        options: CallOptions,
        call: impl AsyncFnOnce(CallOptions) -> Result<T, E>,
    ) -> Result<T, E> {
        let Some(person) = person else {
            return call(CallOptions { timeout: Some(limit), ..options }).await;
        };
        let cancel = options.cancel.as_ref().map(CancellationToken::child_token).unwrap_or_default();
        let (started, asked) = (Instant::now(), person.conversation_time());
        let options = CallOptions {
            timeout: Some(limit.saturating_add(ANSWER_TIMEOUT)),
            cancel: Some(cancel.clone()),
            ..options
        };
        let mut calling = Box::pin(call(options));
        loop {
            let spent = started.elapsed().saturating_sub(person.conversation_time().saturating_sub(asked));
            let left = limit.saturating_sub(spent);
            if left.is_zero() {
                cancel.cancel();
                // A response that arrives now is still in time.
                return calling.await.map_err(|_| Failure::Timeout(limit.into()).into());
            }
            tokio::select! {
                biased;
                done = &mut calling => return done,
                () = tokio::time::sleep(left.max(CHECK_INTERVAL)) => {}
            }
        }
    }

    /// The total time of all conversations, which timeouts exclude.
    pub(super) fn conversation_time(&self) -> Duration {
        let clock = self.0.clock.lock();
        clock.total + clock.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Asks the user to approve calls.
    pub(super) fn approver(&self) -> Approver {
        let person = self.clone();
        Arc::new(move |request| {
            let person = person.clone();
            Box::pin(async move { person.approve(&request).await })
        })
    }

    /// Answers the requests of a server.
    pub(super) fn input_handler(&self, server: &str) -> InputHandler {
        let (person, server) = (self.clone(), server.to_owned());
        Arc::new(move |InputRequest { kind, params }| {
            let (person, server) = (person.clone(), server.clone());
            Box::pin(async move {
                Some(match kind {
                    InputKind::Elicitation => Answer::Result(person.elicit(&server, &params).await),
                    InputKind::Sampling => person.sample(&server, &params).await,
                    InputKind::Roots => Answer::Result(person.roots(&server).await),
                })
            })
        })
    }

    /// Starts the clock until the timer is dropped.
    fn start_timer(&self) -> ConversationTimer<'_> {
        let mut clock = self.0.clock.lock();
        clock.open += 1;
        clock.since.get_or_insert_with(Instant::now);
        ConversationTimer(self)
    }

    async fn conversation(&self) -> Conversation<'_> {
        let timer = self.start_timer();
        Conversation { keyboard: self.0.keyboard.lock().await, _timer: timer }
    }

    async fn approve(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let conversation = self.conversation().await;
        let (tool, server) = (printable(&request.tool.original), printable(&request.tool.server));
        if let Some(arguments) = request.arguments.as_ref().filter(|arguments| !arguments.is_empty()) {
            print_line(&format!("{DIM}arguments: {}{DIM:#}", printable(&Value::from(arguments.clone()).to_string())));
        }
        // The words of MCPilot.
        let question = format!("Do you want to run tool '{tool}' on server '{server}'? [y]es / [a]lways / [N]o ");
        loop {
            let line = match conversation.keyboard.ask(&question).await {
                LineEvent::Line(line) => line,
                LineEvent::Interrupted => {
                    drop(conversation);
                    interrupt().await;
                    return ApprovalDecision::Deny;
                }
                LineEvent::Ended | LineEvent::Suspended => return ApprovalDecision::Deny,
            };
            match &*line.trim().to_lowercase() {
                "y" | "yes" => return ApprovalDecision::Allow,
                "a" | "always" => return ApprovalDecision::AllowAlways,
                "" | "n" | "no" => return ApprovalDecision::Deny,
                _ => {}
            }
        }
    }

    /// 2025-11-25, Elicitation: Response Actions.
    async fn elicit(&self, server: &str, params: &Value) -> Value {
        let conversation = self.conversation().await;
        print_request(server, "asks", params["message"].as_str().unwrap_or_default());
        let action = |action: &str| json!({ "action": action });
        if params["mode"] == "url" {
            let url = params["url"].as_str().unwrap_or_default();
            print_line(&format!("It asks you to open {STRONG}{}{STRONG:#}", printable(url)));
            return match conversation.confirm("Open it in your browser? [y]es / [N]o ", false).await {
                Some(true) => action("accept"),
                Some(false) => action("decline"),
                None => action("cancel"),
            };
        }
        let form = Form::parse(&params["requestedSchema"]);
        print_line(&format!("{DIM}(Enter takes the default; Ctrl-D declines, Ctrl-C cancels){DIM:#}"));
        let mut content = Map::new();
        for field in &form.fields {
            field.about().iter().for_each(|line| print_line(&printable(line)));
            let value = loop {
                match conversation.keyboard.ask(&format!("{}> ", printable(&field.name))).await {
                    LineEvent::Line(line) => match field.read(&line) {
                        Ok(value) => break value,
                        Err(wrong) => print_line(&format!("{BAD}{}{BAD:#}", printable(&wrong))),
                    },
                    LineEvent::Ended => return action("decline"),
                    LineEvent::Interrupted | LineEvent::Suspended => return action("cancel"),
                }
            };
            value.map(|value| content.insert(field.name.clone(), value));
        }
        let content = Value::from(content);
        match conversation.confirm(&format!("Send {}? [Y]es / [n]o ", printable(&content.to_string())), true).await {
            Some(true) => json!({ "action": "accept", "content": content }),
            Some(false) => action("decline"),
            None => action("cancel"),
        }
    }

    /// 2025-11-25, Sampling: Creating Messages.
    async fn sample(&self, server: &str, params: &Value) -> Answer {
        let conversation = self.conversation().await;
        print_request(server, "requests a model response", "");
        if let Some(system) = params["systemPrompt"].as_str() {
            print_line(&format!("{STRONG}system:{STRONG:#} {}", lines(system)));
        }
        for message in params["messages"].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or_default();
            print_line(&format!(
                "{STRONG}{}:{STRONG:#} {}",
                printable(role),
                lines(&message_text(&message["content"]))
            ));
        }
        match conversation.keyboard.ask("Answer as the model (empty to refuse)> ").await {
            LineEvent::Line(line) if !line.trim().is_empty() => Answer::Result(json!({
                "role": "assistant",
                "content": { "type": "text", "text": line },
                "model": "a-person",
                "stopReason": "endTurn",
            })),
            _ => Answer::Error(RpcError::new(REJECTED, "User rejected sampling request")),
        }
    }

    /// 2025-11-25, Roots: Listing Roots. A server always gets the same answer.
    async fn roots(&self, server: &str) -> Value {
        let Ok(uri) = url::Url::from_file_path(&self.0.folder) else { return json!({ "roots": [] }) };
        let known = || self.0.root_consent.lock().get(server).copied();
        let is_shared = match known() {
            Some(is_shared) => is_shared,
            None => {
                // While this waits, an earlier request of the server may have been answered.
                let conversation = self.conversation().await;
                match known() {
                    Some(is_shared) => is_shared,
                    None => {
                        print_request(server, "requests your working folder", "");
                        let question = format!("Share {uri}? [y]es / [N]o ");
                        let is_shared = conversation.confirm(&question, false).await.unwrap_or_default();
                        self.0.root_consent.lock().insert(server.to_owned(), is_shared);
                        is_shared
                    }
                }
            }
        };
        let name = self.0.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        json!({ "roots": if is_shared { vec![json!({ "uri": uri.as_str(), "name": name })] } else { Vec::new() } })
    }
}

impl Conversation<'_> {
    /// The decision, `default` for an empty line; `None` if the user cancels.
    async fn confirm(&self, question: &str, default: bool) -> Option<bool> {
        loop {
            let line = match self.keyboard.ask(question).await {
                LineEvent::Line(line) => line,
                LineEvent::Ended => return Some(false),
                LineEvent::Interrupted | LineEvent::Suspended => return None,
            };
            match &*line.trim().to_lowercase() {
                "" => return Some(default),
                "y" | "yes" => return Some(true),
                "n" | "no" => return Some(false),
                _ => {}
            }
        }
    }
}

/// Sends this process the signal of Ctrl-C, as the terminal does when no line is edited. Returns only if that fails.
async fn interrupt() {
    if rehearse_system::process::interrupt_self() {
        std::future::pending().await
    }
}

fn print_request(server: &str, wants: &str, message: &str) {
    let message = if message.is_empty() { String::new() } else { format!(": {}", lines(message)) };
    print_line(&format!("{STRONG}server '{}' {wants}{STRONG:#}{message}", printable(server)));
}

fn print_line(text: &str) {
    style::print(&format!("{text}\n"));
}

/// A text of a server; further lines are indented.
fn lines(text: &str) -> String {
    printable_lines(text).collect::<Vec<_>>().join("\n  ")
}

/// The text of a message, which has one block or several.
fn message_text(content: &Value) -> String {
    let blocks = match content {
        Value::Array(blocks) => &blocks[..],
        block => std::slice::from_ref(block),
    };
    let text = |block: &Value| match serde_json::value::to_raw_value(block).map(Content::parse) {
        Ok(Ok(Content::Text { text, .. })) => text,
        _ => format!("[{}]", block["type"].as_str().unwrap_or("something")),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_overlapping_conversations_counts_once() {
        let person = TerminalUser::new(Keyboard::default(), PathBuf::new());
        assert_eq!(person.conversation_time(), Duration::ZERO);
        let (one, two) = (person.start_timer(), person.start_timer());
        drop(one);
        assert!(person.0.clock.lock().since.is_some(), "the other conversation is open");
        drop(two);
        let asked = person.conversation_time();
        assert!(person.0.clock.lock().since.is_none());
        assert_eq!(person.conversation_time(), asked, "no conversation is open");
    }

    #[test]
    fn only_the_text_of_a_message_is_shown() {
        let blocks = json!([{ "type": "text", "text": "a" }, { "type": "image", "data": "", "mimeType": "image/png" }]);
        assert_eq!((&*message_text(&blocks), &*message_text(&blocks[0])), ("a\n[image]", "a"));
        assert_eq!(lines("a\nb\u{1b}"), "a\n  b\\u{1b}");
    }
}
