//! Faults: how a mock misbehaves where its script says so.
//!
//! An answer on its way out is a sequence of [`Item`]s, and a [`Fault`] turns every item into those that go on instead.
//! A [`Chain`] of faults is pure: it knows neither time nor transports. Whoever sends the answer waits, frames and
//! closes as the items say.
//!
//! One file a fault; [`ALL`] is the list of them.

mod after_cancel;
mod chain;
mod close;
mod content_type;
mod delay;
mod drip;
mod drop;
mod duplicate;
mod exit;
mod garbage;
mod hang;
mod noise;
mod oversize;
mod packet;
mod read;
mod reorder;
mod reset;
mod status;
mod truncate;
mod wrong_id;

use std::{sync::Arc, time::Duration};

pub use chain::{Chain, Run};
pub use packet::{Kind, Packet, Step, Steps};
pub use status::Refusal;

use crate::{
    config::{Node, Problem, Problems, Value},
    transport::Transport,
};

/// A kind of fault, for those who write scripts.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The key by which a script asks for it.
    pub name: &'static str,
    /// What it does, in a sentence without a full stop.
    pub summary: &'static str,
    /// Each option, and what it means.
    pub options: &'static [(&'static str, &'static str)],
    /// What stands under `do` of a fault, as YAML.
    pub example: &'static str,
    /// Where it exists. Elsewhere it does nothing.
    pub transports: &'static [Transport],
    read: fn(&Node) -> Result<Fault, Problems>,
}

/// Every kind of fault.
pub const ALL: &[About] = &[
    exit::ABOUT,
    hang::ABOUT,
    delay::ABOUT,
    drip::ABOUT,
    noise::ABOUT,
    garbage::ABOUT,
    truncate::ABOUT,
    reset::ABOUT,
    close::ABOUT,
    status::ABOUT,
    content_type::ABOUT,
    wrong_id::ABOUT,
    duplicate::ABOUT,
    reorder::ABOUT,
    drop::ABOUT,
    after_cancel::ABOUT,
    oversize::ABOUT,
];

const EVERYWHERE: &[Transport] = &Transport::ALL;

/// A fault with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    Exit(exit::Exit),
    Hang(hang::Hang),
    Delay(delay::Delay),
    Drip(drip::Drip),
    Noise(noise::Noise),
    Garbage(garbage::Garbage),
    Truncate(truncate::Truncate),
    Reset(reset::Reset),
    Close(close::Close),
    Status(status::Status),
    ContentType(content_type::ContentType),
    WrongId(wrong_id::WrongId),
    Duplicate(duplicate::Duplicate),
    Reorder(reorder::Reorder),
    Drop(drop::Drop),
    AfterCancel,
    Oversize(oversize::Oversize),
}

/// A piece of an answer on its way out. The order is [`Item::Begin`], what comes on the way, the response,
/// [`Item::Stop`]; what a fault puts before `Begin` happens before even the head of an HTTP response is sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// The answer begins.
    Begin,
    Wait(Duration),
    /// Another answer goes first, unless none is sent within this time.
    GiveWay(Duration),
    /// The media type of the HTTP response; none at all if it is empty.
    ContentType(Arc<str>),
    /// This HTTP response comes instead of the answer.
    Refuse(Refusal),
    Packet(Packet),
    /// The stream is to be closed where it can be resumed, after telling the client when to come back.
    Disconnect(Option<Duration>),
    /// Nothing follows.
    Stop(Stop),
}

/// What comes after the last byte of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// What always comes.
    Finish,
    /// Nothing at all: everyone waits.
    Hang,
    /// The stream or connection is closed in order; a WebSocket with this code.
    Close(u16),
    /// The connection is reset.
    Reset,
    /// The process dies with this code.
    Exit(u8),
}

