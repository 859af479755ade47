//! An answer in progress.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_channel::oneshot;
use serde_json::{Map, Value as Json};

use super::{
    catalog::{CallCounts, Catalog, RuleRef},
    content_block,
    exchange_end::ExchangeEnd,
    frames::ResponseFrame,
    instance::Engine,
    legacy_session::LegacySession,
    pending_input::PendingInput,
    running_handler::{self, HandlerEnd, HandlerError, RunningHandler},
    task::Task,
};
use crate::{
    handler::{CallNotices, HandlerCall},
    journal::{Answer, AnswerKind, CallRecord, CancelMark},
    script::{Action, AnswerPlan, HttpResponseOptions, Item, Rule, Step, ToolItem},
};
use rehearse_document::{
    parse_duration,
    template::{Bindings, Context, Data, RenderError},
};
use rehearse_protocol::{
    Era, Id, RpcError, Version,
    message::{self, INTERNAL_ERROR},
};

/// The request that an exchange answers.
#[derive(Debug)]
pub(super) struct Origin {
    pub(super) id: Id,
    pub(super) record: CallRecord,
    pub(super) version: Version,
    /// The legacy client.
    pub(super) session: Option<Arc<LegacySession>>,
    pub(super) notices: CallNotices,
    /// The arguments, if a handler answers.
    pub(super) arguments: Map<String, Json>,
    /// The declared capabilities of the client. Null if no step of the script reads them.
    pub(super) capabilities: Json,
    /// Whether a modern request carries answers, or the state of an earlier round.
    pub(super) is_retry: bool,
    /// The answers that came with a modern request.
    pub(super) inputs: Map<String, Json>,
    /// The client, if tasks can have an owner.
    pub(super) principal: Option<String>,
    /// The digest of a modern request, so that its state is not valid for another request.
    pub(super) digest: String,
}

/// The position at which the answer to an earlier request continues (2026-07-28, Multi Round-Trip Requests).
#[derive(Debug)]
pub(super) struct ResumePoint {
    pub(super) next: usize,
    pub(super) answers: Vec<(String, Json)>,
}

/// An answer, step after step. Dropping it cancels it.
#[derive(Debug)]
pub struct Exchange {
    pub(super) engine: Arc<Engine>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) origin: Origin,
    /// Why the mock, and not the script, makes the call fail.
    pub(super) reason: Option<String>,
    pub(super) rule: RuleRef,
    pub(super) counts: CallCounts,
    context: DeferredContext,
    bound: Option<Bindings>,
    /// The step at which the answer continues; its condition was evaluated in an earlier round.
    pub(super) resumed: Option<usize>,
    /// The end of the client's handshake, if it is waited for.
    pub(super) initialized: Option<oneshot::Receiver<()>>,
    /// The next step; `None` before the rule's delay.
    pub(super) next: Option<usize>,
    /// The answers of the client so far, by the names of the input requests.
    pub(super) answers: Vec<(String, Json)>,
    /// Frames to send before the next step.
    pub(super) outbox: VecDeque<Bytes>,
    pub(super) pending: Option<PendingInput>,
    pub(super) handler: Option<RunningHandler>,
    /// How the exchange ends when the outbox is empty.
    ending: Option<ExchangeEnd>,
    /// The task of the call.
    pub(super) task: Option<Arc<Task>>,
    /// The time of the latest call of `next_event`.
    at: Duration,
}

/// The next action of an exchange. `Finish` and `Exit` are the last ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Call again after this time.
    Wait(Duration),
    /// Call again when [`Exchange::poll_answers`] is ready, and at the latest after this time.
    Await(Duration),
    /// Send a message before the response.
    Send(Bytes),
    /// Close the stream of the answer if it can be resumed, after an event with the time to reconnect.
    Disconnect(Option<Duration>),
    /// The response: the rest runs in the background, as a task.
    Detach(ResponseFrame),
    /// The response.
    Finish(ResponseFrame),
    /// The server exits here, with this code.
    Exit(u8),
}

/// A template context that is built when the first template needs it.
#[derive(Debug)]
enum DeferredContext {
    Raw(Option<Context>),
    Built(minijinja::Value),
}

impl DeferredContext {
    fn get(&mut self) -> &minijinja::Value {
        if let DeferredContext::Raw(context) = self {
            *self = DeferredContext::Built(context.take().map_or(minijinja::Value::UNDEFINED, Context::into_value));
        }
        match self {
            DeferredContext::Built(value) => value,
            DeferredContext::Raw(_) => &minijinja::Value::UNDEFINED,
        }
    }
}

