//! `--check`: what the specification says of the client, while it is served and at the end.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, mpsc::SyncSender},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::console::Console;
use crate::cli::style;
use rehearse_mock::{
    ProtocolViolation,
    engine::Engine,
    journal::{Journal, JournalEvent},
    serve::ServerRecorder,
};
use rehearse_report::text::printable_lines;

/// How often the traffic is judged.
const LOOK: Duration = Duration::from_millis(500);
/// How long a violation must be seen before it is reported: what is missing may still come.
const SETTLED: Duration = Duration::from_secs(2);

/// Judges the clients of a mock.
pub(super) struct ClientCheck {
    recorder: Arc<ServerRecorder>,
    /// Where violations are written to: the journal, and with --verbose stderr.
    sender: Option<SyncSender<JournalEvent>>,
    reported: Mutex<HashSet<ProtocolViolation>>,
}

impl ClientCheck {
    pub(super) fn new(sender: Option<SyncSender<JournalEvent>>) -> ClientCheck {
        ClientCheck { recorder: Arc::default(), sender, reported: Mutex::default() }
    }

    pub(super) fn recorder(&self) -> Arc<ServerRecorder> {
        self.recorder.clone()
    }

    /// Reports each violation once it has been there for a while. Never returns.
    pub(super) async fn watch(&self, engine: &Engine) {
        let (mut first_seen, mut judged) = (HashMap::new(), 0);
        loop {
            sleep(LOOK).await;
            let events = self.recorder.events();
            if events == judged && first_seen.is_empty() {
                continue;
            }
            judged = events;
            let now = Instant::now();
            let mut seen = HashMap::new();
            for violation in self.recorder.violations().into_iter().filter(|it| !self.is_reported(it)) {
                let since = first_seen.get(&violation).copied().unwrap_or(now);
                match now - since >= SETTLED {
                    true => self.report(engine.journal(), violation),
                    false => drop(seen.insert(violation, since)),
                }
            }
            first_seen = seen;
        }
    }

    fn is_reported(&self, violation: &ProtocolViolation) -> bool {
        self.reported.lock().contains(violation)
    }

    fn report(&self, journal: &Journal, violation: ProtocolViolation) {
        let is_new = self.reported.lock().insert(violation.clone());
        if let Some(sender) = self.sender.as_ref().filter(|_| is_new) {
            let number = violation.message.as_ref().and_then(|message| {
                journal.entries().iter().rev().find(|entry| entry.request == message).map(|entry| entry.number)
            });
            let _ = sender.send(JournalEvent::Violated(number, violation));
        }
    }

    /// Prints the violations of the whole traffic. Returns whether no MUST is violated.
    pub(super) fn conclude(&self, engine: &Engine, console: &Console) -> bool {
        let violations = self.recorder.violations();
        violations.iter().cloned().for_each(|violation| self.report(engine.journal(), violation));
        let (good, bad, doubtful) = (style::GOOD, style::BAD, style::DOUBTFUL);
        if self.recorder.events() == 0 {
            console.print(format!("{doubtful}no client has connected{doubtful:#}: nothing was checked\n"));
            return true;
        }
        if violations.is_empty() {
            let what = "violates no rule of the specification that this traffic shows";
            console.print(format!("{good}✓ the client {what}{good:#}\n"));
            return true;
        }
        let mut rules: Vec<(&ProtocolViolation, usize)> = Vec::new();
        for violation in &violations {
            match rules.iter_mut().find(|(it, _)| it.rule == violation.rule) {
                Some((_, times)) => *times += 1,
                None => rules.push((violation, 1)),
            }
        }
        let count = if rules.len() == 1 { "a rule".to_owned() } else { format!("{} rules", rules.len()) };
        let mut text = format!("{bad}✗ the client violates {count} of the specification:{bad:#}\n");
        for (violation, times) in rules {
            let more = if times > 1 { format!(" ({times} times)") } else { String::new() };
            printable_lines(&format!("{violation}{more}")).for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        console.print(text + "`rehearse check --explain RULE` explains a rule.\n");
        violations.iter().all(|violation| !violation.is_must)
    }
}
