//! Runs the actions of steps and observes their results.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value as Json, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{cell_run::CellRunner, client_requests::client_requests, error::StepError, pause::longest_pause};
use crate::{
    file::{
        Action, Step,
        action::{Completion, CompletionTarget, ListenFilter, ToolCall},
        final_answer::{DialogSource, FinalAnswer},
    },
    snapshot::{
        Observation,
        observation::{self, StepOutcome, observe_raw, observe_result},
    },
};
use rehearse_client::{
    CallOptions, CompletionReference, Failure, HeaderChange, Listing, ScopedAnswers, Session, SubscriptionFilter,
    TaskRun, ToolOutcome, UnsolicitedFrame,
};
use rehearse_document::{
    Source, nearest,
    template::{Data, ProcessEnvironment, RenderError, Text},
};
use rehearse_llm::final_answer::{Dialog, extract};
use rehearse_protocol::{
    Direction, Era, Frame, List, Message, MessageHead, Version, message::METHOD_NOT_FOUND, names::META_LOG_LEVEL,
};

/// How many malformed items are named.
const MAX_PROBLEMS: usize = 20;
const RAW_TIMEOUT: Duration = Duration::from_secs(10);

impl CellRunner<'_> {
    fn session(&self, server: usize) -> Result<&Session, StepError> {
        self.servers[server].session.as_ref().ok_or(StepError::NoSession)
    }

    /// Gives the answers of a step precedence over those of the scenario, until the result is dropped.
    pub(crate) fn overlay(&self, step: &Step, server: usize) -> Option<ScopedAnswers> {
        step.answers.clone().map(|answers| self.servers[server].answers.push_scoped(answers))
    }

    /// Runs a step, and collects the notifications of its request.
    pub(crate) async fn observe(&self, step: &Step) -> Result<Observation, StepError> {
        let marks = self.connections.marks();
        let _overlay = self.overlay(step, step.server);
        let mut observation = self.run_within_limit(step).await?;
        if observation.is_overflow() {
            return Ok(observation);
        }
        let era = self.version(step).map_or(Era::Legacy, Version::era);
        for frames in self.connections.frames(step.server, &marks) {
            observe_frames(&frames, era, &mut observation);
            observation.longest_pause = observation.longest_pause.max(longest_pause(&frames));
        }
        Ok(observation)
    }

    /// Runs a step. It fails if the server sends more than is kept.
    ///
    /// # Errors
    /// A template of the step cannot be rendered.
    pub(crate) async fn run_within_limit(&self, step: &Step) -> Result<Observation, StepError> {
        let server = &self.servers[step.server];
        if server.uses_hub(&step.action) {
            return self.run_on_hub(server, step).await;
        }
        let session = self.session(step.server)?;
        let recorder = session.recorder();
        tokio::select! {
            biased;
            () = recorder.overflow(recorder.end()) => {
                session.set_overdue(true);
                Ok(Observation::overflow())
            }
            observation = self.run_action(step) => observation,
        }
    }

    async fn run_action(&self, step: &Step) -> Result<Observation, StepError> {
        let session = self.session(step.server)?;
        let limit = step.timeout.unwrap_or(match step.action {
            Action::Discover { .. } | Action::List(_) => session.timeouts().list,
            _ => session.timeouts().call,
        });
        let options = CallOptions::with_timeout(limit);
        Ok(match &step.action {
            Action::Connect => Observation::result(self.info(session)),
            Action::Discover { .. } => discover(session, options).await,
            Action::List(list) => observe_listing(*list, session.list(*list, options).await),
            Action::Call(call) => self.call(session, call, options).await?,
            Action::Cancel { call, after } => {
                let token = CancellationToken::new();
                let options = CallOptions { cancel: Some(token.clone()), ..options };
                let from = session.recorder().end();
                let is_due = async {
                    if call.is_task {
                        session.recorder().wait_for(from, is_task).await;
                    }
                    tokio::time::sleep(*after).await;
                };
                let mut call = Box::pin(self.call(session, call, options));
                tokio::select! {
                    observation = &mut call => observation?,
                    () = is_due => {
                        token.cancel();
                        call.await?
                    }
                }
            }
            Action::ReadResource { uri } => {
                let uri = self.text(uri)?;
                observe_raw(session.read_resource(&uri, options).await)
            }
            Action::GetPrompt { name, args } => {
                let (name, args) = (self.text(name)?, self.arguments(args.as_ref())?);
                observe_raw(session.get_prompt(&name, args, options).await)
            }
            Action::Complete(completion) => self.complete(session, completion, options).await?,
            Action::Subscribe { uri } => {
                observe_unit(session.listen(&SubscriptionFilter::for_resource(&self.text(uri)?), options).await)
            }
            Action::Unsubscribe { uri } => observe_unit(session.unsubscribe(&self.text(uri)?, options).await),
            Action::Listen(ListenFilter { lists, uris }) => {
                let uris = uris.iter().map(|uri| self.text(uri)).collect::<Result<_, _>>()?;
                let filter = SubscriptionFilter { lists: lists.clone(), uris };
                observe_unit(session.listen(&filter, options).await)
            }
            Action::AwaitNotification { method, params } => {
                let method = self.text(method)?;
                let arrived = self.servers[step.server].wait_for_notification(&method, params.as_ref(), limit).await;
                arrived.map_or_else(|missed| missed, Observation::result)
            }
            Action::SetLogLevel(level) => observe_unit(session.set_log_level(&self.text(level)?, options).await),
            Action::Request { method, params } => {
                let (method, params) = (self.text(method)?, self.arguments(params.as_ref())?);
                observe_raw(session.request(&method, params, options).await)
            }
            Action::Ping => observe_result(session.request("ping", None, options).await.map(|_| json!({}))),
            Action::Raw { frame, is_text, headers } => {
                self.raw(session, frame, *is_text, headers, step.timeout.unwrap_or(RAW_TIMEOUT)).await?
            }
            Action::FinalAnswer(answer) => self.final_answer(answer)?,
            Action::Parallel(_) | Action::Agent(_) | Action::Host(_) => return Err(StepError::NotOfSession),
        })
    }

    /// The server's information, in one form for both eras.
    fn info(&self, session: &Session) -> Json {
        let info = session.info();
        let json = |raw: &RawValue| serde_json::from_str::<Json>(raw.get()).unwrap_or_default();
        let mut view = json!({ "protocolVersion": info.version.to_string(), "capabilities": json(&info.capabilities) });
        if let Some(server) = &info.server_info {
            view["serverInfo"] = json(server);
        }
        if let Some(instructions) = &info.instructions {
            view["instructions"] = instructions.as_str().into();
        }
        view
    }

    async fn call(
        &self,
        session: &Session,
        call: &ToolCall,
        mut options: CallOptions,
    ) -> Result<Observation, StepError> {
        let (tool, args) = (self.text(&call.tool)?, self.arguments(call.args.as_ref())?);
        if let Some(level) = &call.log_level {
            match session.info().version.known().map(Version::era) {
                Some(Era::Modern) => {
                    let key = META_LOG_LEVEL.to_owned();
                    options.meta = Some(Map::from_iter([(key, level.as_str().into())]));
                }
                _ => {
                    if let Err(failure) = session.set_log_level(level, CallOptions::default()).await {
                        return Ok(Observation::from_failure(&failure));
                    }
                }
            }
        }
        if call.is_task {
            let TaskRun { statuses, outcome } = session.call_tool_as_task(&tool, args, options).await;
            let schema_errors = self.schema_errors(session, &tool, &outcome).await;
            let mut observation = observe_raw(outcome.map(|outcome| outcome.raw));
            observation.schema_errors = schema_errors;
            observation.statuses = statuses.into_iter().map(Json::from).collect();
            return Ok(observation);
        }
        let outcome = session.call_tool(&tool, args, options).await;
        let schema_errors = self.schema_errors(session, &tool, &outcome).await;
        Ok(Observation { schema_errors, ..observe_raw(outcome.map(|outcome| outcome.raw)) })
    }

    /// What to say of a failed step that names a tool or prompt that its server does not list.
    pub(crate) async fn unlisted(&self, step: &Step) -> Option<String> {
        let session = self.session(step.server).ok()?;
        let (list, wanted) = match &step.action {
            Action::Call(call) => (List::Tools, &call.tool),
            Action::GetPrompt { name, .. } => (List::Prompts, name),
            _ => return None,
        };
        let wanted = self.text(wanted).ok()?;
        let listed = session.list(list, CallOptions::default()).await.ok()?;
        let items: Vec<_> = listed.all_values().collect();
        let names: Vec<_> = items.iter().filter_map(|item| item[list.key()].as_str()).collect();
        let near = nearest(&wanted, &names).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        (!names.contains(&&*wanted)).then(|| format!("the server lists no {} `{wanted}`{near}", list.noun()))
    }

    /// How structured content breaks the output schema of its tool. The tools are listed when the first structured content
    /// comes, and again before a server is accused: they may have changed.
    async fn schema_errors(
        &self,
        session: &Session,
        tool: &str,
        outcome: &Result<ToolOutcome, Failure>,
    ) -> Vec<String> {
        let Ok(outcome) = outcome else { return Vec::new() };
        if outcome.structured_content.is_none() || !session.info().declares("tools") {
            return Vec::new();
        }
        let mut listed = self.tools.lock().await;
        let listed = listed.entry(session.name().to_owned()).or_default();
        if !listed.is_empty() && outcome.schema_errors(tool, listed).is_empty() {
            return Vec::new();
        }
        *listed = session.list_tools(CallOptions::default()).await.map(|listing| listing.items).unwrap_or_default();
        outcome.schema_errors(tool, listed)
    }

    async fn complete(
        &self,
        session: &Session,
        completion: &Completion,
        options: CallOptions,
    ) -> Result<Observation, StepError> {
        let Completion { target, argument, value, context } = completion;
        let (argument, value) = (self.text(argument)?, self.text(value)?);
        let context = self.arguments(context.as_ref())?;
        let (CompletionTarget::Prompt(name) | CompletionTarget::Resource(name)) = target;
        let name = self.text(name)?;
        let reference = match target {
            CompletionTarget::Prompt(_) => CompletionReference::Prompt(&name),
            CompletionTarget::Resource(_) => CompletionReference::Resource(&name),
        };
        Ok(observe_raw(session.complete(reference, &argument, &value, context, options).await))
    }

    async fn raw(
        &self,
        session: &Session,
        frame: &Data,
        is_text: bool,
        headers: &[HeaderChange],
        timeout: Duration,
    ) -> Result<Observation, StepError> {
        let mut text = String::new();
        self.scenario.templates.write_json(frame, &self.context(), &mut text)?;
        let bytes = match is_text {
            true => serde_json::from_str::<String>(&text)?,
            false => text,
        };
        let reply = match session.raw(Bytes::from(bytes), headers, timeout).await {
            Ok(reply) => reply,
            Err(failure) => return Ok(Observation::from_failure(&failure)),
        };
        let refused = reply.status.filter(|status| !(200..300).contains(status));
        let mut observation = match reply.answer.as_ref().map(rehearse_protocol::Frame::message) {
            _ if reply
                .unsolicited
                .as_ref()
                .is_some_and(|stray| !matches!(stray, UnsolicitedFrame::ErrorWithoutId(_))) =>
            {
                Observation::failed("malformed", reply.unsolicited.map(|stray| stray.to_string()).unwrap_or_default())
            }
            Some(Ok(Message::Response(response))) => match response.outcome {
                Ok(result) => observe_raw(Ok(result.to_owned())),
                Err(error) => Observation::from_failure(&Failure::Rpc(error)),
            },
            Some(Ok(_)) => {
                Observation::failed("malformed", "the server answered with a message that is not a response")
            }
            Some(Err(why)) => Observation::failed("malformed", why.to_string()),
            None => match refused {
                Some(status) => {
                    let body = String::from_utf8_lossy(&reply.body).into_owned();
                    Observation::from_failure(&Failure::Http { status, body })
                }
                None => Observation::new(StepOutcome::Silence),
            },
        };
        observation.status = reply.status;
        Ok(observation)
    }

    pub(crate) fn context(&self) -> minijinja::Value {
        let captured = minijinja::Value::from(minijinja::value::Serde(&self.captured));
        let env = minijinja::Value::from_object(ProcessEnvironment);
        minijinja::context! { captured, env }
    }

    pub(crate) fn text(&self, text: &Text) -> Result<String, RenderError> {
        self.scenario.templates.render(text, &self.context())
    }

    pub(crate) fn arguments(&self, data: Option<&Data>) -> Result<Option<Map<String, Json>>, StepError> {
        let Some(data) = data else { return Ok(None) };
        let mut text = String::new();
        self.scenario.templates.write_json(data, &self.context(), &mut text)?;
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// The answer or the error, as the result of the MCP tool that ran the subagent.
    ///
    /// # Errors
    /// A template cannot be rendered, or its result is not a dialog.
    pub(crate) fn final_answer(&self, step: &FinalAnswer) -> Result<Observation, StepError> {
        let schema = step.schema.as_ref();
        let outcome = match &step.dialog {
            DialogSource::File(dialog) => extract(dialog, schema),
            DialogSource::Inline(data) => {
                let mut text = String::new();
                self.scenario.templates.write_json(data, &self.context(), &mut text)?;
                // A captured value may be a dialog as a string.
                let text = serde_json::from_str::<String>(&text).unwrap_or(text);
                let dialog = Dialog::parse(&Source::new("dialog", text))?;
                extract(&dialog, schema)
            }
        };
        let result = outcome.map_or_else(|error| error.to_tool_result(), |answer| answer.to_tool_result());
        Ok(observe_raw(Ok(result)))
    }
}

