//! The source of commands: the user at the terminal, or a pipe.

use std::{
    io::{self, Read as _},
    sync::Arc,
    time::Duration,
};

use rehearse_system::Signal;
use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

use super::{command::Command, shell::Shell};
use crate::cli::{
    Exit,
    mcp::session::INTERRUPTED,
    signals::Signals,
    style,
    terminal_user::{Editor, Keyboard, LineEvent},
};
use rehearse_document::text;

/// How long releasing the terminal may take.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) enum Input {
    Terminal { keyboard: Keyboard, editor: Option<Editor>, prompt: &'static str },
    Pipe(mpsc::Receiver<io::Result<Vec<u8>>>),
}

/// The next input.
enum InputEvent {
    Line(String),
    /// A line or message that is not UTF-8.
    NotUtf8,
    /// Ctrl-C at the prompt.
    Interrupted,
    End,
    /// A signal to exit.
    Signal,
    ReadError(io::Error),
}

impl Input {
    pub(super) fn terminal(keyboard: Keyboard, editor: Editor, prompt: &'static str) -> Input {
        Input::Terminal { keyboard, editor: Some(editor), prompt }
    }

    /// The whole standard input, as one message.
    pub(super) fn piped_message() -> Input {
        let (sender, message) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut whole = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut whole);
            sender.blocking_send(read.map(|_| whole))
        });
        Input::Pipe(message)
    }

    /// The lines of standard input, read by a thread that ends with the process.
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

    async fn next(&mut self, signals: &mut Signals) -> InputEvent {
        let (keyboard, place, prompt) = match self {
            Input::Terminal { keyboard, editor, prompt } => (keyboard, editor, *prompt),
            Input::Pipe(lines) => {
                return tokio::select! {
                    line = lines.recv() => match line {
                        Some(Ok(line)) => String::from_utf8(line).map_or(InputEvent::NotUtf8, InputEvent::Line),
                        Some(Err(error)) => InputEvent::ReadError(error),
                        None => InputEvent::End,
                    },
                    _ = signals.next() => InputEvent::Signal,
                };
            }
        };
        loop {
            let Some(editor) = place.take() else { return InputEvent::End };
            let mut reading = Box::pin(keyboard.read_command(editor, prompt));
            let done = tokio::select! {
                done = &mut reading => Some(done),
                _ = signals.next() => {
                    keyboard.suspend_command();
                    // A read from a closed terminal may never end.
                    let _ = timeout(RELEASE_TIMEOUT, &mut reading).await;
                    None
                }
            };
            let Some((editor, typed)) = done else { return InputEvent::Signal };
            *place = Some(editor);
            match typed {
                Ok(LineEvent::Line(line)) => return InputEvent::Line(line),
                Ok(LineEvent::Interrupted) => return InputEvent::Interrupted,
                Ok(LineEvent::Ended) => return InputEvent::End,
                // A conversation has the keyboard: wait for it.
                Ok(LineEvent::Suspended) => {}
                Err(error) => return InputEvent::ReadError(error),
            }
        }
    }

    /// Releases the terminal.
    pub(super) async fn close(&mut self) {
        if let Input::Terminal { keyboard, editor, .. } = self {
            drop(editor.take());
            keyboard.release().await;
        }
    }
}

/// Runs commands until the input ends.
pub(super) async fn run_commands(shell: &Arc<Shell>, input: &mut Input, signals: &mut Signals) -> Exit {
    let (mut has_failed, mut was_interrupted) = (false, false);
    let exit = |has_failed| if has_failed { Exit::Violation } else { Exit::Success };
    loop {
        let line = match input.next(signals).await {
            InputEvent::Line(line) => line,
            InputEvent::NotUtf8 => {
                shell.error("this input is not UTF-8");
                has_failed = true;
                continue;
            }
            InputEvent::End => return exit(has_failed && input.is_piped()),
            InputEvent::Signal => {
                style::leave_line();
                style::print(INTERRUPTED);
                shell.shutdown.cancel();
                return Exit::CannotRun;
            }
            InputEvent::Interrupted if was_interrupted => return Exit::Success,
            InputEvent::Interrupted => {
                was_interrupted = true;
                style::print("press Ctrl-C again or Ctrl-D to exit\n");
                continue;
            }
            InputEvent::ReadError(error) => {
                shell.error(&format!("cannot read standard input: {error}"));
                return Exit::CannotRun;
            }
        };
        was_interrupted = false;
        let parse = match &shell.chat {
            Some(_) if input.is_piped() => Command::message,
            Some(_) => Command::parse_in_chat,
            None => Command::parse,
        };
        let command = match parse(&line) {
            Ok(Some(Command::Quit)) => return exit(has_failed && input.is_piped()),
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
        let is_end = signal != Signal::Interrupt || input.is_piped();
        if is_end {
            style::print(INTERRUPTED);
            shell.shutdown.cancel();
        }
        // A second signal does not wait for the command.
        tokio::select! {
            _ = &mut running => {}
            _ = signals.next() => {}
        }
        if is_end {
            return Exit::CannotRun;
        }
    }
}
