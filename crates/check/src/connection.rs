//! One connection of the prober, on which everything is sent one after the other.

use std::{collections::HashMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Method};
use rehearse_client::{ClientInfo, ConnectError, Exchange, ServerParams, Target, Wire, WireExchange, WireRequest};
use rehearse_conformance::{Case, CaseBody, CaseGroup};
use rehearse_protocol::{Closed, Era, Event, Trace, Version};
use serde_json::{Map, Value, json};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};

use crate::{
    CheckOptions,
    options::Budget,
    replies::{Replies, requests},
};

mod answer;
mod begun;
mod exchanges;
mod handshake;
mod http_exchange;
mod latencies;
mod messages;

pub(crate) use answer::Answer;
use answer::{answer_among, has_id, is_answer, is_response, parse};
use begun::CancelledCall;
pub(crate) use exchanges::other_id;
use latencies::Latencies;

/// How many unanswered requests a connection bears before it waits only for the window of silence.
const PATIENCE: u32 = 2;
/// How many events of a connection are kept, and how many bytes.
const KEPT_EVENTS: usize = 5_000;
pub(crate) const KEPT_BYTES: usize = 8 << 20;
/// An answer of so many bytes is not asked for again if there is little room left.
const LARGE: usize = 64 << 10;
/// How often a request is sent again with what the server asks for.
const MOST_ROUNDS: usize = 5;
/// How soon the answer to a request follows an error without an id that is about something else.
const SETTLES: Duration = Duration::from_millis(100);
/// More bytes than a pipe holds.
const PIPE: usize = 256 << 10;
/// How long a process may take to exit; longer, if its processes take long to start.
const EXIT: Duration = Duration::from_millis(2500);
const LONGEST_EXIT: Duration = Duration::from_secs(20);
/// How long it may take at the end of the run, twice.
const LAST_EXIT: Duration = Duration::from_millis(200);
/// The longest window in which nothing must happen, unless the user wants a longer one.
const LONGEST_GRACE: Duration = Duration::from_secs(2);
/// The longest time to wait for the answer to a case after that to its control.
const LONGEST_SETTLING: Duration = Duration::from_millis(100);
/// The least time for an answer of a server that has been fast so far.
const LEAST_WAIT: Duration = Duration::from_secs(2);

pub(crate) fn client_info() -> ClientInfo {
    ClientInfo { name: "rehearse-check".to_owned(), title: None, version: env!("CARGO_PKG_VERSION").to_owned() }
}

/// A session of the prober; its ids begin with 1.
fn exchange(version: Version) -> Exchange {
    let mut exchange = Exchange::new(client_info(), Map::new(), version);
    exchange.next_id();
    exchange
}

/// How many processes run at once.
static PROCESSES: Semaphore = Semaphore::const_new(12);
/// How many of them start at once: a busy machine makes a server look silent.
static STARTING: Semaphore = Semaphore::const_new(4);

/// A connection and what its server has agreed to.
pub(crate) struct ProbeConnection {
    /// The right to run a process.
    _place: Option<SemaphorePermit<'static>>,
    /// The right to start one, until the handshake is over.
    starting: Option<SemaphorePermit<'static>>,
    wire: Wire,
    version: Version,
    /// What is sent, before a case changes it. By default the client has no capabilities: then a server cannot ask for
    /// anything.
    exchange: Exchange,
    replies: Replies,
    /// The number of the event before which every request of the server is answered.
    replied: usize,
    options: CheckOptions,
    budget: Budget,
    /// How many bytes large answers had, by their requests.
    large: HashMap<(String, String), usize>,
    /// How long answers took, other than those of tools.
    latencies: Latencies,
    unanswered: u32,
    /// Status and headers of the last HTTP response.
    last_head: Option<(u16, HeaderMap)>,
    /// Whether the server may have left the body of the last request unread, which would make the next one on the same TCP
    /// connection fail.
    may_be_unread: bool,
    /// Whether the handshake is over.
    is_open: bool,
    started: Instant,
    /// Whether a process has said something. Until then it may be starting.
    has_answered: bool,
    /// Whether an HTTP request had a status.
    has_status: bool,
    /// Whether the handshake had no answer over a pipe: then nothing more is sent.
    is_silent: bool,
    /// Whether the server was too busy for the handshake.
    is_refused: bool,
    /// Whether the server took no message any more.
    is_broken: bool,
    /// Requests without an answer so far.
    late: Vec<LateRequest>,
    /// A call whose cancellation is still to be seen.
    cancelled: Option<Box<CancelledCall>>,
    /// Exchanges whose responses have not ended yet.
    open: Vec<WireExchange>,
    /// Those of them that should end, because the message that was asked for has come.
    ending: Vec<WireExchange>,
}

