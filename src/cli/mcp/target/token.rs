//! The bearer token of a server with a URL.

use super::Server;
use crate::cli::{Failure, secrets::Secrets};

#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Servers")]
pub(crate) struct TokenArgs {
    /// A bearer token that the server accepts
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
}

impl TokenArgs {
    pub(crate) fn value(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The servers, of which the only one with a URL gets the token.
    ///
    /// # Errors
    /// There is a token, and no server with a URL, or several.
    pub(super) fn add_to(&self, mut servers: Vec<Server>) -> Result<Vec<Server>, Failure> {
        let Some(token) = &self.token else { return Ok(servers) };
        let mut with_url = servers.iter_mut().filter(|server| server.resolved.config.target.endpoint().is_some());
        let server = match (with_url.next(), with_url.next()) {
            (Some(server), None) => server,
            (None, _) => return Err(Failure::Usage("--token needs a server with a URL".to_owned())),
            (Some(_), Some(_)) => return Err(Failure::Usage("--token is for one server: name it".to_owned())),
        };
        if let Some(at) = server.resolved.config.target.endpoint_mut() {
            at.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            at.headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
        }
        let secret = Secrets::new(vec![token.clone()]).remembered();
        server.resolved.secrets = server.resolved.secrets.clone().merge(&secret);
        Ok(servers)
    }
}
