//! A request in the engine, and the rule of the script that answers it.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json, value::RawValue};

use super::{
    catalog::{CallCounts, Catalog, RuleRef},
    decision::Decision,
    exchange::{Exchange, Origin, ResumePoint},
    frames::{Incoming, ResponseFrame},
    instance::Engine,
    legacy_session::LegacySession,
    params::{Meta, Params, invalid, optional_text},
    pending_input::RequestState,
};
use crate::{
    handler::CallNotices,
    journal::{AnswerKind, Handling, Refusal},
    script::{AnswerPlan, HttpForm, Item, ItemKind, ItemRef, LazyJson, LogLevel, RequestFacts, Token},
};
use rehearse_document::{
    json_schema::Mismatch,
    seeded_rng::SeededRng,
    template::{Bindings, Context},
};
use rehearse_protocol::{
    Era, Id, Request, RpcError, Transport, Version,
    message::{self, INTERNAL_ERROR, INVALID_REQUEST},
};

/// A request, with everything that the engine knows about its client.
pub(super) struct Call<'a> {
    pub(super) catalog: &'a Arc<Catalog>,
    pub(super) version: Version,
    /// The legacy client.
    pub(super) session: Option<&'a Arc<LegacySession>>,
    /// The least severe log message that the client wants; `None` for no messages at all.
    pub(super) log_level: Option<LogLevel>,
    pub(super) request: &'a Request<'a>,
    pub(super) params: Params<'a>,
    pub(super) meta: Meta<'a>,
    pub(super) incoming: Incoming<'a>,
}

impl Call<'_> {
    pub(super) fn era(&self) -> Era {
        self.version.era()
    }

    /// The declared capabilities of the client.
    pub(super) fn capabilities(&self) -> Json {
        match self.session {
            Some(session) => session.capabilities(),
            None => self.meta.client_capabilities.map(parsed).unwrap_or_default(),
        }
    }

    /// The answers that a modern request carries.
    ///
    /// # Errors
    /// They are not an object, or one of them is not.
    pub(super) fn input_responses(&self) -> Result<Option<Map<String, Json>>, RpcError> {
        if self.params.input_responses.is_none() {
            return Ok(None);
        }
        let responses = object("inputResponses", self.params.input_responses)?;
        match responses.iter().find(|(_, response)| !response.is_object()) {
            Some((name, _)) => Err(invalid(format!("inputResponses.{name}: a response must be an object"))),
            None => Ok(Some(responses)),
        }
    }

    /// The token of the client, if the server requires tokens.
    pub(super) fn principal(&self) -> Option<&str> {
        self.incoming.token.map(Token::principal)
    }

    /// A digest of the client and of the requested item with its arguments.
    fn digest(&self) -> String {
        let subject = [self.params.name, self.params.uri, self.params.arguments];
        // JSON that is nested too deeply to be parsed is compared as text.
        let read = |member: &RawValue| serde_json::from_str(member.get()).unwrap_or_else(|_| Json::from(member.get()));
        let subject: Vec<_> = subject.into_iter().map(|member| member.map(read)).collect();
        super::signer::digest(&[&json!(self.request.method), &json!(subject), &json!(self.principal())])
    }

    /// The values of the request that templates can use.
    fn context(&self, engine: &Engine, call: u64, seed: u64, args: Option<Json>) -> Context {
        let params = self.request.params.map(|params| self.incoming.bytes.slice_ref(params.get().as_bytes()));
        let headers = self.incoming.headers.filter(|_| self.catalog.script.templates.uses_headers());
        let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Context {
            params,
            id: self.request.id.clone(),
            headers: headers.into_iter().flatten().map(pair).collect(),
            call,
            repetition: None,
            seed,
            now: engine.epoch + self.incoming.at,
            state: Some(engine.state.clone()),
            args,
            bound: self.catalog.script.uses.input_requests.then(Bindings::default),
        }
    }

    /// The values for templates that belong to no item.
    pub(super) fn plain_context(&self, engine: &Engine) -> minijinja::Value {
        self.context(engine, 1, engine.seed, None).into_value()
    }
}