/// A request that has no answer yet.
#[derive(Debug)]
struct LateRequest {
    /// The number of the event before it.
    from: usize,
    sent: Instant,
    id: Value,
}

impl ProbeConnection {
    /// Connects; sends nothing.
    ///
    /// # Errors
    /// As [`Wire::open`], with the trace of the attempt; an empty one if nothing was tried, because the server
    /// hangs or has sent too much.
    pub(crate) async fn open(
        params: &ServerParams,
        version: Version,
        options: &CheckOptions,
        budget: &Budget,
    ) -> Result<ProbeConnection, (ConnectError, Trace)> {
        let (place, starting) = match params.target {
            Target::Stdio(_) => (PROCESSES.acquire().await.ok(), STARTING.acquire().await.ok()),
            _ => (None, None),
        };
        if budget.hangs() || budget.is_full() {
            let error = ConnectError::Malformed("nothing more is tried".to_owned());
            return Err((error, Trace::default()));
        }
        let recorder = rehearse_client::ClientRecorder::of_beginning(KEPT_EVENTS, KEPT_BYTES, budget.began());
        budget.note_connection(version, &recorder);
        if let Some(sink) = &options.record_sink.0 {
            sink(version, &recorder);
        }
        let limit = budget.within(options.start_timeout);
        let opened = tokio::time::timeout(limit, Wire::open(params, None, recorder.clone())).await;
        let silent = || ConnectError::Malformed(format!("the connection was not open after {limit:?}"));
        let wire = opened.unwrap_or_else(|_| Err(silent())).map_err(|error| {
            recorder.close(Closed::by_client(error.to_string()).broken());
            (error, recorder.trace())
        })?;
        let (latencies, unanswered, open) = (Latencies::default(), 0, Vec::new());
        let (options, budget) = (options.clone(), budget.clone());
        let has_answered = !matches!(params.target, Target::Stdio(_));
        Ok(ProbeConnection {
            wire,
            version,
            exchange: exchange(version),
            replies: Replies::default(),
            replied: 0,
            large: HashMap::new(),
            options,
            budget,
            latencies,
            unanswered,
            last_head: None,
            may_be_unread: false,
            is_open: false,
            started: Instant::now(),
            has_answered,
            has_status: false,
            is_silent: false,
            is_refused: false,
            is_broken: false,
            late: Vec::new(),
            cancelled: None,
            open,
            ending: Vec::new(),
            _place: place,
            starting,
        })
    }

    /// With a client of these capabilities.
    #[must_use]
    pub(crate) fn with_capabilities(mut self, capabilities: Value) -> ProbeConnection {
        self.set_capabilities(capabilities);
        self
    }

    /// From now on the client has these capabilities; a legacy server does not learn of it.
    pub(crate) fn set_capabilities(&mut self, capabilities: Value) {
        if let Value::Object(capabilities) = capabilities {
            self.exchange.set_capabilities(capabilities);
        }
    }

