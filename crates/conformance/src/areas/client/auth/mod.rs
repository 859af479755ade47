//! Authorization: how a client finds the authorization server, gets a token and uses it.

mod asked;
mod discovery;
mod proof;
mod registration;
mod request;
mod response;
mod token;
mod usage;

use super::{super::Judge, completes};

/// How often a client may ask for what is refused each time.
const MOST_ATTEMPTS: usize = 3;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] =
    &[("client-auth.discover.as-both-supported", |e, j| completes(e, j, "auth-openid"))];

pub(in crate::areas) const TABLES: &[&[(&str, Judge)]] = &[
    JUDGES,
    discovery::JUDGES,
    proof::JUDGES,
    registration::JUDGES,
    request::JUDGES,
    response::JUDGES,
    token::JUDGES,
    usage::JUDGES,
];
