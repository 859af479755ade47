//! The methods of messages: a table.

use std::sync::LazyLock;

use rehearse_protocol::Version;

use crate::{Kind, Role};

/// A method of one side.
#[derive(Debug)]
pub(crate) struct Method {
    sender: Role,
    kind: Kind,
    name: &'static str,
    pub(crate) since: Version,
    pub(crate) until: Version,
    /// The shape of its params or its result, and the check of that.
    pub(crate) shape: Option<(&'static str, &'static str)>,
}

const TABLE: &str = include_str!("../methods.txt");

static METHODS: LazyLock<Vec<Method>> = LazyLock::new(|| TABLE.lines().filter_map(Method::parse).collect());

/// The method of a message, or of the request that a response is for.
pub(crate) fn method(sender: Role, kind: Kind, name: &str) -> Option<&'static Method> {
    METHODS.iter().find(|it| it.name == name && it.sender == sender && it.kind == kind)
}

impl Method {
    fn parse(line: &'static str) -> Option<Method> {
        let mut words = line.split_whitespace();
        let sender = match words.next()? {
            "server" => Role::Server,
            "client" => Role::Client,
            _ => return None,
        };
        let kind = match words.next()? {
            "request" => Kind::Request,
            "notification" => Kind::Notification,
            "result" => Kind::Response,
            _ => return None,
        };
        let (name, (since, until)) = (words.next()?, words.next()?.split_once("..")?);
        let since = since.parse().unwrap_or(Version::V2024_11_05);
        let until = until.parse().unwrap_or(Version::LATEST);
        Some(Method { sender, kind, name, since, until, shape: words.next().zip(words.next()) })
    }

    pub(crate) fn is_in(&self, version: Version) -> bool {
        (self.since..=self.until).contains(&version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_method_with_versions_that_exist() {
        let lines: Vec<_> = TABLE.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(METHODS.len(), lines.len());
        for (method, line) in METHODS.iter().zip(lines) {
            let versions = line.split(' ').nth(3).and_then(|versions| versions.split_once("..")).expect("versions");
            for (text, version) in [(versions.0, method.since), (versions.1, method.until)] {
                assert!(text.is_empty() || text == version.as_str(), "{line}");
            }
            assert!(method.shape.is_none_or(|(_, check)| crate::checks().iter().any(|it| it.id == check)), "{line}");
        }
    }
}
