//! The standard error of a process while it is probed.
//!
//! SDKs of older versions write an error of many lines when they refuse `server/discover`, though nothing is wrong.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::transport::{StderrLine, StderrSink};

/// How long a line is held at most: a server may ask its user for something before it answers.
const LONGEST: Duration = Duration::from_secs(1);
/// How many lines are held.
const MOST: usize = 1000;
/// How many lines before the first that names the probe may belong to the same error.
const HEADING: usize = 2;

/// Holds lines back until the handshake has an answer. Clones share the lines.
#[derive(Clone)]
pub(crate) struct HeldStderr(Arc<Mutex<State>>);

struct State {
    sink: Option<StderrSink>,
    /// `None` once lines go to the sink at once.
    lines: Option<VecDeque<(Instant, StderrLine)>>,
}

impl HeldStderr {
    /// Must be called within a tokio runtime.
    pub(crate) fn new(sink: StderrSink) -> HeldStderr {
        let state = Arc::new(Mutex::new(State { sink: Some(sink), lines: Some(VecDeque::new()) }));
        tokio::spawn(pass_old(Arc::downgrade(&state)));
        HeldStderr(state)
    }

    pub(crate) fn sink(&self) -> StderrSink {
        let state = self.0.clone();
        Arc::new(move |line| {
            let mut state = state.lock();
            match &mut state.lines {
                Some(lines) => lines.push_back((Instant::now(), line)),
                None => state.pass([line]),
            }
            state.pass_from(|state| state.lines.as_ref().is_some_and(|lines| lines.len() > MOST));
        })
    }

    /// Passes the lines on, and all further ones; without those about a probe that was refused.
    pub(crate) fn release(&self, is_refused: bool) {
        let mut state = self.0.lock();
        let lines = state.lines.take().unwrap_or_default();
        let mut lines: Vec<_> = lines.into_iter().map(|(_, line)| line).collect();
        if is_refused && let Some(start) = refusal(&lines) {
            lines.truncate(start);
        }
        state.pass(lines);
    }

    pub(crate) fn is_same_as(&self, other: &HeldStderr) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Drops the lines, and all further ones.
    pub(crate) fn discard(&self) {
        let mut state = self.0.lock();
        (state.sink, state.lines) = (None, None);
    }
}

impl State {
    fn pass(&self, lines: impl IntoIterator<Item = StderrLine>) {
        if let Some(sink) = &self.sink {
            lines.into_iter().for_each(|line| sink(line));
        }
    }

    /// Passes the oldest line as long as the condition holds.
    fn pass_from(&mut self, condition: impl Fn(&State) -> bool) {
        while condition(self) {
            let oldest = self.lines.as_mut().and_then(VecDeque::pop_front);
            self.pass(oldest.map(|(_, line)| line));
        }
    }
}

/// Passes lines that were held for too long, until the others are released.
async fn pass_old(state: Weak<Mutex<State>>) {
    loop {
        sleep(LONGEST / 4).await;
        let Some(state) = state.upgrade() else { return };
        let mut state = state.lock();
        if state.lines.is_none() {
            return;
        }
        let oldest = |state: &State| Some(state.lines.as_ref()?.front()?.0);
        state.pass_from(|state| oldest(state).is_some_and(|at| at.elapsed() >= LONGEST));
    }
}

/// Where the error about the refused probe begins; it is the last thing before the answer.
fn refusal(lines: &[StderrLine]) -> Option<usize> {
    let named = lines.iter().position(|line| line.line.contains("server/discover"))?;
    let first = named.saturating_sub(HEADING);
    let heading = lines[first..named].iter().position(|line| line.line.to_lowercase().contains("error"));
    Some(heading.map_or(named, |heading| first + heading))
}
