//! Compares what a page says with what is shown, line by line.

use regex::Regex;

/// What is shown only if something takes long: the ends of lines.
const OF_SLOW_MACHINES: [&str; 2] = [r"info: waiting for servers to exit \(Ctrl-C to force\)", r"(…|done) \(\d+ s\)"];

/// The lines of a page for what a command shows.
pub(crate) fn shown(stdout: &str, stderr: &str, code: Option<i32>) -> Vec<String> {
    let text = |text: &str| match text.is_empty() || text.ends_with('\n') {
        true => text.to_owned(),
        false => format!("{text}[no newline]"),
    };
    let is_marked = |line: &str| {
        ["$ ", "! ", "? ", ">", "\\", "```"].iter().any(|mark| line.starts_with(mark)) || ["!", "..."].contains(&line)
    };
    let stdout = text(stdout);
    let escaped = stdout.lines().map(|line| match is_marked(line) {
        true => format!("\\{line}"),
        false => line.to_owned(),
    });
    let stderr = text(stderr);
    let slow = Regex::new(&format!("({})$", OF_SLOW_MACHINES.join("|"))).expect("a pattern");
    let errors =
        stderr.lines().filter(|line| !slow.is_match(line)).map(|line| format!("! {line}").trim_end().to_owned());
    let code = match code {
        Some(0) => None,
        Some(code) => Some(format!("? {code}")),
        None => Some("? killed".to_owned()),
    };
    escaped.chain(errors).chain(code).collect()
}

pub(crate) struct Compared {
    /// What the page should say: its own lines where they match.
    pub(crate) lines: Vec<String>,
    /// The lines with `-` and `+`, if they differ.
    pub(crate) difference: Option<String>,
}

/// The comparison with the fewest differences.
pub(crate) fn compare(expected: &[String], shown: &[String]) -> Compared {
    // The fewest differences between the lines from here on.
    let mut fewest = vec![vec![0_usize; shown.len() + 1]; expected.len() + 1];
    let step = |fewest: &[Vec<usize>], e: usize, s: usize| {
        let any = expected.get(e).filter(|line| is_any(line));
        let below = |e: usize, s: usize| fewest[e][s];
        let mut steps = Vec::new();
        match (expected.get(e), shown.get(s)) {
            (Some(line), Some(it)) if any.is_some() && stream(line) == stream(it) => {
                steps.push((below(e, s + 1), Step::Absorb));
            }
            (Some(line), Some(it)) if any.is_none() && matches(line, it) => {
                steps.push((below(e + 1, s + 1), Step::Keep));
            }
            _ => {}
        }
        steps.extend(any.map(|_| (below(e + 1, s), Step::Any)));
        if any.is_none() && e < expected.len() {
            steps.push((below(e + 1, s) + 1, Step::Drop));
        }
        if s < shown.len() {
            steps.push((below(e, s + 1) + 1, Step::Add));
        }
        steps.into_iter().min_by_key(|(differences, _)| *differences)
    };
    for e in (0..=expected.len()).rev() {
        for s in (0..=shown.len()).rev() {
            fewest[e][s] = step(&fewest, e, s).map_or(0, |(differences, _)| differences);
        }
    }
    let (mut lines, mut difference, mut e, mut s) = (Vec::new(), String::new(), 0, 0);
    while let Some((_, step)) = step(&fewest, e, s) {
        match step {
            Step::Keep | Step::Any => {
                difference.push_str(&format!("  {}\n", expected[e]));
                lines.push(expected[e].clone());
            }
            Step::Drop => difference.push_str(&format!("- {}\n", expected[e])),
            Step::Add => {
                difference.push_str(&format!("+ {}\n", shown[s]));
                lines.push(with_wildcards(&shown[s]));
            }
            Step::Absorb => {}
        }
        e += usize::from(matches!(step, Step::Keep | Step::Any | Step::Drop));
        s += usize::from(matches!(step, Step::Keep | Step::Absorb | Step::Add));
    }
    Compared { lines, difference: (fewest[0][0] > 0).then_some(difference) }
}

#[derive(Clone, Copy)]
enum Step {
    Keep,
    /// The end of the lines that `...` stands for.
    Any,
    Absorb,
    Drop,
    Add,
}

fn is_any(line: &str) -> bool {
    ["...", "! ..."].contains(&line)
}

/// The mark of the stream that a line is of.
fn stream(line: &str) -> Option<char> {
    line.chars().next().filter(|mark| ['!', '?'].contains(mark) && matches!(line.as_bytes().get(1), None | Some(b' ')))
}

fn matches(expected: &str, shown: &str) -> bool {
    let mut parts = expected.split("[..]");
    let Some(mut rest) = parts.next().and_then(|first| shown.strip_prefix(first)) else { return false };
    let mut parts: Vec<_> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// A new line of a page: what each run shows otherwise is a wildcard.
fn with_wildcards(line: &str) -> String {
    let changing = [
        (r"\b127\.0\.0\.1:\d+", "127.0.0.1:[..]"),
        (r"(\(|  )\d+(\.\d+)? m?s, seed", "$1[..], seed"),
        (r"([✓✗–!?]) +\d+(\.\d+)? m?s$", "$1 [..]"),
        (r"^(! )? +\d+(\.\d+)? m?s ([←→])", "$1[..] $3"),
        (r"(started in|retrying in) \d+(\.\d+)? m?s", "$1 [..]"),
        (r"│ \d+m?s ago +│$", "│ [..]"),
        (r#"\btime="[^"]*""#, "time=\"[..]\""),
        (r#"("\w*(?:Ms|[a-z]edAt)"): [^,}]+"#, "$1: [..]"),
        (r#""time":"[^"]*""#, r#""time":"[..]""#),
    ];
    changing.iter().fold(line.to_owned(), |line, (pattern, with)| {
        Regex::new(pattern).expect("a pattern").replace_all(&line, *with).into_owned()
    })
}
