//! The keyboard, which one at a time reads a line from: the commands of a REPL, or who asks something in between.

use std::{
    borrow::Cow,
    collections::VecDeque,
    io::{self, IsTerminal},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anstream::AutoStream;
use reedline::{
    Color, ExternalPrinter, Highlighter, PromptEditMode, PromptHistorySearch, PromptHistorySearchStatus, Reedline,
    Signal, StyledText,
};
use tokio::sync::{OwnedMutexGuard, oneshot};

use crate::cli::style::{self, DIM, DOUBTFUL};

/// How many texts wait to be shown above a line before more of them are dropped.
const MOST_WAITING: usize = 10_000;
/// Who wants the keyboard asks for it as often as this.
const INSISTENCE: Duration = Duration::from_millis(200);
/// How long it may take to give the terminal back.
const LET_GO: Duration = Duration::from_secs(1);

/// The keyboard of the terminal. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyboard(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    turn: Arc<tokio::sync::Mutex<()>>,
    /// Somebody wants to ask something, so that whoever waits for a command gives the keyboard up.
    wanted: Arc<AtomicBool>,
    /// Nobody is to read from it any more.
    is_released: Arc<AtomicBool>,
}

/// Who has the keyboard, until all clones are dropped.
#[derive(Clone, Debug)]
pub(crate) struct KeyboardGuard {
    _guard: Arc<OwnedMutexGuard<()>>,
    is_released: Arc<AtomicBool>,
}

/// What came of waiting for a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineEvent {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D.
    Ended,
    /// Somebody else wanted the keyboard. What was typed so far is kept.
    Disturbed,
}

impl Keyboard {
    /// `None` if nobody sits at a terminal.
    pub(crate) fn at_terminal() -> Option<Keyboard> {
        let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal() && io::stderr().is_terminal();
        is_terminal.then(Keyboard::default)
    }

    /// Waits for a command, and gives the editor back.
    pub(crate) async fn command(&self, editor: Editor, prompt: &'static str) -> (Editor, io::Result<LineEvent>) {
        let turn = self.0.turn.clone().lock_owned().await;
        editor.read(self.taken(turn), prompt.to_owned()).await
    }

    /// An editor for commands.
    pub(crate) fn editor(&self, reedline: Reedline) -> Editor {
        Editor::new(reedline, self.0.wanted.clone(), self.0.is_released.clone())
    }

    fn taken(&self, guard: OwnedMutexGuard<()>) -> KeyboardGuard {
        KeyboardGuard { _guard: Arc::new(guard), is_released: self.0.is_released.clone() }
    }

    /// Has whoever waits for a command give up.
    pub(crate) fn disturb(&self) {
        self.0.wanted.store(true, Ordering::Relaxed);
    }

    /// Waits until the keyboard is free, and takes it from whoever waits for a command.
    pub(crate) async fn turn(&self) -> KeyboardGuard {
        let turn = self.0.turn.clone().lock_owned();
        tokio::pin!(turn);
        loop {
            self.disturb();
            if let Ok(turn) = tokio::time::timeout(INSISTENCE, &mut turn).await {
                self.0.wanted.store(false, Ordering::Relaxed);
                return self.taken(turn);
            }
        }
    }

    /// Has everybody let go of the keyboard for good. The terminal is then as it was before, unless it is gone: whoever
    /// reads from one that is does not give up.
    pub(crate) async fn release(&self) {
        self.0.is_released.store(true, Ordering::Relaxed);
        let _ = tokio::time::timeout(LET_GO, self.turn()).await;
    }
}

impl KeyboardGuard {
    /// Asks something. Whoever does not wait for the answer any more withdraws the question.
    pub(crate) async fn ask(&self, text: &str) -> LineEvent {
        let mut question = OpenPrompt { is_withdrawn: Arc::default(), is_answered: false };
        let reedline = Reedline::create().with_highlighter(Box::new(PlainHighlighter)).with_ansi_colors(is_coloured());
        let editor = Editor::new(reedline, question.is_withdrawn.clone(), self.is_released.clone());
        let (_, typed) = editor.read(self.clone(), text.to_owned()).await;
        question.is_answered = true;
        // Whoever has lost the terminal says no more.
        typed.unwrap_or(LineEvent::Ended)
    }
}

/// A question that is withdrawn if this is dropped before it was answered.
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

/// Whether what goes to the terminal is coloured.
pub(crate) fn is_coloured() -> bool {
    AutoStream::choice(&io::stderr()) != anstream::ColorChoice::Never
}

/// Edits lines, and shows above them what is printed in the meantime.
pub(crate) struct Editor {
    reedline: Option<Box<Reedline>>,
    waiting: Arc<MessageQueue>,
}

