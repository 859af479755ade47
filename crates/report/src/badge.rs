//! The verdict as a badge: an SVG image, or the JSON that shields.io makes an image of.

use serde_json::json;

use crate::{
    Verdict,
    summary::{Outcome, Summary},
};

/// How wide a character is on average, in units of the image.
const CHARACTER: usize = 7;
const PADDING: usize = 12;

/// What a badge says.
struct Badge {
    label: String,
    message: String,
    /// The name of the colour for shields.io, and its value.
    color: (&'static str, &'static str),
}

impl Badge {
    fn new(summary: &Summary) -> Badge {
        let counted = |outcome: Outcome| {
            let counts = summary.sections.iter().flat_map(|section| &section.counts);
            counts.filter(|(it, _)| *it == outcome).map(|(_, count)| count).sum::<usize>()
        };
        let failed = counted(Outcome::Failed) + counted(Outcome::Error);
        let (message, color) = match summary.verdict {
            Verdict::Passed => (format!("{} passed", counted(Outcome::Passed)), ("brightgreen", "#3c1")),
            Verdict::Failed if failed > 0 => (format!("{failed} failed"), ("red", "#c33")),
            Verdict::Failed => ("failed".to_owned(), ("red", "#c33")),
            Verdict::Incomplete => ("incomplete".to_owned(), ("orange", "#e73")),
            Verdict::CannotRun => ("could not run".to_owned(), ("orange", "#e73")),
            Verdict::NothingTested => ("nothing tested".to_owned(), ("lightgrey", "#888")),
        };
        let label = match &summary.sections[..] {
            [section] => format!("MCP {}", section.title.to_lowercase()),
            _ => "MCP".to_owned(),
        };
        Badge { label, message, color }
    }
}

/// The image. Its texts are ours, so nothing in them needs to be escaped.
pub(crate) fn svg(summary: &Summary) -> String {
    let Badge { label, message, color: (_, color) } = Badge::new(summary);
    let widths = [&label, &message].map(|text| text.chars().count() * CHARACTER + PADDING);
    let [left, right] = widths;
    let all = left + right;
    let text = |at: usize, width: usize, text: &str| {
        let (middle, length) = (at + width / 2, width - PADDING);
        format!(r#"<text x="{middle}" y="14" textLength="{length}">{text}</text>"#)
    };
    let texts = [text(0, left, &label), text(left, right, &message)].concat();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all}\" height=\"20\" role=\"img\" aria-label=\"{label}: \
         {message}\"><title>{label}: {message}</title><clipPath id=\"r\"><rect width=\"{all}\" height=\"20\" \
         rx=\"3\"/></clipPath><g clip-path=\"url(#r)\"><rect width=\"{left}\" height=\"20\" fill=\"#555\"/><rect \
         x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"{color}\"/></g><g fill=\"#fff\" text-anchor=\"middle\" \
         font-family=\"Verdana,Geneva,DejaVu Sans,sans-serif\" font-size=\"11\">{texts}</g></svg>\n"
    )
}

/// The JSON of a shields.io endpoint badge (<https://shields.io/badges/endpoint-badge>).
pub(crate) fn shields(summary: &Summary) -> String {
    let Badge { label, message, color: (color, _) } = Badge::new(summary);
    format!("{}\n", json!({ "schemaVersion": 1, "label": label, "message": message, "color": color }))
}
