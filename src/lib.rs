pub mod config;
pub mod mock;
pub mod transport;
pub mod wire;