/// Adds the notifications and the server's requests in the frames of one connection.
fn observe_frames(frames: &[Frame], era: Era, observation: &mut Observation) {
    let is_answer = |frame: &Frame| matches!(frame.head(), Ok(MessageHead::Response { .. }));
    // Frames after the response belong to no step.
    let end = frames.iter().rposition(is_answer).map_or(frames.len(), |answer| answer + 1);
    let first = frames.iter().position(|frame| frame.direction == Direction::ClientToServer);
    let asked = client_requests(&frames[first.unwrap_or(end).min(end)..end], era);
    observation.client_requests.extend(asked);
    let mut token = None;
    let mut asked = false;
    for frame in &frames[..end] {
        match (frame.direction, frame.message()) {
            (Direction::ClientToServer, Ok(Message::Request(request))) => {
                let params = request.params.and_then(|params| serde_json::from_str::<Json>(params.get()).ok());
                token = params.and_then(|params| params.pointer("/_meta/progressToken").cloned());
                asked = true;
            }
            (Direction::ServerToClient, Ok(Message::Notification(notification)))
                if asked && matches!(&*notification.method, "notifications/progress" | "notifications/message") =>
            {
                let params = notification.params.map(|params| params.get());
                let view = observation::notification(&notification.method, params, token.as_ref());
                observation.notifications.push(view);
            }
            _ => {}
        }
    }
}

