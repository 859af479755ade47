//! The keyboard of the terminal: either the REPL reads a command from it, or a conversation reads an answer.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, IsTerminal},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anstream::AutoStream;
use nu_ansi_term::Style;
use parking_lot::Mutex;
use reedline::{
    ExternalPrinter, Highlighter, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline, Signal,
    StyledText,
};
use rehearse_system::terminal::{restore_settings, save_settings};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::{line_event::LineEvent, plain_input::PlainInput};
use crate::cli::style::{self, DIM, DOUBTFUL};

/// The capacity of the queue of messages; further messages are dropped.
const QUEUE_CAPACITY: usize = 10_000;
/// The interval at which a conversation requests the keyboard.
const REQUEST_INTERVAL: Duration = Duration::from_millis(200);
/// How long releasing the terminal may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the terminal says where its cursor is; if not, how its lines are read.
static PLAIN_INPUT: OnceLock<Option<PlainInput>> = OnceLock::new();

/// The keyboard of the terminal. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyboard(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lock: Arc<tokio::sync::Mutex<()>>,
    /// A conversation needs the keyboard, so the REPL must stop reading.
    is_requested: Arc<AtomicBool>,
    /// Nothing may read from the keyboard any more.
    is_released: Arc<AtomicBool>,
}

/// Holds the keyboard until all clones are dropped.
#[derive(Clone, Debug)]
pub(crate) struct KeyboardGuard {
    _lock: Arc<OwnedMutexGuard<()>>,
    is_released: Arc<AtomicBool>,
}

impl Keyboard {
    /// `None` without a terminal.
    pub(crate) fn detect() -> Option<Keyboard> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        if is_terminal {
            save_settings();
        }
        is_terminal.then(Keyboard::default)
    }

    /// Reads a command and returns the editor.
    pub(crate) async fn read_command(&self, editor: Editor, prompt: &'static str) -> (Editor, io::Result<LineEvent>) {
        let lock = self.0.lock.clone().lock_owned().await;
        editor.read(self.guard(lock), prompt.to_owned()).await
    }

    /// An editor for commands.
    pub(crate) fn editor(&self, reedline: Reedline) -> Editor {
        Editor::new(reedline, self.0.is_requested.clone(), self.0.is_released.clone())
    }

    fn guard(&self, lock: OwnedMutexGuard<()>) -> KeyboardGuard {
        KeyboardGuard { _lock: Arc::new(lock), is_released: self.0.is_released.clone() }
    }

    /// Makes the REPL stop reading a command.
    pub(crate) fn suspend_command(&self) {
        self.0.is_requested.store(true, Ordering::Relaxed);
    }

    /// Waits for the keyboard, and makes the REPL release it.
    pub(crate) async fn lock(&self) -> KeyboardGuard {
        let lock = self.0.lock.clone().lock_owned();
        tokio::pin!(lock);
        loop {
            self.suspend_command();
            if let Ok(lock) = tokio::time::timeout(REQUEST_INTERVAL, &mut lock).await {
                self.0.is_requested.store(false, Ordering::Relaxed);
                return self.guard(lock);
            }
        }
    }

    /// Releases the keyboard for good and restores the terminal. A read from a closed terminal may never end, so this has
    /// a timeout.
    pub(crate) async fn release(&self) {
        self.0.is_released.store(true, Ordering::Relaxed);
        let _ = tokio::time::timeout(RELEASE_TIMEOUT, self.lock()).await;
        restore_settings();
    }
}

impl KeyboardGuard {
    /// Asks the user a question. Dropping the future withdraws it.
    pub(crate) async fn ask(&self, text: &str) -> LineEvent {
        let mut question = OpenPrompt { is_withdrawn: Arc::default(), is_answered: false };
        let reedline = Reedline::create().with_highlighter(Box::new(PlainHighlighter)).with_ansi_colors(is_coloured());
        let editor = Editor::new(reedline, question.is_withdrawn.clone(), self.is_released.clone());
        let (_, typed) = editor.read(self.clone(), text.to_owned()).await;
        question.is_answered = true;
        // An error means that the terminal is closed.
        typed.unwrap_or(LineEvent::Ended)
    }
}

/// A question, withdrawn if this is dropped before the answer.
struct OpenPrompt {
    is_withdrawn: Arc<AtomicBool>,
    is_answered: bool,
}

impl Drop for OpenPrompt {
    fn drop(&mut self) {
        if !self.is_answered {
            style::print(&format!("{DIM}(the question was withdrawn){DIM:#}\n"));
            self.is_withdrawn.store(true, Ordering::Relaxed);
        }
    }
}