impl Editor {
    /// It gives up when `stop` is set, and for good when `is_released` is.
    fn new(reedline: Reedline, stop: Arc<AtomicBool>, is_released: Arc<AtomicBool>) -> Editor {
        let (waiting, printer) = (Arc::<MessageQueue>::default(), ExternalPrinter::new(MOST_WAITING));
        let (texts, shown) = (waiting.clone(), printer.sender());
        let leaves = Arc::new(AtomicBool::new(false));
        let leaving = leaves.clone();
        let show = move || {
            // Reedline then shows nothing more: what waits is left for whoever comes after it.
            if stop.swap(false, Ordering::Relaxed) || is_released.load(Ordering::Relaxed) {
                return leaving.store(true, Ordering::Relaxed);
            }
            texts.take().for_each(|text| {
                // There is room for as many as can wait.
                let _ = shown.try_send(text);
            });
        };
        let reedline =
            reedline.with_break_signal(leaves).with_external_printer(printer).with_idle_callback(Box::new(show));
        Editor { reedline: Some(Box::new(reedline)), waiting }
    }

    /// Waits for a line on a thread of its own, for nothing else can. Nobody waits for that thread: the keyboard of a
    /// terminal that is gone is read in vain for ever.
    async fn read(self, turn: KeyboardGuard, prompt: String) -> (Editor, io::Result<LineEvent>) {
        let (done, reading) = oneshot::channel();
        let waiting = self.waiting.clone();
        std::thread::spawn(move || {
            let mut editor = self;
            let typed = editor.read_here(&Prompt(prompt));
            // Nobody may be waiting any more. An editor that ends gives the terminal back, which whoever has the turn next
            // must not lose.
            drop(done.send((editor, typed)));
            drop(turn);
        });
        reading.await.unwrap_or_else(|error| (Editor { reedline: None, waiting }, Err(io::Error::other(error))))
    }

    fn read_here(&mut self, prompt: &Prompt) -> io::Result<LineEvent> {
        let Some(reedline) = &mut self.reedline else { return Ok(LineEvent::Ended) };
        let waiting = self.waiting.clone();
        let diverted = style::redirect(Box::new(move |text| waiting.put(text)));
        let signal = reedline.read_line(prompt);
        drop(diverted);
        let typed = match signal {
            Ok(Signal::Success(line)) => Ok(LineEvent::Line(line)),
            Ok(Signal::CtrlC) => Ok(LineEvent::Interrupted),
            Ok(Signal::CtrlD) => Ok(LineEvent::Ended),
            Ok(_) => {
                style::print("\n");
                Ok(LineEvent::Disturbed)
            }
            Err(error) => Err(io::Error::other(error)),
        };
        // What came too late to stand above it.
        self.waiting.take().for_each(|text| style::print(&text));
        typed
    }
}

/// Texts that wait to be shown.
#[derive(Debug, Default)]
struct MessageQueue(Mutex<(VecDeque<String>, usize)>);

impl MessageQueue {
    fn put(&self, text: &str) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.0.len() + 1 < MOST_WAITING {
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
        let (mut texts, dropped) = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
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

    fn get_prompt_color(&self) -> Color {
        Color::Cyan
    }
}

/// Does not highlight.
pub(crate) struct PlainHighlighter;

impl Highlighter for PlainHighlighter {
    fn highlight(&self, line: &str, _cursor: usize) -> StyledText {
        let mut text = StyledText::new();
        text.push((Color::Default.normal(), line.to_owned()));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_too_fast_is_counted_and_dropped() {
        let waiting = MessageQueue::default();
        (0..MOST_WAITING + 6).for_each(|number| waiting.put(&format!("{number}\n")));
        let texts: Vec<_> = waiting.take().collect();
        assert_eq!((texts.len(), &*texts[0]), (MOST_WAITING, "0\n"));
        let last = anstream::adapter::strip_str(&texts[MOST_WAITING - 1]).to_string();
        assert_eq!(last, "7 messages were dropped: too many to show\n");
        assert_eq!(waiting.take().count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_disturbs_who_waits_for_a_command_until_it_is_free() {
        let keyboard = Keyboard::default();
        let command = keyboard.0.turn.clone().lock_owned().await;
        let asking = tokio::spawn({
            let keyboard = keyboard.clone();
            async move { keyboard.turn().await }
        });
        tokio::time::sleep(INSISTENCE).await;
        assert!(keyboard.0.wanted.swap(false, Ordering::Relaxed));
        tokio::time::sleep(INSISTENCE * 2).await;
        assert!(keyboard.0.wanted.load(Ordering::Relaxed), "it insists");
        drop(command);
        let turn = asking.await.expect("ends");
        assert!(!keyboard.0.wanted.load(Ordering::Relaxed), "the next command is left alone");
        assert!(keyboard.0.turn.try_lock().is_err());
        drop(turn);
        assert!(keyboard.0.turn.try_lock().is_ok());
    }
}
