//! Status of tokens, without secrets.

use reqwest::Url;

use super::{AuthError, flow::Flow, store::Record};

/// The status of the token of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStatus {
    /// The issuer of the token.
    pub issuer: String,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// When it expires, in seconds since 1970, if the issuer said.
    pub expires: Option<u64>,
    /// Whether it can be renewed without a user.
    pub can_be_refreshed: bool,
    /// The resource that the metadata of the server name, if it is not exactly the server: clients must not use such
    /// metadata (RFC 9728, section 3.3), and many do not.
    pub other_resource: Option<String>,
}

/// The options of the last authorization that the next one needs as well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedOptions {
    /// The issuer that was named.
    pub issuer: Option<String>,
    /// The id of a registered client.
    pub client_id: Option<String>,
    /// The variable with the client secret.
    pub secret_variable: Option<String>,
    /// The URL of a client metadata document.
    pub document: Option<String>,
    /// Whether the client acts for itself (`client_credentials`).
    pub is_unattended: bool,
}

/// The result of a logout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logout {
    /// Whether there were tokens.
    pub was_there: bool,
    /// Whether an issuer has revoked one; the error if one is still valid.
    pub revoked: Result<bool, AuthError>,
}

impl TokenStatus {
    pub(super) fn from_record(record: &Record, flow: &Flow) -> Option<TokenStatus> {
        let (issuer, issued) = (record.issuer.clone()?, record.issued()?);
        let token = issued.token.as_ref()?;
        let can_be_refreshed = flow.can_renew(issued);
        let is_other = Url::parse(&token.resource).is_ok_and(|resource| resource != flow.server);
        let other_resource = is_other.then(|| token.resource.clone());
        let scopes = token.scopes.clone();
        Some(TokenStatus { issuer, scopes, expires: token.expires, can_be_refreshed, other_resource })
    }
}

impl SavedOptions {
    pub(super) fn from_record(record: &Record, flow: &Flow) -> SavedOptions {
        let Some(issued) = record.issued() else { return SavedOptions::default() };
        let issuer = record.issuer.clone().filter(|_| issued.is_chosen);
        let is_new = |id: &String| flow.identity.registered.as_ref().is_none_or(|registered| registered.id != *id);
        let Some(stored_client) = issued.stored_client.as_ref().filter(|stored_client| is_new(&stored_client.id))
        else {
            return SavedOptions { issuer, ..SavedOptions::default() };
        };
        let (secret_variable, id) = (stored_client.secret_variable.clone(), Some(stored_client.id.clone()));
        let (document, client_id) = if stored_client.is_document { (id, None) } else { (None, id) };
        SavedOptions { issuer, client_id, secret_variable, document, is_unattended: stored_client.is_unattended }
    }
}
