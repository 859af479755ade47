//! The surface of a server, which is all that it shows to its clients, and what has changed between two of them. No IO.

mod baseline;
mod calls;
mod compare;
mod recording;
pub mod schema;
mod semver;
mod side;
mod surface;

pub use baseline::Baseline;
pub use compare::{compare, compare_calls};
pub use recording::{RecordedCall, read_calls, read_surface};
pub use side::{DiffSide, accept, diff};
pub use surface::{FORMAT, Surface, VERSION, read_snapshot};
