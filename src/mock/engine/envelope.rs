//! What surrounds the members of a result in each era.

use super::catalog::Catalog;
use crate::wire::Era;

impl Catalog {
    /// The result object around `members`, which are JSON members without braces.
    ///
    /// A modern result names its type, the server (2026-07-28, Basic: Per-response protocol fields) and, where it may
    /// be cached, for how long (Caching: a mock promises nothing, so 0).
    pub(super) fn result(&self, era: Era, members: &str, meta: Option<&str>, cacheable: bool) -> String {
        let meta =
            meta.and_then(|meta| meta.strip_prefix('{')?.strip_suffix('}')).filter(|meta| !meta.trim().is_empty());
        let mut out = String::with_capacity(members.len() + self.server_meta.len() + 96);
        out.push('{');
        let mut member = |text: &[&str]| {
            if out.len() > 1 {
                out.push(',');
            }
            text.iter().for_each(|part| out.push_str(part));
        };
        if !members.is_empty() {
            member(&[members]);
        }
        match (era, meta) {
            (Era::Legacy, None) => {}
            (Era::Legacy, Some(meta)) => member(&["\"_meta\":{", meta, "}"]),
            (Era::Modern, _) => {
                member(&["\"resultType\":\"complete\""]);
                if cacheable {
                    member(&["\"ttlMs\":0,\"cacheScope\":\"public\""]);
                }
                let separator = if meta.is_some() { "," } else { "" };
                member(&["\"_meta\":{", meta.unwrap_or_default(), separator, &self.server_meta, "}"]);
            }
        }
        out.push('}');
        out
    }
}
