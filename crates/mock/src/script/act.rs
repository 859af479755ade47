//! How `rehearse check client` uses a script.

use std::time::Duration;

use rehearse_document::{Node, Problems};
use rehearse_protocol::Transport;

/// The keys of `act`.
pub(super) const KEYS: &[&str] = &["transports", "idle", "needs"];

/// How `rehearse check client` uses a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActRules {
    /// The transports on which it says something; empty for all.
    pub transports: Vec<Transport>,
    /// After what time without traffic the client is ended, if not after the usual one.
    pub idle: Option<Duration>,
    /// The methods that a client must have used before the act is over, if not those that the script's items suggest.
    pub needs: Option<Vec<String>>,
}

impl ActRules {
    pub(super) fn read(node: &Node) -> Result<ActRules, Problems> {
        let fields = node.fields("`act`", KEYS)?;
        let method = |node: &Node| Ok(node.str()?.to_owned());
        Ok(ActRules {
            transports: fields.read("transports", |node| node.one_or_more(Node::parsed))?.unwrap_or_default(),
            idle: fields.read("idle", Node::duration)?,
            needs: fields.read("needs", |node| node.one_or_more(method))?,
        })
    }
}
