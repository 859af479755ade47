//! One target: sends its inputs, and finds the smallest of each bug.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    time::Duration,
};

use serde_json::Value as Json;
use tokio::time::Instant;

use crate::{
    audit::Odd,
    input::{Inputs, inputs},
    options::FuzzOptions,
    oracle::{Expected, Outcome, Wrong, is_accepted, is_refused, judge, shape_of},
    sequence::{self, Before, Offer},
    server::Server,
    shrink::smaller,
    target::Target,
};
use rehearse_client::Failure;
use rehearse_report::fuzz::{FuzzBug, FuzzCall, FuzzedTarget, InputKind, NO_TURN, Oracle, TargetKind};

/// How long a request may take at least before it counts as a hang.
const SHORTEST_LIMIT: Duration = Duration::from_secs(2);
/// How long a request may take before a usual one was answered; then it is no hang, because all may be slow.
const FIRST_LIMIT: Duration = Duration::from_secs(10);
/// After how many requests without an answer a target gets no more of them.
const MOST_UNANSWERED: usize = 10;
/// How many times the usual time a request may take.
const FACTOR: u32 = 50;
/// How many requests one shrinking may take: of what is answered at once, and of what ends the connection or hangs.
const SHRINKS: usize = 600;
const SLOW_SHRINKS: usize = 60;
/// How many times as long a hang may take when it is confirmed.
const PATIENCE: u32 = 3;
/// The shortest time for an answer near the end of the run.
const LAST_LIMIT: Duration = Duration::from_secs(1);
/// How long one shrinking may take.
const LONGEST_SHRINK: Duration = Duration::from_secs(20);
/// How many values of other results an argument gets.
const MOST_OFFERS: usize = 5;
/// How many kinds of answers of one target are kept.
const MOST_ANSWERS: usize = 12;
/// How many bugs of one target are kept.
const MOST_BUGS: usize = 20;

/// A target with its inputs, and what was seen of it.
pub(crate) struct Trial<'t> {
    target: &'t Target,
    inputs: Inputs<'t>,
    /// An input that was answered at once, and how long the slowest of the usual requests took.
    good: Option<Json>,
    usual: Duration,
    /// What was seen to be wrong, and what of it has become a bug.
    known: HashSet<(Oracle, String)>,
    reported: HashSet<(Oracle, String)>,
    /// Inputs of the corpus.
    replays: std::vec::IntoIter<Json>,
    /// Inputs with values of other results, and how many there were of each argument.
    offered: VecDeque<(Json, Before<'t>)>,
    offers: HashMap<String, usize>,
    /// What the last result has for other tools.
    values: Vec<Offer<'t>>,
    /// The call without which an input is not wrong.
    before: Option<Before<'t>>,
    /// The first input with each kind of answer, if nothing else is wrong with it.
    odd: Vec<Odd<'t>>,
    answers: HashSet<String>,
    accepted: usize,
    refused: usize,
    failed: usize,
    cases: usize,
    /// How many requests had no answer, and whether a bug says why.
    unanswered: usize,
    is_explained: bool,
    /// How long a request may take, if the user said it.
    timeout: Option<Duration>,
    most: usize,
    /// How long all of it has taken, and may take.
    spent: Duration,
    max_time: Duration,
}

