//! The surface of a server, which is all that it shows to its clients, and what has changed between two of them. No IO.

pub mod schema;
