//! What is known of a server.

use std::borrow::Cow;

use serde_json::Value as Json;
use url::Url;

use crate::Traffic;
use rehearse_diff::Surface;
use rehearse_protocol::Transport;

/// What is known of a server. What is `None` is not known.
#[derive(Clone, Copy, Debug)]
pub struct ServerEvidence<'s> {
    /// Its name in a config.
    pub name: Option<&'s str>,
    /// Its lists, capabilities, instructions and versions.
    pub surface: &'s Surface,
    /// How it is reached.
    pub transport: Option<Transport>,
    /// Its URL, if it has one.
    pub url: Option<&'s Url>,
    /// Where it will be for those who do not start it themselves.
    pub deployed_at: Option<&'s Url>,
    /// What its connections show.
    pub traffic: Option<&'s Traffic>,
    /// The number of tokens of a text, for models in general.
    pub count_tokens: Option<fn(&str) -> usize>,
}

/// The name of a server of which nothing says it.
const UNNAMED: &str = "server";

impl<'s> ServerEvidence<'s> {
    /// A server of which only the surface is known.
    pub fn of(surface: &'s Surface) -> ServerEvidence<'s> {
        ServerEvidence {
            name: None,
            surface,
            transport: None,
            url: None,
            deployed_at: None,
            traffic: None,
            count_tokens: None,
        }
    }

    /// Its name in a config, or one that its user could give it: the one that it gives itself, in letters, digits, `-` and
    /// `_`.
    pub(crate) fn config_name(&self) -> Cow<'_, str> {
        let own_name = || {
            let own = self.surface.server.as_ref()?.get("name").and_then(Json::as_str)?;
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
            let name: String = own.chars().map(plain).collect();
            (!name.is_empty()).then_some(Cow::Owned(name))
        };
        self.name.map(Cow::Borrowed).or_else(own_name).unwrap_or(Cow::Borrowed(UNNAMED))
    }
}