impl Fault {
    /// Reads one item of `do`: a mapping with the name of the fault, or the name alone.
    ///
    /// # Errors
    /// There is no such fault, or something is wrong with its options.
    pub fn read(node: &Node) -> Result<Fault, Problems> {
        let names: Vec<_> = ALL.iter().map(|about| about.name).collect();
        let nothing = Node { span: node.span, value: Value::Null };
        let (name, span, options) = match &node.value {
            Value::String(name) => (name, node.span, &nothing),
            Value::Mapping(_) => {
                let entry = node.fields("a fault", &names)?.exactly_one(&names).map_err(|problems| {
                    Problems(problems.0.into_iter().map(|it| it.hint("several faults are a list")).collect())
                })?;
                (&entry.key, entry.key_span, &entry.node)
            }
            _ => return Err(node.problem("a fault is its name, or a mapping from it to its options").into()),
        };
        match ALL.iter().find(|about| about.name == *name) {
            Some(about) => (about.read)(options),
            None => {
                let problem = Problem::new(span, format!("there is no fault `{name}`"));
                Err(match crate::config::nearest(name, &names) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")).into(),
                    None => problem.hint(format!("the faults are {}", names.join(", "))).into(),
                })
            }
        }
    }

    pub fn about(&self) -> &'static About {
        match self {
            Fault::Exit(_) => &exit::ABOUT,
            Fault::Hang(_) => &hang::ABOUT,
            Fault::Delay(_) => &delay::ABOUT,
            Fault::Drip(_) => &drip::ABOUT,
            Fault::Noise(_) => &noise::ABOUT,
            Fault::Garbage(_) => &garbage::ABOUT,
            Fault::Truncate(_) => &truncate::ABOUT,
            Fault::Reset(_) => &reset::ABOUT,
            Fault::Close(_) => &close::ABOUT,
            Fault::Status(_) => &status::ABOUT,
            Fault::ContentType(_) => &content_type::ABOUT,
            Fault::WrongId(_) => &wrong_id::ABOUT,
            Fault::Duplicate(_) => &duplicate::ABOUT,
            Fault::Reorder(_) => &reorder::ABOUT,
            Fault::Drop(_) => &drop::ABOUT,
            Fault::AfterCancel => &after_cancel::ABOUT,
            Fault::Oversize(_) => &oversize::ABOUT,
        }
    }

    /// What goes on instead of `item`.
    pub fn apply(&self, item: Item, run: &mut Run, out: &mut Vec<Item>) {
        match self {
            Fault::Exit(it) => it.apply(item, out),
            Fault::Hang(it) => it.apply(item, out),
            Fault::Delay(it) => it.apply(item, run, out),
            Fault::Drip(it) => it.apply(item, out),
            Fault::Noise(it) => it.apply(item, run, out),
            Fault::Garbage(it) => it.apply(item, run, out),
            Fault::Truncate(it) => it.apply(item, out),
            Fault::Reset(it) => it.apply(item, out),
            Fault::Close(it) => it.apply(item, out),
            Fault::Status(it) => it.apply(item, run, out),
            Fault::ContentType(it) => it.apply(item, out),
            Fault::WrongId(it) => it.apply(item, out),
            Fault::Duplicate(it) => it.apply(item, out),
            Fault::Reorder(it) => it.apply(item, run, out),
            Fault::Drop(it) => it.apply(item, run, out),
            Fault::AfterCancel => out.push(item),
            Fault::Oversize(it) => it.apply(item, out),
        }
    }
}

/// Stops the answer: before anything of it, or after so many bytes of the response.
fn stop_at(after: Option<usize>, stop: Stop, item: Item, out: &mut Vec<Item>) {
    match (item, after) {
        (Item::Begin, None) => out.push(Item::Stop(stop)),
        (Item::Packet(packet), Some(after)) if packet.kind == Kind::Response => {
            let is_whole = after >= packet.bytes.len();
            out.push(Item::Packet(if is_whole { packet } else { Packet { cut: Some((after, stop)), ..packet } }));
            out.extend(is_whole.then_some(Item::Stop(stop)));
        }
        (item, _) => out.push(item),
    }
}

#[cfg(test)]
mod tests;
