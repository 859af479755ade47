//! How `rehearse check client` uses a script.

use std::time::Duration;

use super::keys::KEYS;
use rehearse_document::{Node, Problems};
use rehearse_protocol::{Era, Transport};

/// How `rehearse check client` uses a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActRules {
    /// The transports on which it says something; empty for all.
    pub transports: Vec<Transport>,
    /// The versions of which it says something: those of an era; `None` for all.
    pub era: Option<Era>,
    /// How long the client may be idle before it is stopped, if not the usual time.
    pub idle: Option<Duration>,
    /// The methods that a client must have used before the act is over, if not those that the script's items suggest.
    pub needs: Option<Vec<String>>,
    /// The act with which what the client does is compared, if not with the first one.
    pub like: Option<String>,
    /// What the process of the server does over stdio, beside the script.
    pub process: ProcessRules,
}

/// What the process of a server does over stdio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessRules {
    /// How many bytes it writes to standard error first.
    pub stderr: usize,
    /// How long it lives after the end of its standard input.
    pub linger: Duration,
    /// Whether it then ignores SIGTERM.
    pub deaf: bool,
}

impl ActRules {
    pub(super) fn read(node: &Node) -> Result<ActRules, Problems> {
        let fields = KEYS.fields(node, "act")?;
        let text = |node: &Node| Ok(node.str()?.to_owned());
        Ok(ActRules {
            transports: fields.read("transports", |node| node.one_or_more(Node::parsed))?.unwrap_or_default(),
            era: fields.read("era", Node::parsed)?,
            idle: fields.read("idle", Node::duration)?,
            needs: fields.read("needs", |node| node.one_or_more(text))?,
            like: fields.read("like", text)?,
            process: fields.read("process", ProcessRules::read)?.unwrap_or_default(),
        })
    }
}

impl ProcessRules {
    fn read(node: &Node) -> Result<ProcessRules, Problems> {
        let fields = KEYS.fields(node, "process")?;
        Ok(ProcessRules {
            stderr: fields.read("stderr", Node::integer)?.unwrap_or_default(),
            linger: fields.read("linger", Node::duration)?.unwrap_or_default(),
            deaf: fields.read("deaf", Node::bool)?.unwrap_or_default(),
        })
    }
}
