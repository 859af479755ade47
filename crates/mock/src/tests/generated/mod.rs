//! Generated scripts, clients that do right and wrong, and what holds whatever they do.

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