    /// From now on the client answers what the server asks like this.
    pub(crate) fn reply_with(&mut self, replies: Replies) {
        self.replies = replies;
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn wire(&self) -> &Wire {
        &self.wire
    }

    /// The window in which nothing must happen: it follows the usual latency of the server.
    pub(crate) fn grace(&self) -> Duration {
        let usual = (self.latencies.usual() * 20).min(LONGEST_GRACE);
        self.budget.within(self.options.grace.max(usual))
    }

    /// Whether the server took no message any more, so that no answer was waited for.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether a process that has said nothing leaves unread what it gets: more than a pipe holds.
    pub(crate) async fn is_unread(&mut self) -> bool {
        if self._place.is_none() || !self.is_silent || self.is_broken || self.wire.is_closed() || self.is_cut_off() {
            return false;
        }
        let blank = Bytes::from_static(&[b' '; PIPE]);
        tokio::time::timeout(LEAST_WAIT, self.wire.send(None, blank)).await.is_err()
    }

    /// Whether the time of the run is over.
    pub(crate) fn is_late(&self) -> bool {
        self.budget.is_over()
    }

    /// Whether the server has sent more than is kept. What it would send on this connection is not worth its time.
    pub(crate) fn is_over_limit(&self) -> bool {
        self.wire.recorder().is_full() || self.budget.is_full()
    }

    /// Whether there is room for what other probes send on this connection.
    pub(crate) fn has_room(&self) -> bool {
        let recorder = self.wire.recorder();
        recorder.end() < KEPT_EVENTS / 2 && self.has_room_for(0)
    }

    /// Whether an answer of this size leaves room for other probes.
    fn has_room_for(&self, size: usize) -> bool {
        self.wire.recorder().bytes() + size < KEPT_BYTES / 2
    }

    /// Waits, at most to the end of the run.
    pub(crate) async fn wait(&self, time: Duration) {
        tokio::time::sleep(self.budget.within(time)).await;
    }

    /// Whether the connection is of no more use: the server is gone, or silent, or never is.
    pub(crate) fn is_over(&self) -> bool {
        let has_no_answers = self.is_unheard() || self.unanswered > 2 * PATIENCE;
        has_no_answers || self.is_cut_off() || self.wire.is_closed()
    }

    /// Whether nothing more is sent, because the first request had no answer, or the server was too busy for it. Over HTTP,
    /// requests without the session that an answer opens would say nothing of the server.
    fn is_unheard(&self) -> bool {
        let needs_session = self.wire.is_http() && self.version.era() == Era::Legacy;
        self.is_silent || (needs_session && (self.is_refused || (!self.has_status && self.unanswered > 0)))
    }

    /// Whether nothing more is sent, because time or room is over.
    fn is_cut_off(&self) -> bool {
        self.is_over_limit() || self.budget.is_over()
    }

    /// Notes a case that is not sent, if that is because the connection has ended.
    pub(crate) fn note_unsent(&self, case: &Case) {
        if self.wire.is_closed() {
            self.wire.note_unsent(case.name.as_str().into());
        }
    }

    /// Sends a valid request and waits for its response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Answer {
        self.within(self.limit(), method, params).await
    }

    /// Sends a request, and again with what a modern server asks for, until it asks for nothing more.
    pub(crate) async fn complete(&mut self, request: &Case) -> Answer {
        let mut case = request.clone();
        let mut answer = self.send(&case).await;
        for _ in 0..MOST_ROUNDS {
            let (CaseBody::Request { params, .. }, Some(result)) = (&mut case.body, answer.result()) else { break };
            let Some(retry) = self.replies.retry(params, result) else { break };
            *params = retry;
            answer = self.send(&case).await;
        }
        answer
    }

    /// Sends a case, and waits for its answer or for the window of silence.
    pub(crate) async fn send(&mut self, case: &Case) -> Answer {
        let limit = match &case.body {
            // A server may be silent about what is not a message, or wait in vain for what it should refuse.
            _ if case.is_answered && self.is_short(case) => {
                self.limit().min((self.latencies.longest() * 50).max(LEAST_WAIT))
            }
            _ if case.is_answered => self.limit(),
            CaseBody::Notification { .. } => Duration::ZERO,
            _ if !self.has_answered => self.grace() + self.budget.slowest_start() * 2,
            _ => self.grace(),
        };
        self.send_within(limit, case).await
    }

    fn is_short(&self, case: &Case) -> bool {
        match case.group {
            CaseGroup::Malformed => true,
            // An answer that comes later is seen over a pipe.
            CaseGroup::Negative => !self.wire.is_http(),
            _ => false,
        }
    }

    /// Waits for late answers, until silence is a finding.
    async fn wait_for_late(&mut self) {
        let mut late = std::mem::take(&mut self.late);
        let Some(first) = late.first() else { return };
        let recorder = self.wire.recorder();
        let mut read = first.from;
        let patience = self.options.patience() + self.options.grace;
        // A slow server may be busy with an earlier request: only when it says nothing more, nothing more will come.
        let last = late.iter().map(|it| it.sent + patience).max().unwrap_or_else(Instant::now);
        let (mut end, mut is_silent) = (first.sent + patience, true);
        loop {
            let events = recorder.read(&mut read);
            // Messages without end that answer nothing are no sign of more answers.
            for frame in events.iter().filter_map(Event::frame).filter(|it| is_response(it)) {
                late.retain(|it| !is_answer(frame, Some(&it.id)));
                end = end.max(last).max(recorder.opened() + frame.at + patience);
                is_silent = false;
            }
            if is_silent && self.budget.is_silent() {
                return;
            }
            let left = self.budget.within(end.saturating_duration_since(Instant::now()));
            let is_over = late.is_empty() || left.is_zero();
            // In short parts: another connection may find the silence first.
            let part = left.min(LEAST_WAIT);
            match tokio::time::timeout(part, recorder.has_more(read)).await {
                _ if is_over => {}
                Ok(true) => continue,
                Err(_) if part < left => continue,
                Ok(false) | Err(_) => {}
            }
            if is_silent && !late.is_empty() {
                self.budget.note_silence(self.options.request_timeout * PATIENCE);
            }
            return;
        }
    }

