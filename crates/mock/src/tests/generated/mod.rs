//! Generated scripts, clients with valid and invalid moves, and what must hold for every exchange.

mod choice;
mod client;
mod model;
mod moves;
mod reply;
mod request;
mod run;
mod script;
mod step;
mod traffic;

pub(crate) use self::{moves::Run, run::traffic_of};