impl Exchange {
    pub(super) fn new(
        engine: Arc<Engine>,
        catalog: Arc<Catalog>,
        origin: Origin,
        rule: RuleRef,
        counts: CallCounts,
        context: Context,
        resumed: Option<ResumePoint>,
    ) -> Self {
        engine.in_flight.fetch_add(1, Ordering::Relaxed);
        let (next, answers) = resumed.map_or((None, Vec::new()), |it| (Some(it.next), it.answers));
        let resumed = next;
        let bound = context.bound.clone();
        for (name, answer) in &answers {
            bound.iter().for_each(|bound| bound.bind(name, answer));
        }
        Exchange {
            engine,
            catalog,
            origin,
            reason: None,
            rule,
            counts,
            context: DeferredContext::Raw(Some(context)),
            bound,
            resumed,
            next,
            answers,
            outbox: VecDeque::new(),
            initialized: None,
            pending: None,
            handler: None,
            ending: None,
            task: None,
            at: Duration::ZERO,
        }
    }

    /// The id of the request that is being answered.
    pub fn id(&self) -> &Id {
        &self.origin.id
    }

    /// The mark to set if the client cancels the request.
    pub(crate) fn cancel_mark(&self) -> CancelMark {
        self.origin.record.mark()
    }

    /// Journals the answer.
    pub(super) fn journal_answer(&mut self, outcome: AnswerKind, at: Duration) {
        let reason = self.reason.take();
        self.origin.record.end(|| Answer::Answered { outcome, reason }, at);
    }

    /// How the answer is sent over HTTP.
    pub fn http(&self) -> HttpResponseOptions {
        self.catalog.rule(self.rule).1.answer.http.or(self.catalog.script.http.answer)
    }

    /// The next action, `at` this time since the mock was started. A task does nothing after its time to live, because
    /// no client can query it any more.
    pub fn next_event(&mut self, at: Duration) -> Event {
        self.at = at;
        let Some(task) = &self.task else {
            let event = self.decide(at);
            match event {
                Event::Finish(_) | Event::Detach(_) => {}
                Event::Exit(_) => self.origin.record.end(|| Answer::of(AnswerKind::Exit), at),
                _ => self.origin.record.begin(),
            }
            return event;
        };
        let left = task.time_left(at);
        if task.is_over() || left.is_zero() {
            return Event::Finish(ResponseFrame::ok(Bytes::new()));
        }
        match self.decide(at) {
            Event::Wait(time) => Event::Wait(time.min(left)),
            Event::Await(limit) => Event::Await(limit.min(left)),
            event => event,
        }
    }

    fn decide(&mut self, at: Duration) -> Event {
        if let Some(frame) = self.outbox.pop_front() {
            return Event::Send(frame);
        }
        if let Some(event) = self.await_answers() {
            return event;
        }
        if let Some(event) = self.await_handler(at) {
            return event;
        }
        if let Some(outcome) = self.ending.take() {
            return self.conclude(outcome, at);
        }
        let catalog = self.catalog.clone();
        let (item, rule) = catalog.rule(self.rule);
        if let Err(outcome) = self.take_answers(rule) {
            self.ending = Some(outcome);
            return self.next_event(at);
        }
        let event = self.step(&catalog, item, rule, at);
        event.unwrap_or_else(|error| {
            let error = RpcError::new(INTERNAL_ERROR, error.to_string());
            self.reason = Some(error.message.clone());
            self.conclude(ExchangeEnd::Error(error, None), at)
        })
    }

    fn step(&mut self, catalog: &Catalog, item: &Item, rule: &Rule, at: Duration) -> Result<Event, RenderError> {
        let Some(next) = self.next else {
            self.next = Some(0);
            if !rule.answer.delay.is_zero() {
                return Ok(Event::Wait(rule.answer.delay));
            }
            return self.step(catalog, item, rule, at);
        };
        let steps = match &rule.answer.plan {
            AnswerPlan::Steps(steps) => steps.get(next..).unwrap_or_default(),
            AnswerPlan::Sequence { replies, then } => {
                let outcome = self.sequence(catalog, item, replies, *then)?;
                return Ok(self.conclude(outcome, at));
            }
            AnswerPlan::Handler(handler) => {
                let arguments = std::mem::take(&mut self.origin.arguments);
                let notices = self.origin.notices.clone();
                let (call, notices) = HandlerCall::new(&item.name, arguments, self.origin.version, notices);
                self.handler = Some(RunningHandler::start(handler, call, notices));
                return Ok(self.next_event(at));
            }
        };
        for (offset, Step { condition, action }) in steps.iter().enumerate() {
            self.next = Some(next + offset + 1);
            if let Some(condition) = condition
                && self.resumed != Some(next + offset)
                && !condition.is_true(self.context.get())?
            {
                continue;
            }
            if let Some(event) = self.act(catalog, next + offset, action, at)? {
                return Ok(event);
            }
        }
        Err(RenderError::new("the exchange has already finished"))
    }

