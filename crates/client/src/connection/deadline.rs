//! Deadlines that wait for users.

use std::time::Duration;

use tokio::{
    task::coop::unconstrained,
    time::{Instant, sleep_until},
};

use crate::oauth::Authorizer;

/// As long as no timeout.
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A deadline that is extended by the time in which a user authorizes the client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline<'a> {
    first: Instant,
    authorizer: Option<&'a Authorizer>,
    /// How long authorizations by users took before it started.
    before: Duration,
}

impl<'a> Deadline<'a> {
    /// A deadline that expires after `limit`.
    pub(crate) fn from_now(limit: Duration, authorizer: Option<&'a Authorizer>) -> Deadline<'a> {
        let before = authorizer.map(Authorizer::paused).unwrap_or_default();
        let now = Instant::now();
        Deadline { first: now.checked_add(limit).unwrap_or(now + FAR), authorizer, before }
    }

    /// When it expires, unless another authorization extends it.
    pub(crate) fn instant(&self) -> Instant {
        self.first + self.authorizer.map(|it| it.paused().saturating_sub(self.before)).unwrap_or_default()
    }

    /// The remaining time.
    pub(crate) fn remaining(&self) -> Duration {
        self.instant().saturating_duration_since(Instant::now())
    }

    /// Waits for the deadline, even if another future uses up the cooperative budget of the task.
    pub(crate) async fn wait(self) {
        loop {
            unconstrained(sleep_until(self.instant())).await;
            if self.instant() <= Instant::now() {
                return;
            }
        }
    }
}
