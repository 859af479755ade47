//! Answers over HTTP that faults strike: the head, the body, and how the connection ends.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderValue, StatusCode, header};
use tokio_util::sync::CancellationToken;

use super::{
    Shared,
    afflict::{Afflicted, Items},
    http::{empty, events, json},
};
use crate::{
    mock::{
        engine::Faulty,
        faults::{Item, Kind, Packet, Refusal, Step, Steps, Stop},
        script::Form,
    },
    transport::server::{Body, Break, Line, Response},
    wire::sse::Event,
};

/// How much earlier an answer is sent than one that gives way to it, where they have connections of their own.
const HEAD_START: Duration = Duration::from_millis(20);

/// Ends an answer otherwise than with its last byte.
#[derive(Clone)]
pub(super) struct Ender {
    shared: Arc<Shared>,
    /// That of the connection, if it has one that can be used.
    line: Option<Line>,
}

impl Ender {
    pub(super) fn new(shared: &Arc<Shared>, line: Option<&Line>) -> Ender {
        Ender { shared: shared.clone(), line: line.cloned() }
    }

    /// Does what comes after the last byte of a stream. Returns when the stream may end in order.
    pub(super) async fn end_stream(&self, stop: Stop) {
        match stop {
            Stop::Finish | Stop::Close(_) => {}
            stop => self.end(stop).await,
        }
    }

    /// Does what comes where nothing can end in order. Returns only if the connection cannot be broken off.
    async fn end(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish => return,
            Stop::Hang => {
                self.shared.life.shutdown.stop.cancelled().await;
                Break::Close
            }
            Stop::Close(_) => Break::Close,
            Stop::Reset => Break::Reset,
            Stop::Exit(_) => Break::Hold,
        };
        self.prepare(stop);
        if let Some(line) = &self.line {
            line.break_here(how).await;
        }
    }

    /// Lets the connection break off as soon as what is being handed over was sent.
    fn break_off(&self, stop: Stop) {
        let how = match stop {
            Stop::Finish | Stop::Hang => return,
            Stop::Close(_) => Break::Close,
            Stop::Reset => Break::Reset,
            Stop::Exit(_) => Break::Hold,
        };
        self.prepare(stop);
        if let Some(line) = &self.line {
            line.break_off(how);
        }
    }

    /// A server that dies does so when its last bytes are on their way; whoever reads their end finds it dead.
    fn prepare(&self, stop: Stop) {
        let Stop::Exit(code) = stop else { return };
        let Some(line) = self.line.clone() else { return self.shared.life.die(code) };
        let shared = self.shared.clone();
        self.shared.life.shutdown.tasks.spawn(async move {
            line.broken().await;
            shared.life.die(code);
        });
    }
}

/// What an answer becomes.
pub(super) enum Shape {
    Response(Response),
    /// A stream of events, and the media type to give it.
    Events(Items, Option<Arc<str>>),
}

/// When the stream of an answer opens that is to be a stream only if it must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// As soon as the answer is not there at once: a client that loses the stream can resume it.
    AtOnce,
    /// With the first message that comes before the response, if one does: until then it can have a status.
    WithTheFirst,
}

/// The answer with its faults. What goes on in the background goes on until the server ends.
pub(super) fn afflicted(shared: &Arc<Shared>, faulty: Faulty) -> Afflicted {
    let background = shared.clone();
    let detach = move |exchange| background.life.carry_on(exchange);
    Afflicted::new(faulty, shared.life.started, shared.life.shutdown.stop.clone(), detach)
}

/// Gives the answer its shape. It is a JSON object if it would be without faults, and is one frame.
pub(super) async fn shape(ender: &Ender, mut afflicted: Afflicted, opening: Opening) -> Shape {
    let mut content_type = None;
    loop {
        match afflicted.items.next().await {
            Some(Item::Begin) => break,
            Some(Item::Wait(time)) => tokio::time::sleep(time).await,
            Some(Item::ContentType(text)) => content_type = Some(text),
            Some(Item::Refuse(refused)) => return Shape::Response(refusal(refused)),
            Some(Item::Stop(stop)) => {
                ender.end(stop).await;
                return Shape::Response(empty(StatusCode::INTERNAL_SERVER_ERROR));
            }
            // No fault puts anything else before the beginning.
            Some(_) => {}
            None => return Shape::Response(empty(StatusCode::INTERNAL_SERVER_ERROR)),
        }
    }
    let form = afflicted.http.form();
    let never = CancellationToken::new();
    let begun = match form {
        Form::Json => &never,
        _ if afflicted.at_once => &never,
        Form::Auto if opening == Opening::WithTheFirst => &afflicted.begun,
        Form::Auto | Form::Sse => return Shape::Events(afflicted.items, content_type),
    };
    let (mut packets, stop) = match gather(ender, &mut afflicted.items, begun).await {
        Gathered::Whole(packets, stop) => (packets, stop),
        Gathered::Begun(items) => {
            return Shape::Events(stream::iter(items).chain(afflicted.items).boxed(), content_type);
        }
    };
    if form == Form::Json {
        packets.retain(|packet| matches!(packet.kind, Kind::Response | Kind::Noise));
    }
    let is_json = match &packets[..] {
        [] => form == Form::Json,
        [packet] => form != Form::Sse || packet.status != 200,
        _ => form == Form::Json,
    };
    let mut response = match (is_json, &afflicted.id) {
        (true, _) => whole(ender, packets, stop),
        // A notification is not answered.
        (false, None) if packets.is_empty() => {
            ender.end(stop).await;
            empty(StatusCode::ACCEPTED)
        }
        (false, _) => {
            let items = packets.into_iter().map(Item::Packet).chain([Item::Stop(stop)]);
            return Shape::Events(stream::iter(items).boxed(), content_type);
        }
    };
    if let Some(challenge) = afflicted.challenge {
        response.extensions_mut().insert(challenge);
    }
    set_content_type(&mut response, content_type.as_deref());
    Shape::Response(response)
}

