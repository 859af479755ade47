//! The user at the terminal, who approves calls and answers server requests.
//!
//! One conversation is led at a time: whoever asks has the keyboard until the last answer, and whoever waits for a command
//! gives it up for that long.

mod form;
mod keyboard;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use self::form::Form;
pub(super) use self::keyboard::{Editor, Keyboard, KeyboardGuard, LineEvent, PlainHighlighter, is_coloured};
use super::style::{self, BAD, DIM, STRONG, printable};
use rehearse_client::{Answer, CallOptions, Content, Failure, InputHandler, InputKind, InputRequest};
use rehearse_hub::{ApprovalDecision, ApprovalMode, ApprovalRequest, Approver};
use rehearse_protocol::RpcError;
use rehearse_report::text::printable_lines;

/// What a user who refuses is told by (2025-11-25, Sampling: Error Handling).
const REJECTED: i64 = -1;
/// Whoever is asked may take so long.
const LONGEST_TALK: Duration = Duration::from_secs(24 * 60 * 60);
/// How often it is looked whether somebody is still asked, at most.
const SOON: Duration = Duration::from_millis(50);

/// Somebody at the terminal.
#[derive(Clone)]
pub(super) struct TerminalUser(Arc<Inner>);

struct Inner {
    keyboard: Keyboard,
    /// The folder that is told as the only root, if it may be.
    folder: PathBuf,
    /// By server: whether it may know the folder.
    root_consent: Mutex<HashMap<String, bool>>,
    asked: Mutex<Clock>,
}

/// How long the person has been asked for.
#[derive(Default)]
struct Clock {
    total: Duration,
    /// Several may wait for their turn.
    asking: usize,
    since: Option<Instant>,
}

/// A conversation; its time counts until it is dropped.
struct Conversation<'p> {
    turn: KeyboardGuard,
    _time: AskTimer<'p>,
}

struct AskTimer<'p>(&'p TerminalUser);

impl Drop for AskTimer<'_> {
    fn drop(&mut self) {
        let mut clock = self.0.clock();
        clock.asking -= 1;
        if clock.asking == 0
            && let Some(since) = clock.since.take()
        {
            clock.total += since.elapsed();
        }
    }
}

