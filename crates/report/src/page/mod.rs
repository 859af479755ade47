//! One HTML file that shows results, without anything from elsewhere.
//!
//! A text of a server is text: maud escapes it, and [`printable`] shows what would change how it is read. The policy of
//! the page forbids every request, and scripts and styles other than its own. The page is useful without its script,
//! which filters, opens and moves.

mod matrix;
mod wire;

use base64::{Engine, prelude::BASE64_STANDARD};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

use crate::{
    Origin,
    bench::Bar,
    summary::{Failure, Outcome, Section, Source, Summary, Table, TableRow, counted_word, readable},
    text::printable,
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// How many failures are shown with their traffic.
const DETAILED: usize = 300;
/// How many durations are shown.
const SLOWEST: usize = 5;
/// How many places of a failure are named.
const PLACES: usize = 24;
/// How many characters of a message are shown.
const MESSAGE: usize = 8192;

/// The page.
pub(crate) fn render(summary: &Summary, origin: &Origin) -> Vec<u8> {
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(STYLE),
        hash(SCRIPT)
    );
    let verdict = summary.verdict;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (printable(&title(summary, origin))) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (printable(subject(summary, origin))) " " span class={ "verdict " (verdict.as_str()) } { (summary.phrase()) } " " small { (self::origin(origin)) } }
                    @for (at, section) in summary.sections.iter().enumerate() { (counts(at, section)) }
                }
                div id="tools" hidden {
                    input id="filter" type="search" aria-label="Filter" placeholder="Filter: text, status:failed, transport:http, protocol:2025-11-25" autocomplete="off";
                    span id="found" role="status" {}
                    span class="keys" { kbd { "/" } " filter  " kbd { "j" } " " kbd { "k" } " next and previous failure  " kbd { "o" } " open" }
                }
                main {
                    @for (at, section) in summary.sections.iter().enumerate() { (self::section(at, section)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    let mut bytes = page.into_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// The text of the tab: what failed, if something has, and of what project.
fn title(summary: &Summary, origin: &Origin) -> String {
    let bad: Vec<_> = summary.sections.iter().flat_map(|it| &it.failures).filter(|it| it.outcome.is_bad()).collect();
    let what = match &bad[..] {
        [] => summary.phrase().to_owned(),
        [failure] => format!("✗ {}", failure.heading()),
        [first, others @ ..] => format!("✗ {} and {} more", first.heading(), others.len()),
    };
    format!("{what} · {}", origin.project.as_deref().unwrap_or("rehearse"))
}

/// What the page is about: the only server, or else the project, or else the only kind of result.
fn subject<'s>(summary: &'s Summary, origin: &'s Origin) -> &'s str {
    let mut names = summary.sections.iter().flat_map(|section| &section.subjects).map(|(name, _)| name.as_str());
    match (names.next(), names.next(), &origin.project, &summary.sections[..]) {
        (Some(name), None, _, _) => name,
        (_, _, Some(project), _) => project,
        (_, _, None, [section]) => section.title,
        _ => "rehearse report",
    }
}

/// The project, branch and commit, if a CI system says them.
fn origin(origin: &Origin) -> Markup {
    let commit = origin.commit.as_ref().map(|commit| commit.chars().take(9).collect::<String>());
    let parts: Vec<_> =
        [&origin.project, &origin.branch, &commit].into_iter().flatten().map(|it| printable(it)).collect();
    html! { (parts.join(" · ")) }
}

/// A sentence, with what stands in backticks as code.
fn prose(text: &str) -> Markup {
    let parts: Vec<_> = text.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if !is_paired { @if at > 0 { "`" } (printable(part)) }
            @else if at % 2 == 1 { code { (printable(part)) } }
            @else { (printable(part)) }
        }
    }
}

/// A text in several lines.
fn printable_lines(text: &str) -> Markup {
    html! { @for line in text.lines() { (printable(line)) "\n" } }
}

/// The source of a script or a style in a policy (Content Security Policy Level 3, Hashes).
fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())))
}

