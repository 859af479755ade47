//! URLs of servers.

use reqwest::Url;

/// # Errors
/// Says why the text is not a URL of one of these schemes.
pub(super) fn parse_url(text: &str, schemes: &[&str]) -> Result<Url, String> {
    if !text.contains("://") {
        return Err(format!("{text:?} is not a URL: write {}://{text}", schemes[0]));
    }
    let url = Url::parse(text).map_err(|error| format!("{text:?} is not a URL: {error}"))?;
    if !schemes.contains(&url.scheme()) || url.host_str().is_none() {
        return Err(format!("{text:?} must start with {}://", schemes.join(":// or ")));
    }
    Ok(url)
}