impl Engine {
    /// Answers by the rules of an item. `args` are its arguments as far as its rules need them; `bound_args` are those
    /// that templates see instead of the request's.
    ///
    /// # Errors
    /// The state that the request carries is not from this server, has expired, or belongs to another request; or there
    /// are answers without a state.
    pub(super) fn answer_by_rule(
        self: &Arc<Self>,
        call: &Call<'_>,
        item_ref: ItemRef,
        args: &Json,
        bound_args: Option<Json>,
    ) -> Result<Decision, RpcError> {
        let item = call.catalog.script.item(item_ref);
        if let Some(Err(challenge)) = call.incoming.token.map(|token| token.allows(&item.scopes)) {
            let handling = Handling::refused(Refusal::Challenge, challenge.reason());
            self.note_answer(call.incoming, handling, AnswerKind::Error);
            let error = RpcError::new(INVALID_REQUEST, challenge.reason());
            let answer = ResponseFrame::new(challenge.status, message::error(Some(&call.request.id), &error));
            return Ok(Decision::Respond(ResponseFrame { challenge: Some(challenge), ..answer }));
        }
        if call.era() == Era::Modern && call.params.request_state.is_some() {
            let state = match self.request_state(call, item) {
                Ok(state) => state,
                Err((refusal, error)) => return Ok(self.refuse(call.request, 200, refusal, error, call.incoming)),
            };
            let rule = RuleRef { item: item_ref, index: state.rule };
            let resumed = ResumePoint { next: state.next, answers: state.answers };
            return self.exchange(call, rule, state.counts, bound_args, Some(resumed));
        }
        if call.era() == Era::Modern
            && let Some(error) = missing_state(call, item)?
        {
            return Ok(self.refuse(call.request, 200, Refusal::State, error, call.incoming));
        }
        let item_calls = call.catalog.count(item);
        match self.select_rule(call, item, args, item_calls) {
            Ok(index) => {
                let counts = CallCounts { item_calls, rule_calls: call.catalog.count_rule(item, index) };
                self.exchange(call, RuleRef { item: item_ref, index }, counts, bound_args, None)
            }
            Err((closest, why)) => {
                let (noun, name) = (item_ref.kind.noun(), &item.name);
                let text = match &closest {
                    Some(rule) => {
                        format!("No rule of the {noun} {name} matches the arguments; the closest rule is {rule}: {why}")
                    }
                    None => format!("The script does not say how the {noun} {name} answers"),
                };
                let handling = Handling::Unmatched { closest, why };
                match item_ref.kind {
                    ItemKind::Tool => {
                        self.note_answer(call.incoming, handling, AnswerKind::ToolError);
                        Ok(self.tool_error(call, &text))
                    }
                    _ => {
                        self.note_answer(call.incoming, handling, AnswerKind::Error);
                        let error = RpcError::new(INTERNAL_ERROR, text);
                        Ok(Decision::Respond(ResponseFrame::ok(message::error(Some(&call.request.id), &error))))
                    }
                }
            }
        }
    }

    /// The first rule that matches; or the label of the closest rule and why it does not match.
    fn select_rule(
        &self,
        call: &Call<'_>,
        item: &Item,
        args: &Json,
        nth: u64,
    ) -> Result<usize, (Option<String>, String)> {
        let mut closest: Option<(usize, &str, Mismatch)> = None;
        for (index, rule) in item.rules.iter().enumerate() {
            let Some(when) = &rule.when else { return Ok(index) };
            // The random numbers of a rule do not change when others are added before it.
            let drawn_for = (item.number, index.wrapping_sub(item.added));
            let mut mismatches = when.mismatches(&self.request_facts(call, args, nth, drawn_for));
            if mismatches.is_empty() {
                return Ok(index);
            }
            if closest.as_ref().is_none_or(|(count, ..)| mismatches.len() < *count) {
                closest = Some((mismatches.len(), &rule.label, mismatches.remove(0)));
            }
        }
        Err(match closest {
            Some((_, label, mismatch)) => (Some(label.to_owned()), mismatch.to_string()),
            None => (None, format!("{} has no rules", item.name)),
        })
    }

