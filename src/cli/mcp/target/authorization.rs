//! The authorizers of a command's servers.

use std::io::IsTerminal;

use super::Server;
use crate::cli::style::{self, STRONG, printable};
use rehearse_client::{
    Endpoint,
    oauth::{AuthError, Authorizer, Browser, Interaction, Options, SavedOptions, TokenStore, open_url},
};
use rehearse_client_configs::Machine;
use rehearse_hub::{HubServer, configured::oauth_options};

/// The redirect URI of headless authorization; nothing listens there.
const REDIRECT_URI: &str = "http://localhost:3000/callback";

/// How the user consents to an authorization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Consent {
    NonInteractive,
    /// Print the URL and open a browser.
    Browser,
    /// Print the URL.
    PrintUrl,
    /// The authorization server approves by itself.
    Headless,
}

/// The authorizers of a command's servers, each with its server.
#[derive(Default)]
pub(crate) struct Authorizers(Vec<(Authorizer, Server)>);

impl Consent {
    /// A browser, if there is a terminal.
    pub(crate) fn for_command(no_browser: bool) -> Consent {
        match !no_browser && std::io::stderr().is_terminal() {
            true => Consent::Browser,
            false => Consent::NonInteractive,
        }
    }

    fn interaction(self, server: &str, port: Option<u16>) -> Interaction {
        let opens = match self {
            Consent::NonInteractive => return Interaction::None,
            Consent::Headless => return Interaction::Headless { redirect_uri: REDIRECT_URI.to_owned() },
            Consent::Browser => true,
            Consent::PrintUrl => false,
        };
        let server = printable(server).into_owned();
        let show = move |url: &str| {
            let url = printable(url);
            style::print(&format!("Open this URL to authorize {STRONG}{server}{STRONG:#}:\n  {url}\n"));
            if opens && let Err(error) = open_url(url.as_ref()) {
                style::print(&format!("cannot open a browser: {error}\n"));
            }
        };
        Interaction::Browser(Browser { port: port.unwrap_or_default(), ..Browser::new(show) })
    }
}

/// The OAuth options of a server, with the token store of this user.
pub(crate) fn options(server: &Server, ask: Consent) -> Options {
    let oauth = &server.resolved.oauth;
    let port = oauth.callback_port.as_ref().map(|port| port.value);
    let mut options = oauth_options(oauth);
    options.identity.lookup = |name| std::env::var(name).ok();
    Options { interaction: ask.interaction(server.name(), port), store: store(server), ..options }
}

/// The authorizer of a server; `None` for stdio, for a configured Authorization header, and for an invalid URL.
pub(crate) fn authorizer(server: &Server, ask: Consent) -> Option<Authorizer> {
    let url = url(server)?;
    Authorizer::new(url, options(server, ask)).ok().filter(|_| !has_authorization(server))
}

/// The authorizer of a server for which `rehearse mcp auth` has stored a token. The user is asked nothing.
pub(in crate::cli) fn stored_authorizer(server: &Server) -> Option<Authorizer> {
    authorizer(server, Consent::NonInteractive).filter(|authorizer| matches!(authorizer.status(), Ok(Some(_))))
}

/// The URL of a server over the network.
pub(crate) fn url(server: &Server) -> Option<&str> {
    endpoint(server).map(|endpoint| &*endpoint.url)
}

/// Whether the config has an Authorization header.
pub(crate) fn has_authorization(server: &Server) -> bool {
    let is_it = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    endpoint(server).is_some_and(|endpoint| endpoint.headers.iter().any(is_it))
}

/// The token store; in memory without a home folder. A program may have a place of its own, with a file for each server.
fn store(server: &Server) -> TokenStore {
    let variable = |name: &str| std::env::var(name).ok();
    let home = Machine::here().home().filter(|home| home.is_absolute());
    if let (Some(folder), Some(home)) = (server.policy.token_folder, home) {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let name: String = server.name().chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
        return TokenStore::File(home.join(folder).join(name + ".json"));
    }
    TokenStore::default_folder(variable).map_or_else(TokenStore::memory, TokenStore::Folder)
}

/// The command that gets a token for the server, with the options of the last one.
fn command(server: &Server, choice: &SavedOptions, scopes: &[String]) -> String {
    let mut words = vec!["rehearse mcp auth".to_owned()];
    match (server.is_from_command_line(), endpoint(server)) {
        (true, Some(endpoint)) => {
            let flag = server.resolved.config.target.transport();
            words.push(format!("--{flag} {}", word(&server.resolved.secrets.hidden(&endpoint.url))));
        }
        _ => {
            words.push(word(server.name()));
            words.extend(server.sources.iter().map(|option| word(option)));
        }
    }
    words.extend(choice.is_unattended.then(|| "--client-credentials".to_owned()));
    for (flag, value) in [
        ("--client-id", &choice.client_id),
        ("--client-secret-env", &choice.secret_variable),
        ("--client-metadata-url", &choice.document),
        ("--issuer", &choice.issuer),
    ] {
        words.extend(value.iter().map(|value| format!("{flag} {}", word(value))));
    }
    words.extend(scopes.iter().map(|scope| format!("--scope {}", word(scope))));
    printable(&words.join(" ")).into_owned()
}

/// Quotes a text for a POSIX shell, so that text from a server is safe to copy.
pub(crate) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn endpoint(server: &Server) -> Option<&Endpoint> {
    server.resolved.config.target.endpoint()
}

impl Authorizers {
    /// The authorizers of hub servers, which have the same order as `servers`.
    pub(crate) fn new(members: &[HubServer], servers: &[Server]) -> Authorizers {
        let both = members.iter().zip(servers);
        let of = |(member, server): (&HubServer, &Server)| Some((member.config.authorizer.clone()?, server.clone()));
        Authorizers(both.filter_map(of).collect())
    }

    /// How to authorize the servers that require it.
    pub(crate) fn hint(&self) -> Option<String> {
        let is_waiting = |authorizer: &Authorizer| authorizer.failure().is_some_and(|error| error.needs_user());
        let waiting = self.0.iter().filter(|(authorizer, _)| is_waiting(authorizer));
        let choice = |authorizer: &Authorizer| authorizer.saved_options().unwrap_or_default();
        let strangers = self.0.iter().filter_map(|(authorizer, server)| match authorizer.failure() {
            Some(AuthError::UntrustedIssuer { issuer }) => {
                let choice = SavedOptions { issuer: Some(issuer.clone()), ..choice(authorizer) };
                let command = command(server, &choice, &authorizer.missing_scopes());
                Some(format!("if the client is registered at {}, {command}", printable(&issuer)))
            }
            _ => None,
        });
        // A server of a config has its headers there.
        let by_hand = waiting.clone().any(|(_, server)| server.is_from_command_line());
        let by_hand = by_hand.then(|| "or pass a token with --header 'Authorization: Bearer TOKEN'".to_owned());
        let waiting =
            waiting.map(|(authorizer, server)| command(server, &choice(authorizer), &authorizer.missing_scopes()));
        let hints: Vec<_> = waiting.chain(by_hand).chain(strangers).collect();
        (!hints.is_empty()).then(|| hints.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_word_for_a_shell() {
        for (text, expected) in [
            ("notes:read", "notes:read"),
            ("http://h/mcp?a=1&b=2", "'http://h/mcp?a=1&b=2'"),
            ("x;$(reboot)", "'x;$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(word(text), expected);
        }
    }
}
