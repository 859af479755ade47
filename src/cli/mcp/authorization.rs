//! Who gives the servers of a command their tokens.

use std::io::IsTerminal;

use super::target::Server;
use crate::{
    cli::style::{self, STRONG, printable},
    client::{
        Endpoint, Target,
        hub::HubServer,
        hub::configured::oauth_options,
        oauth::{AuthError, Authorizer, Browser, Interaction, Options, SavedOptions, TokenStore, open_browser},
    },
};

/// What authorization servers redirect to that ask nobody; nobody listens there.
const REDIRECT_URI: &str = "http://localhost:3000/callback";

/// Who is asked to authorize something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    NonInteractive,
    /// Somebody who is shown where to go, and whose browser is opened.
    Browser,
    /// Somebody who is shown where to go.
    PrintUrl,
    /// The authorization server itself.
    Headless,
}

/// The authorizers of a command's servers, each with its server.
#[derive(Default)]
pub(super) struct Authorizers(Vec<(Authorizer, Server)>);

impl Consent {
    /// Whoever sits at the terminal of a command.
    pub(super) fn for_command(no_browser: bool) -> Consent {
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
            if opens && let Err(error) = open_browser(url.as_ref()) {
                style::print(&format!("cannot open a browser: {error}\n"));
            }
        };
        Interaction::Browser(Browser { port: port.unwrap_or_default(), ..Browser::new(show) })
    }
}

/// How to get tokens for a server as its config says it, kept where tokens are kept.
pub(super) fn options(server: &Server, ask: Consent) -> Options {
    let oauth = &server.resolved.oauth;
    let port = oauth.callback_port.as_ref().map(|port| port.value);
    let mut options = oauth_options(oauth);
    options.identity.lookup = |name| std::env::var(name).ok();
    Options { interaction: ask.interaction(server.name(), port), store: store(), ..options }
}

/// Gives the server its tokens. There is none for a server that is a process, for one whose config says how to show who
/// asks, and for a URL that is none, which is told by whoever connects to it.
pub(super) fn authorizer(server: &Server, ask: Consent) -> Option<Authorizer> {
    let url = url(server)?;
    Authorizer::new(url, options(server, ask)).ok().filter(|_| !has_authorization(server))
}

/// The URL of a server over the network.
pub(super) fn url(server: &Server) -> Option<&str> {
    endpoint(server).map(|endpoint| &*endpoint.url)
}

/// Whether an authorization is written out.
pub(super) fn has_authorization(server: &Server) -> bool {
    let is_it = |(name, _): &(String, String)| name.eq_ignore_ascii_case("authorization");
    endpoint(server).is_some_and(|endpoint| endpoint.headers.iter().any(is_it))
}

/// Where tokens are kept between commands; without a home nothing is.
fn store() -> TokenStore {
    TokenStore::default_folder(|name| std::env::var(name).ok()).map_or_else(TokenStore::memory, TokenStore::Folder)
}

/// The command that gets a token for the server, with what was said for the last one.
fn command(server: &Server, choice: &SavedOptions, scopes: &[String]) -> String {
    let mut words = vec!["rehearse mcp auth".to_owned()];
    match (server.is_from_command_line(), endpoint(server)) {
        (true, Some(endpoint)) => {
            let flag = server.resolved.config.target.transport();
            words.push(format!("--{flag} {}", word(&server.resolved.secrets.hidden(&endpoint.url))));
        }
        _ => words.push(word(server.name())),
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

/// The text as one word for a POSIX shell: what a server says must not become a command of whoever copies it.
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

fn endpoint(server: &Server) -> Option<&Endpoint> {
    match &server.resolved.config.target {
        Target::Http(endpoint) | Target::Sse(endpoint) | Target::Ws(endpoint) => Some(endpoint),
        Target::Stdio(_) | Target::Memory(_) => None,
    }
}

impl Authorizers {
    /// Those of the members, which are the servers in the same order.
    pub(super) fn new(members: &[HubServer], servers: &[Server]) -> Authorizers {
        let both = members.iter().zip(servers);
        let of = |(member, server): (&HubServer, &Server)| Some((member.config.authorizer.clone()?, server.clone()));
        Authorizers(both.filter_map(of).collect())
    }

    /// What to do about the servers that somebody has to authorize; `None` if there are none.
    pub(super) fn hint(&self) -> Option<String> {
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
