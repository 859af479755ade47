//! JSON as tokens, which keeps long numbers and duplicate members.

/// The tokens of a JSON text without whitespace: punctuation, quoted strings, and other literals.
fn tokens(json: &str) -> impl Iterator<Item = &str> {
    let mut rest = json;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let first = rest.chars().next()?;
        let length = match first {
            '"' => text_length(rest),
            '{' | '}' | '[' | ']' | ',' | ':' => 1,
            _ => rest.find(|c: char| c.is_ascii_whitespace() || ",:]}[{\"".contains(c)).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}

/// The length of the string at the start, with both quotes.
fn text_length(json: &str) -> usize {
    let mut is_escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(json.len(), |end| end + 2)
}

/// Indents a JSON text. Numbers and the order of members are kept; strings are escaped as little as possible.
pub(crate) fn indented(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let mut tokens = tokens(json).peekable();
    let mut depth = 0;
    let line = |out: &mut String, depth: usize| out.push_str(&format!("\n{}", "  ".repeat(depth)));
    while let Some(token) = tokens.next() {
        match token {
            "{" | "[" => {
                out.push_str(token);
                if let Some(end) = tokens.next_if(|next| matches!(*next, "}" | "]")) {
                    out.push_str(end);
                    continue;
                }
                depth += 1;
                line(&mut out, depth);
            }
            "}" | "]" => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push_str(token);
            }
            "," => {
                out.push(',');
                line(&mut out, depth);
            }
            ":" => out.push_str(": "),
            text if text.starts_with('"') => {
                let text = serde_json::from_str::<String>(text).and_then(|text| serde_json::to_string(&text));
                out.push_str(text.as_deref().unwrap_or(token));
            }
            word => out.push_str(word),
        }
    }
    out
}

/// The first number in a JSON text that a `serde_json::Value` cannot represent exactly.
pub(crate) fn inexact_number(json: &str) -> Option<&str> {
    let is_number = |token: &&str| token.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    tokens(json).filter(is_number).find(|token| {
        let held = serde_json::from_str::<serde_json::Number>(token).ok();
        held.is_none_or(|held| decimal(&held.to_string()) != decimal(token))
    })
}

/// The sign, the significant digits and the decimal exponent of a number.
fn decimal(number: &str) -> (bool, String, i64) {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or((false, mantissa), |rest| (true, rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    let power =
        exponent.parse::<i64>().unwrap_or(i64::MAX / 2) - fraction.len() as i64 + (digits.len() - kept.len()) as i64;
    match kept.trim_start_matches('0') {
        "" => (false, String::new(), 0),
        kept => (sign, kept.to_owned(), power),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indenting_keeps_numbers_and_order() {
        let json = r#"{"a" : [1.10, 12345678901234567890123,{ }, [] ],"a":"x\" , \\","\u00e9":{"b":null}}"#;
        let lines = [
            "{",
            r#"  "a": ["#,
            "    1.10,",
            "    12345678901234567890123,",
            "    {},",
            "    []",
            "  ],",
            r#"  "a": "x\" , \\","#,
            r#"  "é": {"#,
            r#"    "b": null"#,
            "  }",
            "}",
        ];
        assert_eq!(indented(json), lines.join("\n"));
        for scalar in ["-1.5e3", "\"\"", "true", r#""\ud800""#] {
            assert_eq!(indented(scalar), scalar);
        }
    }

    #[test]
    fn an_inexact_number_is_found() {
        for kept in
            ["0", "-0", "1.10", "1e2", "100", "-1.5E+3", "18446744073709551615", "\"1e999 123456789012345678901\""]
        {
            assert_eq!(inexact_number(kept), None, "{kept}");
        }
        let long = "12345678901234567890123";
        assert_eq!(inexact_number(&format!(r#"{{"a":[1,{{"b":{long}}}]}}"#)), Some(long));
        assert_eq!(inexact_number("0.12345678901234567890123"), Some("0.12345678901234567890123"));
    }
}