/// Whether the server runs the call as a task.
fn is_task(frame: &Frame) -> bool {
    let result = match frame.message() {
        Ok(Message::Response(response)) if frame.direction == Direction::ServerToClient => response.outcome.ok(),
        _ => None,
    };
    let result = result.and_then(|result| serde_json::from_str::<Json>(result.get()).ok());
    result.is_some_and(|result| result["resultType"] == "task")
}

/// The tools, and the other lists that the server declares. A capability without a method is no list: many servers have
/// no templates.
async fn discover(session: &Session, options: CallOptions) -> Observation {
    let mut observed = observe_listing(List::Tools, session.list_tools(options.clone()).await);
    for list in session.info().lists().filter(|list| *list != List::Tools) {
        let StepOutcome::Result(result) = &mut observed.outcome else { break };
        let listing = session.list(list, options.clone()).await;
        if matches!(&listing, Err(Failure::Rpc(error)) if error.code == METHOD_NOT_FOUND) {
            continue;
        }
        let mut listed = observe_listing(list, listing);
        match &mut listed.outcome {
            StepOutcome::Result(lists) => result[list.member()] = lists[list.member()].take(),
            _ => observed = listed,
        }
    }
    observed
}

/// The items of a list. A malformed item makes the list malformed.
fn observe_listing(list: List, listing: Result<Listing, Failure>) -> Observation {
    let read = |listing: Listing| {
        if !listing.malformed.is_empty() {
            let problems: Vec<_> = listing.malformed.iter().take(MAX_PROBLEMS).map(|(_, it)| it.to_string()).collect();
            let more = listing.malformed.len() - problems.len();
            let more = if more > 0 { format!(", … and {more} more") } else { String::new() };
            return Err(Failure::Malformed(format!("{}{more}", problems.join(", "))));
        }
        let items = listing.items.iter().map(|item| serde_json::from_str::<Json>(item.get()));
        let items = items.collect::<Result<Vec<_>, _>>().map_err(|error| Failure::Malformed(error.to_string()))?;
        Ok(json!({ list.member(): items, "pages": listing.pages }))
    };
    observe_result(listing.and_then(read))
}

/// The observation of a request without a result.
fn observe_unit(result: Result<(), Failure>) -> Observation {
    observe_result(result.map(|()| json!({})))
}
