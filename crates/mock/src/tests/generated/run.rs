//! Makes the moves of clients.

use std::{collections::HashSet, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

use super::{
    choice::pick,
    client::{self, Client},
    model::{Invariant, Model, Reaction, ensure},
    moves::{
        Answering, ClientMove, Cursor, EraPlan, Extras, FRAMES, Garbage, HeadersPlan, IdPlan, KindPlan, MetaPlan, Move,
        Retrying, Run, TaskMove, Token,
    },
    script::{Kind, LEVELS},
    traffic::Traffic,
};

const PLAIN: Extras = Extras {
    id: IdPlan::Number,
    token: Token::None,
    level: None,
    meta: MetaPlan::Complete,
    headers: HeadersPlan::Right,
};

/// Makes all moves, and returns the traffic of each client.
///
/// # Errors
/// The broken invariant, and which move broke it.
pub(crate) fn traffic_of(run: &Run) -> Result<Vec<Traffic>, String> {
    let clients = run.clients.iter().map(|plan| Client::new(*plan)).collect();
    let mut model = Model::new(&run.script, clients);
    for who in 0..model.clients.len() {
        match model.clients[who].plan.era {
            EraPlan::Legacy { silent: true, .. } => {}
            EraPlan::Legacy { silent: false, .. } => model.initialize(who)?,
            EraPlan::Modern { .. } => drop(model.ask(who, "server/discover", json!({}), &PLAIN)?),
        }
    }
    for (number, ClientMove { who, what }) in run.moves.iter().enumerate() {
        let who = usize::from(*who) % model.clients.len();
        model.make(who, what).map_err(|why| format!("{why}\n  in move {number}: {what:?}"))?;
    }
    model.end()
}

impl Model {
    fn initialize(&mut self, who: usize) -> Invariant {
        let hello = self.clients[who].initialize();
        self.send(who, (hello.to_string().into(), None))?;
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send(who, (initialized.to_string().into(), None)).map(drop)
    }

    fn ask(&mut self, who: usize, method: &str, params: Json, extras: &Extras) -> Result<Reaction, String> {
        let frame = self.clients[who].request(method, params, extras);
        self.send(who, frame)
    }

    fn notify(&mut self, who: usize, method: &str, params: &Json) -> Invariant {
        let frame = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send(who, (frame.to_string().into(), None)).map(drop)
    }

    fn make(&mut self, who: usize, it: &Move) -> Invariant {
        match it {
            Move::Use { kind, which, arguments, extras, events } => {
                let (method, mut params) = self.usage(kind.kind(), *which);
                if let Some(arguments) = arguments.to_json() {
                    params["arguments"] = arguments;
                }
                match self.ask(who, &method, params, extras)? {
                    Reaction::Started => self.go_on(usize::from(*events % 8)),
                    _ => Ok(()),
                }
            }
            Move::UseAgain { which, extras } => match pick(&self.clients[who].sent, *which).cloned() {
                Some((method, params)) => self.ask(who, &method, params, extras).map(drop),
                None => Ok(()),
            },
            Move::List { kind, cursor, extras } => self.list(who, *kind, *cursor, extras),
            Move::Walk { kind } => self.walk(who, *kind),
            Move::Complete { which, template, prefix, extras } => {
                let names = if *template { &self.names.templates } else { &self.names.prompts };
                let name = pick(names, *which).map_or("unknown", String::as_str);
                let reference = match template {
                    true => json!({ "type": "ref/resource", "uri": name }),
                    false => json!({ "type": "ref/prompt", "name": name }),
                };
                let value = [json!(""), json!("PA"), json!("zzz"), Json::Null][usize::from(*prefix) % 4].clone();
                let params = json!({ "ref": reference, "argument": { "name": "id", "value": value } });
                self.ask(who, "completion/complete", params, extras).map(drop)
            }
            Move::Simple { which, extras } => {
                let methods = ["ping", "server/discover", "initialize", "tools/nope", "logging/setLevel", "tasks/list"];
                let method = pick(&methods, *which).copied().unwrap_or("ping");
                self.ask(who, method, json!({}), extras).map(drop)
            }
            Move::Subscribe { which, undo } => {
                let uri = pick(&self.names.resources, *which).map_or("item://x/1", String::as_str);
                let method = if *undo { "resources/unsubscribe" } else { "resources/subscribe" };
                self.ask(who, method, json!({ "uri": uri }), &PLAIN).map(drop)
            }
            Move::SetLevel(level) => {
                let level = pick(&LEVELS, *level).copied().unwrap_or("info");
                self.ask(who, "logging/setLevel", json!({ "level": level }), &PLAIN).map(drop)
            }
            Move::Follow { which } => {
                let client = &self.clients[who];
                match (client.questions.is_empty(), client.rounds.is_empty(), client.tasks.is_empty()) {
                    (false, ..) => self.answer(who, *which, Answering::Rightly)?,
                    (_, false, _) if which % 3 > 0 => {
                        let last = client.rounds.len() - 1;
                        self.retry(who, u8::try_from(last).unwrap_or(*which), Retrying::Rightly, &PLAIN)?;
                    }
                    (.., false) => self.task(who, *which, TaskMove::Answer(Answering::Rightly), &PLAIN)?,
                    _ => {}
                }
                self.go(*which, 6, false)
            }
            Move::Go { which, events } => self.go(*which, usize::from(*events % 8) + 1, false),
            Move::TimeOut { which } => self.go(*which, 1, true),
            Move::Answer { which, how } => self.answer(who, *which, *how),
            Move::Retry { which, how, extras } => self.retry(who, *which, *how, extras),
            Move::Task { which, what, extras } => self.task(who, *which, *what, extras),
            Move::PendingSubscription { filter, which, extras } => {
                let filter = self.filter(who, *filter, *which);
                self.ask(who, "subscriptions/listen", filter, extras).map(drop)
            }
            Move::StopListening { which } => {
                if let open @ 1.. = self.clients[who].subscriptions.len() {
                    self.close(who, usize::from(*which) % open);
                }
                Ok(())
            }
            Move::Cancel { which } => {
                let own = self.running.iter().filter(|it| it.request.client == who).map(|it| json!(it.request.id));
                let own: Vec<_> = own.collect();
                let id = pick(&own, *which).cloned().unwrap_or(json!("unknown"));
                self.notify(who, "notifications/cancelled", &json!({ "requestId": id, "reason": "r" }))
            }
            Move::GoAway { which } => {
                if !self.running.is_empty() {
                    let index = usize::from(*which) % self.running.len();
                    self.running.remove(index);
                }
                Ok(())
            }
            Move::Tick(time) => {
                self.at += Duration::from_millis(u64::from(*time) * 20);
                Ok(())
            }
            Move::Garbage(Garbage::Known(which)) => {
                let frame = pick(&FRAMES, *which).map(String::as_str).unwrap_or_default();
                self.send(who, (Bytes::from(frame.to_owned()), None)).map(drop)
            }
            Move::Garbage(Garbage::Bytes(bytes)) => self.send(who, (bytes.clone().into(), None)).map(drop),
            Move::Damaged { at, length, with } => self.damaged(who, *at, *length, *with),
            Move::Batch(parts) => self.batch(who, parts),
            Move::Initialize => self.initialize(who),
            Move::Reset | Move::Reload => {
                self.begin_anew(matches!(it, Move::Reload));
                Ok(())
            }
        }
    }

    /// A request for something that the script has, or for something that it does not have.
    fn usage(&self, kind: Kind, which: u8) -> (String, Json) {
        let names = self.names.of(kind);
        let is_known = which % 8 < 7 && !names.is_empty();
        let name = if is_known { pick(names, which / 8).map_or("", String::as_str) } else { "unknown" };
        match kind {
            Kind::Tool => ("tools/call".into(), json!({ "name": name })),
            Kind::Prompt => ("prompts/get".into(), json!({ "name": name })),
            Kind::Resource => ("resources/read".into(), json!({ "uri": name })),
            Kind::Template => {
                let uri =
                    name.replace("{id}", "a%2Fb").replace("{?q}", if which.is_multiple_of(3) { "?q=1" } else { "" });
                ("resources/read".into(), json!({ "uri": uri }))
            }
            Kind::Method => (name.to_owned(), json!({ "x": 1 })),
        }
    }

    fn list(&mut self, who: usize, kind: KindPlan, cursor: Cursor, extras: &Extras) -> Invariant {
        let (method, _) = listed(kind);
        let next = self.clients[who].cursors.get(method).filter(|cursor| cursor.is_string()).cloned();
        let params = match cursor {
            Cursor::None => json!({}),
            Cursor::Next => next.map_or(json!({}), |next| json!({ "cursor": next })),
            Cursor::Unknown => json!({ "cursor": "unknown" }),
            Cursor::Empty => json!({ "cursor": "" }),
            Cursor::WrongType => json!({ "cursor": 5 }),
            Cursor::Null => json!({ "cursor": null }),
        };
        let outcome = self.ask(who, method, params, extras)?;
        if let (Cursor::Unknown | Cursor::WrongType | Cursor::Empty, Reaction::Answered(response)) = (cursor, outcome) {
            ensure!(response.get("error").is_some(), "a page for no cursor: {response}");
        }
        Ok(())
    }

    /// Following the cursors comes to an end, and nothing is seen twice.
    fn walk(&mut self, who: usize, kind: KindPlan) -> Invariant {
        let (method, key) = listed(kind);
        let (mut seen, mut params) = (HashSet::new(), json!({}));
        for _ in 0..20 {
            let Reaction::Answered(response) = self.ask(who, method, params, &PLAIN)? else {
                return Err(format!("{method} takes steps"));
            };
            for item in response["result"][key].as_array().into_iter().flatten() {
                ensure!(seen.insert(item.to_string()), "{item} is on two pages");
            }
            match &response["result"]["nextCursor"] {
                Json::String(next) => params = json!({ "cursor": next }),
                _ => return Ok(()),
            }
        }
        Err(format!("the cursors of {method} have no end"))
    }

    fn go(&mut self, which: u8, events: usize, time_out: bool) -> Invariant {
        match self.running.len() {
            0 => Ok(()),
            running => self.advance(usize::from(which) % running, events, time_out).map(drop),
        }
    }

    /// Continues the latest exchange.
    fn go_on(&mut self, events: usize) -> Invariant {
        match self.running.len().checked_sub(1) {
            Some(last) => self.advance(last, events, false).map(drop),
            None => Ok(()),
        }
    }

    /// A legacy client answers an open question.
    fn answer(&mut self, who: usize, which: u8, how: Answering) -> Invariant {
        let client = &mut self.clients[who];
        if client.questions.is_empty() {
            return Ok(());
        }
        let index = usize::from(which) % client.questions.len();
        let question = client.questions[index].clone();
        let id = match how {
            Answering::UnknownId => json!(4711),
            Answering::TextId => question.id.to_string().into(),
            _ => {
                client.questions.remove(index);
                question.id
            }
        };
        let frame = match client::answer(&question.method, how) {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        };
        for _ in 0..if how == Answering::Twice { 2 } else { 1 } {
            self.send(who, (frame.to_string().into(), None))?;
        }
        Ok(())
    }

    /// A modern client answers a result that asks for input.
    fn retry(&mut self, who: usize, which: u8, how: Retrying, extras: &Extras) -> Invariant {
        let Some(round) = pick(&self.clients[who].rounds, which).cloned() else { return Ok(()) };
        let (mut method, mut params) = (round.method, round.params);
        let wrongly = if let Retrying::Wrongly(which) = how { Answering::Wrongly(which) } else { Answering::Rightly };
        let requests = round.result["inputRequests"].as_object().into_iter().flatten();
        let mut answers: Map<String, Json> = requests
            .map(|(key, request)| {
                let method = request["method"].as_str().unwrap_or_default();
                (key.clone(), client::answer(method, wrongly).unwrap_or_default())
            })
            .collect();
        let mut state = round.result["requestState"].clone();
        match how {
            Retrying::Rightly | Retrying::Wrongly(_) => {}
            Retrying::WithMore => drop(answers.insert("more".into(), json!({ "x": 1 }))),
            Retrying::WithoutAnswers => answers.clear(),
            Retrying::Partly => drop(answers.keys().next().cloned().and_then(|key| answers.remove(&key))),
            Retrying::WithoutState => state = Json::Null,
            Retrying::WrongStateType => state = json!({ "state": state }),
            Retrying::Tampered(at, with) => {
                let mut text = state.as_str().unwrap_or_default().to_owned().into_bytes();
                let reach = if with < 128 { 40 } else { text.len() };
                let at = text.len() - 1 - usize::from(at) % reach.min(text.len());
                text[at] = b"ABab01-_."[usize::from(with) % 9];
                state = String::from_utf8_lossy(&text).into_owned().into();
            }
            Retrying::WithAnotherArgument => params["arguments"] = json!({ "other": self.at.as_millis() as u64 + 1 }),
            Retrying::OnAnotherRequest => {
                let other = if method == "tools/call" { Kind::Prompt } else { Kind::Tool };
                (method, params) = self.usage(other, which | 1);
            }
        }
        // Without a version it is a request of a legacy session, which has no states.
        let is_legacy = matches!(extras.meta, MetaPlan::None | MetaPlan::NullVersion | MetaPlan::NoObject);
        let unusable = match how {
            _ if is_legacy => false,
            Retrying::Tampered(..) => state != round.result["requestState"],
            Retrying::WithAnotherArgument | Retrying::OnAnotherRequest | Retrying::WrongStateType => true,
            // What replaced the item may ask for nothing.
            Retrying::WithoutState => !answers.is_empty() && !self.replaces,
            _ => false,
        };
        if !answers.is_empty() {
            params["inputResponses"] = answers.into();
        }
        if !state.is_null() {
            params["requestState"] = state;
        }
        // Arguments that could not be read are not known here either.
        let is_same = params.get("arguments") != Some(&Json::Null) && !is_legacy;
        match self.ask(who, &method, params, extras)? {
            Reaction::Answered(response) => {
                let message = response["error"]["message"].as_str().unwrap_or_default();
                let is_known = self.generation == round.generation && self.at == round.at && !self.replaces;
                let refused = !unusable && is_known && is_same && message.starts_with("Invalid requestState");
                ensure!(!refused, "a good state is refused: {response}");
                // An unknown tool or an argument that is wrong already is found first.
                let result = &response["result"];
                ensure!(
                    !unusable || response.get("error").is_some() || result["isError"] == true,
                    "{how:?} is taken: {response}"
                );
                Ok(())
            }
            _ if unusable => Err(format!("{how:?} is taken")),
            _ => self.go_on(8),
        }
    }

    fn task(&mut self, who: usize, which: u8, what: TaskMove, extras: &Extras) -> Invariant {
        // Any client that knows a task's id may query it.
        let all: Vec<String> = self.clients.iter().flat_map(|client| client.tasks.clone()).collect();
        let id = pick(&all, which).cloned().unwrap_or_else(|| "unknown".into());
        let (method, params) = match what {
            TaskMove::Get => ("tasks/get", json!({ "taskId": id })),
            TaskMove::GetUnknown => ("tasks/get", json!({ "taskId": "unknown" })),
            TaskMove::Cancel => {
                self.ask(who, "tasks/get", json!({ "taskId": id }), extras)?;
                self.ask(who, "tasks/cancel", json!({ "taskId": id }), extras)?;
                ("tasks/get", json!({ "taskId": id }))
            }
            TaskMove::UpdateWithoutAnswers => ("tasks/update", json!({ "taskId": id })),
            TaskMove::AnswerUnknown => ("tasks/update", json!({ "taskId": id, "inputResponses": { "unknown": {} } })),
            TaskMove::Answer(how) => {
                let asked = self.ask(who, "tasks/get", json!({ "taskId": id }), extras)?;
                let Reaction::Answered(response) = asked else { return Err("tasks/get takes steps".into()) };
                let requests = response["result"]["inputRequests"].as_object().into_iter().flatten();
                let answers = requests.filter_map(|(key, request)| {
                    let answer = client::answer(request["method"].as_str().unwrap_or_default(), how).ok()?;
                    Some((key.clone(), answer))
                });
                ("tasks/update", json!({ "taskId": id, "inputResponses": answers.collect::<Map<_, _>>() }))
            }
        };
        let outcome = self.ask(who, method, params, extras)?;
        if let (TaskMove::GetUnknown, Reaction::Answered(response)) = (what, outcome) {
            ensure!(response.get("error").is_some(), "an unknown task: {response}");
        }
        Ok(())
    }

    /// A subscription filter, valid or invalid.
    fn filter(&self, who: usize, filter: u8, which: u8) -> Json {
        if filter == 255 {
            let wrong = [json!([]), json!({ "toolsListChanged": "yes" }), Json::Null];
            return json!({ "notifications": wrong[usize::from(which) % 3] });
        }
        let mut wanted = Map::new();
        let names = ["toolsListChanged", "promptsListChanged", "resourcesListChanged"];
        for (bit, name) in names.into_iter().enumerate() {
            if filter & (1 << bit) != 0 {
                wanted.insert(name.into(), (filter & 0x80 == 0).into());
            }
        }
        if filter & 8 != 0 {
            wanted.insert("resourceSubscriptions".into(), json!(self.names.resources));
        }
        if filter & 16 != 0 {
            wanted.insert("taskIds".into(), json!(self.clients[who].tasks));
        }
        json!({ "notifications": wanted })
    }

    /// A request in which some bytes stand in place of others.
    fn damaged(&mut self, who: usize, at: u16, length: u8, with: u8) -> Invariant {
        let Some((method, params)) = self.clients[who].sent.last().cloned() else { return Ok(()) };
        let (frame, headers) = self.clients[who].request(&method, params, &PLAIN);
        let mut bytes = frame.to_vec();
        let start = usize::from(at) % bytes.len();
        let end = (start + usize::from(length % 12)).min(bytes.len());
        let pieces: [&[u8]; 12] =
            [b"", b"\"", b"{", b"}", b"[]", b":", b",", b"null", b"1e9", b"\\u00e9", b"\xff", b"\"_meta\":{},"];
        bytes.splice(start..end, pieces[usize::from(with) % pieces.len()].iter().copied());
        self.send(who, (bytes.into(), headers)).map(drop)
    }

    fn batch(&mut self, who: usize, parts: &[(u8, u8)]) -> Invariant {
        let mut batch = Vec::new();
        for (what, which) in parts {
            batch.push(match what % 5 {
                0 => {
                    let (method, params) = self.usage(Kind::Tool, *which);
                    serde_json::from_slice(&self.clients[who].request(&method, params, &PLAIN).0).unwrap_or_default()
                }
                1 => json!({ "jsonrpc": "2.0", "method": "notifications/x" }),
                2 => json!({ "jsonrpc": "2.0", "id": 4712, "result": {} }),
                3 => json!(7),
                _ => self.clients[who].initialize(),
            });
        }
        self.send(who, (Json::from(batch).to_string().into(), None)).map(drop)
    }
}

/// The method that lists, and where its result has the list.
fn listed(kind: KindPlan) -> (&'static str, &'static str) {
    match kind.kind() {
        Kind::Tool | Kind::Method => ("tools/list", "tools"),
        Kind::Prompt => ("prompts/list", "prompts"),
        Kind::Resource => ("resources/list", "resources"),
        Kind::Template => ("resources/templates/list", "resourceTemplates"),
    }
}