/// Who allows calls of tools that neither their server's trust nor a list of the config allows.
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
    pub(super) fn at(keyboard: Keyboard, folder: PathBuf) -> TerminalUser {
        let (root_consent, asked) = (Mutex::default(), Mutex::default());
        TerminalUser(Arc::new(Inner { keyboard, folder, root_consent, asked }))
    }

    /// Whoever sits at the terminal, and works in this folder; `None` if nobody does.
    pub(super) fn at_terminal() -> Option<TerminalUser> {
        Some(TerminalUser::at(Keyboard::at_terminal()?, std::env::current_dir().unwrap_or_default()))
    }

    pub(super) fn keyboard(&self) -> &Keyboard {
        &self.0.keyboard
    }

    /// Makes a call within a limit, in which the time does not count that the person is asked for.
    ///
    /// # Errors
    /// What the call gives; [`Failure::Timeout`] after the limit.
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
        let (started, asked) = (Instant::now(), person.time_spent());
        let options = CallOptions { timeout: Some(limit + LONGEST_TALK), cancel: Some(cancel.clone()), ..options };
        let mut calling = Box::pin(call(options));
        loop {
            let spent = started.elapsed().saturating_sub(person.time_spent().saturating_sub(asked));
            let left = limit.saturating_sub(spent);
            if left.is_zero() {
                cancel.cancel();
                // An answer that comes now comes in time.
                return calling.await.map_err(|_| Failure::Timeout(limit).into());
            }
            tokio::select! {
                biased;
                done = &mut calling => return done,
                () = tokio::time::sleep(left.max(SOON)) => {}
            }
        }
    }

    /// How long the person has been asked for, all in all. Nobody's timeout should count that.
    pub(super) fn time_spent(&self) -> Duration {
        let clock = self.clock();
        clock.total + clock.since.map(|since| since.elapsed()).unwrap_or_default()
    }

    /// Asks about calls.
    pub(super) fn approver(&self) -> Approver {
        let person = self.clone();
        Arc::new(move |request| {
            let person = person.clone();
            Box::pin(async move { person.approve(&request).await })
        })
    }

    /// Answers what a server asks.
    pub(super) fn respondent(&self, server: &str) -> InputHandler {
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

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.0.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn root_consent(&self) -> MutexGuard<'_, HashMap<String, bool>> {
        self.0.root_consent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time counts until it is dropped.
    fn asking(&self) -> AskTimer<'_> {
        let mut clock = self.clock();
        clock.asking += 1;
        clock.since.get_or_insert_with(Instant::now);
        AskTimer(self)
    }

    async fn conversation(&self) -> Conversation<'_> {
        let time = self.asking();
        Conversation { turn: self.0.keyboard.turn().await, _time: time }
    }

    async fn approve(&self, request: &ApprovalRequest) -> ApprovalDecision {
        let talk = self.conversation().await;
        let (tool, server) = (printable(&request.tool.original), printable(&request.tool.server));
        if let Some(arguments) = request.arguments.as_ref().filter(|arguments| !arguments.is_empty()) {
            say(&format!("{DIM}arguments: {}{DIM:#}", printable(&Value::from(arguments.clone()).to_string())));
        }
        // The words of MCPilot.
        let question = format!("Do you want to run tool '{tool}' on server '{server}'? [y]es / [a]lways / [N]o ");
        loop {
            let line = match talk.turn.ask(&question).await {
                LineEvent::Line(line) => line,
                LineEvent::Interrupted => {
                    drop(talk);
                    interrupt().await;
                    return ApprovalDecision::Deny;
                }
                LineEvent::Ended | LineEvent::Disturbed => return ApprovalDecision::Deny,
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
        let talk = self.conversation().await;
        introduce(server, "asks", params["message"].as_str().unwrap_or_default());
        let action = |action: &str| json!({ "action": action });
        if params["mode"] == "url" {
            let url = params["url"].as_str().unwrap_or_default();
            say(&format!("It asks you to open {STRONG}{}{STRONG:#}", printable(url)));
            return match talk.confirm("Open it in your browser? [y]es / [N]o ", false).await {
                Some(true) => action("accept"),
                Some(false) => action("decline"),
                None => action("cancel"),
            };
        }
        let form = Form::parse(&params["requestedSchema"]);
        say(&format!("{DIM}(Enter takes the default; Ctrl-D declines, Ctrl-C cancels){DIM:#}"));
        let mut content = Map::new();
        for field in &form.fields {
            field.about().iter().for_each(|line| say(&printable(line)));
            let value = loop {
                match talk.turn.ask(&format!("{}> ", printable(&field.name))).await {
                    LineEvent::Line(line) => match field.read(&line) {
                        Ok(value) => break value,
                        Err(wrong) => say(&format!("{BAD}{}{BAD:#}", printable(&wrong))),
                    },
                    LineEvent::Ended => return action("decline"),
                    LineEvent::Interrupted | LineEvent::Disturbed => return action("cancel"),
                }
            };
            value.map(|value| content.insert(field.name.clone(), value));
        }
        let content = Value::from(content);
        match talk.confirm(&format!("Send {}? [Y]es / [n]o ", printable(&content.to_string())), true).await {
            Some(true) => json!({ "action": "accept", "content": content }),
            Some(false) => action("decline"),
            None => action("cancel"),
        }
    }

    /// 2025-11-25, Sampling: Creating Messages.
    async fn sample(&self, server: &str, params: &Value) -> Answer {
        let talk = self.conversation().await;
        introduce(server, "requests a model response", "");
        if let Some(system) = params["systemPrompt"].as_str() {
            say(&format!("{STRONG}system:{STRONG:#} {}", lines(system)));
        }
        for message in params["messages"].as_array().into_iter().flatten() {
            let role = message["role"].as_str().unwrap_or_default();
            say(&format!("{STRONG}{}:{STRONG:#} {}", printable(role), lines(&spoken(&message["content"]))));
        }
        match talk.turn.ask("Answer as the model (empty to refuse)> ").await {
            LineEvent::Line(line) if !line.trim().is_empty() => Answer::Result(json!({
                "role": "assistant",
                "content": { "type": "text", "text": line },
                "model": "a-person",
                "stopReason": "endTurn",
            })),
            _ => Answer::Error(RpcError::new(REJECTED, "User rejected sampling request")),
        }
    }

    /// 2025-11-25, Roots: Listing Roots. A server is told the same again and again.
    async fn roots(&self, server: &str) -> Value {
        let Ok(uri) = url::Url::from_file_path(&self.0.folder) else { return json!({ "roots": [] }) };
        let known = || self.root_consent().get(server).copied();
        let is_told = match known() {
            Some(is_told) => is_told,
            None => {
                // Whoever waits here keeps its place among all that ask; meanwhile the same may have been answered.
                let talk = self.conversation().await;
                match known() {
                    Some(is_told) => is_told,
                    None => {
                        introduce(server, "requests your working folder", "");
                        let question = format!("Share {uri}? [y]es / [N]o ");
                        let is_told = talk.confirm(&question, false).await.unwrap_or_default();
                        self.root_consent().insert(server.to_owned(), is_told);
                        is_told
                    }
                }
            }
        };
        let name = self.0.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        json!({ "roots": if is_told { vec![json!({ "uri": uri.as_str(), "name": name })] } else { Vec::new() } })
    }
}

impl Conversation<'_> {
    /// `None` if nothing was decided.
    async fn confirm(&self, question: &str, usual: bool) -> Option<bool> {
        loop {
            let line = match self.turn.ask(question).await {
                LineEvent::Line(line) => line,
                LineEvent::Ended => return Some(false),
                LineEvent::Interrupted | LineEvent::Disturbed => return None,
            };
            match &*line.trim().to_lowercase() {
                "" => return Some(usual),
                "y" | "yes" => return Some(true),
                "n" | "no" => return Some(false),
                _ => {}
            }
        }
    }
}

