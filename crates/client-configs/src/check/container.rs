//! Servers in containers: whether what the client writes gets to them.

use super::{CheckedConfig, command::program};
use crate::{At, ConfiguredServer, codes};
use rehearse_report::findings::Finding;

/// Programs that run containers, with the same options.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];

/// At most this many words are before the engine, as in `cmd /c docker` and `sudo -E docker`.
const MOST_WORDS: usize = 4;

/// Letters of `run` that are options without a value; others have one, in the same word or the next.
const LETTERS_ALONE: &str = "itdPq";

/// Long options of `run` without a value.
const ALONE: [&str; 8] =
    ["--rm", "--interactive", "--tty", "--init", "--privileged", "--detach", "--read-only", "--quiet"];

/// Beginnings of the variables that are for the engine itself.
const OF_ENGINE: [&str; 6] = ["DOCKER_", "CONTAINER", "CONTAINERD_", "XDG_", "PATH", "HOME"];

pub(super) fn check(_: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let line = || server.command.iter().chain(&server.args);
    let Some(engine) = line().take(MOST_WORDS).position(is_engine) else { return };
    let mut words = line().skip(engine + 1);
    let Some(run) = words.next().filter(|word| word.value == "run") else { return };
    check_variables(&words.clone().collect::<Vec<_>>(), server, findings);
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

/// Variables that do not reach the container.
fn check_variables(words: &[&At<String>], server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let mut options = words.iter();
    while let Some(word) = options.next().filter(|word| word.value.starts_with('-')) {
        let has_name = options.as_slice().first().is_some_and(|next| !next.value.starts_with('-'));
        if has_value_after(word) && has_name {
            options.next();
        } else if matches!(word.value.as_str(), "-e" | "--env") {
            let finding = codes::CONTAINER_VARIABLE.at(word.span, "no name of a variable stands after this");
            findings.push(finding.hint("write the name after it, or remove it"));
        }
    }
    let is_named = |name: &str| words.iter().any(|word| word.value.contains(name));
    let is_of_engine = |name: &str| OF_ENGINE.iter().any(|begin| name.starts_with(begin));
    if words.iter().any(|word| option(word) == "--env-file") {
        return;
    }
    for name in server.env.iter().map(|pair| &pair.name).filter(|it| !is_named(&it.value) && !is_of_engine(&it.value)) {
        let message = format!("{} does not reach the server: no `-e` passes it into the container", name.value);
        let hint = format!("put \"-e\", \"{}\" before the image", name.value);
        findings.push(codes::CONTAINER_VARIABLE.at(name.span, message).hint(hint));
    }
}

/// Whether the next word is the value of this option.
fn has_value_after(word: &At<String>) -> bool {
    match word.value.strip_prefix("--") {
        Some(_) => !word.value.contains('=') && !ALONE.contains(&word.value.as_str()),
        None => word.value[1..].trim_start_matches(|c| LETTERS_ALONE.contains(c)).chars().count() == 1,
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
