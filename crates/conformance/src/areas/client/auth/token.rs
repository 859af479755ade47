//! The token request.

use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use ring::digest::{SHA256, digest};
use url::form_urlencoded;

use super::MOST_ATTEMPTS;
use super::asked::{Asked, Step, asked, asked_for, issued, refused, shown_token, used};
use crate::areas::Judge;
use crate::{Evidence, HttpExchange, Judgement, Level, areas::shown};

pub(super) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.pkce.verifier", verifier),
    ("client-auth.token.request-fields", fields),
    ("client-auth.token.resource", |e, j| {
        let all = asked(e);
        let said =
            |it: &Asked<'_>| it.param("resource").map_or("no `resource`".to_owned(), |it| format!("`resource={it}`"));
        for (it, request) in exchanges(&all) {
            let wanted = request.and_then(|request| request.param("resource"));
            let holds = it.param("resource").is_some() && (wanted.is_none() || it.param("resource") == wanted);
            it.check(j, holds, || said(it));
        }
        for it in all.iter().filter(|it| it.step == Step::Token && it.param("grant_type") == Some("refresh_token")) {
            it.check(j, it.param("resource").is_some(), || said(it));
            j.at_level_if(it.param("resource").is_none(), Level::Should);
        }
    }),
    ("client-auth.token.endpoint-auth", client_authentication),
    ("client-auth.token.code-once", |e, j| {
        let all = asked(e);
        let codes: Vec<_> = exchanges(&all).filter_map(|(it, _)| Some((it, it.param("code")?))).collect();
        for (index, (it, code)) in codes.iter().enumerate() {
            // A request that failed may be repeated.
            let is_new = codes[..index].iter().all(|(one, before)| before != code || !one.is_ok());
            it.check(j, is_new, || format!("`code={code}` once more"));
        }
    }),
    ("client-auth.token.error-handled", |e, j| {
        let all = asked_for(e, Step::Token);
        let failed: Vec<_> = all.iter().filter(|it| it.is_refused()).collect();
        if let Some(last) = failed.last() {
            let count = failed.len();
            last.check(j, count <= MOST_ATTEMPTS, || format!("{count} token requests that failed"));
        }
    }),
    ("client-auth.use.refresh", refresh),
    ("client-auth.use.no-refresh-assumed", |e, j| {
        let all = asked(e);
        let issued = issued(&all);
        let has_any = issued.iter().any(|(_, answer, _)| answer["refresh_token"].is_string());
        let is_refresh = |it: &&Asked<'_>| it.step == Step::Token && it.param("grant_type") == Some("refresh_token");
        for it in all.iter().filter(|it| it.step == Step::Token && it.answer()["access_token"].is_string() && !has_any)
        {
            let token = it.answer()["access_token"].as_str().map(ToOwned::to_owned);
            let is_used = used(e).any(|http| shown_token(http) == token);
            let refresh = all.iter().filter(is_refresh).any(|one| one.http.request > it.http.request);
            if !is_used && !refresh && !e.is_over() {
                continue;
            }
            it.check(j, is_used && !refresh, || match refresh {
                true => "a token request with a refresh token".to_owned(),
                false => "no request with the token".to_owned(),
            });
        }
    }),
];

/// The id and the secret in a Basic header.
pub(super) fn basic(http: &HttpExchange<'_>) -> Option<(String, String)> {
    let text = http.request_header("authorization")?.strip_prefix("Basic ")?;
    let pair = String::from_utf8(BASE64_STANDARD.decode(text.trim()).ok()?).ok()?;
    let (id, secret) = pair.split_once(':')?;
    let decoded = |text: &str| form_urlencoded::parse(text.as_bytes()).next().map(|(text, _)| text.into_owned());
    Some((decoded(id)?, decoded(secret).unwrap_or_default()))
}

/// The token requests with a code, each with the authorization request that the code is from.
fn exchanges<'a, 'e>(all: &'a [Asked<'e>]) -> impl Iterator<Item = (&'a Asked<'e>, Option<&'a Asked<'e>>)> {
    let is_exchange = |it: &&Asked<'_>| it.step == Step::Token && it.param("grant_type") == Some("authorization_code");
    all.iter().filter(is_exchange).map(|it| {
        let is_origin = |one: &&Asked<'_>| {
            one.step == Step::Authorize
                && it.param("code").is_some()
                && one.redirected("code").as_deref() == it.param("code")
        };
        (it, all.iter().find(is_origin))
    })
}

fn verifier(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    for (it, request) in exchanges(&all) {
        let Some(challenge) = request.and_then(|request| request.param("code_challenge")) else { continue };
        let verifier = it.param("code_verifier");
        let is_plain = request.is_some_and(|request| request.param("code_challenge_method") != Some("S256"));
        let hashed = verifier.map(|text| BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes())));
        let holds = if is_plain { verifier == Some(challenge) } else { hashed.as_deref() == Some(challenge) };
        // RFC 7636, 4.1.
        let is_long = verifier.is_none_or(|text| (43..=128).contains(&text.len()));
        it.check(j, holds && is_long, || match verifier {
            Some(verifier) if holds => format!("a `code_verifier` of {} characters", verifier.len()),
            Some(verifier) => format!("`code_verifier={verifier}`"),
            None => "no `code_verifier`".to_owned(),
        });
    }
}

