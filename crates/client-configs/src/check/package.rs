//! Packages that a launcher downloads and runs.

use super::{CheckedConfig, command::program};
use crate::{At, ConfiguredServer, codes, placeholder::placeholder};
use rehearse_document::references;
use rehearse_report::findings::Finding;

/// Options of launchers that have a value after them.
const WITH_VALUE: &[&str] = &[
    "-p",
    "--package",
    "--prefix",
    "-c",
    "--call",
    "-w",
    "--workspace",
    "--registry",
    "--cache",
    "--userconfig",
    "--loglevel",
    "--from",
    "--with",
    "--python",
    "--index-url",
    "--index",
    "--directory",
];

pub(super) fn check(_: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let words: Vec<_> = server.command.iter().chain(&server.args).collect();
    // A launcher may itself be started by `cmd /c`.
    let Some(at) = words.iter().take(4).position(|word| launcher(&word.value).is_some()) else { return };
    let (Some(launcher), rest) = (launcher(&words[at].value), &words[at + 1..]) else { return };
    let Some(package) = package(rest) else { return };
    if launcher == "npx" && !is_confirmed(rest, package) {
        let finding = codes::PACKAGE_PROMPT.at(package.span, "in a terminal, npx asks before it installs a package");
        findings.push(finding.hint("put \"-y\" before the package"));
    }
    if is_unpinned(&package.value) {
        let finding = codes::PACKAGE_UNPINNED.at(package.span, format!("{launcher} runs the newest version of this"));
        findings.push(finding.hint("pin a version that you have checked: `name@1.2.3`"));
    }
}

fn launcher(word: &str) -> Option<&'static str> {
    ["npx", "bunx", "uvx"].into_iter().find(|launcher| *launcher == program(word))
}

/// The package that a launcher runs: the value of `--from` or `--package`, or the first word that is not an option.
fn package<'w>(words: &[&'w At<String>]) -> Option<&'w At<String>> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.value.as_str() {
            "--from" | "-p" | "--package" => return words.next().copied(),
            option if WITH_VALUE.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            _ => return Some(word),
        }
    }
    None
}

/// Whether an option keeps npx from asking (libnpmexec).
fn is_confirmed(words: &[&At<String>], package: &At<String>) -> bool {
    let options = words.iter().take_while(|word| !std::ptr::eq(**word, package));
    options.into_iter().any(|word| {
        let is_short = !word.value.starts_with("--") && word.value.starts_with('-') && word.value.contains('y');
        is_short || matches!(word.value.as_str(), "--yes" | "--no-install" | "--no")
    })
}

/// Whether a package of a registry has no version. A path, a URL or a reference is something else.
fn is_unpinned(package: &str) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '@' | '/' | '-' | '_' | '.');
    let scoped = package.strip_prefix('@').unwrap_or(package);
    let version = scoped.split_once('@').map(|(_, version)| version);
    let is_path = package.starts_with(['.', '/', '~']) || scoped.matches('/').count() > 1;
    package.chars().all(is_name)
        && !is_path
        && matches!(version, None | Some("" | "latest" | "next"))
        && references(package).next().is_none()
        && placeholder(package).is_none()
}
