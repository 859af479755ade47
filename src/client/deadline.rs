//! How long something may take that a person may be asked about.

use std::time::Duration;

use tokio::{
    task::coop::unconstrained,
    time::{Instant, sleep_until},
};

use super::oauth::Authorizer;

/// A point in time that moves on by the time in which a person is asked to authorize the client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline<'a> {
    first: Instant,
    authorizer: Option<&'a Authorizer>,
    /// The time that persons had taken before it began.
    before: Duration,
}

impl<'a> Deadline<'a> {
    /// So long from now.
    pub(super) fn after(limit: Duration, authorizer: Option<&'a Authorizer>) -> Deadline<'a> {
        let before = authorizer.map(Authorizer::paused).unwrap_or_default();
        Deadline { first: Instant::now() + limit, authorizer, before }
    }

    /// When it is, as far as that is known now.
    pub(super) fn instant(&self) -> Instant {
        self.first + self.authorizer.map(|it| it.paused().saturating_sub(self.before)).unwrap_or_default()
    }

    /// What is left.
    pub(super) fn remaining(&self) -> Duration {
        self.instant().saturating_duration_since(Instant::now())
    }

    /// Ends when it has passed, also beside something that uses up all of the time that tokio gives to a task.
    pub(super) async fn wait(self) {
        loop {
            unconstrained(sleep_until(self.instant())).await;
            if self.instant() <= Instant::now() {
                return;
            }
        }
    }
}
