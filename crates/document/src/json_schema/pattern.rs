//! Texts that match a regular expression.

use regex_syntax::hir::{Class, Hir, HirKind};

use crate::seeded_rng::SeededRng;

/// The maximum number of characters.
const LONGEST: usize = 1_024;
/// How much more often than it must a part is repeated.
const MORE: u64 = 4;

/// A text that matches a regular expression, the shortest of its first alternatives without an `rng`; `None` if the
/// expression has look-around or other things of its language, or needs a long text. A word boundary may be missed.
pub(super) fn text(pattern: &str, rng: Option<&mut SeededRng>) -> Option<String> {
    let expression = regex_syntax::parse(pattern).ok()?;
    let mut text = String::new();
    write(&expression, &mut { rng }, &mut text)?;
    Some(text)
}

fn write(expression: &Hir, rng: &mut Option<&mut SeededRng>, text: &mut String) -> Option<()> {
    let mut draw = |most: u64| rng.as_mut().map_or(0, |rng| rng.number_up_to(most));
    match expression.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(str::from_utf8(&literal.0).ok()?),
        HirKind::Class(class) => {
            let ranges: Vec<(u32, u32)> = match class {
                Class::Unicode(class) => class.iter().map(|it| (it.start().into(), it.end().into())).collect(),
                Class::Bytes(class) => class.iter().map(|it| (it.start().into(), it.end().into())).collect(),
            };
            // Letters and digits first, then what can be printed in ASCII.
            let within = |low: char, high: char| {
                let cut = ranges.iter().map(|(start, end)| ((*start).max(low.into()), (*end).min(high.into())));
                cut.filter(|(start, end)| start <= end).collect::<Vec<_>>()
            };
            let preferred = [within('a', 'z'), within('0', '9'), within(' ', '~'), ranges.clone()];
            let from = if draw(3) > 0 { &preferred[2..] } else { &preferred[..] };
            let ranges = from.iter().find(|it| !it.is_empty())?;
            let last = u64::try_from(ranges.len()).ok()?.checked_sub(1)?;
            let (start, end) = ranges.get(usize::try_from(draw(last)).ok()?)?;
            let code = start + u32::try_from(draw(u64::from(end - start))).ok()?;
            text.push(char::from_u32(code).or(char::from_u32(*start))?);
        }
        HirKind::Repetition(it) => {
            let most = it.max.map_or(u64::from(it.min) + MORE, u64::from).min(u64::from(it.min) + MORE);
            for _ in 0..u64::from(it.min) + draw(most - u64::from(it.min)) {
                write(&it.sub, rng, text)?;
            }
        }
        HirKind::Capture(it) => write(&it.sub, rng, text)?,
        HirKind::Concat(parts) => parts.iter().try_for_each(|part| write(part, rng, text))?,
        HirKind::Alternation(parts) => {
            let last = u64::try_from(parts.len()).ok()?.checked_sub(1)?;
            let picked = usize::try_from(draw(last)).ok()?;
            write(parts.get(picked)?, rng, text)?;
        }
    }
    (text.len() <= LONGEST).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_matches_its_pattern() {
        let patterns =
            ["^[a-z]{2}-\\d+$", "(?i)yes|no", "^.*\\.txt$", "x?", "^[^a-z]$", "é[ä-ü]", "\\p{L}{3}", "^\\S+@\\S+$"];
        for pattern in patterns {
            let expected = regex::Regex::new(pattern).expect("a pattern");
            let mut rng = SeededRng::new(1);
            for index in 0..20 {
                let text = text(pattern, (index > 0).then_some(&mut rng)).expect("a text");
                assert!(expected.is_match(&text), "{pattern}: {text}");
            }
        }
    }

    #[test]
    fn what_cannot_be_written_is_none() {
        for pattern in ["(?=a)b", "(", "a{2000}", "(a{100}){100}"] {
            assert_eq!(text(pattern, None), None, "{pattern}");
        }
    }
}
