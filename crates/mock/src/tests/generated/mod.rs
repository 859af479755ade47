//! Generated scripts, clients with valid and invalid moves, and the laws for every exchange.

mod choice;
mod client;
mod law;
mod moves;
mod play;
mod reply;
mod script;
mod step;
mod world;

pub(crate) use self::{
    law::{Law, Said, What},
    moves::Play,
    play::play,
};
