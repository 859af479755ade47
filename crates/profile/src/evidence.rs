//! What is known of a server.

use url::Url;

use crate::Traffic;
use rehearse_diff::Surface;
use rehearse_protocol::Transport;

/// What is known of a server. What is `None` is not known.
#[derive(Clone, Copy, Debug)]
pub struct ServerEvidence<'s> {
    /// Its name in a config, or the one that it gives itself.
    pub name: &'s str,
    /// Its lists, capabilities, instructions and versions.
    pub surface: &'s Surface,
    /// How it is reached.
    pub transport: Option<Transport>,
    /// Its URL, if it has one.
    pub url: Option<&'s Url>,
    /// What its connections show.
    pub traffic: Option<&'s Traffic>,
    /// The number of tokens of a text, for models in general.
    pub count_tokens: Option<fn(&str) -> usize>,
}
