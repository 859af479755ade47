//! Revocation of tokens (RFC 7009).

use reqwest::StatusCode;
use serde::Deserialize;

use super::{
    AuthError, Secret,
    discovery::{ServerMetadata, endpoint},
    error::quoted,
    flow::Flow,
    identity::Client,
    store::Record,
    token::Token,
};

/// The type hint of a token (RFC 7009, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    Refresh,
    Access,
}

impl Flow {
    /// Has all issuers revoke their tokens. Returns whether one did.
    ///
    /// # Errors
    /// The first error for a token that its issuer could have revoked.
    pub(super) async fn revoke(&self, record: &Record) -> Result<bool, AuthError> {
        let (mut is_revoked, mut failed) = (false, None);
        for (issuer, issued) in &record.issuers {
            let Some(token) = &issued.token else { continue };
            match self.revoke_at(issuer, token, record).await {
                Ok(done) => is_revoked |= done,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        failed.map_or(Ok(is_revoked), Err)
    }

    /// Has an issuer revoke a token; false if it does not support that.
    async fn revoke_at(&self, issuer: &str, token: &Token, record: &Record) -> Result<bool, AuthError> {
        let metadata = match self.server_metadata(issuer, None).await {
            Err(AuthError::NoMetadata { .. }) => return Ok(false),
            metadata => metadata?,
        };
        if metadata.revocation_endpoint.is_none() {
            return Ok(false);
        }
        let client = self.client_of(token, &metadata, record)?;
        let other = || AuthError::Revocation("the token was issued to another client".to_owned());
        let client = client.ok_or_else(other)?;
        // Revoking a refresh token need not revoke its access tokens (RFC 7009, section 2.1).
        let refresh = match &token.refresh {
            Some(refresh) => self.ask_to_revoke(&metadata, &client, refresh, Hint::Refresh).await,
            None => Ok(()),
        };
        let access = self.ask_to_revoke(&metadata, &client, &token.access, Hint::Access).await;
        refresh.and(access).map(|()| true)
    }

    async fn ask_to_revoke(
        &self,
        metadata: &ServerMetadata,
        client: &Client,
        token: &Secret,
        hint: Hint,
    ) -> Result<(), AuthError> {
        let url = endpoint(metadata, metadata.revocation_endpoint.as_ref(), "revocation endpoint", &self.ssrf_guard)?;
        let kind = match hint {
            Hint::Refresh => "refresh_token",
            Hint::Access => "access_token",
        };
        let mut form = vec![("token", token.reveal().to_owned()), ("token_type_hint", kind.to_owned())];
        let authorization = client.authenticate(&mut form, &metadata.issuer)?;
        let (status, body) = self.fetcher.post_form(&url, &form, authorization, None).await?;
        check(status, &body, hint)
    }
}

/// Checks the response of a revocation endpoint (RFC 7009, sections 2.2 and 2.2.1). Only the error code is reported,
/// because its text may contain the token.
///
/// # Errors
/// [`AuthError::Revocation`]. An issuer need not revoke access tokens, because they expire.
fn check(status: StatusCode, body: &[u8], hint: Hint) -> Result<(), AuthError> {
    #[derive(Deserialize)]
    struct No {
        error: String,
    }
    if status.is_success() {
        return Ok(());
    }
    match serde_json::from_slice(body) {
        Ok(No { error }) if error == "unsupported_token_type" && hint == Hint::Access => Ok(()),
        Ok(No { error }) => Err(AuthError::Revocation(quoted(&error))),
        Err(_) => Err(AuthError::Revocation(format!("HTTP {}", status.as_u16()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_revoked_unless_the_answer_says_otherwise() {
        let check = |status: u16, body: &str, hint| {
            let status = StatusCode::from_u16(status).expect("a status");
            check(status, body.as_bytes(), hint).map_err(|error| error.to_string())
        };
        let unsupported = r#"{"error": "unsupported_token_type"}"#;
        assert_eq!(check(200, "", Hint::Refresh), Ok(()));
        assert_eq!(check(400, unsupported, Hint::Access), Ok(()));
        let refused = |why: &str| Err(format!("the authorization server did not revoke the token: {why}"));
        assert_eq!(check(400, unsupported, Hint::Refresh), refused("unsupported_token_type"));
        let echo = r#"{"error": "invalid_client", "error_description": "geheim"}"#;
        assert_eq!(check(401, echo, Hint::Access), refused("invalid_client"));
        assert_eq!(check(503, "geheim", Hint::Refresh), refused("HTTP 503"));
    }
}
