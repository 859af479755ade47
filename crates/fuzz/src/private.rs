//! What an error should not say: values of the environment of the server, paths in the home folder.

use rehearse_client::{CommandSpec, ServerParams, Target};

/// A variable with a value that only the process of the server has.
pub(crate) const CANARY: &str = "REHEARSE_CANARY";

/// What is private on the machine of a server that runs as a process here.
#[derive(Debug, Default)]
pub(crate) struct Private {
    canary: String,
    home: Option<String>,
    /// The folder and the arguments of the command, whose paths are no secret of the server.
    given: Vec<String>,
}

impl Private {
    /// Gives the process a variable with a value of its own.
    pub(crate) fn plant(params: &mut ServerParams, seed: u64) -> Option<Private> {
        let Target::Stdio(spec) = &mut params.target else { return None };
        let canary = format!("canary-{:016x}", seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        spec.env.insert(CANARY.to_owned(), canary.clone());
        let folder = spec.cwd.clone().or_else(|| std::env::current_dir().ok());
        let folder = folder.map(|folder| folder.display().to_string());
        Some(Private { canary, home: home(spec), given: spec.args.iter().cloned().chain(folder).collect() })
    }

    /// The path of the home folder, if a text has it.
    pub(crate) fn home_in(&self, text: &str) -> Option<&str> {
        self.home.as_deref().filter(|home| text.contains(home))
    }

    /// What a text of an error says that is private, as a sentence. `sent` are the texts of the input.
    pub(crate) fn found(&self, text: &str, sent: &str) -> Option<String> {
        if text.contains(&self.canary) {
            return Some(format!("The error has the value of {CANARY}, a variable of the environment of the server."));
        }
        let home = self.home_in(text)?;
        let mut paths = text.match_indices(home).map(|(at, _)| path_at(&text[at..]));
        let path = paths.find(|path| self.is_own(path, home, sent))?;
        Some(format!("The error has a path of the machine: {path}."))
    }

    /// Whether the server says a path by itself: neither the command nor the input has a part of it.
    fn is_own(&self, path: &str, home: &str, sent: &str) -> bool {
        let rest = &path[home.len()..];
        let is_below = rest.len() > 1 && rest.starts_with(['/', '\\']);
        let is_given = self.given.iter().any(|given| path.starts_with(given.as_str()) || given.starts_with(path));
        let mut parts = sent.split(['/', '\\', '\n']).filter(|part| !part.is_empty());
        is_below && !is_given && !parts.any(|part| rest.split(['/', '\\']).any(|own| own == part))
    }
}

/// The path at the beginning of a text.
fn path_at(text: &str) -> &str {
    let ends = |c: char| c.is_whitespace() || "'\"`<>()[]{},;|*?".contains(c);
    text.split(ends).next().unwrap_or(text).trim_end_matches(['.', ':'])
}

fn home(spec: &CommandSpec) -> Option<String> {
    let variable = |name: &str| spec.env.get(name).cloned().or_else(|| std::env::var(name).ok());
    let home = variable("HOME").or_else(|| variable("USERPROFILE"))?;
    // A folder such as `/` is in every path.
    (home.len() > 3).then_some(home)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_server_says_by_itself_is_private() {
        let private = Private {
            canary: "canary-1".to_owned(),
            home: Some("/home/ada".to_owned()),
            given: vec!["/home/ada/data".to_owned()],
        };
        let found = |text: &str, sent: &str| private.found(text, sent);
        assert!(found("KeyError: canary-1", "").is_some_and(|it| it.contains(CANARY)));
        let own = found("no such table in '/home/ada/.cache/db.sqlite'", "drop");
        assert_eq!(own.as_deref(), Some("The error has a path of the machine: /home/ada/.cache/db.sqlite."));
        for (text, sent) in [
            ("no such file: /home/ada/data/x", ""),
            ("not below /home/ada/data.", ""),
            ("cannot open /home/ada/papers/notes.txt", "../papers/notes.txt"),
            ("no such folder: /home/ada", ""),
            ("no such file: /home/adam/x", ""),
        ] {
            assert_eq!(found(text, sent), None, "{text}");
        }
    }
}
