//! Files of variables, as `envFile` names them: `KEY=VALUE` lines, with comments and quotes.

/// The variables of a file in its order. Other lines are ignored.
pub fn parse_dotenv(text: &str) -> Vec<(String, String)> {
    text.trim_start_matches('\u{feff}').lines().filter_map(variable).collect()
}

fn variable(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    is_name.then(|| (name.to_owned(), unquoted(value.trim_start())))
}

fn unquoted(value: &str) -> String {
    if let Some(literal) = value.strip_prefix('\'').and_then(|rest| rest.split_once('\'')) {
        return literal.0.to_owned();
    }
    if let Some(quoted) = value.strip_prefix('"').and_then(escaped) {
        return quoted;
    }
    let comment = value.match_indices('#').find(|(at, _)| value[..*at].ends_with(char::is_whitespace) || *at == 0);
    value[..comment.map_or(value.len(), |(at, _)| at)].trim_end().to_owned()
}

/// The text before the next double quote; `None` if there is none.
fn escaped(text: &str) -> Option<String> {
    let (mut out, mut letters) = (String::new(), text.chars());
    loop {
        match letters.next()? {
            '"' => return Some(out),
            '\\' => match letters.next()? {
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                other @ ('"' | '\\' | '$') => out.push(other),
                other => out.extend(['\\', other]),
            },
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_with_quotes_and_comments() {
        let text = "\u{feff}# first\nA=1\r\n export B = two words # not this\nC='a # \\n'\nD=\"x\\n\\\"y\\\"\" # z\n\
                    E=\nF=a#b\nno variable\n=x\nbad name=1\nG=\"open\nH=é\nI=#\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "a # \\n"),
            ("D", "x\n\"y\""),
            ("E", ""),
            ("F", "a#b"),
            ("G", "\"open"),
            ("H", "é"),
            ("I", ""),
        ];
        let read = parse_dotenv(text);
        assert_eq!(read.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(), expected);
    }
}