/// What was gathered of an answer.
enum Gathered {
    /// Its frames, and how it ends.
    Whole(Vec<Packet>, Stop),
    /// The beginning of a stream.
    Begun(Vec<Item>),
}

/// Gathers an answer, unless it turns out on the way that it has `begun` before its response.
async fn gather(ender: &Ender, items: &mut Items, begun: &CancellationToken) -> Gathered {
    let mut packets = Vec::new();
    loop {
        let item = tokio::select! {
            biased;
            item = items.next() => item,
            // What began it may have been dropped.
            () = begun.cancelled() => return Gathered::Begun(packets.into_iter().map(Item::Packet).collect()),
        };
        match item {
            Some(item) if begun.is_cancelled() => {
                return Gathered::Begun(packets.into_iter().map(Item::Packet).chain([item]).collect());
            }
            Some(Item::Packet(packet)) => packets.push(packet),
            Some(Item::Stop(stop)) => return Gathered::Whole(packets, stop),
            Some(item) => pause(ender, &item).await,
            None => return Gathered::Whole(packets, Stop::Finish),
        }
    }
}

/// Lets the time pass that an item takes.
pub(super) async fn pause(ender: &Ender, item: &Item) {
    let time = match item {
        Item::Wait(time) => *time,
        Item::GiveWay(limit) if ender.shared.overtaking.give_way(*limit).await => HEAD_START,
        _ => return,
    };
    tokio::time::sleep(time).await;
}

/// A JSON body of these frames, one a line.
fn whole(ender: &Ender, packets: Vec<Packet>, stop: Stop) -> Response {
    let status = packets.last().map_or(200, |packet| packet.status);
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let ([packet @ Packet { drip: None, cut: None, .. }], Stop::Finish) = (&packets[..], stop) {
        return json(status, packet.bytes.clone());
    }
    let length = packets.iter().map(|packet| packet.bytes.len() + 1).sum::<usize>().saturating_sub(1);
    let mut steps: VecDeque<Steps> = VecDeque::new();
    for packet in packets {
        if !steps.is_empty() {
            steps.push_back(Steps::whole(Bytes::from_static(b"\n")));
        }
        steps.push_back(packet.steps(|bytes, _| bytes));
    }
    if stop != Stop::Finish {
        steps.push_back(Steps::new(Bytes::new(), stop));
    }
    let body = stream::unfold((steps, ender.clone()), |(mut steps, ender)| async move {
        loop {
            match steps.front_mut()?.next() {
                Some(Step::Bytes(bytes)) => {
                    // Nobody asks for more once all that was announced is there.
                    if let Some(stop) = next_stop(&steps) {
                        ender.break_off(stop);
                    }
                    return Some((bytes, (steps, ender)));
                }
                Some(Step::Wait(time)) => tokio::time::sleep(time).await,
                Some(Step::Stop(stop)) => {
                    ender.end(stop).await;
                    return None;
                }
                None => drop(steps.pop_front()),
            }
        }
    });
    let mut response = json(status, Bytes::new());
    *response.body_mut() = Body::announced(length, body);
    response
}

/// How it ends, if that is next.
fn next_stop(steps: &VecDeque<Steps>) -> Option<Stop> {
    steps.iter().find(|steps| !steps.is_over())?.stops()
}

/// A stream of events that nobody can resume.
pub(super) fn respond_with_events(ender: Ender, items: Items, content_type: Option<&str>) -> Response {
    let state = (items, Steps::whole(Bytes::new()), ender);
    let body = stream::unfold(state, |(mut items, mut steps, ender)| async move {
        loop {
            for step in steps.by_ref() {
                match step {
                    Step::Bytes(bytes) => return Some((bytes, (items, steps, ender))),
                    Step::Wait(time) => tokio::time::sleep(time).await,
                    Step::Stop(stop) => {
                        ender.end_stream(stop).await;
                        return None;
                    }
                }
            }
            let encode = |data, is_whole| event_bytes(Event::message(data).encode(), is_whole);
            match items.next().await? {
                Item::Packet(packet) => {
                    if packet.kind == Kind::Response {
                        ender.shared.overtaking.answered();
                    }
                    steps = packet.steps(encode);
                }
                Item::Stop(stop) => steps = Steps::new(Bytes::new(), stop),
                item => pause(&ender, &item).await,
            }
        }
    });
    let mut response = events(Body::stream(body));
    set_content_type(&mut response, content_type);
    response
}

/// An event as it stands on the wire, without its end if its data is not all there is.
pub(super) fn event_bytes(encoded: Bytes, is_whole: bool) -> Bytes {
    // A line end, and a blank line.
    if is_whole { encoded } else { encoded.slice(..encoded.len().saturating_sub(2)) }
}

pub(super) fn set_content_type(response: &mut Response, content_type: Option<&str>) {
    match content_type {
        None => {}
        Some("") => drop(response.headers_mut().remove(header::CONTENT_TYPE)),
        Some(text) => {
            if let Ok(value) = HeaderValue::from_str(text) {
                response.headers_mut().insert(header::CONTENT_TYPE, value);
            }
        }
    }
}

/// The response that comes instead of an answer.
pub(super) fn refusal(refusal: Refusal) -> Response {
    let mut response = Response::new(Body::whole(refusal.body));
    *response.status_mut() = refusal.code;
    set_content_type(&mut response, refusal.content_type);
    for (name, value) in refusal.headers.iter() {
        response.headers_mut().insert(name, value.clone());
    }
    response
}
