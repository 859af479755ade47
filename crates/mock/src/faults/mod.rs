//! Faults: how a mock misbehaves where its script says so.
//!
//! An answer is a sequence of [`ResponsePart`]s before it is sent, and a [`Fault`] replaces each part by others. A
//! [`Chain`] of faults is pure: it knows neither time nor transports. The sender of the answer waits, frames and closes
//! as the parts say.
//!
//! Each fault has one file; [`ALL`] is the list of them.

mod after_cancel;
mod chain;
mod change;
mod close;
mod content_type;
mod delay;
mod drip;
mod drop;
mod duplicate;
mod events;
mod exit;
mod garbage;
mod hang;
mod noise;
pub(crate) mod options;
mod oversize;
mod packet;
mod part;
mod reorder;
mod reset;
mod status;
mod stop;
mod truncate;
mod wrong_id;

pub use chain::{Chain, FaultState};
pub use events::Events;
pub use packet::{FrameKind, Packet, SendStep, SendSteps};
use part::stop_at;
pub use part::{ResponsePart, StatusResponse};
pub use stop::Stop;

use rehearse_document::{Node, Problem, Problems, Value};
use rehearse_protocol::Transport;

/// A kind of fault, as documented for authors of scripts.
#[derive(Clone, Copy, Debug)]
pub struct FaultInfo {
    /// The key of the fault in a script.
    pub name: &'static str,
    /// A sentence that says what the fault does, without a full stop.
    pub summary: &'static str,
    /// Each option and its meaning.
    pub options: &'static [(&'static str, &'static str)],
    /// An example of `do`, as YAML.
    pub example: &'static str,
    /// The transports on which the fault has an effect.
    pub transports: &'static [Transport],
    read: fn(&Node) -> Result<Fault, Problems>,
}

/// Every kind of fault.
pub const ALL: &[FaultInfo] = &[
    exit::INFO,
    hang::INFO,
    delay::INFO,
    drip::INFO,
    noise::INFO,
    garbage::INFO,
    truncate::INFO,
    reset::INFO,
    close::INFO,
    status::INFO,
    content_type::INFO,
    wrong_id::INFO,
    duplicate::INFO,
    reorder::INFO,
    drop::INFO,
    after_cancel::INFO,
    oversize::INFO,
    change::INFO,
    events::INFO,
];

const EVERYWHERE: &[Transport] = &Transport::ALL;

/// A fault with its options.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The process exits.
    Exit(exit::Exit),
    /// The answer never comes.
    Hang(hang::Hang),
    /// The answer comes late.
    Delay(delay::Delay),
    /// The answer comes slowly.
    Drip(drip::Drip),
    /// A line that is not a message comes before the answer.
    Noise(noise::InjectedOutput),
    /// Something that is not a response replaces the response.
    Garbage(garbage::Garbage),
    /// The response is cut off, and looks finished.
    Truncate(truncate::Truncate),
    /// The connection is reset.
    Reset(reset::Reset),
    /// The connection is closed too early.
    Close(close::Close),
    /// An HTTP status replaces the answer.
    Status(status::Status),
    /// The HTTP response has another media type.
    ContentType(content_type::ContentType),
    /// The response has another id.
    WrongId(wrong_id::WrongId),
    /// The response is sent again.
    Duplicate(duplicate::Duplicate),
    /// Messages come in another order.
    Reorder(reorder::Reorder),
    /// Messages are lost.
    Drop(drop::Drop),
    /// The answer comes although the request was cancelled.
    AfterCancel,
    /// The response is large.
    Oversize(oversize::Oversize),
    /// Members of the response are other ones.
    Change(change::Change),
    /// The events of a stream are written in another way.
    Events(Events),
}

impl Fault {
    /// Reads one fault of `do`: an object with the name of the fault, or the name alone.
    ///
    /// # Errors
    /// There is no such fault, or one of its options is wrong.
    pub fn read(node: &Node) -> Result<Fault, Problems> {
        let names: Vec<_> = ALL.iter().map(|info| info.name).collect();
        let nothing = Node { span: node.span, value: Value::Null };
        let (name, span, options) = match &node.value {
            Value::String(name) => (name, node.span, &nothing),
            Value::Mapping(_) => {
                let entry = node.fields("a fault", &names)?.exactly_one(&names).map_err(|problems| {
                    Problems(problems.0.into_iter().map(|it| it.hint("several faults are a list")).collect())
                })?;
                (&entry.key, entry.key_span, &entry.node)
            }
            _ => {
                return Err(node
                    .problem("write a fault as its name, or as an object of its name and its options")
                    .into());
            }
        };
        match ALL.iter().find(|info| info.name == *name) {
            Some(info) => (info.read)(options),
            None => {
                let problem = Problem::new(span, format!("there is no fault `{name}`"));
                Err(match rehearse_document::nearest(name, &names) {
                    Some(near) => problem.hint(format!("did you mean `{near}`?")).into(),
                    None => problem.hint(format!("the faults are {}", names.join(", "))).into(),
                })
            }
        }
    }

    /// The description of this kind of fault.
    pub fn info(&self) -> &'static FaultInfo {
        match self {
            Fault::Exit(_) => &exit::INFO,
            Fault::Hang(_) => &hang::INFO,
            Fault::Delay(_) => &delay::INFO,
            Fault::Drip(_) => &drip::INFO,
            Fault::Noise(_) => &noise::INFO,
            Fault::Garbage(_) => &garbage::INFO,
            Fault::Truncate(_) => &truncate::INFO,
            Fault::Reset(_) => &reset::INFO,
            Fault::Close(_) => &close::INFO,
            Fault::Status(_) => &status::INFO,
            Fault::ContentType(_) => &content_type::INFO,
            Fault::WrongId(_) => &wrong_id::INFO,
            Fault::Duplicate(_) => &duplicate::INFO,
            Fault::Reorder(_) => &reorder::INFO,
            Fault::Drop(_) => &drop::INFO,
            Fault::AfterCancel => &after_cancel::INFO,
            Fault::Oversize(_) => &oversize::INFO,
            Fault::Change(_) => &change::INFO,
            Fault::Events(_) => &events::INFO,
        }
    }

    /// Replaces `part`.
    pub fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
        match self {
            Fault::Exit(it) => it.apply(part, out),
            Fault::Hang(it) => it.apply(part, out),
            Fault::Delay(it) => it.apply(part, state, out),
            Fault::Drip(it) => it.apply(part, out),
            Fault::Noise(it) => it.apply(part, state, out),
            Fault::Garbage(it) => it.apply(part, state, out),
            Fault::Truncate(it) => it.apply(part, out),
            Fault::Reset(it) => it.apply(part, out),
            Fault::Close(it) => it.apply(part, out),
            Fault::Status(it) => it.apply(part, state, out),
            Fault::ContentType(it) => it.apply(part, out),
            Fault::WrongId(it) => it.apply(part, out),
            Fault::Duplicate(it) => it.apply(part, out),
            Fault::Reorder(it) => it.apply(part, state, out),
            Fault::Drop(it) => it.apply(part, state, out),
            Fault::AfterCancel => out.push(part),
            Fault::Oversize(it) => it.apply(part, out),
            Fault::Change(it) => it.apply(part, out),
            Fault::Events(it) => it.apply(part, state, out),
        }
    }
}

#[cfg(test)]
mod tests;