/// Whether output on the terminal is coloured.
pub(crate) fn is_coloured() -> bool {
    AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Edits lines, and shows messages above them.
pub(crate) struct Editor {
    reedline: Option<Box<Reedline>>,
    messages: Arc<MessageQueue>,
    /// Ends the current read.
    stop: Arc<AtomicBool>,
    /// Ends every read.
    is_released: Arc<AtomicBool>,
}

impl Editor {
    fn new(reedline: Reedline, stop: Arc<AtomicBool>, is_released: Arc<AtomicBool>) -> Editor {
        let (messages, printer) = (Arc::<MessageQueue>::default(), ExternalPrinter::new(QUEUE_CAPACITY));
        let (queue, sender) = (messages.clone(), printer.sender());
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stopped = is_stopped.clone();
        let ends = (stop.clone(), is_released.clone());
        let show = move || {
            // Reedline shows nothing more; the messages stay in the queue.
            if must_end(&ends.0, &ends.1) {
                return stopped.store(true, Ordering::Relaxed);
            }
            queue.take().for_each(|text| {
                // Both queues have the same capacity.
                let _ = sender.try_send(text);
            });
        };
        let reedline =
            reedline.with_break_signal(is_stopped).with_external_printer(printer).with_idle_callback(Box::new(show));
        Editor { reedline: Some(Box::new(reedline)), messages, stop, is_released }
    }

    /// Reads a line on a thread, which is never joined: a read from a closed terminal may never end.
    async fn read(self, guard: KeyboardGuard, prompt: String) -> (Editor, io::Result<LineEvent>) {
        let (done, reading) = oneshot::channel();
        let (messages, stop, is_released) = (self.messages.clone(), self.stop.clone(), self.is_released.clone());
        let lost = Editor { reedline: None, messages, stop, is_released };
        std::thread::spawn(move || {
            let mut editor = self;
            let typed = editor.read_line(&Prompt(prompt));
            // Dropping an editor restores the terminal, so the guard must be dropped after it.
            drop(done.send((editor, typed)));
            drop(guard);
        });
        reading.await.unwrap_or_else(|error| (lost, Err(io::Error::other(error))))
    }

    fn read_line(&mut self, prompt: &Prompt) -> io::Result<LineEvent> {
        if let Some(input) = PLAIN_INPUT.get_or_init(PlainInput::detect) {
            return input.read_line(&prompt.0, || must_end(&self.stop, &self.is_released));
        }
        let Some(reedline) = &mut self.reedline else { return Ok(LineEvent::Ended) };
        let messages = self.messages.clone();
        let redirect = style::redirect(Box::new(move |text| messages.put(text)));
        let signal = reedline.read_line(prompt);
        drop(redirect);
        let typed = match signal {
            Ok(Signal::Success(line)) => Ok(LineEvent::Line(line)),
            Ok(Signal::CtrlC) => Ok(LineEvent::Interrupted),
            Ok(Signal::CtrlD) => Ok(LineEvent::Ended),
            Ok(_) => {
                style::print("\n");
                Ok(LineEvent::Suspended)
            }
            Err(error) => Err(io::Error::other(error)),
        };
        // Messages that came too late for reedline.
        self.messages.take().for_each(|text| style::print(&text));
        typed
    }
}

/// Whether a read must end; `stop` is consumed.
fn must_end(stop: &AtomicBool, is_released: &AtomicBool) -> bool {
    stop.swap(false, Ordering::Relaxed) || is_released.load(Ordering::Relaxed)
}

/// Messages to show above the edited line.
#[derive(Debug, Default)]
struct MessageQueue(Mutex<(VecDeque<String>, usize)>);

impl MessageQueue {
    fn put(&self, text: &str) {
        let mut waiting = self.0.lock();
        if waiting.0.len() + 1 < QUEUE_CAPACITY {
            waiting.0.push_back(if is_coloured() {
                text.to_owned()
            } else {
                anstream::adapter::strip_str(text).to_string()
            });
        } else {
            waiting.1 += 1;
        }
    }

    fn take(&self) -> impl Iterator<Item = String> {
        let (mut texts, dropped) = std::mem::take(&mut *self.0.lock());
        if dropped > 0 {
            texts.push_back(format!("{DOUBTFUL}{dropped} messages were dropped: too many to show{DOUBTFUL:#}\n"));
        }
        texts.into_iter()
    }
}

/// The text before the cursor.
struct Prompt(String);

impl reedline::Prompt for Prompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.0)
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("  ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        let found = match search.status {
            PromptHistorySearchStatus::Passing => "",
            PromptHistorySearchStatus::Failing => "not ",
        };
        Cow::Owned(format!("({found}found: {}) ", search.term))
    }

    fn get_prompt_color(&self) -> reedline::Color {
        reedline::Color::Cyan
    }
}

/// A highlighter that does nothing.
pub(crate) struct PlainHighlighter;

impl Highlighter for PlainHighlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Style::default(), line.to_owned()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_beyond_the_capacity_are_counted_and_dropped() {
        let waiting = MessageQueue::default();
        (0..QUEUE_CAPACITY + 6).for_each(|number| waiting.put(&format!("{number}\n")));
        let texts: Vec<_> = waiting.take().collect();
        assert_eq!((texts.len(), &*texts[0]), (QUEUE_CAPACITY, "0\n"));
        let last = anstream::adapter::strip_str(&texts[QUEUE_CAPACITY - 1]).to_string();
        assert_eq!(last, "7 messages were dropped: too many to show\n");
        assert_eq!(waiting.take().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_conversation_requests_the_keyboard_until_it_is_free() {
        let keyboard = Keyboard::default();
        let command = keyboard.0.lock.clone().lock_owned().await;
        let asking = tokio::spawn({
            let keyboard = keyboard.clone();
            async move { keyboard.lock().await }
        });
        tokio::time::sleep(REQUEST_INTERVAL).await;
        assert!(keyboard.0.is_requested.swap(false, Ordering::Relaxed));
        tokio::time::sleep(REQUEST_INTERVAL * 2).await;
        assert!(keyboard.0.is_requested.load(Ordering::Relaxed), "requested again");
        drop(command);
        let turn = asking.await.expect("ends");
        assert!(!keyboard.0.is_requested.load(Ordering::Relaxed), "the next command is not suspended");
        assert!(keyboard.0.lock.try_lock().is_err());
        drop(turn);
        assert!(keyboard.0.lock.try_lock().is_ok());
    }
}
