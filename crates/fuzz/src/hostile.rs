//! Texts that programs often mishandle. None of them does harm: they read, quote or name something, and run nothing.

/// A line each.
const LINES: &str = include_str!("hostile.txt");
/// How long a long text is.
const LONG: usize = 70_000;

/// The texts of the file, and those that no line can be: NUL, line breaks, unusual spaces and directions, and long ones.
pub(crate) fn texts() -> impl Iterator<Item = String> {
    let odd =
        ["\0", "a\0b", "\r\n", "a\nb", "\t", "\u{7f}", "\u{200b}", "\u{202e}abc", "\u{feff}", "\u{fffd}", "\u{10ffff}"];
    let lines = LINES.lines().map(ToOwned::to_owned);
    lines.chain(odd.into_iter().map(ToOwned::to_owned)).chain([" ".repeat(1000), "a".repeat(LONG), "ä".repeat(LONG)])
}
