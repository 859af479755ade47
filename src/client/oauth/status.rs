//! What is told of tokens; nothing of it is secret.

use super::{AuthError, flow::Flow, store::Record};

/// What is known about the token of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenStatus {
    pub issuer: String,
    pub scopes: Vec<String>,
    /// In seconds since 1970, if it was said.
    pub expires: Option<u64>,
    /// Whether the next one is got without asking anybody.
    pub can_be_refreshed: bool,
}

/// What was said for the last token that the next one would have to be asked for with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedOptions {
    pub issuer: Option<String>,
    pub client_id: Option<String>,
    pub secret_variable: Option<String>,
    pub document: Option<String>,
    /// Whether the client acts for itself.
    pub is_unattended: bool,
}

/// What became of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logout {
    /// Whether there were any.
    pub was_there: bool,
    /// Whether somebody has revoked one; or why one is still good, wherever it is.
    pub revoked: Result<bool, AuthError>,
}

impl TokenStatus {
    pub(super) fn from_record(record: &Record, flow: &Flow) -> Option<TokenStatus> {
        let (issuer, issued) = (record.issuer.clone()?, record.issued()?);
        let token = issued.token.as_ref()?;
        let can_be_refreshed = flow.can_renew(issued);
        Some(TokenStatus { issuer, scopes: token.scopes.clone(), expires: token.expires, can_be_refreshed })
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
