pub mod config;
pub mod mock;
pub mod wire;
