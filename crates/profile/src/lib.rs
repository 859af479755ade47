//! What a host, a provider or a directory accepts of a server. No IO.
//!
//! A [`Profile`] is a file of rules, each with its source and the date of the observation. [`Profile::judge`] holds them
//! against what is known of a server, its [`ServerEvidence`]: its surface, how it is reached, and what its traffic shows. A
//! rule of which nothing was seen is untried, never kept.

mod builtin;
mod change;
mod condition;
mod evidence;
mod feature;
#[cfg(test)]
mod hosts_page;
mod judgement;
mod keys;
mod profile;
mod schema;
#[cfg(test)]
mod tests;
mod text_limit;
mod traffic;

pub use builtin::{builtin, builtin_of_dialect, builtins};
pub use change::compare_fits;
pub use evidence::ServerEvidence;
pub use keys::{host_schema, schema};
pub use profile::{HostIdentity, Profile};
pub use traffic::{Traffic, read_traffic};
