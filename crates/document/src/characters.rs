//! Characters in a text that a reader does not see, or that show it another text than a program reads.

/// What a character does that a reader does not see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HiddenKind {
    /// It is a tag or a variation selector without a base: models read a text of them, and people do not see it.
    Tag,
    /// It changes the order in which others are shown: an override, or an embedding or isolate that is not closed.
    Order,
    /// It has no width, and no script around it needs it.
    NoWidth,
    /// It controls a terminal.
    Control,
}

/// A character that is hidden, and where it is in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    pub at: usize,
    pub character: char,
    pub kind: HiddenKind,
}

/// The characters of a text that are hidden. Those that a script or an emoji needs are not.
pub fn hidden(text: &str) -> Vec<Hidden> {
    if text.bytes().all(|it| matches!(it, b'\n' | b'\r' | b'\t' | b' '..=b'~')) {
        return Vec::new();
    }
    let chars: Vec<_> = text.char_indices().collect();
    let mut found = misordered(&chars);
    let mut flag_end = 0;
    for (index, (at, character)) in chars.iter().copied().enumerate() {
        let before = index.checked_sub(1).map(|it| chars[it].1);
        let after = chars.get(index + 1).map(|(_, it)| *it);
        flag_end = flag_end.max(index + flag(&chars[index..]));
        let kind = match character {
            '\u{e0000}'..='\u{e007f}' => (index >= flag_end).then_some(HiddenKind::Tag),
            // A selector stands behind a character that has variants (Unicode 16, 23.4); one of the supplement, an ideograph.
            '\u{e0100}'..='\u{e01ef}' => (!before.is_some_and(is_ideograph)).then_some(HiddenKind::Tag),
            '\u{fe00}'..='\u{fe0f}' => before.is_none_or(is_selector).then_some(HiddenKind::Tag),
            '\u{200b}' => (!has_no_spaces(before) && !has_no_spaces(after)).then_some(HiddenKind::NoWidth),
            '\u{200c}' => (!joins(before) && !joins(after)).then_some(HiddenKind::NoWidth),
            '\u{200d}' => {
                let is_of_emoji = before.is_some_and(is_emoji) && after.is_some_and(is_emoji);
                (!is_of_emoji && !joins(before) && !joins(after)).then_some(HiddenKind::NoWidth)
            }
            // A byte order mark begins a text.
            '\u{feff}' => (at > 0).then_some(HiddenKind::NoWidth),
            '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{ffa0}' => Some(HiddenKind::NoWidth),
            '\n' | '\r' | '\t' | '\u{85}' => None,
            character => character.is_control().then_some(HiddenKind::Control),
        };
        found.extend(kind.map(|kind| Hidden { at, character, kind }));
    }
    found.sort_by_key(|it| it.at);
    found
}

/// The text that tags spell.
pub fn tagged(text: &str) -> String {
    let letters = text.chars().filter_map(|it| u32::from(it).checked_sub(0xe0000));
    letters.filter_map(char::from_u32).filter(|it| matches!(it, ' '..='~')).collect()
}

/// Overrides, and embeddings and isolates that are open at the end of their paragraph (Unicode, UAX #9).
fn misordered(chars: &[(usize, char)]) -> Vec<Hidden> {
    let (mut found, mut open): (Vec<Hidden>, Vec<Hidden>) = (Vec::new(), Vec::new());
    for (at, character) in chars.iter().copied() {
        let hidden = Hidden { at, character, kind: HiddenKind::Order };
        let is_isolate = |it: &Hidden| matches!(it.character, '\u{2066}'..='\u{2068}');
        match character {
            '\n' | '\r' | '\u{85}' | '\u{2029}' => found.append(&mut open),
            '\u{202a}' | '\u{202b}' | '\u{202d}' | '\u{202e}' | '\u{2066}'..='\u{2068}' => open.push(hidden),
            '\u{202c}' => {
                let closed = open.pop_if(|it| !is_isolate(it));
                found.extend(closed.filter(is_override));
            }
            '\u{2069}' => {
                if let Some(last) = open.iter().rposition(is_isolate) {
                    // What was opened inside ends with it.
                    found.extend(open.drain(last..).filter(is_override));
                }
            }
            _ => {}
        }
    }
    found.append(&mut open);
    found
}

fn is_override(it: &Hidden) -> bool {
    matches!(it.character, '\u{202d}' | '\u{202e}')
}

/// How many characters the flag of a region has that begins here: a black flag, tags, and their end. 0 if none does.
fn flag(chars: &[(usize, char)]) -> usize {
    let is_letter = |it: char| matches!(it, '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}');
    let letters = chars.iter().skip(1).take_while(|(_, it)| is_letter(*it)).count();
    let is_flag = chars.first().is_some_and(|(_, it)| *it == '\u{1f3f4}');
    let is_ended = chars.get(letters + 1).is_some_and(|(_, it)| *it == '\u{e007f}');
    // A region and its subdivision have at most six letters.
    if is_flag && is_ended && (3..=6).contains(&letters) { letters + 2 } else { 0 }
}

