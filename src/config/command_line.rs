//! Command lines that people write where a program and its arguments belong.

use super::secret::hidden_in;

/// A longer command line is not written anew in a hint.
const LONGEST_HINT: usize = 200;

/// The words of a command line as a hint may write them; `None` if it is long, a secret may be in it, or a quote has no
/// end.
pub(super) fn words_for_hint(line: &str) -> Option<Vec<String>> {
    let is_clear = line.len() <= LONGEST_HINT && hidden_in("", line).is_empty();
    if is_clear { words(line) } else { None }
}

/// The words of a command line, without their quotes. `None` if a quote has no end.
fn words(line: &str) -> Option<Vec<String>> {
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

    #[test]
    fn hints_have_no_long_command_lines_and_none_with_a_secret() {
        assert_eq!(words_for_hint("npx -y"), Some(vec!["npx".to_owned(), "-y".to_owned()]));
        assert_eq!(words_for_hint("npx --token geheim1234"), None);
        assert_eq!(words_for_hint(&"a ".repeat(LONGEST_HINT)), None);
    }
}
