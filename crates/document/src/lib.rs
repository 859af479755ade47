//! Files that people write, read with a position for every value: [`Source`] → [`Node`] tree → [`Fields`] → a model.
//!
//! A model is read by hand from the tree, not through serde: most mistakes in a script or a scenario (a template, a
//! regular expression, a JSON Schema) are found after the syntax, and must still point at their line.
//!
//! What such files consist of is here as well, because the mock and the scenarios share it: [`json_schema`],
//! [`matcher`], [`template`] with its [`state`] and [`seeded_rng`], [`uri_template`], and [`mirrored`] header parameters;
//! [`characters`] that hide something; and the [`keys`] of our own formats.

pub mod characters;
mod diagnostic;
mod fields;
pub mod json;
pub mod json_schema;
pub mod keys;
pub mod matcher;
pub mod mirrored;
mod node;
pub mod seeded_rng;
pub mod state;
pub mod template;
pub mod text;
pub mod toml;
pub mod uri_template;
pub mod variable;
pub mod yaml;

pub use diagnostic::{Diagnostic, Diagnostics, Problem, Problems, Source, Span};
pub use fields::{Fields, nearest};
pub use node::{Duplicate, Entries, Entry, Node, Value, parse_duration};
pub use text::ByteCount;
pub use variable::{Form, NotSet, Reference, Variables, references};
pub use yaml::parse as parse_yaml;
