//! A peer that is slow: what a trace would be if one side had done everything later.

use std::time::Duration;

use rand::{RngExt, rngs::StdRng};
use rehearse_protocol::{ClosedBy, Direction, Event, EventKind, Frame, ProcessEvent, Trace};

/// The longest delay of a message, of a start and of an end.
pub(crate) const LONGEST: Duration = Duration::from_secs(20);

/// How a peer is slow.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slowness {
    /// Each line of its output waits for some time; the order stays.
    Each,
    /// It stops now and then, and then sends what it has.
    Bursts,
    /// It is as slow to start, and fast then.
    Start,
}

impl Slowness {
    pub(crate) const ALL: [Slowness; 3] = [Slowness::Each, Slowness::Bursts, Slowness::Start];

    /// How long the next thing that the peer does is delayed.
    pub(crate) fn delay(self, is_first: bool, random: &mut StdRng) -> Duration {
        let waits = match self {
            Slowness::Each => true,
            Slowness::Bursts => random.random_ratio(1, 10),
            Slowness::Start => is_first,
        };
        let longest = LONGEST.as_millis() as u64;
        Duration::from_millis(if waits { random.random_range(0..longest) } else { 0 })
    }
}

/// How many seeds are tried: `REHEARSE_SLOW_SEEDS`, or so many.
pub(crate) fn seeds(usual: u64) -> u64 {
    std::env::var("REHEARSE_SLOW_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// The trace if the side that sends in a direction had been slow, and all that follows as much later.
pub(crate) fn delayed(trace: &Trace, side: Direction, slowness: Slowness, random: &mut StdRng) -> Trace {
    let mut out = Trace::default();
    let (mut later, mut is_first) = (Duration::ZERO, true);
    for event in trace.events() {
        if is_done_by(side, event) {
            later += slowness.delay(is_first, random);
            is_first = false;
        }
        let at = event.at + later;
        let kind = match &event.kind {
            EventKind::Frame(frame) => EventKind::Frame(Frame::new(frame.direction, at, frame.bytes.clone())),
            kind => kind.clone(),
        };
        out.push_event(Event { at, exchange: event.exchange, kind });
    }
    out
}

/// Whether a side decides when something happens.
fn is_done_by(side: Direction, event: &Event) -> bool {
    let is_client = side == Direction::ClientToServer;
    match &event.kind {
        // The body of a request comes with its head.
        EventKind::Frame(frame) => frame.direction == side && !(is_client && event.exchange.is_some()),
        EventKind::HttpBody { direction, .. } => *direction == side && !is_client,
        EventKind::HttpRequest { .. } => is_client,
        EventKind::HttpResponse { .. } | EventKind::HttpEnd { .. } | EventKind::Stderr(_) => !is_client,
        EventKind::Process(ProcessEvent::InputClosed | ProcessEvent::Terminated) => is_client,
        EventKind::Process(_) => !is_client,
        EventKind::Closed(closed) => (closed.by == ClosedBy::Client) == is_client,
        EventKind::Opened(_) | EventKind::Case(_) => false,
    }
}