    /// Sends a request whose answer shows that the server still lives and has read what came before it.
    pub(crate) async fn control(&mut self, case: &str) -> Answer {
        let method = if self.version.era() == Era::Modern { "server/discover" } else { "ping" };
        let group = CaseGroup::Malformed;
        self.send(&Case::request(format!("control/{case}"), group, method, json!({}))).await
    }

    /// Sends over a pipe what may have no answer, and then a control: what comes before the answer to that belongs to the
    /// case, and so does what comes within the usual time after it.
    pub(crate) async fn send_silent(&mut self, case: &Case) {
        let from = self.wire.recorder().end();
        self.send_within(Duration::ZERO, case).await;
        let control = self.control(&case.name).await;
        let limit = (self.latencies.usual() * 4).min(LONGEST_SETTLING);
        if control.message.is_some() && !self.has_answer_since(from) {
            self.wire.wait_for(from, self.budget.within(limit), |frame| is_answer(frame, None)).await;
        }
    }

    /// Whether the server has sent two answers, or one without an id.
    fn has_answer_since(&self, from: usize) -> bool {
        let frames = self.wire.recorder().since(from);
        let answers: Vec<_> = frames.iter().filter(|frame| is_response(frame)).filter_map(parse).collect();
        answers.len() > 1 || answers.iter().any(|message| !has_id(message))
    }

    /// Sends a valid request without params as a case, and does not wait for its response.
    pub(crate) async fn start(&mut self, name: &str, method: &str) {
        let case = Case::request(name, CaseGroup::Main, method, json!({})).unanswered();
        self.send_within(Duration::ZERO, &case).await;
    }

