//! Lines of a terminal that does not say where its cursor is, such as that of a script. The editor would ask before every
//! change, and wait for 2 s each time.

use std::{io, time::Duration};

use crossterm::{
    cursor,
    event::{self, Event, KeyCode, KeyEvent, KeyModifiers},
};
use parking_lot::Mutex;
use rehearse_system::terminal::read_within;

use super::line_event::LineEvent;
use crate::cli::style::{self, STRONG};

/// How often a read checks whether it must end.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;

/// Reads lines without editing them. It contains what was typed and not read yet.
#[derive(Debug)]
pub(super) struct PlainInput(Mutex<Vec<u8>>);

impl PlainInput {
    /// Asks the terminal once; `None` if it answers within 2 s.
    pub(super) fn detect() -> Option<PlainInput> {
        cursor::position().err()?;
        style::print(&format!(
            "{STRONG}info:{STRONG:#} the terminal does not tell the position of its cursor; lines cannot be edited\n"
        ));
        let mut typed = Vec::new();
        while event::poll(Duration::ZERO).unwrap_or_default() {
            match event::read() {
                Ok(Event::Key(key)) => add_key(&mut typed, key),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Some(PlainInput(Mutex::new(typed)))
    }

    /// # Errors
    /// The terminal cannot be read.
    pub(super) fn read_line(&self, prompt: &str, is_stopped: impl Fn() -> bool) -> io::Result<LineEvent> {
        style::print(prompt);
        let mut typed = self.0.lock();
        loop {
            if let Some(end) = typed.iter().position(|byte| matches!(*byte, b'\n' | CTRL_C | CTRL_D)) {
                let line: Vec<u8> = typed.drain(..=end).collect();
                return Ok(match line.split_last() {
                    Some((&CTRL_C, _)) => LineEvent::Interrupted,
                    Some((b'\n', line)) => LineEvent::Line(String::from_utf8_lossy(line).into_owned()),
                    _ => LineEvent::Ended,
                });
            }
            if is_stopped() {
                style::print("\n");
                return Ok(LineEvent::Suspended);
            }
            let mut bytes = [0; 4096];
            match read_within(&mut bytes, CHECK_INTERVAL)? {
                None => {}
                Some(0) => return Ok(LineEvent::Ended),
                Some(count) => typed.extend(&bytes[..count]),
            }
        }
    }
}

/// Adds what a terminal sends for a key.
fn add_key(typed: &mut Vec<u8>, KeyEvent { code, modifiers, .. }: KeyEvent) {
    match code {
        KeyCode::Enter => typed.push(b'\n'),
        KeyCode::Backspace => drop(typed.pop()),
        KeyCode::Char('c') if modifiers == KeyModifiers::CONTROL => typed.push(CTRL_C),
        KeyCode::Char('d') if modifiers == KeyModifiers::CONTROL => typed.push(CTRL_D),
        KeyCode::Char('j') if modifiers == KeyModifiers::CONTROL => typed.push(b'\n'),
        KeyCode::Char(character) => typed.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        _ => {}
    }
}
