//! Grants (OAuth 2.1, section 4; RFC 7523, section 2.1; RFC 8693).

use super::{Secret, code::Request};

/// The kind of grant: on whose behalf the client acts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum GrantKind {
    /// A user, who is asked (`authorization_code`).
    #[default]
    AuthorizationCode,
    /// The client itself (`client_credentials`; MCP extension OAuth Client Credentials).
    ClientCredentials,
    /// The client itself, with a token of its platform (`jwt-bearer`; SEP-1933).
    WorkloadIdentity(Secret),
    /// A user who has logged in at an identity provider (MCP extension Enterprise-Managed Authorization).
    EnterpriseManaged(IdentityProvider),
}

/// The identity provider at which the user has logged in.
#[derive(Clone, Debug)]
pub struct IdentityProvider {
    /// The URL of its token endpoint.
    pub token_endpoint: String,
    /// The id of the client at the provider.
    pub client_id: String,
    /// The ID token of the user.
    pub id_token: Secret,
}

/// The grant of a token request.
#[derive(Debug)]
pub(super) enum Grant<'a> {
    Code { request: &'a Request, code: &'a Secret },
    Refresh(&'a Secret),
    Client { scopes: &'a [String] },
    Assertion { token: &'a Secret, scopes: &'a [String] },
}

impl Grant<'_> {
    /// The form of the request, without the client authentication.
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
    /// The token exchange request for an assertion about the user for this issuer (RFC 8693, section 2.1).
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
