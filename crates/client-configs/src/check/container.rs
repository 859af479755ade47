//! Servers in containers: whether what the client writes gets to them.

use super::{CheckedConfig, command::program};
use crate::{At, ConfiguredServer, codes};
use rehearse_report::findings::Finding;

/// Programs that run containers, with the same options.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// At most this many words are before the engine, as in `cmd /c docker` and `sudo -E docker`.
const MOST_WORDS: usize = 4;

pub(super) fn check(_: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let line = || server.command.iter().chain(&server.args);
    let Some(engine) = line().take(MOST_WORDS).position(is_engine) else { return };
    let mut words = line().skip(engine + 1);
    let Some(run) = words.next().filter(|word| word.value == "run") else { return };
    let options: Vec<_> = words.filter(|word| word.value.starts_with('-')).collect();
    // A single `-t` may be the server's own.
    let with_terminal =
        options.iter().find(|word| option(word) == "--tty" || "it".chars().all(|it| has_letter(word, it)));
    if let Some(word) = with_terminal {
        let message = "this needs a terminal, and the input of a server is a pipe";
        findings.push(codes::CONTAINER_INPUT.at(word.span, message).hint("write `-i` alone"));
    } else if !options.iter().any(|word| option(word) == "--interactive" || has_letter(word, 'i')) {
        let message = "without `-i` the container does not receive what the client writes";
        findings.push(codes::CONTAINER_INPUT.at(run.span, message).hint("put \"-i\" after it"));
    }
}

fn is_engine(word: &At<String>) -> bool {
    ENGINES.contains(&program(&word.value))
}

/// An option without its value.
fn option(word: &At<String>) -> &str {
    word.value.split('=').next().unwrap_or_default()
}

/// Whether an option is this letter, or has it among others.
fn has_letter(word: &At<String>, letter: char) -> bool {
    let letters = option(word).strip_prefix('-').filter(|rest| rest.len() <= 3 && !rest.starts_with('-'));
    letters.is_some_and(|letters| letters.contains(letter))
}