impl<'t> Trial<'t> {
    pub(crate) fn new(target: &'t Target, options: &FuzzOptions) -> Trial<'t> {
        let own = options.corpus.iter().filter(|it| it.target == target.id && target.can_send(&it.arguments));
        Trial {
            target,
            replays: own.map(|it| it.arguments.clone()).collect::<Vec<_>>().into_iter(),
            inputs: inputs(target, options.seed, options.is_hostile),
            good: None,
            usual: Duration::ZERO,
            known: HashSet::new(),
            reported: HashSet::new(),
            offered: VecDeque::new(),
            offers: HashMap::new(),
            values: Vec::new(),
            before: None,
            odd: Vec::new(),
            answers: HashSet::new(),
            accepted: 0,
            refused: 0,
            failed: 0,
            cases: 0,
            unanswered: 0,
            is_explained: false,
            most: options.cases.unwrap_or(usize::MAX),
            timeout: options.timeout,
            spent: Duration::ZERO,
            max_time: options.max_time.unwrap_or(Duration::MAX),
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        self.target.reason.is_some()
            || self.cases >= self.most
            || self.spent >= self.max_time
            || self.known.len() >= MOST_BUGS
            || self.unanswered >= MOST_UNANSWERED
    }

    /// How long a request may take. Before the usual time is known, only the patience of the client counts.
    fn limit(&self) -> Duration {
        let usual = if self.good.is_some() { (self.usual * FACTOR).max(SHORTEST_LIMIT) } else { FIRST_LIMIT };
        self.timeout.unwrap_or(usual)
    }

    /// What is wrong with the outcome of this input.
    fn judge(&self, server: &Server<'_>, input: &Json, outcome: &Outcome, limit: Duration) -> Option<Wrong> {
        let is_valid = self.inputs.is_valid(input);
        let params = self.target.request(input).params;
        let wrong = judge(
            outcome,
            &Expected { target: self.target, is_valid, limit, params: &params, private: server.private() },
        );
        wrong.filter(|wrong| wrong.oracle != Oracle::Hang || self.good.is_some())
    }

    /// Sends the next input. Returns the bug that it has shown, if it is a new one and happens again.
    pub(crate) async fn next(&mut self, server: &mut Server<'_>) -> Option<FuzzBug> {
        let begun = Instant::now();
        let found = self.send_next(server).await;
        self.spent += begun.elapsed();
        found
    }

    async fn send_next(&mut self, server: &mut Server<'_>) -> Option<FuzzBug> {
        let replay = self.replays.next().map(|input| (InputKind::Corpus, input, None));
        let offered = || self.offered.pop_front().map(|(input, before)| (InputKind::Sequence, input, Some(before)));
        let (input_kind, input, before) = match replay.or_else(offered) {
            Some(next) => next,
            None => self.inputs.next().map(|(kind, input)| (kind, input, None))?,
        };
        self.cases += 1;
        let (limit, begun) = (self.limit(), Instant::now());
        let left = server.remaining().min(self.max_time.saturating_sub(self.spent)).max(LAST_LIMIT);
        let outcome = server.send(self.target, &input, limit.min(left)).await?;
        if left < limit && matches!(outcome, Err(Failure::Timeout(_))) {
            // The end of the run came before its time, but others were answered much sooner.
            self.unanswered += usize::from(self.good.is_some() && left > self.usual * FACTOR / 2);
            return None;
        }
        let took = begun.elapsed();
        self.unanswered += usize::from(matches!(outcome, Err(Failure::Disconnected { .. } | Failure::Timeout(_))));
        let is_valid = self.inputs.is_valid(&input) != Some(false);
        if is_valid && is_accepted(&outcome) {
            self.accepted += 1;
            self.usual = self.usual.max(took);
            self.good.get_or_insert_with(|| input.clone());
            if let (TargetKind::Tool, Ok(result)) = (self.target.id.kind, &outcome) {
                let result = serde_json::from_str(result.get()).unwrap_or_default();
                self.values = sequence::offers(self.target, &input, &result);
            }
        } else if is_valid && is_refused(&outcome) {
            self.refused += 1;
        } else if is_valid {
            self.failed += 1;
        }
        let Some(wrong) = self.judge(server, &input, &outcome, limit) else {
            if self.answers.len() < MOST_ANSWERS && self.answers.insert(shape_of(&outcome)) {
                let is_valid = self.inputs.is_valid(&input);
                self.odd.push(Odd { target: self.target, input_kind, input, is_valid });
            }
            return None;
        };
        if !self.known.insert((wrong.oracle, wrong.shape.clone())) {
            return None;
        }
        let is_slow = matches!(wrong.oracle, Oracle::Crash | Oracle::Hang);
        // What does not happen again on a new connection is no bug that anyone could find.
        let again = match (self.again(server, &input, &wrong, limit).await, before) {
            (None, Some(before)) => {
                self.before = Some(before);
                self.again(server, &input, &wrong, limit).await
            }
            (again, _) => again,
        };
        let Some(again) = again else {
            self.before = None;
            if is_slow {
                // It is tried again when it is met again.
                self.known.remove(&(wrong.oracle, wrong.shape));
            }
            return None;
        };
        self.is_explained |= is_slow;
        let (arguments, wrong) = self.shrink(server, input, again, is_slow, limit).await;
        if !self.reported.insert((wrong.oracle, wrong.shape.clone())) {
            self.before = None;
            return None;
        }
        let is_valid = self.inputs.is_valid(&arguments);
        let (oracle, target) = (wrong.oracle, self.target.id.clone());
        let before = self.before.take();
        let before = before.map(|it| FuzzCall { name: it.target.id.name.clone(), arguments: it.input });
        Some(FuzzBug { oracle, target, before, arguments, message: wrong.message, is_valid, input_kind })
    }

    /// Sends the input on a new connection, and one that is known to work before a hang. `None` if it is not wrong in the
    /// same way.
    async fn again(&self, server: &mut Server<'_>, input: &Json, wrong: &Wrong, limit: Duration) -> Option<Wrong> {
        self.open(server).await?;
        // A machine that was busy for a moment makes no hang.
        let is_hang = wrong.oracle == Oracle::Hang;
        let limit = if is_hang { (limit * PATIENCE).min(server.grace()) } else { limit };
        if is_hang && limit < self.limit() {
            return None;
        }
        let usual = self.good.as_ref().filter(|_| is_hang);
        let mut needed = limit;
        if let Some(usual) = usual {
            let begun = Instant::now();
            server.send(self.target, usual, limit).await?.ok()?;
            // The server, or the way to it, may have become slower.
            needed = limit.max(begun.elapsed() * FACTOR);
        }
        if usual.is_some() && needed > server.grace() {
            return None;
        }
        let outcome = server.send(self.target, input, needed).await?;
        let again = self.judge(server, input, &outcome, needed).filter(|again| again.oracle == wrong.oracle)?;
        if let Some(usual) = usual {
            // Nor is it a hang if nothing is answered any more.
            server.send(self.target, usual, needed).await?.ok()?;
        }
        Some(again)
    }

    /// Opens a new connection, with the call that an input needs.
    async fn open(&self, server: &mut Server<'_>) -> Option<()> {
        server.restart().await.ok()?;
        if let Some(before) = &self.before {
            server.send(before.target, &before.input, FIRST_LIMIT).await?.ok()?;
        }
        Some(())
    }

    /// Takes a value of another tool for an argument of the same name and type. Returns whether it takes more of them.
    pub(crate) fn take_offer(&mut self, offer: &Offer<'t>) -> bool {
        let usual = self.target.usual.first().filter(|_| self.target.id.kind == TargetKind::Tool && !self.is_done());
        let properties = self.target.schema["properties"].as_object();
        let name = properties.and_then(|all| all.keys().find(|name| name.eq_ignore_ascii_case(&offer.name)));
        let (Some(usual), Some(name)) = (usual, name) else { return false };
        let mut input = usual.clone();
        input[name.as_str()] = offer.value.clone();
        let count = self.offers.entry(name.clone()).or_default();
        let is_new = input != *usual && !self.offered.iter().any(|(other, _)| *other == input);
        if is_new && self.inputs.is_valid(&input) == Some(true) {
            *count += 1;
            self.offered.push_back((input, offer.before.clone()));
        }
        *count < MOST_OFFERS
    }

    /// What the last result has for other tools.
    pub(crate) fn take_values(&mut self) -> Vec<Offer<'t>> {
        std::mem::take(&mut self.values)
    }

    /// The smallest input that is wrong in the same way.
    async fn shrink(
        &mut self,
        server: &mut Server<'_>,
        mut input: Json,
        mut wrong: Wrong,
        is_slow: bool,
        limit: Duration,
    ) -> (Json, Wrong) {
        let mut left = if is_slow { SLOW_SHRINKS } else { SHRINKS };
        let (was_valid, begun) = (self.inputs.is_valid(&input), Instant::now());
        let mut tried = HashSet::new();
        'smaller: loop {
            for candidate in smaller(&input) {
                // A smaller input of another kind is another bug.
                if !self.target.can_send(&candidate)
                    || self.inputs.is_valid(&candidate) != was_valid
                    || !tried.insert(candidate.to_string())
                {
                    continue;
                }
                let is_late = begun.elapsed() > LONGEST_SHRINK.min(self.max_time);
                if left == 0 || is_late || server.grace() < SHORTEST_LIMIT {
                    break 'smaller;
                }
                left -= 1;
                if self.before.is_some() && server.session().is_none() && self.open(server).await.is_none() {
                    break 'smaller;
                }
                let Some(outcome) = server.send(self.target, &candidate, limit).await else { break 'smaller };
                let found = self.judge(server, &candidate, &outcome, limit);
                // What is known already is another bug.
                let is_same = |found: &Wrong| {
                    found.oracle == wrong.oracle
                        && (found.shape == wrong.shape || !self.known.contains(&(found.oracle, found.shape.clone())))
                };
                if let Some(found) = found.filter(is_same) {
                    self.known.insert((found.oracle, found.shape.clone()));
                    (input, wrong) = (candidate, found);
                    continue 'smaller;
                }
            }
            break;
        }
        (input, wrong)
    }

    /// An input that was answered with a result.
    pub(crate) fn good(&self) -> Option<(&'t Target, &Json)> {
        Some((self.target, self.good.as_ref()?))
    }

    /// The first input with each kind of answer, if nothing else is wrong with it.
    pub(crate) fn take_odd(&mut self) -> Vec<Odd<'t>> {
        std::mem::take(&mut self.odd)
    }