    /// The values that conditions can test. `drawn_for` selects the random number of each condition.
    fn request_facts<'f>(
        &'f self,
        call: &'f Call<'_>,
        args: &'f Json,
        nth: u64,
        drawn_for: (usize, usize),
    ) -> RequestFacts<'f> {
        RequestFacts {
            args: LazyJson::new(move || args.clone()),
            params: LazyJson::new(|| call.request.params.map(parsed).unwrap_or_default()),
            headers: call.incoming.headers,
            version: call.version,
            transport: call.incoming.transport,
            capabilities: LazyJson::new(|| call.capabilities()),
            call: nth,
            state: LazyJson::new(|| Json::Object(Map::clone(&self.state.get()))),
            at: call.incoming.at,
            draw: rng(self.seed, nth, drawn_for).fraction(),
        }
    }

    /// The state of an earlier round, if it is one of this request (2026-07-28, Multi Round-Trip Requests: Server
    /// Requirements).
    fn request_state(&self, call: &Call<'_>, item: &Item) -> Result<RequestState, (Refusal, RpcError)> {
        let wrong = |error| (Refusal::State, error);
        let token = optional_text("requestState", call.params.request_state).map_err(wrong)?.unwrap_or_default();
        let state = self.signer.verify(&token);
        let mut state: RequestState =
            state.map_err(|error| wrong(invalid(format!("Invalid requestState: {error}"))))?;
        // Rules may have been added before it.
        let rule = item.rules.iter().position(|rule| *rule.label == *state.label);
        state.rule = rule.unwrap_or_default();
        if rule.is_none() || state.item != item.number || state.digest != call.digest() {
            return Err(wrong(invalid("Invalid requestState: it belongs to another request")));
        }
        if state.expires < Engine::millis(call.incoming.at) || state.generation != call.catalog.generation {
            return Err((Refusal::Expired, invalid("Invalid requestState: it has expired")));
        }
        Ok(state)
    }

    fn exchange(
        self: &Arc<Self>,
        call: &Call<'_>,
        rule: RuleRef,
        counts: CallCounts,
        args: Option<Json>,
        resumed: Option<ResumePoint>,
    ) -> Result<Decision, RpcError> {
        let uses = &call.catalog.script.uses;
        let is_modern = call.era() == Era::Modern;
        let inputs = if is_modern { call.input_responses()?.unwrap_or_default() } else { Map::new() };
        let (item, selected) = call.catalog.rule(rule);
        let arguments = match &selected.answer.plan {
            AnswerPlan::Handler(_) => object("arguments", call.params.arguments)?,
            _ => Map::new(),
        };
        let form = selected.answer.http.or(call.catalog.script.http.answer).form();
        let can_be_asked = call.incoming.transport != Transport::Http || form != HttpForm::Json;
        let record = self.journal.begin(call.incoming.received(), Handling::Rule(selected.label.clone()));
        let token = call.meta.progress_token.filter(|token| Id::parse(token).is_some());
        // A server without the capability sends none (2025-11-25, Logging: Capabilities).
        let logs = call.catalog.script.capabilities.declares(call.era(), &["logging"]);
        let log_level = call.log_level.filter(|_| logs);
        let origin = Origin {
            id: call.request.id.clone(),
            record,
            version: call.version,
            session: call.session.filter(|_| uses.input_requests && can_be_asked).cloned(),
            notices: CallNotices { progress_token: token.map(|token| token.get().to_owned()), log_level },
            arguments,
            capabilities: if uses.input_requests || uses.tasks { call.capabilities() } else { Json::Null },
            is_retry: is_modern && (call.params.input_responses.is_some() || call.params.request_state.is_some()),
            inputs,
            principal: call.principal().filter(|_| uses.tasks).map(str::to_owned),
            digest: if uses.input_requests && is_modern { call.digest() } else { String::new() },
        };
        let seed = rng(self.seed, counts.item_calls, (item.number, OF_TEMPLATES)).number();
        let mut context = call.context(self, counts.item_calls, seed, args);
        context.repetition = item.repetition;
        let exchange = Exchange::new(self.clone(), call.catalog.clone(), origin, rule, counts, context, resumed);
        Ok(Decision::Exchange(Box::new(exchange)))
    }
}

/// The error for answers without the state that came with their requests (2026-07-28, Multi Round-Trip Requests: Client
/// Requirements).
fn missing_state(call: &Call<'_>, item: &Item) -> Result<Option<RpcError>, RpcError> {
    let Some(responses) = call.input_responses()?.filter(|_| call.catalog.script.request_state_required) else {
        return Ok(None);
    };
    let mut requests = item.rules.iter().flat_map(|rule| rule.answer.input_requests());
    match requests.find(|request| responses.contains_key(&request.name)) {
        Some(request) => {
            let what = "answers a request that came with one";
            let name = &request.name;
            Ok(Some(invalid(format!("Invalid requestState: it is missing, but inputResponses.{name} {what}"))))
        }
        None => Ok(None),
    }
}

/// Separates the random numbers of an item's templates from those of its rules, which have small positions.
const OF_TEMPLATES: usize = u32::MAX as usize;

/// The random numbers of one call.
pub(super) fn rng(seed: u64, nth: u64, drawn_for: (usize, usize)) -> SeededRng {
    SeededRng::for_parts(seed, [nth, drawn_for.0 as u64, drawn_for.1 as u64])
}

pub(super) fn parsed(value: &RawValue) -> Json {
    serde_json::from_str(value.get()).unwrap_or_default()
}

/// A member that must be an object if it is there.
///
/// # Errors
/// It is something else.
pub(super) fn object(name: &str, value: Option<&RawValue>) -> Result<Map<String, Json>, RpcError> {
    let Some(value) = value else { return Ok(Map::new()) };
    if !message::is_object(Some(value)) {
        return Err(invalid(format!("`{name}` must be an object")));
    }
    serde_json::from_str(value.get()).map_err(|error| invalid(format!("`{name}` cannot be read: {error}")))
}
