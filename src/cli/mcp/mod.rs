//! `rehearse mcp`: what the commands that talk to MCP servers do.
//!
//! [`target`] selects the servers, [`session`] holds their connections while a command runs, [`content`] prints or saves
//! results.

pub(crate) mod app;
mod args;
pub(crate) mod arguments;
pub(crate) mod auth;
pub(crate) mod call;
mod codegen;
pub(crate) mod content;
pub(crate) mod error;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod ping;
pub(crate) mod print;
pub(crate) mod session;
pub(crate) mod status;
mod surface;
pub(crate) mod target;

pub(super) use self::{
    codegen::{CodegenArgs, run as write_bindings},
    surface::{SurfaceArgs, servers, surface_of, write_surface},
};