/// Does what Ctrl-C does where nothing is edited, as the terminal would: then it is for whoever heeds signals to end what
/// is waited for here. Returns only if there is no such signal.
async fn interrupt() {
    use rustix::process::{Signal, getpid, kill_process};
    if kill_process(getpid(), Signal::INT).is_ok() {
        std::future::pending().await
    }
}

fn introduce(server: &str, wants: &str, message: &str) {
    let message = if message.is_empty() { String::new() } else { format!(": {}", lines(message)) };
    say(&format!("{STRONG}server '{}' {wants}{STRONG:#}{message}", printable(server)));
}

fn say(text: &str) {
    style::print(&format!("{text}\n"));
}

/// A text of a server whose further lines are set off.
fn lines(text: &str) -> String {
    printable_lines(text).collect::<Vec<_>>().join("\n  ")
}

/// The content of a message, one block or several, as far as it is text.
fn spoken(content: &Value) -> String {
    let blocks = match content {
        Value::Array(blocks) => &blocks[..],
        block => std::slice::from_ref(block),
    };
    let text = |block: &Value| match serde_json::value::to_raw_value(block).map(Content::parse) {
        Ok(Content::Text { text, .. }) => text,
        _ => format!("[{}]", block["type"].as_str().unwrap_or("something")),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_once_however_many_ask() {
        let person = TerminalUser::at(Keyboard::default(), PathBuf::new());
        assert_eq!(person.time_spent(), Duration::ZERO);
        let (one, two) = (person.asking(), person.asking());
        drop(one);
        assert!(person.clock().since.is_some(), "the other still asks");
        drop(two);
        let asked = person.time_spent();
        assert!(person.clock().since.is_none());
        assert_eq!(person.time_spent(), asked, "nobody asks any more");
    }

    #[test]
    fn only_the_text_of_a_message_is_shown() {
        let blocks = json!([{ "type": "text", "text": "a" }, { "type": "image", "data": "", "mimeType": "image/png" }]);
        assert_eq!((&*spoken(&blocks), &*spoken(&blocks[0])), ("a\n[image]", "a"));
        assert_eq!(lines("a\nb\u{1b}"), "a\n  b\\u{1b}");
    }
}
