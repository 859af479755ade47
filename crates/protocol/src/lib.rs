//! What goes over the wire, without any IO: frames, JSON-RPC messages, protocol versions, names, HTTP, the SSE codec.
//!
//! A [`Frame`] is the unit that everything else in the crate passes on, records and judges: the bytes of one message
//! exactly as they were sent. Only code that needs its content parses it, with [`Frame::message`].

mod answered;
pub mod challenge;
mod closed;
mod frame;
pub mod http;
mod id;
mod list;
pub mod message;
pub mod meta;
pub mod names;
mod operation;
mod protocol;
pub mod span;
pub mod sse;
mod trace;
pub mod trace_file;
pub mod trace_import;
mod transport;
mod version;

pub use answered::Answered;
pub use closed::{Closed, ClosedBy, ClosedHow};
pub use frame::{Direction, Frame, LineSplitter, MAX_FRAME, TooLong};
pub use id::Id;
pub use list::List;
pub use message::{Message, MessageHead, Notification, ParseError, Request, Response, RpcError};
pub use names::is_protocol_header;
pub use operation::Operation;
pub use protocol::{Protocol, UnknownProtocol};
pub use trace::{Event, EventKind, ProcessEvent, Trace};
pub use transport::{Transport, UnknownTransport};
pub use version::{Era, UnknownVersion, Version};
