//! The MCP configs of client programs: a text becomes a tree, its dialect is detected, and its servers are read, checked,
//! shown and converted.

mod check;
pub mod codes;
pub mod convert;
pub mod dialect;
mod document;
mod dotenv;
mod expand_env;
mod expression;
mod filter;
mod lint;
mod machine;
mod placeholder;
pub mod policy;
mod read;
mod resolve;
pub mod secret;
pub mod server;
pub mod sources;

pub use dotenv::parse_dotenv;
pub use lint::{LintReport, lint};
pub use machine::{Machine, PathKind};
pub use read::{ClientConfig, Project, read};
pub use resolve::{Lack, Unresolved, resolve};
use server::{ApiKey, At, ConfiguredServer, Pair};
