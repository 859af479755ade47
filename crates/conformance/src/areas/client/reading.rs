//! What a client has read. Time does not say: a client that is slow, or stopped for a while, sends late what it had
//! written before, and what it does at the same time in any order.

use std::time::Duration;

use crate::{Connection, EventRef, Kind};

/// Where a client shows that it has read what came before: it sends a request after the answer to another one that is
/// later too.
pub(super) struct Readings {
    /// The requests, with the first message that shows that what came before them was read.
    shown: Vec<(EventRef, Reading)>,
}

/// A message that shows it.
#[derive(Clone, Copy)]
pub(super) struct Reading {
    pub(super) place: EventRef,
    pub(super) time: Duration,
}

impl Readings {
    pub(super) fn new(connection: &Connection<'_>) -> Readings {
        let requests: Vec<_> = connection.sent().filter(|it| it.kind == Kind::Request).collect();
        let rounds = connection.calls().filter_map(|call| {
            let response = call.response?.place;
            let next = requests.get(requests.partition_point(|it| it.place <= response))?;
            Some((call.request.place, Reading { place: next.place, time: next.time }))
        });
        let mut shown: Vec<_> = rounds.collect();
        let mut first: Option<Reading> = None;
        for (_, reading) in shown.iter_mut().rev() {
            *reading = first.into_iter().chain([*reading]).min_by_key(|it| it.place).unwrap_or(*reading);
            first = Some(*reading);
        }
        Readings { shown }
    }

    /// The first message that shows that the client has read what came at a place.
    pub(super) fn after(&self, place: EventRef) -> Option<Reading> {
        self.shown.get(self.shown.partition_point(|(it, _)| *it <= place)).map(|(_, reading)| *reading)
    }
}
