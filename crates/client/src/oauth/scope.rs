//! Selection of scopes (2026-07-28, Scope Selection Strategy and Step-Up Authorization Flow).

const OFFLINE: &str = "offline_access";

/// The sources of scopes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ScopeSources<'a> {
    /// Those of the options.
    pub(super) configured: Option<&'a [String]>,
    /// Those of the challenge, which the request needs.
    pub(super) challenged: Option<&'a [String]>,
    /// Those in the resource metadata.
    pub(super) of_resource: Option<&'a [String]>,
    /// Those in the metadata of the authorization server.
    pub(super) of_issuer: Option<&'a [String]>,
    /// Those of the last request.
    pub(super) before: &'a [String],
}

impl ScopeSources<'_> {
    /// The scopes to request; empty to let the authorization server choose.
    ///
    /// `offline_access` is requested only if the authorization server supports it (2026-07-28, Refresh Tokens).
    pub(super) fn choose(&self) -> Vec<String> {
        let needed = match (self.configured, self.challenged, self.of_resource) {
            (Some(configured), Some(challenged), _) if !self.before.is_empty() => union(configured, challenged),
            (Some(configured), _, _) => configured.to_vec(),
            (None, Some(challenged), _) => challenged.to_vec(),
            (None, None, of_resource) => of_resource.unwrap_or_default().to_vec(),
        };
        let mut scopes = union(self.before, &needed);
        let offered = self.of_issuer.is_some_and(|known| known.iter().any(|scope| scope == OFFLINE));
        if !offered {
            scopes.retain(|scope| scope != OFFLINE);
        } else if !scopes.is_empty() && !scopes.iter().any(|scope| scope == OFFLINE) {
            scopes.push(OFFLINE.to_owned());
        }
        scopes
    }
}

/// Each scope once, in the order of its first mention.
pub(super) fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for scope in first.iter().chain(second) {
        if !all.contains(scope) {
            all.push(scope.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    fn choose(challenged: Option<&str>, of_resource: Option<&str>, of_issuer: Option<&str>, before: &str) -> String {
        let [challenged, of_resource, of_issuer] = [challenged, of_resource, of_issuer].map(|it| it.map(list));
        let known = ScopeSources {
            configured: None,
            challenged: challenged.as_deref(),
            of_resource: of_resource.as_deref(),
            of_issuer: of_issuer.as_deref(),
            before: &list(before),
        };
        known.choose().join(" ")
    }

    #[test]
    fn the_scopes_of_the_challenge_take_precedence_and_requested_ones_are_kept() {
        assert_eq!(choose(Some("a"), Some("b c"), None, ""), "a");
        assert_eq!(choose(None, Some("b c"), None, ""), "b c");
        assert_eq!(choose(None, None, Some("x y"), ""), "");
        assert_eq!(choose(Some("w"), Some("p"), None, "a b"), "a b w");
        assert_eq!(choose(Some("b w"), None, None, "a b"), "a b w");
    }

    #[test]
    fn offline_access_is_requested_only_where_it_is_offered() {
        assert_eq!(choose(Some("a"), None, Some("a offline_access"), ""), "a offline_access");
        assert_eq!(choose(Some("a"), None, Some("a"), ""), "a");
        assert_eq!(choose(None, Some("a offline_access"), Some("a"), ""), "a");
        assert_eq!(choose(Some("offline_access a"), None, None, "offline_access"), "a");
        assert_eq!(choose(None, None, Some("offline_access"), ""), "");
    }

    #[test]
    fn scopes_of_the_user_are_requested_until_the_server_requires_more() {
        let (configured, challenged, before) = (list("mine"), list("theirs"), list("mine"));
        let mut known =
            ScopeSources { configured: Some(&configured), challenged: Some(&challenged), ..ScopeSources::default() };
        assert_eq!(known.choose(), ["mine"]);
        known.before = &before;
        assert_eq!(known.choose(), ["mine", "theirs"]);
    }
}
