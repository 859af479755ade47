//! Styles and printing on stderr. All text is styled; colours are stripped where they are not wanted.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use anstream::{ColorChoice, adapter::strip_bytes};
use anstyle::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};
use miette::{MietteHandler, ReportHandler};
use parking_lot::Mutex;
use serde_json::Value;

use super::{log, secrets::Secrets};
use rehearse_document::{Diagnostic, Diagnostics};

const UNLIMITED: usize = 10_000;

pub(super) use rehearse_report::{
    palette::{BAD, DIM, DOUBTFUL, GOOD, STRONG, graphical},
    text::{printable, printable_lines},
};

/// The styles of help texts and usage errors.
pub(super) const HELP: clap::builder::Styles = clap::builder::Styles::styled()
    .header(STRONG)
    .usage(STRONG)
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(DIM)
    .error(BAD)
    .valid(GOOD)
    .invalid(DOUBTFUL);

/// The width of standard output; unlimited if it is not a terminal.
pub(super) fn width() -> usize {
    terminal_size::terminal_size_of(std::io::stdout()).map_or(160, |(width, _)| width.0.into())
}

/// A line on standard error that says how far something is, until it is dropped; nothing without a terminal.
pub(super) fn progress(template: &str, count: Option<usize>) -> ProgressBar {
    let draws = io::stderr().is_terminal();
    let target = if draws { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let bar = ProgressBar::with_draw_target(count.map(|count| count as u64), target);
    let bar = bar.with_finish(ProgressFinish::AndClear);
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// Takes printed text while the user edits a line.
static ABOVE: Mutex<Option<Above>> = Mutex::new(None);

/// Prints a text above the line that the user edits.
pub(super) type Above = Box<dyn Fn(&str) + Send>;

/// Redirects printed text until it is dropped.
#[derive(Debug)]
pub(super) struct PrintRedirect(());

/// Prints text above the line that the user edits.
#[must_use = "the redirect ends when this is dropped"]
pub(super) fn redirect(above: Above) -> PrintRedirect {
    *ABOVE.lock() = Some(above);
    PrintRedirect(())
}

impl Drop for PrintRedirect {
    fn drop(&mut self) {
        *ABOVE.lock() = None;
    }
}

/// Prints a text above the edited line. Returns false if no line is being edited.
pub(super) fn print_above(text: &str) -> bool {
    let above = ABOVE.lock();
    above.as_ref().map(|above| above(text)).is_some()
}

/// Prints on stderr in one write. Errors are ignored.
pub(super) fn print(text: &str) {
    let text = Secrets::masked(text);
    match log::is_json() {
        true => print_as_is(&log::line_of(&text)),
        false => print_as_is(&text),
    }
}

/// Prints a message with fields as JSON; only for a log of JSON.
pub(super) fn print_record(level: &str, message: &str, fields: &[(&str, Value)]) {
    print_as_is(&Secrets::masked(&log::line(level, message, fields)));
}

fn print_as_is(text: &str) {
    if text.is_empty() || print_above(text) {
        return;
    }
    let choice = anstream::stderr().current_choice();
    let _ = write_at_once(std::io::stderr().lock(), text.as_bytes(), choice);
}

/// Prints a warning on stderr. Lines after the first are indented, so that none looks like a message of its own.
pub(super) fn warn(what: &str) {
    let what = printable_lines(what).collect::<Vec<_>>().join("\n  ");
    print(&format!("{DOUBTFUL}warning:{DOUBTFUL:#} {what}\n"));
}

/// Writes a styled text in one write, so that other output cannot interleave; anstream would write each part separately.
///
/// # Errors
/// Those of the writer.
pub(super) fn write_at_once(mut out: impl Write, text: &[u8], choice: ColorChoice) -> io::Result<()> {
    match choice {
        ColorChoice::Never => out.write_all(&strip_bytes(text).into_vec())?,
        _ => out.write_all(text)?,
    }
    out.flush()
}

/// Leaves the line on which a terminal shows `^C`.
pub(super) fn leave_line() {
    if std::io::stderr().is_terminal() {
        print("\n");
    }
}

/// Diagnostics with their source; wrapped only on a terminal.
pub(super) fn render(diagnostics: &Diagnostics) -> String {
    let handler = graphical((!std::io::stderr().is_terminal()).then_some(UNLIMITED));
    let rendered: Vec<_> =
        diagnostics.0.iter().map(|diagnostic| Rendered { handler: &handler, diagnostic }.to_string()).collect();
    rendered.join("\n")
}

struct Rendered<'a> {
    handler: &'a MietteHandler,
    diagnostic: &'a Diagnostic,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handler.debug(self.diagnostic, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writes, in order.
    #[derive(Default)]
    struct Writes(Vec<String>);

    impl Write for Writes {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.push(String::from_utf8_lossy(text).into_owned());
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_styled_line_is_one_write_with_and_without_its_styles() {
        let line = format!("{DIM}451.6 ms{DIM:#} {GOOD}←{GOOD:#} {{}}\n");
        for (choice, expected) in [(ColorChoice::Never, "451.6 ms ← {}\n"), (ColorChoice::AlwaysAnsi, &line)] {
            let mut writes = Writes::default();
            write_at_once(&mut writes, line.as_bytes(), choice).expect("a writer that takes all");
            assert_eq!(writes.0, [expected]);
        }
    }
}
