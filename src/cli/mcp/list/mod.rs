//! Lists of servers and of what they have.

mod cost;
pub(crate) mod list_servers;
pub(crate) mod list_tools;
mod listed_item;
pub(crate) mod listing;
pub(crate) mod tool_format;
