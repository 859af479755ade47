//! What entitles the client to a token (OAuth 2.1, section 4; RFC 7523, section 2.1; RFC 8693).

use super::{Secret, code::Request};

/// On whose behalf the client acts, and how it shows that.
#[derive(Clone, Debug, Default)]
pub enum GrantKind {
    /// A person's, who is asked (`authorization_code`).
    #[default]
    AuthorizationCode,
    /// Its own (`client_credentials`; MCP extension OAuth Client Credentials).
    ClientCredentials,
    /// Its own, as its platform certifies with this token (`jwt-bearer`; SEP-1933).
    WorkloadIdentity(Secret),
    /// A person's, who has logged in elsewhere (MCP extension Enterprise-Managed Authorization).
    EnterpriseManaged(IdentityProvider),
}

/// Where a person has logged in.
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    pub token_endpoint: String,
    /// As whom it knows the client.
    pub client_id: String,
    /// What it has given the client for the person.
    pub id_token: Secret,
}

/// What a token is asked for with.
#[derive(Debug)]
pub(super) enum Grant<'a> {
    Code { request: &'a Request, code: &'a Secret },
    Refresh(&'a Secret),
    Client { scopes: &'a [String] },
    Assertion { token: &'a Secret, scopes: &'a [String] },
}

impl Grant<'_> {
    /// The form of the request, without what shows who the client is.
    pub(super) fn form(&self, resource: &str) -> Vec<(&'static str, String)> {
        let kind = |kind: &str| ("grant_type", kind.to_owned());
        let (mut form, scopes): (Vec<(&str, String)>, &[String]) = match *self {
            Grant::Code { request, code } => {
                let form = vec![
                    kind("authorization_code"),
                    ("code", code.reveal().to_owned()),
                    ("redirect_uri", request.redirect_uri.clone()),
                    ("code_verifier", request.verifier.text().to_owned()),
                ];
                (form, &[])
            }
            Grant::Refresh(token) => (vec![kind("refresh_token"), ("refresh_token", token.reveal().to_owned())], &[]),
            Grant::Client { scopes } => (vec![kind("client_credentials")], scopes),
            Grant::Assertion { token, scopes } => {
                let kind = kind("urn:ietf:params:oauth:grant-type:jwt-bearer");
                (vec![kind, ("assertion", token.reveal().to_owned())], scopes)
            }
        };
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        form.push(("resource", resource.to_owned()));
        form
    }
}

impl IdentityProvider {
    /// What to ask the provider for: a token that says to this issuer who the person is (RFC 8693, section 2.1).
    pub(super) fn form(&self, issuer: &str, resource: &str, scopes: &[String]) -> Vec<(&'static str, String)> {
        let kind = |kind: &str| format!("urn:ietf:params:oauth:token-type:{kind}");
        let mut form = vec![
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange".to_owned()),
            ("requested_token_type", kind("id-jag")),
            ("audience", issuer.to_owned()),
            ("resource", resource.to_owned()),
            ("subject_token", self.id_token.reveal().to_owned()),
            ("subject_token_type", kind("id_token")),
            ("client_id", self.client_id.clone()),
        ];
        if !scopes.is_empty() {
            form.push(("scope", scopes.join(" ")));
        }
        form
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_names_the_resource() {
        let written = |grant: Grant<'_>| {
            let form = grant.form("https://h");
            form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
        };
        let (secret, scopes) = (Secret::new("s"), ["a".to_owned(), "b".to_owned()]);
        assert_eq!(written(Grant::Refresh(&secret)), "grant_type=refresh_token&refresh_token=s&resource=https://h");
        assert_eq!(
            written(Grant::Client { scopes: &scopes }),
            "grant_type=client_credentials&scope=a b&resource=https://h"
        );
        assert_eq!(written(Grant::Client { scopes: &[] }), "grant_type=client_credentials&resource=https://h");
        let bearer = "grant_type=urn:ietf:params:oauth:grant-type:jwt-bearer&assertion=s&scope=a b&resource=https://h";
        assert_eq!(written(Grant::Assertion { token: &secret, scopes: &scopes }), bearer);
    }
}