fn counts(at: usize, section: &Section) -> Markup {
    let all: usize = section.counts.iter().map(|(_, count)| count).sum();
    html! {
        p class="counts" {
            a href={ "#s" (at) } { b { (section.title) } } " "
            @if let Some(sentence) = &section.sentence { (printable(sentence)) br; }
            @if all > 0 { (all) " " (if all == 1 { section.unit.trim_end_matches('s') } else { section.unit }) ": " }
            @for (at, (outcome, count)) in section.counts.iter().enumerate() {
                @if at > 0 { ", " }
                a class=(outcome) href={ "#q=status%3A" (outcome) } {
                    (count) " " (outcome.phrase()) @if *outcome == Outcome::Warning && *count != 1 { "s" }
                }
            }
            @if !section.duration.is_zero() { " in " (readable(section.duration)) }
        }
        (totals(&section.counts))
    }
}

/// A bar with a part for each outcome, as wide as its count.
fn totals(counts: &[(Outcome, usize)]) -> Markup {
    let counts: Vec<_> = counts.iter().rev().filter(|(outcome, _)| *outcome != Outcome::NotApplicable).collect();
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    let mut end = 0;
    let parts = counts.iter().map(|(outcome, count)| {
        end += count;
        (outcome, end - count, count)
    });
    html! {
        @if all > 0 {
            svg class="totals" viewBox={ "0 0 " (all) " 1" } preserveAspectRatio="none" role="img" aria-label="Share of each outcome" {
                @for (outcome, from, count) in parts {
                    rect class=(outcome) x=(from) y="0" width=(count) height="1" {}
                }
            }
        }
    }
}

fn section(at: usize, section: &Section) -> Markup {
    html! {
        section id={ "s" (at) } {
            h2 { (section.title) }
            @for (name, details) in &section.subjects {
                p { b { (printable(name)) } @for detail in details { " · " (printable(detail)) } }
            }
            dl class="facts" {
                @for (name, fact) in section.facts.iter().filter(|(_, fact)| !fact.is_empty()) {
                    div { dt { (name) } dd { (printable(fact)) } }
                }
            }
            @if let Some(matrix) = &section.matrix { (matrix::matrix(at, matrix)) }
            @for (number, failure) in section.failures.iter().enumerate() {
                @let title = heading(failure.outcome);
                @if number == 0 || title != heading(section.failures[number - 1].outcome) {
                    @let count = section.failures.iter().filter(|it| heading(it.outcome) == title).count();
                    h3 { (title) " " span class="quiet" { (count) @if count == 1 { " cause" } @else { " causes" } } }
                }
                (self::failure(&id(at, number), number, failure))
            }
            (slowest(section))
            @for table in &section.tables { (self::table(table)) }
            @if !section.untested.is_empty() {
                h3 { "Not tested" }
                details class="untested" {
                    @let count = section.untested.iter().map(|(_, ids)| ids.len()).sum();
                    summary { (counted_word(count, section.unit.trim_end_matches('s'))) ", by reason" }
                    dl {
                        @for (reason, ids) in &section.untested {
                            dt { (printable(reason)) }
                            dd { @for id in ids { code { (printable(id)) } " " } }
                        }
                    }
                }
            }
            @if section.main_remarks().next().is_some() {
                h3 { "Remarks" }
                ul { @for remark in section.main_remarks() { li { (prose(&remark.text)) } } }
            }
        }
    }
}

/// What took longest, if more than one duration is known.
fn slowest(section: &Section) -> Markup {
    let cases = section.suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (&suite.name, case)));
    let mut timed: Vec<_> = cases.filter_map(|(suite, case)| Some((case.duration?, suite, &case.name))).collect();
    timed.sort_by_key(|(duration, ..)| std::cmp::Reverse(*duration));
    html! {
        @if timed.len() > 1 {
            h3 { "Slowest" }
            ol { @for (duration, suite, case) in timed.iter().take(SLOWEST) {
                li { (printable(suite)) " in " code { (printable(case)) } " " span class="quiet" { (readable(*duration)) } }
            } }
        }
    }
}

/// Where a failure stands; the failures are sorted by it.
fn heading(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Failed | Outcome::Error => "What failed",
        Outcome::Warning => "Warnings",
        _ => "Not run",
    }
}

