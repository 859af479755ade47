//! Whether a text has more of one kind of bracket that closes than it opens.

/// How many brackets of each kind are closed and never opened; below 0, how many are opened and never closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Balance {
    braces: i64,
    brackets: i64,
}

impl Balance {
    /// That of a whole text. What stands in texts and comments does not count.
    pub(super) fn of(text: &str) -> Self {
        let mut balance = Balance::default();
        let mut at = 0;
        let special = ['{', '}', '[', ']', '"', '/', '#'];
        while let Some(length) = text[at..].find(special) {
            at += length;
            let rest = &text[at..];
            at += match rest.as_bytes()[0] {
                b'"' => length_of_text(rest).unwrap_or_else(|| rest.find('\n').unwrap_or(rest.len())),
                b'#' => rest.find('\n').unwrap_or(rest.len()),
                b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
                b'/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
                b'/' => 1,
                bracket => {
                    balance.add(char::from(bracket));
                    1
                }
            };
        }
        balance
    }

    /// Takes one more bracket into account.
    pub(super) fn add(&mut self, bracket: char) {
        match bracket {
            '{' => self.braces -= 1,
            '}' => self.braces += 1,
            '[' => self.brackets -= 1,
            ']' => self.brackets += 1,
            _ => {}
        }
    }

    /// Whether there are more brackets that close like this than are opened.
    pub(super) fn has_surplus(self, close: char) -> bool {
        self.surplus(close) > 0
    }

    /// Whether there are fewer brackets that close like this than are opened.
    pub(super) fn lacks(self, close: char) -> bool {
        self.surplus(close) < 0
    }

    fn surplus(self, close: char) -> i64 {
        match close {
            '}' => self.braces,
            ']' => self.brackets,
            _ => 0,
        }
    }
}

/// The length of a text in double quotes that begins here, unless its line does not end it.
pub(super) fn length_of_text(text: &str) -> Option<usize> {
    let mut at = 1;
    loop {
        at += text.get(at..)?.find(['"', '\\', '\n'])?;
        match text.as_bytes()[at] {
            b'"' => return Some(at + 1),
            b'\n' => return None,
            _ => at += 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_count_where_they_are_no_part_of_a_text_or_comment() {
        let of = |text| {
            let Balance { braces, brackets } = Balance::of(text);
            (braces, brackets)
        };
        assert_eq!(of("{\"a]\\\"]\": [1}"), (0, -1));
        assert_eq!(of("]} // }\n# ]\n/* [ */ } \"é\\"), (2, 1));
        assert_eq!(of("{ a/b [ \"]"), (-1, -1));
        assert_eq!(of("[\"}\n]"), (0, 0));
    }
}