    /// Sends requests without params over a pipe with one write, or with a pause in two, and waits for their responses.
    pub(crate) async fn send_joined(&mut self, cases: &[Case], pause: Option<Duration>) {
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        for case in cases {
            let (id, body) = self.body(case);
            ids.extend(id);
            frames.extend(body.map(|body| (Arc::from(case.name.as_str()), body)));
        }
        let from = self.wire.recorder().end();
        let limit = self.budget.within(self.limit());
        let sent = tokio::time::timeout(limit, self.wire.send_joined(frames, pause)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
        let wait = self.wire.wait_for(from, limit, |frame| {
            ids.retain(|id| !is_answer(frame, Some(id)));
            ids.is_empty()
        });
        match wait.await {
            Some(_) => self.unanswered = 0,
            None => self.unanswered += 1,
        }
    }

    async fn within(&mut self, limit: Duration, method: &str, params: Value) -> Answer {
        let case = Case::request("", CaseGroup::Main, method, params);
        self.send_within(limit, &case).await
    }

    /// How long to wait for an answer: less for a server that is fast, least for one that has stopped to answer.
    pub(crate) fn limit(&self) -> Duration {
        if !self.has_answered {
            // A process may still be starting: longer than the others have, and then silence is a finding.
            let start = self.budget.slowest_start() * 3 + self.options.request_timeout / 2 + self.options.grace;
            let limit = self.options.start_timeout.min(self.options.request_timeout.max(start));
            return self.budget.within(limit);
        }
        if self.unanswered >= PATIENCE || self.budget.is_silent() {
            return self.grace();
        }
        self.budget.within(self.options.request_timeout)
    }

    async fn send_within(&mut self, limit: Duration, case: &Case) -> Answer {
        if self.is_unheard() {
            return Answer::default();
        }
        if self.is_cut_off() {
            self.open.clear();
            return Answer::default();
        }
        let key = match &case.body {
            CaseBody::Request { method, params, .. } => Some((method.clone(), params.to_string())),
            _ => None,
        };
        if key.as_ref().and_then(|key| self.large.get(key)).is_some_and(|large| !self.has_room_for(*large)) {
            return Answer::default();
        }
        let limit = self.budget.within(limit);
        let (id, body) = self.body(case);
        let (from, bytes) = (self.wire.recorder().end(), self.wire.recorder().bytes());
        let sent = Instant::now();
        let name = Some(case.name.as_str()).filter(|name| !name.is_empty()).map(Arc::from);
        let message = if self.wire.is_http() {
            self.exchange(case, name, body, id.as_ref(), from, limit).await
        } else {
            let Some(body) = body else { return Answer::default() };
            let longest = self.budget.within(limit.max(LEAST_WAIT));
            let is_sent = tokio::time::timeout(longest, self.wire.send(name, body)).await;
            self.is_broken |= matches!(is_sent, Ok(Err(_)));
            if !matches!(is_sent, Ok(Ok(()))) || limit.is_zero() {
                return Answer::default();
            }
            let settles = if matches!(case.body, CaseBody::Request { .. }) { SETTLES } else { Duration::ZERO };
            self.wait_for_answer(from, limit, id.as_ref(), None, settles).await.and_then(|frame| parse(&frame))
        };
        let came = self.wire.recorder().bytes().saturating_sub(bytes);
        if let Some(key) = key.filter(|_| came >= LARGE) {
            self.large.insert(key, came);
        }
        if message.is_some() && !self.has_answered {
            self.has_answered = true;
            self.budget.note_start(self.started.elapsed());
        }
        match &message {
            Some(message) => {
                // The first answer of a process includes its start.
                if self.is_open && !does_work(case) && has_id(message) {
                    self.latencies.add(sent.elapsed());
                }
                self.unanswered = 0;
                if self.is_open {
                    self.budget.note_answer();
                }
            }
            None if case.is_answered && !self.wire.is_http() => {
                self.unanswered += 1;
                self.late.extend(id.map(|id| LateRequest { from, sent, id }));
            }
            None => {}
        }
        Answer { message }
    }

    /// Answers the requests that a legacy server has sent.
    pub(crate) async fn answer_requests(&mut self) {
        let events = self.wire.recorder().read(&mut self.replied);
        if self.version.era() == Era::Modern {
            return;
        }
        for frame in events.iter().filter_map(Event::frame) {
            for request in requests(frame) {
                if self.is_cut_off() {
                    return;
                }
                let response = Bytes::from(self.replies.response(&request).to_string());
                let case = (self.replies == Replies::Invalid).then(|| Arc::from("asking/invalid/reply"));
                if case.is_some() && request["method"] == "elicitation/create" {
                    // A server may ask again until the form is valid.
                    self.replies = Replies::Cancel;
                }
                if !self.wire.is_http() {
                    let limit = self.budget.within(LEAST_WAIT);
                    let _ = tokio::time::timeout(limit, self.wire.send(case, response)).await;
                    continue;
                }
                let plain = Case::bytes("", CaseGroup::Main, response.clone());
                let (headers, body) = (self.headers(&plain, None), Some(response));
                let request = WireRequest { method: Method::POST, headers, body, case, ..WireRequest::default() };
                self.open.extend(self.wire.exchange(request).ok());
                if let Some(exchange) = self.open.last_mut()
                    && exchange.ended(Duration::from_millis(50)).await
                {
                    self.open.pop();
                }
            }
        }
    }

    /// Waits for the window in which nothing must happen.
    pub(crate) async fn be_silent(&self) {
        self.wait(self.grace()).await;
    }

    /// Ends the session and the connection, and returns the trace.
    pub(crate) async fn close(mut self) -> Trace {
        let is_at_work = self.end_watch().await;
        if !self.is_over_limit() && !self.is_silent && !self.wire.is_closed() {
            self.wait_for_late().await;
        }
        let ending = std::mem::take(&mut self.ending);
        self.read(ending).await;
        self.open.clear();
        if self.exchange.session().is_some() && !self.is_over() {
            let _ = self.send(&Case::http("", CaseGroup::Main, "DELETE")).await;
        }
        let recorder = self.wire.recorder().clone();
        self.budget.keep(recorder.bytes());
        if self.budget.is_over() || is_at_work {
            // What a process does that is stopped early says nothing.
            let is_over = self.budget.is_over();
            let why = if is_over { "the time of the run was over" } else { "a call that was cancelled may go on" };
            recorder.close(Closed::by_client(why));
            let trace = recorder.trace();
            self.wire.set_exit_grace(LAST_EXIT);
            self.wire.close().await;
            return trace;
        }
        self.wire.set_exit_grace((self.budget.slowest_start() * 5).clamp(EXIT, LONGEST_EXIT));
        self.wire.close().await;
        recorder.trace()
    }
}

/// Whether a request takes as long as the work that it asks for.
fn does_work(case: &Case) -> bool {
    matches!(&case.body, CaseBody::Request { method, .. } if method == "tools/call" || method == "tasks/result")
}
