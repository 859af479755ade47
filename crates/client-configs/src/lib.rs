//! Config files of MCP clients: read, linted, shown and converted.
//!
//! [`lint`] reads a file. Its text becomes a tree, its [`Dialect`](dialect::Dialect) is detected from the path and the
//! content, and its servers are read and checked. A dialect is a table of what one program does. [`sources`] finds the
//! files of a machine, [`resolve`] fills in variables as the program does, and [`convert`](mod@convert) writes the servers
//! for another program.
//!
//! ```
//! use std::path::Path;
//!
//! use rehearse_client_configs::lint;
//! use rehearse_document::Source;
//!
//! let text = r#"{ "mcpServers": { "files": { "command": "files-server", "environment": {} } } }"#;
//! let report = lint(&Source::new(".mcp.json", text), Some(Path::new(".mcp.json")), None, None);
//! assert_eq!(report.findings[0].code.name, "W-UNKNOWN-KEY");
//! assert_eq!(report.config.map(|config| config.servers.len()), Some(1));
//! ```

pub mod agent;
mod check;
pub mod codes;
pub mod convert;
pub mod dialect;
mod document;
mod dotenv;
mod expand_env;
mod expression;
mod filter;
mod guess;
pub mod headless;
mod lint;
mod machine;
mod placeholder;
pub mod policy;
pub mod projection;
mod read;
mod resolve;
pub mod secret;
pub mod server;
mod slice;
pub mod sources;

pub use dotenv::parse_dotenv;
pub use lint::{LintReport, lint};
pub use machine::{Machine, PathKind, System, Variables};
pub use placeholder::placeholder;
pub use read::{ClientConfig, Project, read};
pub use resolve::{Unresolved, UnresolvedReason, resolve};
use server::{ApiKey, At, ConfiguredServer, Pair};
