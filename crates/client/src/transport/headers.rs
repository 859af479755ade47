//! Headers of requests.

pub use rehearse_protocol::http::mirrored_headers as mirrored;

/// A header to set (`Some`) or to leave out (`None`) in one raw POST.
pub type HeaderChange = (String, Option<String>);
