//! Names of tools and properties as identifiers of a program.

use std::collections::HashSet;

use crate::Tool;

/// Words that are not names in JavaScript or TypeScript, and globals that programs need.
const JAVASCRIPT: &str = "\
    Array ArrayBuffer BigInt Boolean DataView Date Error Function Infinity Intl Iterator JSON Map Math NaN Number \
    Object Promise Proxy RangeError Reflect RegExp Set String Symbol SyntaxError TypeError Uint8Array WeakMap \
    WeakSet any arguments as async await boolean break case catch class clearTimeout console const constructor \
    continue debugger declare default delete do else enum eval export extends false finally for function get \
    globalThis if implements import in instanceof interface isNaN let module namespace never new null number of \
    package parseFloat parseInt private protected public return set setTimeout static string super switch symbol \
    this throw true try type typeof undefined unknown var void while with yield";

/// Names that are given once.
#[derive(Debug, Default)]
pub(crate) struct Names(HashSet<String>);

impl Names {
    pub(crate) fn with_taken(taken: &[&str]) -> Names {
        Names(taken.iter().map(|&name| name.to_owned()).collect())
    }

    /// The name, or the name with the first number that makes it new.
    pub(crate) fn give(&mut self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !self.0.contains(name));
        let free = free.unwrap_or_default();
        self.0.insert(free.clone());
        free
    }

    /// The identifiers of tools. A tool whose name is an identifier keeps it, also if another one comes first.
    pub(crate) fn give_all(&mut self, tools: &[&Tool], identifier: fn(&str) -> String) -> Vec<String> {
        let mut keep = |tool: &&Tool| identifier(&tool.name) == tool.name && self.0.insert(tool.name.clone());
        let kept: Vec<_> = tools.iter().map(&mut keep).collect();
        let give = |(tool, is_kept): (&&Tool, bool)| match is_kept {
            true => tool.name.clone(),
            false => self.give(&identifier(&tool.name)),
        };
        tools.iter().zip(kept).map(give).collect()
    }
}

/// The name with only letters, digits and underscores of ASCII and `$`, which JavaScript can call.
pub(crate) fn javascript(name: &str) -> String {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let mut text: String = name.chars().map(|c| if is_kept(c) { c } else { '_' }).collect();
    if !text.starts_with(|c: char| !c.is_ascii_digit()) {
        text.insert(0, '_');
    }
    if JAVASCRIPT.split(' ').any(|word| word == text) {
        text.push('_');
    }
    text
}

/// Whether an object of JavaScript can have this property without quotes.
pub(crate) fn is_javascript_property(name: &str) -> bool {
    let is_kept = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    name.starts_with(|c: char| !c.is_ascii_digit()) && name.chars().all(is_kept)
}

/// The words of the name, each with a capital first letter: `read-file` is `ReadFile`. It begins with a capital letter of
/// ASCII, as an exported name of Go must; other letters are their code points.
pub(crate) fn pascal(name: &str) -> String {
    let (mut text, mut is_start) = (String::new(), true);
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() && is_start => text.push(c.to_ascii_uppercase()),
            _ if c.is_ascii_alphanumeric() => text.push(c),
            _ if c.is_alphabetic() => text.push_str(&format!("U{:04X}", u32::from(c))),
            _ => {}
        }
        is_start = !c.is_ascii_alphanumeric();
    }
    if !text.starts_with(|c: char| c.is_ascii_uppercase()) {
        text.insert(0, 'X');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers() {
        let table = [
            ("read_file", "read_file", "ReadFile"),
            ("get-user.v2/all", "get_user_v2_all", "GetUserV2All"),
            ("delete", "delete_", "Delete"),
            ("Promise", "Promise_", "Promise"),
            ("2fa", "_2fa", "X2fa"),
            ("", "_", "X"),
            ("größe", "gr__e", "GrU00F6U00DFE"),
            ("searchHTTP", "searchHTTP", "SearchHTTP"),
        ];
        for (name, function, exported) in table {
            assert_eq!((&*javascript(name), &*pascal(name)), (function, exported), "{name}");
        }
    }

    #[test]
    fn a_name_is_given_once() {
        let mut names = Names::with_taken(&["A"]);
        assert_eq!([names.give("A"), names.give("B"), names.give("A")], ["A2", "B", "A3"]);
    }
}
