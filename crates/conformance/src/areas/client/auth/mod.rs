//! Authorization: how a client finds the authorization server, gets a token and uses it.

mod asked;
mod discovery;
mod registration;
mod request;
mod response;
mod token;
mod usage;

use super::{super::Judge, completes};

/// How often a client may ask for what is refused each time.
const MOST_ATTEMPTS: usize = 3;

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-auth.discover.on-401", discovery::on_401),
    ("client-auth.discover.www-authenticate", |e, j| discovery::stated_location(e, j, false)),
    ("client-auth.discover.header-parse", |e, j| discovery::stated_location(e, j, true)),
    ("client-auth.discover.path-then-root", discovery::path_then_root),
    ("client-auth.discover.no-token-leak", discovery::no_token),
    ("client-auth.discover.prm-resource-check", discovery::resource_of_another),
    ("client-auth.discover.as-order-path", |e, j| discovery::order(e, j, true)),
    ("client-auth.discover.as-order-root", |e, j| discovery::order(e, j, false)),
    ("client-auth.discover.as-both-supported", |e, j| completes(e, j, "auth-openid")),
    ("client-auth.discover.as-rfc8414", discovery::rfc8414),
    ("client-auth.discover.as-issuer-identical", discovery::issuer_of_another),
    ("client-auth.discover.b-origin-metadata", discovery::at_origin),
    ("client-auth.discover.b-fallback-endpoints", discovery::fallback),
    ("client-auth.discover.b-version-header", discovery::version_header),
    ("client-auth.reg.cimd-url", registration::document_url),
    ("client-auth.reg.cimd-only-if-advertised", registration::document_if_advertised),
    ("client-auth.reg.dcr-request", registration::shape),
    ("client-auth.reg.dcr-application-type", registration::application_type),
    ("client-auth.reg.dcr-native-localhost", registration::native),
    ("client-auth.reg.dcr-failure-handled", registration::failure),
    ("client-auth.reg.dcr-grant-refresh", registration::refresh_grant),
    ("client-auth.reg.redirect-uri-safe", registration::safe_redirect),
    ("client-auth.reg.per-as", registration::of_another_issuer),
    ("client-auth.reg.reregister", registration::again),
    ("client-auth.reg.obtains-id", registration::has_id),
    ("client-auth.authz.redirect-registered", registration::same_redirect),
    ("client-auth.pkce.challenge", request::challenge),
    ("client-auth.pkce.s256", request::method),
    ("client-auth.pkce.fresh", request::fresh),
    ("client-auth.pkce.refuse-unsupported", request::without_pkce),
    ("client-auth.authz.response-type", request::response_type),
    ("client-auth.authz.state", request::state),
    ("client-auth.authz.resource", request::resource),
    ("client-auth.authz.resource-canonical", request::canonical),
    ("client-auth.authz.resource-always", request::resource_always),
    ("client-auth.authz.scope-from-challenge", request::challenged_scope),
    ("client-auth.authz.scope-from-prm", request::supported_scope),
    ("client-auth.authz.scope-omitted", request::no_scope),
    ("client-auth.authz.offline-only-if-listed", request::offline_access),
    ("client-auth.authz.url-scheme", request::scheme),
    ("client-auth.authz.state-verified", response::state),
    ("client-auth.authz.error-handled", response::error),
    ("client-auth.iss.compare", |e, j| response::issuer(e, j, response::Case::Announced)),
    ("client-auth.iss.required-if-advertised", |e, j| response::issuer(e, j, response::Case::Missing)),
    ("client-auth.iss.unadvertised-compared", |e, j| response::issuer(e, j, response::Case::Unannounced)),
    ("client-auth.iss.no-normalisation", |e, j| response::issuer(e, j, response::Case::Similar)),
    ("client-auth.iss.absent-ok", response::without_issuer),
    ("client-auth.pkce.verifier", token::verifier),
    ("client-auth.token.request-fields", token::fields),
    ("client-auth.token.resource", token::resource),
    ("client-auth.token.endpoint-auth", token::client_authentication),
    ("client-auth.token.code-once", token::code_once),
    ("client-auth.token.error-handled", token::error),
    ("client-auth.use.refresh", token::refresh),
    ("client-auth.use.no-refresh-assumed", token::no_refresh),
    ("client-auth.use.header", usage::header),
    ("client-auth.use.not-in-query", usage::query),
    ("client-auth.use.right-audience", usage::audience),
    ("client-auth.use.not-to-metadata", usage::metadata),
    ("client-auth.use.reauth-on-401", usage::again),
    ("client-auth.use.opaque", usage::verbatim),
    ("client-auth.step.403", usage::step_up),
    ("client-auth.step.union", usage::union),
    ("client-auth.step.challenge-authoritative", usage::authoritative),
    ("client-auth.step.retry-request", usage::retry),
    ("client-auth.step.limit", usage::limit),
    ("client-auth.step.401-limit", usage::limit_401),
];