/// The fragment of a failure.
fn id(section: usize, failure: usize) -> String {
    format!("f{}", section * 100_000 + failure + 1)
}

fn failure(id: &str, number: usize, failure: &Failure) -> Markup {
    let word = if failure.places.len() == 1 { "place" } else { "places" };
    html! {
        details class={ "failure " (failure.outcome) } id=(id) data-status=(failure.outcome) open[number < 3] {
            summary {
                span class="mark" { (failure.outcome.mark()) } " "
                @match &failure.rule {
                    Some(rule) => { b { (prose(&rule.text)) } " " code { (printable(&failure.title)) } }
                    None => b { (printable(&failure.title)) }
                }
                @if let Some(level) = &failure.level { " " span class="level" { (printable(level)) } }
                @if !failure.places.is_empty() { " " span class="quiet" { (failure.places.len()) " " (word) } }
                @if let Some(message) = failure.messages.first() { div class="first" { (prose(&cut(message.lines().next().unwrap_or_default(), 200))) } }
            }
            @if number < DETAILED { (details(id, failure)) } @else {
                div class="places" { (places(failure)) }
                (again(failure))
            }
        }
    }
}

fn details(id: &str, failure: &Failure) -> Markup {
    let marks = match &failure.difference[..] {
        [] => failure.messages.iter().flat_map(|message| crate::marks(None, message)).collect(),
        lines => lines.iter().filter_map(observed).collect::<Vec<_>>(),
    };
    html! {
        @for message in &failure.messages {
            @let text = cut(message, MESSAGE);
            @let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
            p class="message" { (prose(first)) }
            @if !rest.is_empty() { pre { (printable_lines(rest)) } }
        }
        @if let Some(rule) = &failure.rule {
            p { @if let Some(help) = &rule.help { (prose(help)) " " } (link(&rule.link, rule.link_name())) }
        }
        @if !failure.places.is_empty() { div class="places" { (places(failure)) } }
        @if let Some(source) = &failure.source { (self::source(source)) }
        @if !failure.earlier.is_empty() { (earlier(failure)) }
        @if !failure.difference.is_empty() { (difference(failure)) }
        @if !failure.wire.is_empty() { (wire::traffic(failure, &marks)) }
        @if !failure.stderr.is_empty() {
            h4 { "Standard error" }
            pre class="stderr" { @for line in &failure.stderr { (printable(line)) "\n" } }
        }
        @if !failure.again.is_empty() {
            h4 { "Do it again" @if !failure.example.is_empty() { ": " (printable(&failure.example)) } }
            (again(failure))
        }
        p class="quiet" { a href={ "#" (id) } { "Link to this failure" } }
    }
}

/// The command lines that do it again, each with a button that copies it if there are scripts.
fn again(failure: &Failure) -> Markup {
    html! {
        @for again in &failure.again {
            div class="again" { pre { (printable(again)) } button type="button" class="copy" hidden { "Copy" } }
        }
    }
}

/// The steps before the one that failed.
fn earlier(failure: &Failure) -> Markup {
    let count = failure.earlier.len();
    html! {
        details class="earlier" {
            summary { (count) " step" @if count != 1 { "s" } " before it" }
            ol {
                @for (title, outcome, duration) in &failure.earlier {
                    li { span class=(outcome) { (outcome.mark()) } " " (printable(title)) " " span class="quiet" { (readable(*duration)) } }
                }
            }
        }
    }
}

/// The text of a frame that a line of a difference shows.
fn observed((sign, line): &(char, String)) -> Option<String> {
    let member = line.trim().trim_end_matches(',').replacen("\": ", "\":", 1);
    (*sign == '+' && member.contains(char::is_alphanumeric)).then_some(member)
}

/// A link, if it leads to the web; others would be a script or a file.
fn link(target: &str, text: &str) -> Markup {
    html! {
        @if target.starts_with("https://") {
            a href=(target) rel="noreferrer" { (text) }
        } @else { (printable(target)) }
    }
}

