//! Where commands come from: a person at the terminal, or a pipe.

use std::{io, sync::Arc, time::Duration};

use rustix::process::Signal;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{
    command::{self, Command},
    shell::Shell,
};
use crate::cli::{
    Exit,
    mcp::print::print_unchecked,
    signals::Signals,
    style,
    terminal_user::{Editor, Keyboard, LineEvent},
};
use rehearse_document::text;

const PROMPT: &str = "mcp> ";
pub(super) const INTERRUPTED: &str = "interrupted: closing connections\n";
/// How long it may take to give the terminal back.
const LET_GO: Duration = Duration::from_secs(1);

pub(super) enum Input {
    Terminal { keyboard: Keyboard, editor: Option<Editor> },
    Pipe(mpsc::Receiver<io::Result<Vec<u8>>>),
}

/// What came.
enum Next {
    Line(String),
    /// A line that is not UTF-8.
    NoText,
    /// Ctrl-C at the prompt.
    Interrupted,
    End,
    /// Somebody wants this process to end.
    Signal,
    Broken(io::Error),
}

impl Input {
    pub(super) fn terminal(keyboard: Keyboard, editor: Editor) -> Input {
        Input::Terminal { keyboard, editor: Some(editor) }
    }

    /// The lines of standard input. Whoever reads them cannot be stopped, and ends with the process.
    pub(super) fn piped() -> Input {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            while let Some(line) = text::line(&mut stdin).transpose() {
                let is_broken = line.is_err();
                if sender.blocking_send(line).is_err() || is_broken {
                    return;
                }
            }
        });
        Input::Pipe(lines)
    }

    fn is_piped(&self) -> bool {
        matches!(self, Input::Pipe(_))
    }

    async fn next(&mut self, signals: &mut Signals) -> Next {
        let (keyboard, place) = match self {
            Input::Terminal { keyboard, editor } => (keyboard, editor),
            Input::Pipe(lines) => {
                return tokio::select! {
                    line = lines.recv() => match line {
                        Some(Ok(line)) => String::from_utf8(line).map_or(Next::NoText, Next::Line),
                        Some(Err(error)) => Next::Broken(error),
                        None => Next::End,
                    },
                    _ = signals.next() => Next::Signal,
                };
            }
        };
        loop {
            let Some(editor) = place.take() else { return Next::End };
            let mut reading = Box::pin(keyboard.command(editor, PROMPT));
            let done = tokio::select! {
                done = &mut reading => Some(done),
                _ = signals.next() => {
                    keyboard.disturb();
                    // Whoever reads from a terminal that is gone does not give up.
                    let _ = timeout(LET_GO, &mut reading).await;
                    None
                }
            };
            let Some((editor, typed)) = done else { return Next::Signal };
            *place = Some(editor);
            match typed {
                Ok(LineEvent::Line(line)) => return Next::Line(line),
                Ok(LineEvent::Interrupted) => return Next::Interrupted,
                Ok(LineEvent::Ended) => return Next::End,
                // It goes on when whoever wanted the keyboard has asked.
                Ok(LineEvent::Disturbed) => {}
                Err(error) => return Next::Broken(error),
            }
        }
    }

    /// Lets go of the terminal.
    pub(super) async fn close(&mut self) {
        if let Input::Terminal { keyboard, editor } = self {
            drop(editor.take());
            keyboard.release().await;
        }
    }
}

/// Does what is typed, until that ends.
pub(super) async fn commands(shell: &Arc<Shell>, input: &mut Input, signals: &mut Signals) -> Exit {
    let (mut has_failed, mut was_interrupted) = (false, false);
    let exit = |has_failed| if has_failed { Exit::Violation } else { Exit::Success };
    loop {
        let line = match input.next(signals).await {
            Next::Line(line) => line,
            Next::NoText => {
                shell.error("this line is not UTF-8");
                has_failed = true;
                continue;
            }
            Next::End => return exit(has_failed && input.is_piped()),
            Next::Signal => {
                style::leave_line();
                style::print(INTERRUPTED);
                shell.shutdown.cancel();
                return Exit::CannotRun;
            }
            Next::Interrupted if was_interrupted => return Exit::Success,
            Next::Interrupted => {
                was_interrupted = true;
                style::print("Ctrl-C once more, or Ctrl-D, ends\n");
                continue;
            }
            Next::Broken(error) => {
                shell.error(&format!("what is typed cannot be read: {error}"));
                return Exit::CannotRun;
            }
        };
        was_interrupted = false;
        let command = match Command::parse(&line) {
            Ok(Some(Command::Quit)) => return exit(has_failed && input.is_piped()),
            Ok(Some(Command::Help)) => {
                print_unchecked(&command::help());
                continue;
            }
            Ok(Some(command)) => command,
            Ok(None) => continue,
            Err(error) => {
                shell.error(&error);
                has_failed = true;
                continue;
            }
        };
        let cancel = CancellationToken::new();
        let mut running = Box::pin(shell.run(command, input.is_piped(), &cancel));
        let signal = tokio::select! {
            is_good = &mut running => {
                has_failed |= !is_good;
                continue;
            }
            signal = signals.next() => signal,
        };
        style::leave_line();
        cancel.cancel();
        let is_end = signal != Signal::INT || input.is_piped();
        if is_end {
            style::print(INTERRUPTED);
            shell.shutdown.cancel();
        }
        // Another signal does not wait for what does not end.
        tokio::select! {
            _ = &mut running => {}
            _ = signals.next() => {}
        }
        if is_end {
            return Exit::CannotRun;
        }
    }
}
