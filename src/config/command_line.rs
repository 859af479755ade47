//! Command lines that people write where a program and its arguments belong.

/// The words of a command line, without their quotes. `None` if a quote has no end.
pub(super) fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            None if matches!(character, '"' | '\'') => {
                quote = Some(character);
                // What is in quotes is a word even if nothing is.
                word.get_or_insert_default();
            }
            None if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// A variable that a shell sets for the command behind it: its name and its value.
pub(super) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(is_of_name);
    is_name.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_quotes_is_one_word() {
        assert_eq!(words(" a \"b c\"d '' ").as_deref(), Some(&["a", "b cd", ""].map(str::to_owned)[..]));
        assert_eq!(words("a \"b"), None);
        assert_eq!((assignment("A_1=b=c"), assignment("--a=b"), assignment("1=b")), (Some(("A_1", "b=c")), None, None));
    }
}