fn is_selector(it: char) -> bool {
    matches!(it, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_ideograph(it: char) -> bool {
    matches!(it, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Whether a character is an emoji or a part of one.
fn is_emoji(it: char) -> bool {
    matches!(it, '\u{2190}'..='\u{2bff}' | '\u{3030}' | '\u{a9}' | '\u{ae}' | '\u{1f000}'..='\u{1faff}' | '\u{fe0f}' | '\u{e007f}')
}

/// Whether letters of its script are joined or parted by a character without width: scripts from Arabic to Mongolian, of
/// India and of South-East Asia.
fn joins(it: Option<char>) -> bool {
    matches!(
        it,
        Some(
            '\u{600}'..='\u{109f}'
            | '\u{1780}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{a800}'..='\u{abff}'
            | '\u{fb50}'..='\u{fdff}'
            | '\u{fe70}'..='\u{fefc}'
            | '\u{10a00}'..='\u{11fff}'
            | '\u{1e900}'..='\u{1e95f}',
        )
    )
}

/// Whether its script has no spaces between words, so that a space without width says where a line may break.
fn has_no_spaces(it: Option<char>) -> bool {
    matches!(
        it,
        Some('\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1950}'..='\u{1aaf}' | '\u{a900}'..='\u{aadf}')
    ) || it.is_some_and(|it| is_ideograph(it) || matches!(it, '\u{2e80}'..='\u{30ff}' | '\u{ff00}'..='\u{ffef}'))
}

/// The Cyrillic and Greek letters that look like Latin ones in every font.
const LOOK_ALIKES: &str = "асеорхуіјѕһԁԛԝӏАВЕКМНОРСТХУІЈЅԌοΑΒΕΖΗΙΚΜΝΟΡΤΥΧ";

/// A letter of another alphabet in a word of a name that is Latin otherwise, and looks as if it were Latin, too.
pub fn look_alike(name: &str) -> Option<char> {
    words(name).into_iter().find_map(|word| {
        let foreign = |it: &char| matches!(it, '\u{370}'..='\u{52f}');
        let others: Vec<_> = word.chars().filter(foreign).collect();
        let is_latin = word.chars().any(|it| it.is_ascii_alphabetic());
        // `sendСМС`: a word of its own, behind or before another.
        let run: String = others.iter().collect();
        let is_word = others.len() > 1 && word.contains(&run) && others.iter().all(|it| it.is_uppercase());
        let all_look_alike = others.iter().all(|it| LOOK_ALIKES.contains(*it));
        others.first().copied().filter(|_| is_latin && !is_word && all_look_alike)
    })
}

/// The words of a name: `readFile` and `read_file` have two.
pub fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_lower = false;
    for character in name.chars() {
        if !character.is_alphabetic() || (is_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        is_lower = character.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| character.is_alphabetic()) {
            word.push(character);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_testing::table;

    fn kinds(text: &str) -> Vec<HiddenKind> {
        let mut kinds: Vec<_> = hidden(text).into_iter().map(|it| it.kind).collect();
        kinds.dedup();
        kinds
    }

    #[test]
    fn what_a_reader_does_not_see_is_found() {
        for [text, kind] in table::rows(include_str!("characters.txt"), "hidden characters") {
            assert_eq!(format!("{:?}", kinds(&text)), format!("[{kind}]"), "{text:?}");
        }
        assert_eq!(tagged("a\u{e0068}\u{e0069}\u{e007f}"), "hi");
    }

    #[test]
    fn what_scripts_and_emojis_need_is_not_hidden() {
        let texts = [
            "\u{feff}Plain\ttext\r\nwith lines",
            "👩‍👩‍👧 👩🏽‍🚀 🏳️‍🌈 ❤️‍🔥 🧑‍⚕️ ❤︎ 1️⃣",
            "🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            "می‌خواهم",
            "مرحبا \u{200f}(abc)\u{200e}",
            "שלום \u{2067}abc\u{2069} עולם",
            "\u{202b}שלום\u{202c}",
            "क्‍ष श्री‌मान",
            "ไทย\u{200b}ภาษา",
            "日本語\u{200b}テスト 葛\u{e0100}",
            "soft\u{ad}hyphen naïve — “quoted”",
        ];
        for text in texts {
            assert_eq!(hidden(text), [], "{text:?}");
        }
    }

    #[test]
    fn only_a_letter_that_looks_like_the_others_of_its_word_is_a_look_alike() {
        assert_eq!(look_alike("re\u{430}d_file"), Some('\u{430}'));
        assert_eq!(look_alike("sendMess\u{430}ge"), Some('\u{430}'));
        assert_eq!(look_alike("g\u{3bf}\u{3bf}gle"), Some('\u{3bf}'));
        let innocent = [
            "прочитать_файл",
            "get_данные",
            "sendСМС",
            "3D-модель",
            "NFκB",
            "Δt",
            "μs",
            "αβγ",
            "PDFы",
            "ΑΦΜ",
            "IT-отдел",
        ];
        for name in innocent {
            assert_eq!(look_alike(name), None, "{name}");
        }
        assert_eq!(words("readFile2_from-HTTP.server"), ["read", "File", "from", "HTTP", "server"]);
    }
}