    /// Performs a step; `None` if the next one may follow at once.
    fn act(
        &mut self,
        catalog: &Catalog,
        position: usize,
        action: &Action,
        at: Duration,
    ) -> Result<Option<Event>, RenderError> {
        let templates = &catalog.script.templates;
        match action {
            Action::Wait(time) => return Ok(Some(Event::Wait(*time))),
            Action::WaitAs(text) => {
                let text = templates.render(text, self.context.get())?;
                let time = parse_duration(&text);
                return match time {
                    Some(time) => Ok(Some(Event::Wait(time))),
                    None => Err(RenderError::new(format!("`wait` must be a duration such as 250ms, not {text:?}"))),
                };
            }
            Action::Log { level, logger, data } => {
                if self.task.is_some() || !self.origin.notices.wants_log(*level) {
                    return Ok(None);
                }
                let logger = logger.as_ref().map(|logger| templates.render(logger, self.context.get())).transpose()?;
                let mut json = String::new();
                templates.write_json(data, self.context.get(), &mut json)?;
                return Ok(Some(Event::Send(CallNotices::log(*level, logger.as_deref(), &json))));
            }
            Action::Progress(members) => {
                if self.task.is_some() || self.origin.notices.progress_token.is_none() {
                    return Ok(None);
                }
                let mut params = String::new();
                for (name, data) in members {
                    params.push_str(&format!(",\"{name}\":"));
                    let start = params.len();
                    templates.write_json(data, self.context.get(), &mut params)?;
                    if *name != "message" && params[start..].parse::<f64>().is_err() {
                        let what = format!("`{name}` must be a number, not {}", &params[start..]);
                        return Err(RenderError::new(what));
                    }
                }
                return Ok(self.origin.notices.progress(&params).map(Event::Send));
            }
            Action::RequestInput { requests, limit } => return self.request_input(position, requests, *limit, at),
            Action::Set(values) => {
                let context = self.context.get().clone();
                let change = || -> Result<_, RenderError> {
                    if !self.engine.goes_on(catalog) {
                        return Ok(Vec::new());
                    }
                    let value = |(name, data): &(String, Data)| {
                        let mut json = String::new();
                        templates.write_json(data, &context, &mut json)?;
                        Ok((name.clone(), serde_json::from_str(&json).unwrap_or_default()))
                    };
                    values.iter().map(value).collect()
                };
                self.engine.state.update(catalog.script.limits.state, change)?;
            }
            Action::Notify { method, params } => {
                let mut json = String::from("{}");
                if let Some(params) = params {
                    json.clear();
                    templates.write_json(params, self.context.get(), &mut json)?;
                }
                let params = params.is_some().then_some(&*json);
                if !self.engine.publish(catalog, method, params) && self.task.is_none() {
                    return Ok(Some(Event::Send(message::notification(method, &json))));
                }
            }
            Action::ListChange(change) => {
                let offer = catalog.visible(change.kind()).filter(|_| self.engine.goes_on(catalog));
                if offer.is_some_and(|offer| offer.change(&catalog.script, change)) {
                    self.engine.publish_change(catalog, change.kind());
                }
            }
            Action::Task(spec) => return Ok(self.become_task(spec, at)),
            Action::Disconnect(retry) => return Ok(Some(Event::Disconnect(*retry))),
            Action::Reply(reply) => {
                let outcome = self.reply(catalog, reply)?;
                return Ok(Some(self.conclude(outcome, at)));
            }
            Action::Exit(code) => return Ok(Some(Event::Exit(*code))),
        }
        Ok(None)
    }

    pub(super) fn era(&self) -> Era {
        self.origin.version.era()
    }

    /// Binds an answer of the client, for templates and for a later round.
    pub(super) fn bind(&mut self, name: &str, answer: Json) {
        self.bound.iter().for_each(|bound| bound.bind(name, &answer));
        self.answers.push((name.to_owned(), answer));
    }

    /// The values that templates can use.
    pub(super) fn context(&mut self) -> &minijinja::Value {
        self.context.get()
    }

    /// Data with the context filled in, as JSON text.
    pub(super) fn json(&mut self, data: &Data) -> Result<String, RenderError> {
        let catalog = self.catalog.clone();
        let mut json = String::new();
        catalog.script.templates.write_json(data, self.context.get(), &mut json)?;
        Ok(json)
    }

    /// The next event of the handler; `None` if there is none.
    pub(super) fn await_handler(&mut self, at: Duration) -> Option<Event> {
        let handler = self.handler.as_mut()?;
        self.outbox.extend(handler.take_notices());
        if let Some(frame) = self.outbox.pop_front() {
            return Some(Event::Send(frame));
        }
        let Some(result) = handler.take_result() else { return Some(Event::Await(Duration::MAX)) };
        self.handler = None;
        let catalog = self.catalog.clone();
        let outcome = self.handled(&catalog.script.tools[self.rule.item.index], result);
        Some(self.conclude(outcome, at))
    }

