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

const EVERYWHERE: &[Transport] = &Transport::ALL;

/// Makes of a table of faults their list, their type, and what asks the file of each.
macro_rules! faults {
    ($($(#[$about:meta])* $module:ident: $name:ident($fault:ty),)*) => {
        /// Every kind of fault.
        pub const ALL: &[FaultInfo] = &[$($module::INFO),*];

        /// A fault with its options.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Fault {
            $($(#[$about])* $name($fault)),*
        }

        impl Fault {
            /// The description of this kind of fault.
            pub fn info(&self) -> &'static FaultInfo {
                match self {
                    $(Fault::$name(_) => &$module::INFO),*
                }
            }

            /// Replaces `part`.
            pub fn apply(&self, part: ResponsePart, state: &mut FaultState, out: &mut Vec<ResponsePart>) {
                match self {
                    $(Fault::$name(fault) => fault.apply(part, state, out)),*
                }
            }
        }
    };
}

faults! {
    /// The process exits.
    exit: Exit(exit::Exit),
    /// The answer never comes.
    hang: Hang(hang::Hang),
    /// The answer comes late.
    delay: Delay(delay::Delay),
    /// The answer comes slowly.
    drip: Drip(drip::Drip),
    /// A line that is not a message comes before the answer.
    noise: Noise(noise::InjectedOutput),
    /// Something that is not a response replaces the response.
    garbage: Garbage(garbage::Garbage),
    /// The response is cut off, and looks finished.
    truncate: Truncate(truncate::Truncate),
    /// The connection is reset.
    reset: Reset(reset::Reset),
    /// The connection is closed too early.
    close: Close(close::Close),
    /// An HTTP status replaces the answer.
    status: Status(status::Status),
    /// The HTTP response has another media type.
    content_type: ContentType(content_type::ContentType),
    /// The response has another id.
    wrong_id: WrongId(wrong_id::WrongId),
    /// The response is sent again.
    duplicate: Duplicate(duplicate::Duplicate),
    /// Messages come in another order.
    reorder: Reorder(reorder::Reorder),
    /// Messages are lost.
    drop: Drop(drop::Drop),
    /// The answer comes although the request was cancelled.
    after_cancel: AfterCancel(after_cancel::AfterCancel),
    /// The response is large.
    oversize: Oversize(oversize::Oversize),
    /// Members of the response are other ones.
    change: Change(change::Change),
    /// The events of a stream are written in another way.
    events: Events(Events),
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
}

#[cfg(test)]
mod tests;
