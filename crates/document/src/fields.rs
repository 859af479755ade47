//! Reads an object whose keys are known.

use super::{Entry, Node, Problem, Problems, Value};

/// An object that has only known keys.
#[derive(Debug)]
pub struct Fields<'a> {
    node: &'a Node,
    entries: &'a [Entry],
    what: String,
}

impl<'a> Fields<'a> {
    pub(super) fn new(node: &'a Node, what: &str, keys: &[&str]) -> Result<Self, Problems> {
        let (fields, unknown) = Fields::with_unknown(node, what, keys)?;
        if unknown.0.is_empty() { Ok(fields) } else { Err(unknown) }
    }

    /// The object, and the problems of its unknown keys.
    ///
    /// # Errors
    /// It is no object.
    pub fn with_unknown(node: &'a Node, what: &str, keys: &[&str]) -> Result<(Self, Problems), Problems> {
        let entries = match &node.value {
            Value::Mapping(entries) => entries,
            Value::Null => &[][..],
            Value::Sequence(_) => return Err(node.problem(format!("{what} must be an object, found an array")).into()),
            _ => {
                let problem = node.problem(format!("{what} must be an object, found {}", node.describe()));
                return Err(problem.hint(format!("its keys are {}", list(keys, "and"))).into());
            }
        };
        let unknown = entries.iter().filter(|entry| !keys.contains(&entry.key.as_str()));
        let problems = unknown.map(|entry| unknown_key(entry, what, keys)).collect();
        Ok((Fields { node, entries, what: what.into() }, Problems(problems)))
    }

    pub fn node(&self) -> &'a Node {
        self.node
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entry(key).map(|entry| &entry.node)
    }

    /// # Errors
    /// The key is missing.
    pub fn required(&self, key: &str) -> Result<&'a Node, Problems> {
        let article = if key.starts_with(['a', 'e', 'i', 'o', 'u']) && !key.starts_with("ur") { "an" } else { "a" };
        self.get(key).ok_or_else(|| self.node.problem(format!("{} needs {article} `{key}`", self.what)).into())
    }

    /// Reads the value at `key`, if it is there.
    ///
    /// # Errors
    /// The problems that `read` finds.
    pub fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&'a Node) -> Result<T, Problems>,
    ) -> Result<Option<T>, Problems> {
        self.get(key).map(read).transpose()
    }

    /// Reads the items of the array at `key`; none if the key is missing.
    ///
    /// # Errors
    /// The value is not an array; or the problems of all items.
    pub fn read_each<T>(
        &self,
        key: &str,
        read: impl FnMut(&'a Node) -> Result<T, Problems>,
    ) -> Result<Vec<T>, Problems> {
        self.get(key).map_or_else(|| Ok(Vec::new()), |node| node.each(read))
    }

    /// The entry whose key is one of `keys`, at most one of which may be present.
    ///
    /// # Errors
    /// Two of the keys are present.
    pub fn at_most_one(&self, keys: &[&str]) -> Result<Option<&'a Entry>, Problems> {
        let mut present = self.entries.iter().filter(|entry| keys.contains(&entry.key.as_str()));
        match (present.next(), present.next()) {
            (Some(first), Some(second)) => {
                let message = format!("{} has both `{}` and `{}`", self.what, first.key, second.key);
                Err(Problem::new(second.key_span, message).hint("keep one of them").into())
            }
            (entry, _) => Ok(entry),
        }
    }

    /// The entry whose key is one of `keys`, exactly one of which must be present.
    ///
    /// # Errors
    /// None of the keys is present, or two are.
    pub fn exactly_one(&self, keys: &[&str]) -> Result<&'a Entry, Problems> {
        self.at_most_one(keys)?.ok_or_else(|| {
            let message = format!("{} needs one of {}", self.what, list(keys, "or"));
            self.node.problem(message).into()
        })
    }
}

fn unknown_key(entry: &Entry, what: &str, keys: &[&str]) -> Problem {
    let problem = Problem::new(entry.key_span, format!("{what} has no key `{}`", entry.key));
    let other_name = OTHER_NAMES.iter().find(|(name, key)| *name == entry.key && keys.contains(key));
    match other_name.map(|(_, key)| *key).or_else(|| nearest(&entry.key, keys)) {
        Some(key) => problem.hint(format!("did you mean `{key}`?")),
        None => problem.hint(format!("known keys are {}", list(keys, "and"))),
    }
}

/// Names of other tools and of the protocol, and the keys that mean the same in our files.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("arguments", "args"),
    ("regex", "matches"),
    ("regexp", "matches"),
    ("response", "reply"),
    ("list_tools", "discover"),
    ("initialize", "connect"),
    ("call_tool", "call"),
];

/// Longer words are not compared.
const LONGEST_WORD: usize = 100;

/// The minimum similarity of a typo.
const ALIKE: f64 = 0.8;

/// In a word of so many letters one slip is likely. With more it is another word.
const SHORT_WORD: usize = 4;

/// The known word that is most like `word`, if any is alike enough to be meant.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    if word.len() > LONGEST_WORD {
        return None;
    }
    let word = word.to_lowercase();
    let length = word.chars().count();
    let score = |key: &&'k str| {
        let lower = key.to_lowercase();
        let score = strsim::jaro_winkler(&word, &lower);
        let lengths = (length, lower.chars().count());
        let is_meant = match lengths.0.min(lengths.1) <= SHORT_WORD {
            true => lengths.0.abs_diff(lengths.1) <= 1 && is_slip(&word, &lower, score),
            false => score >= ALIKE,
        };
        is_meant.then_some((*key, score))
    };
    known.iter().filter_map(score).max_by(|a, b| a.1.total_cmp(&b.1)).map(|(key, _)| key)
}

/// Whether one short word can be the other with a slip: `tags` is not `args`, nor is `author` `auth`.
fn is_slip(word: &str, key: &str, score: f64) -> bool {
    // For the similarity of Winkler, two letters that are swapped in a short word make it another.
    let is_swap = || strsim::levenshtein(word, key) == 2;
    strsim::osa_distance(word, key) <= 1 && (score >= ALIKE || is_swap())
}

fn list(keys: &[&str], conjunction: &str) -> String {
    let quoted: Vec<_> = keys.iter().map(|key| format!("`{key}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} {conjunction} {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_testing::table;

    #[test]
    fn a_short_word_is_meant_by_one_slip_and_no_more() {
        let known = ["args", "auth", "env", "url", "type", "command", "headers", "timeout"];
        for [word, meant] in table::rows(include_str!("fields.txt"), "a word and the one that is meant") {
            assert_eq!(nearest(&word, &known).unwrap_or("-"), meant, "{word}");
        }
    }
}
