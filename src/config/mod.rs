//! Files that people write, read with a position for everything: [`Source`] → [`Node`] tree → [`Fields`] → a model.
//!
//! Models are read by hand from the tree instead of through serde, because most of what can be wrong with a script or a
//! scenario (a template, a regular expression, a JSON Schema) is found after the syntax, and must still point at its line.

mod check;
mod command_line;
pub mod convert;
mod diagnostic;
pub mod dialect;
mod document;
mod dotenv;
mod examine;
mod expand_env;
mod expression;
mod fields;
mod filter;
pub mod finding;
pub mod json;
mod lookalike;
mod machine;
mod node;
mod placeholder;
pub mod policy;
mod read;
mod resolve;
pub mod secret;
pub mod server;
pub mod sources;
pub mod text;
mod variable;
mod yaml;

pub use diagnostic::{Diagnostic, Diagnostics, Problem, Problems, Source, Span};
pub use dotenv::parse_dotenv;
pub use examine::{Examined, examine};
pub use fields::{Fields, nearest};
pub use machine::{Found, Machine};
pub use node::{Duplicate, Entry, Node, Value, parse_duration};
pub use read::{ClientConfig, Project, read};
pub use resolve::{Lack, Unresolved, resolve};
pub use variable::{Form, NotSet, Reference, Variables, references};
pub use yaml::parse as parse_yaml;
