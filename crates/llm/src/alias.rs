//! Names of tools that providers accept.

use std::collections::{HashMap, HashSet};

use ring::digest::{SHA256, digest};

/// The longest name that providers accept: `^[a-zA-Z0-9_-]{1,64}$`.
pub const MAX_LEN: usize = 64;

/// A two-way map between the names of a set and their aliases.
///
/// An accepted name is its own alias. In other names, `_` replaces the rejected characters; names that are too long or
/// would become duplicates are truncated and end with a hash. An alias does not depend on the order of the names, and
/// rarely on other names, so that it stays the same when a server is added.
#[derive(Clone, Debug, Default)]
pub struct Aliases {
    aliases: HashMap<String, String>,
    names: HashMap<String, String>,
}

impl Aliases {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Aliases {
        let names: HashSet<&str> = names.into_iter().collect();
        let mut shared: HashMap<String, usize> = HashMap::new();
        for name in &names {
            *shared.entry(plain(name)).or_default() += 1;
        }
        let (accepted, mut others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| is_accepted(name));
        others.sort_unstable();
        let mut aliases = Aliases::default();
        for name in accepted {
            aliases.insert(name.to_owned(), name);
        }
        for name in others {
            let plain = plain(name);
            let is_free = is_accepted(&plain) && shared.get(&plain) == Some(&1);
            let mut alias = if is_free { plain.clone() } else { hashed(&plain, name, 0) };
            let mut attempt = 0;
            while aliases.names.contains_key(&alias) {
                attempt += 1;
                alias = hashed(&plain, name, attempt);
            }
            aliases.insert(alias, name);
        }
        aliases
    }

    fn insert(&mut self, alias: String, name: &str) {
        self.names.insert(alias.clone(), name.to_owned());
        self.aliases.insert(name.to_owned(), alias);
    }

    /// The alias of a name of the set.
    pub fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    /// The name that an alias stands for.
    pub fn name(&self, alias: &str) -> Option<&str> {
        self.names.get(alias).map(String::as_str)
    }
}

/// Whether providers accept a name.
pub fn is_accepted(name: &str) -> bool {
    (1..=MAX_LEN).contains(&name.len()) && name.chars().all(is_plain)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}

fn plain(name: &str) -> String {
    name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect()
}

fn hashed(plain: &str, name: &str, attempt: usize) -> String {
    let salted = if attempt == 0 { name.to_owned() } else { format!("{name}\n{attempt}") };
    let hash = digest(&SHA256, salted.as_bytes());
    let hash: String = hash.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let stem = if plain.is_empty() { "tool" } else { plain };
    format!("{}_{hash}", &stem[..stem.len().min(MAX_LEN - 1 - hash.len())])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_accepted_name_is_its_own_alias_and_others_lose_rejected_characters() {
        let aliases = Aliases::new(["read_file", "read-file", "read@files", "fs::read", "a.b"]);
        let table = [
            ("read_file", "read_file"),
            ("read-file", "read-file"),
            ("read@files", "read_files"),
            ("fs::read", "fs__read"),
            ("a.b", "a_b"),
        ];
        for (name, alias) in table {
            assert_eq!((aliases.alias(name), aliases.name(alias)), (Some(alias), Some(name)));
        }
        assert_eq!((aliases.alias("other"), aliases.name("other")), (None, None));
    }

    #[test]
    fn names_with_the_same_plain_form_get_different_aliases() {
        let aliases = Aliases::new(["a.b", "a@b", "a_b"]);
        assert_eq!(aliases.alias("a_b"), Some("a_b"));
        assert_eq!(aliases.alias("a.b"), Some("a_b_2e7336dc"));
        assert_ne!(aliases.alias("a.b"), aliases.alias("a@b"));
        let taken = Aliases::new(["a.b", "a@b", "a_b", "a_b_2e7336dc"]);
        assert_eq!(taken.name("a_b_2e7336dc"), Some("a_b_2e7336dc"));
        assert!(taken.alias("a.b").is_some_and(|alias| alias.starts_with("a_b_") && alias != "a_b_2e7336dc"));
    }

    #[test]
    fn long_names_with_the_same_beginning_are_cut_to_different_aliases() {
        let (one, two) = (format!("{}1", "x".repeat(70)), format!("{}2", "x".repeat(70)));
        let aliases = Aliases::new([&*one, &*two, ""]);
        let (one, two) = (aliases.alias(&one).expect("an alias"), aliases.alias(&two).expect("an alias"));
        assert!(one != two && one.len() == MAX_LEN && two.len() == MAX_LEN);
        assert!(aliases.alias("").is_some_and(|alias| alias.starts_with("tool_")));
    }

    proptest! {
        #[test]
        fn aliases_are_accepted_unique_and_lead_back(names in prop::collection::vec("[ab.@é_]{0,4}|x{60,70}", 0..12)) {
            let aliases = Aliases::new(names.iter().map(String::as_str));
            let backwards = Aliases::new(names.iter().rev().map(String::as_str));
            for name in &names {
                let alias = aliases.alias(name).expect("an alias");
                prop_assert!(is_accepted(alias), "{}", alias);
                prop_assert_eq!(aliases.name(alias), Some(&**name));
                prop_assert_eq!(backwards.alias(name), Some(alias));
            }
        }
    }
}
