//! Texts: shortened, and read from paths of the user, which may be files, pipes or endless devices.

use std::{
    fmt,
    fs::File,
    io::{self, BufRead, Read},
    path::Path,
};

/// The maximum size of a text.
const LARGEST: u64 = 64 << 20;

const BYTE_ORDER_MARK: char = '\u{feff}';

/// A number of bytes as people write it: `16 MiB`, `100 bytes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCount(pub usize);

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            count if count > 0 && count % (1 << 20) == 0 => write!(f, "{} MiB", count >> 20),
            count => write!(f, "{count} bytes"),
        }
    }
}

/// The beginning of a text, with `…` if it has more characters.
pub fn shortened(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}

/// The end of the longest beginning that has whole characters and at most `at` bytes.
pub fn boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

/// The end of the shortest beginning that has whole characters and at least `at` bytes; if the text is shorter, its end.
pub fn boundary_after(text: &str, at: usize) -> usize {
    (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len())
}

/// Whether a text matches a pattern, in which `*` stands for any text.
pub fn matches_wildcard(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == text };
    let (middle, end) = rest.rsplit_once('*').map_or((None, rest), |(middle, end)| (Some(middle), end));
    let Some(text) = text.strip_prefix(start).and_then(|text| text.strip_suffix(end)) else { return false };
    let mut left = text;
    // The first place of each part leaves most for the next ones.
    middle.into_iter().flat_map(|middle| middle.split('*')).all(|part| match left.split_once(part) {
        Some((_, after)) => {
            left = after;
            true
        }
        None => false,
    })
}

/// The beginning of a text in quotes, with `…` behind them if it has more characters.
pub fn quoted(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((cut, _)) => format!("{:?}…", &text[..cut]),
        None => format!("{text:?}"),
    }
}

/// The bytes up to the end.
///
/// # Errors
/// They cannot be read, or there are too many of them (`FileTooLarge`).
pub fn bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    within_limits(bytes)
}

/// The next line without its end; `None` after the last.
///
/// # Errors
/// As [`bytes()`].
pub fn line(from: impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    if from.take(LARGEST + 1).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let mut line = within_limits(line)?;
    line.pop_if(|last| *last == b'\n');
    Ok(Some(line))
}

/// The text up to the end, without a byte order mark.
///
/// # Errors
/// As [`bytes()`] and [`utf8()`].
pub fn text(from: impl Read) -> io::Result<String> {
    utf8(bytes(from)?)
}

/// The text of a file, without a byte order mark. Opening a pipe waits for its writer.
///
/// # Errors
/// It cannot be opened, and as [`text()`].
pub fn text_of(path: &Path) -> io::Result<String> {
    text(File::open(path)?)
}

/// As [`text_of()`], with the byte order mark: some programs reject it.
///
/// # Errors
/// As [`text_of()`].
pub fn marked_text_of(path: &Path) -> io::Result<String> {
    marked_utf8(bytes(File::open(path)?)?)
}

/// The text that bytes are, without the byte order mark that editors of Windows put before it.
///
/// # Errors
/// `InvalidData` if they are not UTF-8, with their encoding if it shows.
pub fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    let mut text = marked_utf8(bytes)?;
    if text.starts_with(BYTE_ORDER_MARK) {
        text.drain(..BYTE_ORDER_MARK.len_utf8());
    }
    Ok(text)
}

fn marked_utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        io::Error::new(io::ErrorKind::InvalidData, encoding_hint(error.as_bytes()).unwrap_or("it is not UTF-8"))
    })
}

/// What to do with a text in another encoding, which is detected from the byte order mark or from zero bytes.
pub fn encoding_hint(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] | [0, 0, 0, _, ..] | [_, 0, 0, 0, ..] => {
            Some("it is UTF-32; save the file as UTF-8")
        }
        // `>` and Out-File of Windows PowerShell 5 write it.
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..] => {
            Some("it is UTF-16; save the file as UTF-8, in PowerShell with `| Out-File -Encoding utf8 FILE`")
        }
        _ => None,
    }
}

fn within_limits(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", LARGEST >> 20))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_too_large() {
        let error = text(io::repeat(b'a')).expect_err("too large");
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::FileTooLarge, "it is larger than 64 MiB".into()));
        let error = line(io::BufReader::new(io::repeat(b'a'))).expect_err("too large");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(text(&b"a"[..]).ok().as_deref(), Some("a"));
        assert_eq!(text(&b"\xff"[..]).map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
    }

    #[test]
    fn what_windows_writes_is_read_or_named() {
        let written = |bytes: &[u8]| {
            [text(bytes), marked_utf8(bytes.to_owned())].map(|text| text.unwrap_or_else(|error| error.to_string()))
        };
        assert_eq!(written(b"\xef\xbb\xbfa: 1\r\n"), ["a: 1\r\n", "\u{feff}a: 1\r\n"]);
        let utf16: Vec<u8> = "\u{feff}a: 1\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf32: Vec<u8> = "\u{feff}a".chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
        for (bytes, begin) in
            [(utf16, "it is UTF-16; save the file as UTF-8, in PowerShell"), (utf32, "it is UTF-32; ")]
        {
            assert!(written(&bytes).iter().all(|error| error.starts_with(begin)), "{begin}");
        }
    }

    #[test]
    fn boundaries_are_not_within_a_character() {
        let of = |at| (boundary_before("aé", at), boundary_after("aé", at));
        assert_eq!([of(0), of(1), of(2), of(3), of(9)], [(0, 0), (1, 1), (1, 3), (3, 3), (3, 3)]);
    }

    #[test]
    fn lines_come_one_after_another() {
        let mut from = &b"a\n\nb"[..];
        let mut next = || line(&mut from).expect("reads").map(|line| String::from_utf8(line).expect("UTF-8"));
        assert_eq!([next(), next(), next(), next()], [Some("a".into()), Some(String::new()), Some("b".into()), None]);
    }
}
