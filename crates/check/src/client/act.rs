//! The acts that come with the program.

/// One way in which a server behaves.
#[derive(Clone, Copy, Debug)]
pub struct Act {
    /// Its name.
    pub name: &'static str,
    /// The mock script.
    pub script: &'static str,
}

/// Acts, each with its parts of the usual server, which are beside its file: `("name" "part"…)`, or `"name"` with all.
macro_rules! acts {
    (@ ($name:literal $($part:literal)*)) => {
        Act {
            name: $name,
            script: concat!(
                include_str!(concat!("../../acts/", $name, ".yaml")),
                $(include_str!(concat!("../../acts/usual/", $part, ".yaml")),)*
            ),
        }
    };
    (@ $name:literal) => { acts!(@ ($name "tools" "lists")) };
    ($($act:tt)*) => { &[$(acts!(@ $act)),*] };
}

/// Every act. The first one is `clean`: a server that does nothing unusual.
pub const ACTS: &[Act] = acts! {
    "clean" ("only-tools" "tool") ("only-resources") ("pages") "json" "streams" ("pieces") "large" "duplicates"
    "noise" "capability" ("instructions") ("auth" "tool") ("auth-openid" "tool") ("auth-tenant" "tool")
    ("auth-no-pkce" "tool") ("auth-other-resource" "tool") ("auth-other-issuer" "tool") ("auth-state" "tool")
    ("auth-denied" "tool") ("auth-iss-other" "tool") ("auth-iss-missing" "tool") ("auth-iss-unannounced" "tool")
    ("auth-iss-slash" "tool") ("auth-no-registration" "tool") ("auth-no-token" "tool") ("auth-documents" "tool")
    ("auth-script" "tool") ("auth-expires" "tool") ("auth-no-refresh" "tool") ("auth-moves" "tool")
    ("auth-refuses" "tool") ("auth-step-up") ("auth-never-enough") ("auth-old" "tool") ("auth-dpop" "tool") "comments"
    "line-ends" "data-lines" "no-space" "fields" "event-types" "bom" ("notices" "lists") ("unfinished" "lists")
    ("resume" "lists") ("resume-refused" "lists") "modern-ids" "stateless" "odd-session" "session-lost" "sessions-lost"
    "media-type" "busy" "untyped" ("odd-result" "lists") "nameless" "renamed" "version-once" "no-version"
    "missing-capability" "unknown-method" "neutral-code" "stray-request" ("headers") ("mismatch-once" "lists")
    ("mismatch" "lists") "legacy-1" "legacy-2" "legacy-3" "legacy-4" "legacy-silent" "sse-late" "sse-foreign" "closed"
    "version-2024-11-05" "version-2025-03-26" "version-2025-06-18" "version-2025-11-25" "version-unknown"
    "initialize-error" "initialize-slow" "odd-notifications" "strays" "odd-cancellations" ("odd-progress" "lists")
    "flood" "completed" "members" "reorder" ("plain-tools" "lists") ("odd-names" "lists") "same-names"
    ("broken-schema" "lists") ("unknown-dialect" "lists") ("huge-schema" "lists") ("huge-description" "lists")
    "content" "content-unknown" "content-empty" ("structured" "lists") "error-data" "list-error" "contents"
    "silent-list" "silent-read" "silent-call" ("slow-call" "lists") "late-answers" "ttl-short" "ttl-negative"
    "same-cursor" ("lost-page") "two-in-one" ("canaries" "lists") ("apps" "lists") ("rounds") ("roots")
    "rounds-endless" "rounds-state" ("tasks" "lists") "tasks-legacy" "listen-cut" "untagged" ("changes" "lists")
    "burst" "page-required" "cut-call" "stderr" "stderr-flood" "lingers" "deaf" "crash"
};

impl Act {
    /// What the server does: the comment at the beginning of its script.
    pub fn description(&self) -> String {
        let lines = self.script.lines().map_while(|line| line.strip_prefix('#'));
        lines.map(str::trim).collect::<Vec<_>>().join(" ")
    }
}
