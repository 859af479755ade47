pub mod cli;
pub mod client;
pub mod config;
pub mod mock;
pub mod report;
pub mod scenario;
pub mod transport;
pub mod wire;
