//! How an exchange ends.

use bytes::Bytes;

use rehearse_protocol::RpcError;

/// How an exchange ends.
#[derive(Debug)]
pub(super) enum ExchangeEnd {
    /// The members of the result, and its `_meta`.
    Result(String, Option<String>),
    /// The whole result.
    Verbatim(String),
    Error(RpcError, Option<u16>),
    Raw(Bytes),
}
