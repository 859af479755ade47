//! Secrets that are known by how they are written, whatever stands around them.

use std::{ops::Range, sync::LazyLock};

use regex::Regex;

use crate::config::expression::any_of;

/// Tokens that are known by their form.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    any_of(&[
        r"\bgh[pousr]_[A-Za-z0-9]{16,}",
        r"\bgithub_pat_[A-Za-z0-9_]{16,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9_-]{16,}",
        r"\b[psr]k_(?:live|test)_[A-Za-z0-9]{10,}",
        r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
        r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{30,}",
        r"\bya29\.[0-9A-Za-z_-]{20,}",
        r"\bnpm_[A-Za-z0-9]{30,}",
        r"\bhf_[A-Za-z0-9]{20,}",
        r"\bgsk_[A-Za-z0-9]{20,}",
        r"\bpplx-[A-Za-z0-9]{20,}",
        r"\bxai-[A-Za-z0-9]{20,}",
        r"\btvly-[A-Za-z0-9-]{16,}",
        r"\bfigd_[A-Za-z0-9_-]{16,}",
        r"\blin_api_[A-Za-z0-9]{16,}",
        r"\bntn_[A-Za-z0-9]{20,}",
        r"\bATATT[A-Za-z0-9_=-]{20,}",
        r"\bshpat_[a-f0-9]{20,}",
        r"\bdop_v1_[a-f0-9]{20,}",
        r"\bglsa_[A-Za-z0-9_]{20,}",
        r"\bsbp_[a-f0-9]{20,}",
        r"\bhvs\.[A-Za-z0-9_-]{20,}",
        r"\bdckr_pat_[A-Za-z0-9_-]{16,}",
        r"\bGOCSPX-[A-Za-z0-9_-]{16,}",
        r"\blsv2_[a-z]{2}_[A-Za-z0-9_]{16,}",
        r"\bapify_api_[A-Za-z0-9]{16,}",
        r"\bphx_[A-Za-z0-9]{20,}",
        r"\bfc-[a-f0-9]{20,}",
        r"\br8_[A-Za-z0-9]{20,}",
        r"\bpat-[a-z]{2}[0-9]-[a-f0-9-]{20,}",
        r"\bkey-[a-f0-9]{32}\b",
        r"\bsecret_[A-Za-z0-9]{20,}",
        r"\bpcsk_[A-Za-z0-9_]{16,}",
        r"\bsntry[su]_[A-Za-z0-9+/=_-]{20,}",
        // After the number of a bot of Telegram.
        r":AA[A-Za-z0-9_-]{30,}",
        r"\bhooks\.slack\.com/services/[A-Za-z0-9/]{16,}",
        r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?",
        // To the dashes of its end; what is encoded has quotes no more than five dashes.
        r#"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:-{0,4}[^-"'])*"#,
    ])
});

/// A scheme of an `Authorization` header, or a cookie's name, before what is secret.
static SCHEME: LazyLock<Regex> =
    LazyLock::new(|| any_of(&[r"(?i)^\s*(?:bearer|basic|token|apikey|api-key|digest)[\s:]+"]));

/// A scheme of an `Authorization` header, with what is secret.
static BEARER: LazyLock<Regex> = LazyLock::new(|| any_of(&[r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9+/=_.~-]{8,}"]));

/// No text of a [`TOKEN`] or with a [`BEARER`] is shorter.
const SHORTEST: usize = 14;

/// Tokens, and what stands after a scheme of an `Authorization` header.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    let text = if text.len() < SHORTEST { "" } else { text };
    let after_schemes = BEARER.find_iter(text).map(|found| {
        let token = found.as_str().split_whitespace().next_back().unwrap_or_default();
        found.end() - token.len()..found.end()
    });
    TOKEN.find_iter(text).map(|token| token.range()).chain(after_schemes)
}

/// How long the scheme is that a header's value begins with.
pub(super) fn scheme(value: &str) -> usize {
    SCHEME.find(value).map_or(0, |scheme| scheme.end())
}
