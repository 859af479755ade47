//! Files that people write, read with a position for everything ([`Source`] → [`Node`] tree → [`Fields`] → a model), and
//! the MCP configs of other programs: a text becomes a tree, its dialect is detected, the servers are read and checked.
//!
//! The first part imports nothing of the second.

// Files of any kind.

// Configs of MCP clients.
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
