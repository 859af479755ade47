//! The editor of commands: completion, hints and history in the terminal.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use nu_ansi_term::Color;
use reedline::{
    ColumnarMenu, Completer, DefaultHinter, Emacs, Hinter, History, KeyCode, KeyModifiers, MenuBuilder, Reedline,
    ReedlineEvent, ReedlineMenu, Span, Suggestion, default_emacs_keybindings,
};
use tokio::{runtime::Handle, time::timeout};

use super::{
    complete::{Candidate, choices, hint, items_in},
    history::{RedactingHistory, path_of_history},
    shell::Shell,
};
use crate::cli::{
    style::{self, DOUBTFUL},
    terminal_user::{Editor, Keyboard, PlainHighlighter, is_coloured},
};
use rehearse_client_configs::Machine;
use rehearse_protocol::List;

/// How long a completion waits for the items of servers.
const LIST_LIMIT: Duration = Duration::from_millis(500);
const LIST_PAUSE: Duration = Duration::from_secs(10);

const MENU: &str = "completions";

/// Creates an editor that completes the names of the shell.
pub(super) fn editor(shell: &Arc<Shell>, keyboard: &Keyboard) -> Editor {
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![ReedlineEvent::Menu(MENU.to_owned()), ReedlineEvent::MenuNext]),
    );
    keys.add_binding(KeyModifiers::SHIFT, KeyCode::BackTab, ReedlineEvent::MenuPrevious);
    let menu = Box::new(ColumnarMenu::default().with_name(MENU).with_marker(""));
    let mut reedline = Reedline::create()
        .with_edit_mode(Box::new(Emacs::new(keys)))
        .with_completer(Box::new(Completions { shell: shell.clone(), runtime: Handle::current(), pause: None }))
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_hinter(Box::new(Hints { shell: shell.clone(), history: history_hints(), is_usage: false }))
        .with_highlighter(Box::new(PlainHighlighter))
        .with_ansi_colors(is_coloured())
        // A pasted text is one message.
        .use_bracketed_paste(shell.chat.is_some());
    if let Some(path) = path_of_history(&Machine::here()) {
        let known = shell.clone();
        match RedactingHistory::open(&path, move |line| known.hidden(line) != line) {
            Ok(history) => reedline = reedline.with_history(Box::new(history)),
            Err(error) => style::print(&format!(
                "{DOUBTFUL}warning:{DOUBTFUL:#} commands are not saved in the history: {}: {error}\n",
                style::printable(&path.display().to_string())
            )),
        }
    }
    keyboard.editor(reedline)
}

fn history_hints() -> DefaultHinter {
    DefaultHinter::default().with_style(Color::DarkGray.normal())
}

struct Completions {
    shell: Arc<Shell>,
    runtime: Handle,
    /// When servers may be asked for items again.
    pause: Option<Instant>,
}

impl Completions {
    /// Asks servers for the items that can be completed. The editor waits, on its own thread.
    fn list(&mut self, kind: List) {
        if self.pause.is_none_or(|pause| pause < Instant::now()) {
            let listed = self.runtime.block_on(async { timeout(LIST_LIMIT, self.shell.list_unknown(kind)).await });
            // A server that is slow is not asked for each key.
            self.pause = listed.is_err().then(|| Instant::now() + LIST_PAUSE);
        }
    }
}

impl Completer for Completions {
    fn complete(&mut self, line: &str, pos: usize) -> Vec<Suggestion> {
        let suggestion = |choice: Candidate| Suggestion {
            value: choice.text,
            description: choice.about,
            span: Span::new(choice.start, pos),
            append_whitespace: choice.is_whole,
            ..Suggestion::default()
        };
        let before = line.get(..pos).unwrap_or(line);
        if self.shell.is_message(line) {
            return Vec::new();
        }
        if let Some(kind) = items_in(before) {
            self.list(kind);
        }
        choices(before, &self.shell.known()).into_iter().map(suggestion).collect()
    }
}

/// The remaining arguments; without any, the rest of an earlier line, which the right arrow accepts.
struct Hints {
    shell: Arc<Shell>,
    history: DefaultHinter,
    is_usage: bool,
}

impl Hinter for Hints {
    fn handle(&mut self, line: &str, pos: usize, history: &dyn History, colours: bool, cwd: &str) -> String {
        let usage = if pos == line.len() && !self.shell.is_message(line) {
            hint(line, &self.shell.known())
        } else {
            String::new()
        };
        self.is_usage = !usage.is_empty();
        match self.is_usage {
            true if colours => Color::DarkGray.paint(usage).to_string(),
            true => usage,
            false => self.history.handle(line, pos, history, colours, cwd),
        }
    }

    fn complete_hint(&self) -> String {
        if self.is_usage { String::new() } else { self.history.complete_hint() }
    }

    fn next_hint_token(&self) -> String {
        if self.is_usage { String::new() } else { self.history.next_hint_token() }
    }
}
