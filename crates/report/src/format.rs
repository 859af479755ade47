//! The formats of reports.

use std::path::{Path, PathBuf};

use crate::{Origin, badge, github, json, junit, markdown, page, sarif, summary::Results, terminal};

/// A format of a report. Each command offers some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text, styled with ANSI sequences.
    Human,
    /// The whole result; each kind after the other, if there are several.
    Json,
    /// JUnit XML, for the tests of CI systems.
    Junit,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// One HTML file.
    Html,
    /// Markdown, as the summary of a job.
    Markdown,
    /// Annotations of GitHub Actions.
    Github,
    /// The verdict and the counts as lines for `$GITHUB_OUTPUT`.
    GithubOutput,
    /// An SVG image of the verdict.
    Badge,
    /// The verdict as JSON for a badge of shields.io.
    Shields,
}

/// Why a text or a file does not say the format of a report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFormat {
    /// The name is not one of those that are offered.
    #[error("unknown format {name:?}; there are {}", listed(offered))]
    Name { name: String, offered: &'static [Format] },
    /// The name of a file does not end with the extension of a format.
    #[error(
        "{0:?} does not say the format of the report; end it with .html, .xml, .sarif, .md, .json, .svg or .shields.json"
    )]
    File(String),
}

/// What a report needs to know of its reader.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The number of columns of text.
    pub width: usize,
    /// Whether text shows the frames around a failure of a scenario.
    pub trace: bool,
    /// Whether text lists what it else only counts.
    pub is_verbose: bool,
    /// The folder to which paths in SARIF are relative.
    pub directory: PathBuf,
    /// What a page says that it is of.
    pub origin: Origin,
}

impl Format {
    pub const fn as_str(self) -> &'static str {
        match self {
            Format::Human => "human",
            Format::Json => "json",
            Format::Junit => "junit",
            Format::Sarif => "sarif",
            Format::Html => "html",
            Format::Markdown => "md",
            Format::Github => "github",
            Format::GithubOutput => "github-output",
            Format::Badge => "badge",
            Format::Shields => "shields",
        }
    }

    /// Reads the name of one of these formats.
    pub fn among(offered: &'static [Format]) -> impl Fn(&str) -> Result<Format, UnknownFormat> + Clone {
        move |name| {
            let known = offered.iter().copied().find(|format| format.as_str() == name);
            known.ok_or_else(|| UnknownFormat::Name { name: name.to_owned(), offered })
        }
    }

    /// The format that the extension of a file says.
    ///
    /// # Errors
    /// It says none.
    pub fn of_file(path: &Path) -> Result<Format, UnknownFormat> {
        if path.to_str().is_some_and(|name| name.ends_with(".shields.json")) {
            return Ok(Format::Shields);
        }
        Ok(match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
            "html" | "htm" => Format::Html,
            "xml" => Format::Junit,
            "sarif" => Format::Sarif,
            "md" => Format::Markdown,
            "json" => Format::Json,
            "svg" => Format::Badge,
            _ => return Err(UnknownFormat::File(path.to_string_lossy().into_owned())),
        })
    }
}

