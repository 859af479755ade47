//! A mock for a client of rmcp.

use std::io;

use rehearse_mock::MockServer;
use rmcp::{
    RoleClient,
    transport::{IntoTransport, Transport},
};

/// A new connection with a mock server, in this process and without a socket. A client of rmcp takes it as its transport.
pub fn transport(mock: &MockServer) -> impl Transport<RoleClient, Error = io::Error> + use<> {
    IntoTransport::into_transport(mock.connect())
}