fn places(failure: &Failure) -> Markup {
    let (shown, more) = failure.places.split_at(failure.places.len().min(PLACES));
    html! {
        (groups(shown))
        @if !more.is_empty() { details { summary { "and " (more.len()) " more" } (groups(more)) } }
    }
}

/// Places such as `echo in http/2025-11-25`; those of one name in one line.
fn groups(places: &[String]) -> Markup {
    fn split(place: &str) -> (&str, &str) {
        place.rsplit_once(" in ").unwrap_or(("", place))
    }
    html! {
        @for group in places.chunk_by(|one, two| split(one).0 == split(two).0) {
            @let name = split(&group[0]).0;
            div {
                @if !name.is_empty() { (printable(name)) " in " }
                @for place in group { code { (printable(split(place).1)) } " " }
            }
        }
    }
}

fn source(source: &Source) -> Markup {
    html! {
        h4 { (printable(&source.path)) ":" (source.line) }
        @if !source.lines.is_empty() {
            pre class="source" {
                @for (number, line) in &source.lines {
                    span class=(if *number == source.line { "here" } else { "line" }) {
                        (format!("{number:>4} {} ", if *number == source.line { "▶" } else { " " })) (printable(line))
                    }
                }
            }
        }
    }
}

fn difference(failure: &Failure) -> Markup {
    let [expected, observed] = failure.sides;
    html! {
        h4 { @if !expected.is_empty() { span class="minus" { "- " (expected) } " " } span class="plus" { "+ " (observed) } }
        pre class="difference" {
            @for (sign, line) in &failure.difference {
                @let class = match sign { '-' => "minus", '+' => "plus", '^' => "under", _ => "same" };
                span class=(class) { @if *sign == '^' { "  " } @else { (sign) " " } (line) } "\n"
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        h3 { (printable(&table.title)) }
        @if !table.rows.is_empty() {
            div class="wide" { table class="measures" {
                thead { tr { td {} @for head in &table.heads { th scope="col" { (head) } } } }
                tbody { @for TableRow { outcome, name, cells } in &table.rows {
                    tr {
                        th scope="row" { @if let Some(outcome) = outcome { span class=(outcome) { (outcome.mark()) } " " } (printable(name)) }
                        @for cell in cells { td { (cell) } }
                    }
                } }
            } }
        }
        @for (name, bars) in &table.histograms { (histogram(name, bars)) }
        @if !table.remarks.is_empty() { ul { @for remark in &table.remarks { li { (prose(&remark.text)) } } } }
    }
}

/// A histogram: a bar for each range of latencies. The scale is logarithmic.
fn histogram(name: &str, bars: &[Bar]) -> Markup {
    const WIDTH: usize = 16;
    const HEIGHT: usize = 120;
    /// The space for the names of percentiles.
    const TOP: usize = 16;
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or_default().max(1);
    let height = |count: u64| match count {
        0 => 0,
        count => ((count as f64 / most as f64 * HEIGHT as f64).round() as usize).max(1),
    };
    html! {
        figure class="wide" {
            figcaption { (printable(name)) ": latency (logarithmic), and how many requests had it" }
            svg viewBox=(format!("0 0 {} {}", bars.len() * WIDTH, TOP + HEIGHT + 24)) role="img" aria-label={ "Histogram of " (printable(name)) } {
                @for (at, Bar { from, count, marks }) in bars.iter().enumerate() {
                    rect class="bar" x=(at * WIDTH) y=(TOP + HEIGHT - height(*count)) width=(WIDTH - 2) height=(height(*count)) {
                        title { "from " (from) ": " (count) }
                    }
                    @if !marks.is_empty() {
                        rect class="mark" x=(at * WIDTH) y=(TOP) width="1" height=(HEIGHT) {}
                        text class="tick" text-anchor=(if marks[..] == ["p50"] { "end" } else { "start" }) x=(at * WIDTH) y=(TOP - 4) { (marks.join(", ")) }
                    }
                    @if at % 10 == 0 { text class="tick" x=(at * WIDTH) y=(TOP + HEIGHT + 18) { (from) } }
                }
            }
        }
    }
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> std::borrow::Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()).into(),
        None => text.into(),
    }
}
