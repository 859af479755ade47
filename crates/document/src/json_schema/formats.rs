//! Texts with the formats of JSON Schema (2020-12 Validation, 7.3).

/// Texts with a format, the usual one first; empty if it is unknown.
pub(super) fn texts(format: &str) -> &'static [&'static str] {
    match format {
        "date" => &["2026-01-01", "2024-02-29"],
        "date-time" => &["2026-01-01T00:00:00Z", "2024-02-29T23:59:59.5+01:00"],
        "duration" => &["PT1H", "P1Y2M3DT4H5M6S"],
        "email" | "idn-email" => &["test@example.com", "a.b+c@sub.example.org"],
        "hostname" | "idn-hostname" => &["example.com", "a-1"],
        "ipv4" => &["192.0.2.1", "0.0.0.0"],
        "ipv6" => &["2001:db8::1", "::"],
        "iri" | "uri" => &["https://example.com/", "urn:a:b", "https://user@example.com:8080/a%20b?c=d#e"],
        "iri-reference" | "uri-reference" => &["https://example.com/", "../a?b#c", ""],
        "json-pointer" => &["/a/0", ""],
        "regex" => &["^a+$", ""],
        "relative-json-pointer" => &["0/a", "1#"],
        "time" => &["00:00:00Z", "23:59:59.5+01:00"],
        "uri-template" => &["https://example.com/{id}", "{?a,b*}"],
        "uuid" => &["00000000-0000-4000-8000-000000000000", "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"],
        _ => &[],
    }
}