fn fields(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    for it in all.iter().filter(|it| it.step == Step::Token) {
        let kind = it.http.request_header("content-type").unwrap_or_default();
        let is_form = kind.split(';').next().unwrap_or_default().trim() == "application/x-www-form-urlencoded";
        let mut wanted = vec!["grant_type"];
        match it.param("grant_type") {
            Some("authorization_code") => wanted.extend(["code", "code_verifier"]),
            Some("refresh_token") => wanted.push("refresh_token"),
            _ => {}
        }
        if it.http.request_header("authorization").is_none() && it.param("client_assertion").is_none() {
            wanted.push("client_id");
        }
        let missing = wanted.into_iter().find(|name| it.param(name).is_none_or(str::is_empty));
        let request =
            exchanges(&all).find(|(one, _)| one.http.request == it.http.request).and_then(|(_, request)| request);
        let redirect = it.param("redirect_uri").zip(request.and_then(|request| request.param("redirect_uri")));
        let is_other = redirect.is_some_and(|(one, other)| one != other);
        it.check(j, it.http.method == "POST" && is_form && missing.is_none() && !is_other, || match missing {
            Some(name) if is_form => format!("no `{name}`"),
            _ if is_other => format!("`redirect_uri={}`", it.param("redirect_uri").unwrap_or_default()),
            _ => format!("{} with `Content-Type: {kind}`", it.http.method),
        });
    }
}

/// A client that has registered itself uses the method that the authorization server has answered.
fn client_authentication(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    let answers: Vec<_> = all.iter().filter(|it| it.step == Step::Register).map(Asked::answer).collect();
    for it in all.iter().filter(|it| it.step == Step::Token) {
        let header = basic(it.http);
        let id = it.param("client_id").map(ToOwned::to_owned).or(header.as_ref().map(|(id, _)| id.clone()));
        let Some(client) = answers.iter().find(|client| client["client_id"].as_str() == id.as_deref()) else {
            continue;
        };
        let secret = client["client_secret"].as_str();
        let in_header = header.as_ref().is_some_and(|(_, shown)| Some(shown.as_str()) == secret);
        let (in_form, method) = (it.param("client_secret"), &client["token_endpoint_auth_method"]);
        let holds = match method.as_str() {
            Some("client_secret_basic") => in_header && in_form.is_none(),
            Some("client_secret_post") => header.is_none() && in_form.is_some() && in_form == secret,
            Some("none") => header.is_none() && in_form.is_none(),
            _ => continue,
        };
        it.check(j, holds, || {
            let found = match (header.is_some(), in_form.is_some()) {
                (true, true) => "a secret in the header and in the form",
                (true, false) => "a secret in the header",
                (false, true) => "a secret in the form",
                (false, false) => "no secret",
            };
            format!("{found}, with `token_endpoint_auth_method: {}`", shown(method))
        });
    }
}

/// After a token that was accepted before is refused, its refresh token is used, and each one once.
fn refresh(e: &Evidence<'_>, j: &mut Judgement) {
    let all = asked(e);
    let tokens = all.iter().filter(|it| it.step == Step::Token);
    for (token, answer, _) in issued(&all).iter().filter(|(_, answer, _)| answer["refresh_token"].is_string()) {
        let is_of = |http: &&HttpExchange<'_>| shown_token(http).as_ref() == Some(token);
        let was_accepted = used(e).filter(is_of).any(|http| http.status != Some(401));
        let Some(expired) = refused(e).find(is_of).filter(|_| was_accepted) else { continue };
        let own = tokens.clone().find(|it| it.answer()["access_token"].as_str() == Some(token)).map(Asked::issuer);
        let next = tokens.clone().find(|it| it.http.request > expired.request);
        // The server may have another authorization server now.
        if let Some(next) = next.filter(|next| Some(next.issuer()) == own) {
            let wanted = answer["refresh_token"].as_str();
            let is_refresh = next.param("grant_type") == Some("refresh_token");
            // A client that is refused before the announced time may think that the token was revoked.
            if !is_refresh {
                j.untested("the client asked for a new authorization");
                continue;
            }
            let holds = next.param("refresh_token") == wanted;
            next.check(j, holds, || "another refresh token");
            // RFC 6749, section 6.
            let is_replaced = |it: &Asked<'_>| {
                let used =
                    it.param("refresh_token").filter(|_| it.http.response.is_some_and(|came| came < next.http.request));
                let is_other = it.answer()["refresh_token"].as_str().is_some_and(|new| Some(new) != used);
                used.is_some() && used == next.param("refresh_token") && is_other
            };
            j.at_level_if(!holds && tokens.clone().any(is_replaced), Level::Must);
        }
    }
}
