//! The acts that come with the program.

/// One way in which a server behaves.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// Its name.
    pub name: &'static str,
    /// The mock script.
    pub script: &'static str,
}

macro_rules! acts {
    ($($name:literal)*) => {
        &[$(Act { name: $name, script: include_str!(concat!("../../acts/", $name, ".yaml")) }),*]
    };
}

/// Every act. The first one is `clean`: a server that does nothing unusual.
pub const ACTS: &[Act] = acts! {
    "clean" "only-tools" "only-resources" "pages" "json" "streams" "pieces" "large" "duplicates" "noise" "capability"
    "instructions" "auth" "auth-openid" "auth-tenant" "auth-no-pkce" "auth-other-resource" "auth-other-issuer"
    "auth-state" "auth-denied" "auth-iss-other" "auth-iss-missing" "auth-iss-unannounced" "auth-iss-slash"
    "auth-no-registration" "auth-no-token" "auth-documents" "auth-script" "auth-expires" "auth-no-refresh" "auth-moves"
    "auth-refuses" "auth-step-up" "auth-never-enough" "auth-old" "auth-dpop" "comments" "line-ends" "data-lines"
    "no-space" "fields" "event-types" "bom" "notices" "unfinished" "resume" "resume-refused" "modern-ids" "stateless"
    "odd-session" "session-lost" "sessions-lost" "media-type" "busy" "untyped" "odd-result" "nameless" "renamed"
    "version-once" "no-version" "missing-capability" "unknown-method" "neutral-code" "stray-request" "headers"
    "mismatch-once" "mismatch" "legacy-1" "legacy-2" "legacy-3" "legacy-4" "legacy-5" "legacy-6" "legacy-7"
    "legacy-silent" "sse-late" "sse-foreign" "closed" "version-2024-11-05" "version-2025-03-26" "version-2025-06-18"
    "version-2025-11-25" "version-unknown" "initialize-error" "initialize-slow" "odd-notifications" "strays"
    "odd-cancellations" "odd-progress" "flood" "completed" "members" "reorder" "plain-tools" "odd-names" "same-names"
    "broken-schema" "unknown-dialect" "huge-schema" "huge-description" "content" "content-unknown" "content-empty"
    "structured" "error-data" "list-error" "contents" "silent-list" "silent-read" "silent-call" "slow-call"
    "late-answers" "ttl-short" "ttl-negative" "same-cursor" "lost-page" "two-in-one" "canaries" "apps" "rounds" "roots"
    "rounds-endless" "rounds-state" "tasks" "tasks-legacy" "listen-cut" "untagged" "changes" "burst" "page-required"
    "cut-call" "stderr" "stderr-flood" "lingers" "deaf" "crash"
};

impl Act {
    /// What the server does: the comment at the beginning of its script.
    pub fn description(&self) -> String {
        let lines = self.script.lines().map_while(|line| line.strip_prefix('#'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}