    pub(crate) fn finish(self) -> FuzzedTarget {
        let is_tool = self.target.id.kind == TargetKind::Tool;
        let reason = match self.target.reason {
            Some(reason) => Some(reason.to_owned()),
            None if self.cases == 0 => Some(NO_TURN.to_owned()),
            None if self.accepted == 0 && self.unanswered > 0 => Some("it answered no valid input in time".to_owned()),
            None if self.accepted == 0 && is_tool => {
                Some("it refused every valid input; --tool-args NAME=JSON names one that works".to_owned())
            }
            None if self.accepted == 0 => Some("it refused every input".to_owned()),
            None if self.unanswered >= MOST_UNANSWERED => {
                Some(format!("{MOST_UNANSWERED} requests had no answer, so it got no more of them"))
            }
            None if self.unanswered == 1 && !self.is_explained => {
                Some("an input had no answer, and it is not known whether it always has none".to_owned())
            }
            None if self.unanswered > 0 && !self.is_explained => Some(format!(
                "{} inputs had no answer, and it is not known whether they always have none",
                self.unanswered
            )),
            None => None,
        };
        let Trial { cases, accepted, refused, failed, unanswered, .. } = self;
        FuzzedTarget { target: self.target.id.clone(), cases, accepted, refused, failed, unanswered, reason }
    }
}