    /// The end of a call whose handler has ended.
    fn handled(&mut self, tool: &ToolItem, end: HandlerEnd) -> ExchangeEnd {
        match end.and_then(|result| running_handler::members(tool, self.era(), result.get())) {
            Ok((members, meta)) => ExchangeEnd::Result(content_block::downgrade(self.origin.version, members), meta),
            Err(HandlerError::Rpc(error)) => ExchangeEnd::Error(error, None),
            Err(why) => {
                let what = format!("the handler of the tool {} failed: {why}", tool.item.name);
                self.reason = Some(what.clone());
                ExchangeEnd::Error(RpcError::new(INTERNAL_ERROR, what), None)
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.withdraw();
        self.origin.record.drop_at(self.at);
        if let Some(task) = &self.task {
            self.engine.cancel_task(task, self.at);
        }
        self.engine.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::super::{Decision, Event, test_client::TestClient};

    /// An exchange from before a reset continues, but changes nothing.
    #[test]
    fn an_exchange_from_before_a_reset_changes_nothing_after_it() {
        let elicit = "elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: {} } }";
        let script = format!(
            "
state: {{ n: 0 }}
tools:
  - name: slow
    steps: [{{ wait: 1s }}, {{ set: {{ n: '{{{{ state.n + 1 }}}}' }} }}, {{ disable: {{ tool: asks }} }}, {{ reply: done }}]
  - {{ name: asks, steps: [{{ {elicit} }}, {{ set: {{ n: 10 }} }}, {{ reply: done }}] }}
"
        );
        let client = TestClient::modern(&script, json!({ "elicitation": {} }));
        let Decision::Exchange(mut slow) = client.decision(&client.request("tools/call", json!({ "name": "slow" })))
        else {
            panic!("no exchange")
        };
        assert!(matches!(slow.next_event(Duration::ZERO), Event::Wait(_)));
        let state = client.call("tools/call", json!({ "name": "asks" }))["result"]["requestState"].clone();
        client.engine.reset(Duration::ZERO);
        assert!(matches!(slow.next_event(Duration::from_secs(1)), Event::Finish(_)));
        let inputs = json!({ "guest": { "action": "accept", "content": {} } });
        let params = json!({ "name": "asks", "requestState": state, "inputResponses": inputs });
        let refused = client.call("tools/call", params);
        assert_eq!(refused["error"]["message"], "Invalid requestState: it has expired", "{refused}");
        assert_eq!(client.engine.state().get()["n"], 0);
        assert_eq!(client.call("tools/list", json!({}))["result"]["tools"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_state_that_grows_with_every_call_ends_at_its_limit() {
        let script = "
limits: { output: 1MiB, state: 300KiB }
state: { text: 0123456789 }
tools:
  - { name: double, steps: [{ set: { text: '{{ state.text ~ state.text }}' } }, { reply: '{{ state.text | length }}' }] }
  - { name: long, reply: '{{ state.text | repeat(args.n) }}' }
";
        let client = TestClient::modern(script, json!({}));
        let replies: Vec<_> = (0..34).map(|_| client.call("tools/call", json!({ "name": "double" }))).collect();
        assert_eq!(replies[13]["result"]["content"][0]["text"], "163840");
        for refused in &replies[14..] {
            let what = "the state would be larger than 307200 bytes (`limits.state`); its largest value is `text`";
            let error = json!({ "code": -32603, "message": format!("a template failed: {what}") });
            assert_eq!(refused["error"], error);
        }
        let long = client.call("tools/call", json!({ "name": "long", "arguments": { "n": 10 } }));
        let message = long["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.ends_with("the output is larger than 1 MiB (`limits.output`)"), "{long}");
    }

    #[test]
    fn undeclared_changes_are_not_notified() {
        let script = "
capabilities: { logging: null, tools: { listChanged: false } }
tools:
  - name: t
    steps:
      - log: hi
      - notify: notifications/prompts/list_changed
      - notify: notifications/tools/list_changed
      - notify: { method: notifications/resources/updated, params: { uri: 'x:a' } }
      - reply: x
";
        let client = TestClient::legacy(script, json!({}));
        client.session.subscribe("x:a").expect("the first one");
        let frames = client.exchange("tools/call", json!({ "name": "t" }));
        assert_eq!((frames.len(), client.unasked.take()), (1, Vec::new()), "{frames:?}");
        let client = TestClient::modern(script, json!({}));
        let mut params = json!({ "name": "t" });
        params["_meta"]["io.modelcontextprotocol/logLevel"] = "debug".into();
        assert_eq!(client.exchange("tools/call", params).len(), 1);
    }
}
