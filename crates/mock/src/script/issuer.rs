//! The mock as the authorization server of itself (2026-07-28, Authorization; RFC 8414, RFC 7591, RFC 9207).

use serde_json::{Map, Value as Json, json};

use super::{keys::KEYS, scope};
use rehearse_document::{Node, Problems};

/// What stands in texts for the origin of the mock.
const ORIGIN: &str = "{origin}";

/// How a mock issues tokens.
#[derive(Debug, Default)]
pub struct Issuer {
    /// The paths of the issuers. When a token expires, the next one is in charge.
    pub(crate) paths: Vec<String>,
    /// The ids of registered clients, with their secrets.
    pub(crate) clients: Vec<(String, Option<String>)>,
    /// How many requests a token is good for.
    pub(crate) expire_after: Option<usize>,
    /// The scopes of every token, whatever is asked for.
    pub(crate) grant: Option<Vec<String>>,
    /// The challenge of a request without a valid token.
    pub(crate) challenge: Option<String>,
    /// The paths that are not found.
    pub(crate) missing: Vec<String>,
    /// Changes of the metadata of the resource.
    pub(crate) resource: Map<String, Json>,
    /// Changes of the metadata of the authorization server.
    pub(crate) metadata: Map<String, Json>,
    /// Changes of the parameters of the redirect.
    pub(crate) response: Map<String, Json>,
    /// Changes of the response with a token.
    pub(crate) token: Map<String, Json>,
    /// Whether tokens are bound to a key.
    pub(crate) dpop: Dpop,
    /// Whether access tokens are JSON Web Tokens, for the resource that was asked for.
    pub(crate) jwt: bool,
    /// The error of each registration.
    pub(crate) fail_register: Option<String>,
    /// The error of each token request.
    pub(crate) fail_token: Option<String>,
}

/// Whether tokens are bound to a key of the client (RFC 9449).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Dpop {
    #[default]
    Off,
    /// Each request needs a proof.
    Proof,
    /// Each proof needs a nonce.
    Nonce,
}

impl Dpop {
    fn read(node: &Node) -> Result<Dpop, Problems> {
        match node.to_json() {
            Json::Bool(false) => Ok(Dpop::Off),
            Json::Bool(true) => Ok(Dpop::Proof),
            Json::String(text) if text == "nonce" => Ok(Dpop::Nonce),
            _ => Err(node.problem("`dpop` is true, false or `nonce`").into()),
        }
    }
}

impl Issuer {
    pub(super) fn read(node: &Node) -> Result<Issuer, Problems> {
        let fields = KEYS.fields(node, "issuer")?;
        let text = |node: &Node| Ok(node.str()?.to_owned());
        let patch = |key| fields.read(key, read_patch).map(Option::unwrap_or_default);
        let fail = fields.get("fail").map(|node| KEYS.fields(node, "fail")).transpose()?;
        let error = |key| fail.as_ref().map_or(Ok(None), |fail| fail.read(key, text));
        Ok(Issuer {
            paths: fields.read("path", |node| node.one_or_more(read_path))?.unwrap_or_else(|| vec![String::new()]),
            clients: fields.read_each("clients", read_client)?,
            expire_after: fields.read("expireAfter", Node::integer)?,
            grant: fields.read("grant", |node| node.each(scope::read))?,
            challenge: fields.read("challenge", text)?,
            missing: fields.read_each("missing", text)?,
            resource: patch("resource")?,
            metadata: patch("metadata")?,
            response: patch("response")?,
            token: patch("token")?,
            dpop: fields.read("dpop", Dpop::read)?.unwrap_or_default(),
            jwt: fields.read("jwt", Node::bool)?.unwrap_or_default(),
            fail_register: error("register")?,
            fail_token: error("token")?,
        })
    }

    /// The metadata of the issuer at this path (RFC 8414, section 2; OpenID Connect Discovery 1.0, section 3).
    pub(crate) fn metadata(&self, origin: &str, path: &str, scopes: &[String], is_openid: bool) -> Json {
        let issuer = format!("{origin}{path}");
        let mut metadata = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "registration_endpoint": format!("{issuer}/register"),
            "revocation_endpoint": format!("{issuer}/revoke"),
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        if self.dpop != Dpop::Off {
            metadata["dpop_signing_alg_values_supported"] = json!(["ES256"]);
        }
        if !scopes.is_empty() {
            metadata["scopes_supported"] = json!(scopes);
        }
        if is_openid {
            metadata["jwks_uri"] = json!(format!("{issuer}/jwks"));
            metadata["subject_types_supported"] = json!(["public"]);
            metadata["id_token_signing_alg_values_supported"] = json!(["RS256"]);
        }
        patched(metadata, &self.metadata, origin)
    }

    /// The path of the issuer whose metadata are at this path, and whether they are those of OpenID Connect.
    pub(crate) fn described_at<'p>(&self, path: &'p str) -> Option<(&'p str, bool)> {
        const OPENID: &str = "/.well-known/openid-configuration";
        let (issuer, is_openid) = match path.strip_prefix("/.well-known/oauth-authorization-server") {
            Some(issuer) => (issuer, false),
            None => (path.strip_prefix(OPENID).or_else(|| path.strip_suffix(OPENID))?, true),
        };
        self.paths.iter().any(|it| it == issuer).then_some((issuer, is_openid))
    }

    /// Whether a path is one of the authorization server.
    pub(crate) fn is_about(&self, path: &str) -> bool {
        self.described_at(path).is_some() || self.endpoint(path).is_some()
    }

    /// The number of the issuer that an endpoint belongs to, with the name of the endpoint.
    pub(crate) fn endpoint<'p>(&self, path: &'p str) -> Option<(usize, &'p str)> {
        let (issuer, name) = path.rsplit_once('/')?;
        let index = self.paths.iter().position(|it| it == issuer)?;
        matches!(name, "authorize" | "token" | "register" | "revoke").then_some((index, name))
    }
}

/// These members with changes; null removes one.
pub(crate) fn patched(mut members: Json, changes: &Map<String, Json>, origin: &str) -> Json {
    if let Some(members) = members.as_object_mut() {
        for (name, value) in changes {
            match value {
                Json::Null => drop(members.remove(name)),
                value => drop(members.insert(name.clone(), with_origin(value, origin))),
            }
        }
    }
    members
}

/// The text of a challenge, for metadata at this URL.
pub(crate) fn challenge_text(text: &str, origin: &str, metadata: &str) -> String {
    text.replace("{metadata}", metadata).replace(ORIGIN, origin)
}

fn with_origin(value: &Json, origin: &str) -> Json {
    match value {
        Json::String(text) => json!(text.replace(ORIGIN, origin)),
        Json::Array(items) => items.iter().map(|item| with_origin(item, origin)).collect(),
        value => value.clone(),
    }
}

fn read_path(node: &Node) -> Result<String, Problems> {
    let path = node.str()?;
    match path.is_empty() || (path.starts_with('/') && !path.ends_with('/')) {
        true => Ok(path.to_owned()),
        false => Err(node.problem("a path must begin with `/` and must not end with one").into()),
    }
}

fn read_client(node: &Node) -> Result<(String, Option<String>), Problems> {
    let fields = KEYS.fields(node, "client")?;
    let secret = fields.read("secret", |node| Ok(node.str()?.to_owned()))?;
    Ok((fields.required("id")?.str()?.to_owned(), secret))
}

fn read_patch(node: &Node) -> Result<Map<String, Json>, Problems> {
    node.entries()?;
    Ok(node.to_json().as_object().cloned().unwrap_or_default())
}
