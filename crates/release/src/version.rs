//! Versions: SemVer, ranges, and others.

use rehearse_client_configs::codes;
use rehearse_document::Node;
use rehearse_report::findings::Finding;

use super::wrong;

/// Whether a text is a version of SemVer 2.0.0.
fn is_semver(text: &str) -> bool {
    let is_number =
        |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()) && (it == "0" || !it.starts_with('0'));
    let is_word = |it: &str| !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    let (text, build) = text.split_once('+').map_or((text, None), |(text, build)| (text, Some(build)));
    let (core, before) = text.split_once('-').map_or((text, None), |(core, before)| (core, Some(before)));
    let is_identifier = |it: &str| is_word(it) && (is_number(it) || !it.bytes().all(|it| it.is_ascii_digit()));
    core.split('.').count() == 3
        && core.split('.').all(is_number)
        && before.is_none_or(|it| it.split('.').all(is_identifier))
        && build.is_none_or(|it| it.split('.').all(is_word))
}

/// Whether a text names several versions: `^1.2.3`, `>=1`, `1.x`, `latest`.
fn is_range(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    text == "latest"
        || text.starts_with(['^', '~', '<', '>', '='])
        || text.contains(" - ")
        || matches!(last, "x" | "X" | "*")
}

/// Checks a version: a range is rejected. Only that of a server has to be SemVer; packages have the versions of their registry.
pub(super) fn check(node: Option<&Node>, is_of_server: bool, findings: &mut Vec<Finding>) {
    let Some((node, text)) = node.and_then(|node| Some((node, node.as_str()?))) else { return };
    if is_range(text) {
        let message = format!("`{text}` is a range of versions or a tag, not one version");
        findings.push(wrong(node, message, "write the version that you release, such as 1.2.3"));
    } else if is_of_server && !is_semver(text) {
        let finding = codes::RELEASE_VERSION.at(node.span, format!("`{text}` is no version of SemVer"));
        findings.push(finding.hint("write three numbers, such as 1.2.3, without a `v`"));
    }
}

#[cfg(test)]
mod tests {
    use super::{is_range, is_semver};

    #[test]
    fn versions_ranges_and_others_differ() {
        for text in ["1.2.3", "0.0.0", "1.0.0-rc.1", "1.0.0+b.01", "1.0.0-a-b+c"] {
            assert!(is_semver(text) && !is_range(text), "{text}");
        }
        for text in ["1.2", "v1.2.3", "1.02.3", "1.0.0-01", "1.0.0-", "2025.1", "", "1.2.3.4"] {
            assert!(!is_semver(text) && !is_range(text), "{text}");
        }
        for text in ["latest", "^1.2.3", "~1.2", ">=1.0.0", "1.x", "1.2.*", "1.0.0 - 2.0.0"] {
            assert!(is_range(text), "{text}");
        }
    }
}