fn listed(formats: &[Format]) -> String {
    let names: Vec<_> = formats.iter().map(|format| format.as_str()).collect();
    match &names[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

impl Results {
    /// The report, with a final newline.
    ///
    /// ```
    /// use rehearse_report::{Format, Layout, summary::Results};
    ///
    /// let json = br#"{ "format": 1, "seed": 1, "durationMs": 3.5, "scenarios": [],
    ///     "totals": { "passed": 0, "failed": 0, "errors": 0, "notApplicable": 0, "notRun": 0 } }"#;
    /// let mut results = Results::default();
    /// results.read(json)?;
    /// let outputs = String::from_utf8(results.render(Format::GithubOutput, &Layout::default()))?;
    /// assert!(outputs.starts_with("verdict=nothing-tested\n"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn render(&self, format: Format, layout: &Layout) -> Vec<u8> {
        let text = |text: String| text.into_bytes();
        match format {
            Format::Human => text(terminal::render(&self.summary(), layout)),
            Format::Json => self.json().concat(),
            Format::Junit => junit::render(&self.summary()),
            Format::Sarif => {
                let summary = self.summary();
                let scans = summary.sections.iter().filter_map(|section| section.scan.as_ref());
                sarif::render(scans, &layout.directory)
            }
            Format::Html => page::render(&self.summary(), &layout.origin),
            Format::Markdown => text(markdown::render(&self.summary())),
            Format::Github => text(github::annotations(&self.summary())),
            Format::GithubOutput => text(github::outputs(&self.summary())),
            Format::Badge => text(badge::svg(&self.summary())),
            Format::Shields => text(badge::shields(&self.summary())),
        }
    }

    /// The result of each kind that there is, each with a final newline.
    pub fn json(&self) -> Vec<Vec<u8>> {
        // Without `..`, so that no kind is forgotten.
        let Results { run, check, bench, diff, fuzz, host } = self;
        let run = run.iter().map(json::render_run);
        let check = check.iter().map(json::render);
        let bench = bench.iter().map(json::render);
        let diff = diff.iter().map(json::render);
        let fuzz = fuzz.iter().map(json::render);
        let host = host.iter().map(json::render);
        run.chain(check).chain(diff).chain(fuzz).chain(host).chain(bench).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        Cell, CellResult, Difference, Problem, RunResult, ScenarioResult, Status, StepResult, Totals, TraceLine,
        WireLine,
    };
    use rehearse_protocol::{Direction, Protocol, Transport, Version};

    /// A cell that failed, with this text everywhere where a server could have put it.
    fn hostile(text: &str) -> RunResult {
        let text = || text.to_owned();
        let cell = |status, reason, steps| CellResult {
            cell: Cell { transport: Transport::Stdio, protocol: Protocol::Exact(Version::LATEST) },
            status,
            negotiated: None,
            reason,
            duration: Duration::ZERO,
            steps,
            stderr: vec![text()],
            violations: Vec::new(),
        };
        let step = StepResult {
            title: text(),
            line: 1,
            source: text(),
            status: Status::Failed,
            duration: Duration::ZERO,
            problems: vec![Problem {
                snapshot: None,
                message: text(),
                difference: Some(Difference { expected: "x".into(), actual: text() }),
                pending: None,
            }],
            models: Vec::new(),
            trace: vec![TraceLine {
                server: text(),
                line: WireLine::new(Direction::ServerToClient, Duration::ZERO, text().as_bytes(), &[]),
            }],
        };
        let cells = vec![cell(Status::Failed, None, vec![step]), cell(Status::Error, Some(text()), Vec::new())];
        let scenario = ScenarioResult {
            name: text(),
            path: text().into(),
            source: Some(text()),
            description: None,
            cells,
            accepted: vec![text().into()],
            warnings: vec![text()],
            again: Some(text()),
        };
        let totals = Totals { failed: 1, errors: 1, ..Totals::default() };
        RunResult { totals, scenarios: vec![scenario], ..RunResult::new(1) }
    }

    #[test]
    fn a_server_can_neither_control_the_terminal_nor_break_the_xml() {
        let results =
            Results { run: Some(hostile("a\u{1b}[2Jb\u{1b}]0;title\u{9b}m\u{202e}\u{fffe}z")), ..Results::default() };
        let layout = Layout { width: 160, trace: true, ..Layout::default() };
        for format in [Format::Human, Format::Junit] {
            let bytes = results.render(format, &layout);
            let text = anstream::adapter::strip_str(std::str::from_utf8(&bytes).expect("UTF-8")).to_string();
            let harmful = |it: char| (it.is_control() && it != '\n') || matches!(it, '\u{202e}' | '\u{fffe}');
            assert!(!text.contains(harmful), "{format:?}: {text:?}");
            let whole = "a\\u{1b}[2Jb\\u{1b}]0;title\\u{9b}m\\u{202e}\\u{fffe}z";
            assert_eq!(text.matches("\\u{fffe}z").count(), text.matches(whole).count(), "{format:?}: {text}");
            assert!(text.matches(whole).count() >= 7, "{format:?}: {text}");
        }
    }
}
