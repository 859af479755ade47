//! Texts that somebody names, which may be anything: a file, a pipe, a device that never ends.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

/// What is larger is nothing that people write.
const LARGEST: u64 = 64 << 20;

/// The bytes up to the end.
///
/// # Errors
/// They cannot be read, or there are too many of them (`FileTooLarge`).
pub fn bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("it is larger than {} MiB", LARGEST >> 20))),
        false => Ok(bytes),
    }
}

/// The text up to the end.
///
/// # Errors
/// As [`bytes`], or `InvalidData` if they are not UTF-8.
pub fn text(from: impl Read) -> io::Result<String> {
    let no_text = |_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8");
    String::from_utf8(bytes(from)?).map_err(no_text)
}

/// The text of a file. To open a pipe waits for whoever writes into it.
///
/// # Errors
/// It cannot be opened, and as [`text`].
pub fn text_of(path: &Path) -> io::Result<String> {
    text(File::open(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_too_large() {
        let error = text(io::repeat(b'a')).expect_err("too large");
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::FileTooLarge, "it is larger than 64 MiB".into()));
        assert_eq!(text(&b"a"[..]).ok().as_deref(), Some("a"));
        assert_eq!(text(&b"\xff"[..]).map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
    }
}
