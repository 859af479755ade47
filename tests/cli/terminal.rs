//! Runs the binary at a pseudo terminal.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    path::PathBuf,
    process::{Child, Command, ExitStatus},
    sync::mpsc::{self, Receiver},
    time::{Duration, Instant},
};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{OutputModes, Termios, Winsize, tcgetattr, tcsetwinsize},
};

use crate::rehearse::Rehearse;

/// Longer than any step takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The request for the position of the cursor, and the response.
const POSITION_REQUEST: &str = "\u{1b}[6n";
const POSITION_RESPONSE: &[u8] = b"\x1b[1;1R";

/// A pseudo terminal with the running binary.
pub(crate) struct Terminal {
    story: Rehearse,
    child: Child,
    keyboard: File,
    /// The side of the program, kept open so that its last output can be read.
    near: File,
    output: Receiver<Vec<u8>>,
    before: Termios,
    seen: String,
    /// The end of the last match.
    read: usize,
}

impl Terminal {
    pub(crate) fn start(story: Rehearse) -> Terminal {
        Terminal::answering(story, usize::MAX)
    }

    /// A terminal that answers only so many requests for the position of the cursor.
    pub(crate) fn answering(story: Rehearse, mut answers: usize) -> Terminal {
        let far = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo terminal");
        grantpt(&far).and_then(|()| unlockpt(&far)).expect("opens");
        let path = ptsname(&far, Vec::new()).expect("a name").into_string().expect("UTF-8");
        let near = File::options().read(true).write(true).open(path).expect("opens");
        tcsetwinsize(&near, Winsize { ws_row: 50, ws_col: 200, ws_xpixel: 0, ws_ypixel: 0 }).expect("resizes");
        let before = tcgetattr(&near).expect("attributes");
        let same = || near.try_clone().expect("one more");
        let mut command = story.command();
        command.env("TERM", "xterm").env("NO_COLOR", "1");
        let child = command.stdin(same()).stdout(same()).stderr(same()).spawn().expect("starts");
        let mut screen = File::from(far);
        let mut answering = screen.try_clone().expect("one more");
        let keyboard = screen.try_clone().expect("one more");
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            loop {
                match screen.read(&mut bytes) {
                    Ok(0) => return,
                    Ok(count) => {
                        let asked = String::from_utf8_lossy(&bytes[..count]).matches(POSITION_REQUEST).count();
                        let asked = asked.min(answers);
                        answers -= asked;
                        (0..asked).for_each(|_| answering.write_all(POSITION_RESPONSE).expect("types"));
                        if sender.send(bytes[..count].to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Terminal { story, child, keyboard, near, output, before, seen: String::new(), read: 0 }
    }

    /// Waits for this text after the last match.
    pub(crate) fn shows(&mut self, part: &str) -> &mut Self {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(at) = self.seen[self.read..].find(part) {
                self.read += at + part.len();
                return self;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("no {part:?} after the first {} bytes of:\n{}", self.read, self.seen),
            }
        }
    }

    /// As [`Terminal::shows`], in any order.
    pub(crate) fn shows_all<const N: usize>(&mut self, parts: [&str; N]) -> &mut Self {
        let (begin, mut end) = (self.read, self.read);
        for part in parts {
            self.read = begin;
            end = self.shows(part).read.max(end);
        }
        self.read = end;
        self
    }

    /// Creates an empty file in the working folder.
    pub(crate) fn create_file(&mut self, name: &str) -> &mut Self {
        std::fs::write(self.path(name), "").expect("writes");
        self
    }

    pub(crate) fn types(&mut self, text: &str) -> &mut Self {
        self.keyboard.write_all(text.as_bytes()).expect("types");
        self
    }

    pub(crate) fn signal(&mut self, name: &str) -> &mut Self {
        let kill = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(kill.expect("kill runs").success());
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.story.folder().join(name)
    }

    /// Waits for the end, checks that the terminal is restored, and returns its text.
    pub(crate) fn end(mut self, code: i32) -> String {
        let deadline = Instant::now() + TIMEOUT;
        let status: ExitStatus = loop {
            match self.child.try_wait().expect("waits") {
                Some(status) => break status,
                None if Instant::now() > deadline => panic!("still running after:\n{}", self.seen),
                // The process ends only if its output is read.
                None => {
                    if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(20)) {
                        self.seen += &String::from_utf8_lossy(&bytes);
                    }
                }
            }
        };
        let after = tcgetattr(&self.near).expect("attributes");
        self.near.write_all(b"THE END").expect("writes");
        self.shows("THE END");
        assert_eq!(status.code(), Some(code), "{}", self.seen);
        assert_eq!(after.local_modes, self.before.local_modes, "the terminal is not restored:\n{}", self.seen);
        assert!(after.output_modes.contains(OutputModes::OPOST), "the terminal is not restored:\n{}", self.seen);
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
