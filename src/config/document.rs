//! The text of a config, in JSON or YAML, and what its program thinks of how it is written.

mod complaint;
mod foreign;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, HashSet},
    path::Path,
};

use complaint::complaint;
use foreign::{of_beginning, of_others, of_toml};

use super::{
    Duplicate, Node, Problems, Source, Span, Value,
    dialect::{Dialect, Syntax, without_ending},
    finding::{Finding, MOST_TOLD, codes},
    json::{self, Liberty, LibertyKind},
    yaml,
};

const KINDS: usize = LibertyKind::Nothing as usize + 1;

/// A config that could be read, however its program would take it.
#[derive(Clone, Debug)]
pub(super) struct Document {
    pub(super) root: Node,
    written: Written,
    duplicates: Vec<Duplicate>,
}

#[derive(Clone, Debug)]
enum Written {
    /// The liberties, and which kinds of them there are.
    Json(Vec<Liberty>, HashSet<LibertyKind>),
    Yaml,
}

/// Reads a text as what its name says it is, and otherwise as what it looks like.
///
/// # Errors
/// Where and why nobody could tell what is meant.
pub(super) fn read(source: &Source, path: Option<&Path>) -> Result<Document, Problems> {
    if is_json(&source.text, path) {
        let hint = "look at the brackets, commas and quotes here and right before";
        let json::Document { root, liberties, duplicates } = json::parse(source).map_err(|problems| {
            of_others(source).or_else(|| of_beginning(source)).unwrap_or_else(|| problems.or_hint(hint))
        })?;
        let kinds = kinds(&liberties);
        // The header of a table is a list of one word with something after it.
        if [LibertyKind::BareValue, LibertyKind::TextAfter].iter().all(|kind| kinds.contains(kind))
            && let Some(problems) = of_toml(source)
        {
            return Err(problems);
        }
        return Ok(Document { root, written: Written::Json(liberties, kinds), duplicates });
    }
    let hint = "look at the indentation and the quotes here and in the line before";
    let (root, duplicates) =
        yaml::read(source).map_err(|problems| of_others(source).unwrap_or_else(|| problems.or_hint(hint)))?;
    // For YAML, such a file is often one long text.
    if let (Value::String(_), Some(problems)) = (&root.value, of_toml(source)) {
        return Err(problems);
    }
    Ok(Document { root, written: Written::Yaml, duplicates })
}

fn kinds(liberties: &[Liberty]) -> HashSet<LibertyKind> {
    let mut seen = [false; KINDS];
    let is_new = |kind: &LibertyKind| !std::mem::replace(&mut seen[*kind as usize], true);
    liberties.iter().map(|liberty| liberty.kind).filter(is_new).collect()
}

fn is_json(text: &str, path: Option<&Path>) -> bool {
    let path = path.map(without_ending);
    let extension = path.as_deref().and_then(Path::extension).and_then(|it| it.to_str()).unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "json" | "jsonc" | "json5" | "code-workspace" => true,
        "yaml" | "yml" => false,
        _ => text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[', '/']),
    }
}

impl Document {
    pub(super) fn is_yaml(&self) -> bool {
        matches!(self.written, Written::Yaml)
    }

    /// Whether there is no value at all.
    pub(super) fn is_empty(&self) -> bool {
        matches!(&self.written, Written::Json(_, kinds) if kinds.contains(&LibertyKind::Nothing))
    }

    /// What to say about a file without any value.
    pub(super) fn emptiness(&self) -> Finding {
        codes::NO_SERVERS.at(self.root.span, "there is nothing in it").hint("an object with nothing in it is {}")
    }

    /// What the program has against the way in which the text is written, of which it sees `root`; `is_guessed` if it is only the likeliest of
    /// those that read such a file.
    pub(super) fn judge(
        &self,
        root: &Node,
        source: &Source,
        dialect: &Dialect,
        is_guessed: bool,
        findings: &mut Vec<Finding>,
    ) {
        let judge = |liberties: &[Liberty], allowed: &[LibertyKind], findings: &mut Vec<Finding>| {
            judge_liberties(liberties, allowed, source, dialect, findings);
            warn_of_liberties(liberties, source, dialect, is_guessed, findings);
        };
        match (&self.written, dialect.syntax) {
            (Written::Json(liberties, _), Syntax::Json(allowed) | Syntax::Either(allowed)) => {
                judge(liberties, allowed, findings);
            }
            (Written::Json(liberties, _), Syntax::Yaml) => judge(liberties, &[], findings),
            (Written::Yaml, Syntax::Json(_)) => {
                let begin = Span { start: self.root.span.start, end: self.root.span.start };
                let message = format!("this is YAML, and {} reads JSON", dialect.program);
                let hint = format!("`rehearse config convert --to {}` writes it as JSON", dialect.name);
                findings.push(codes::SYNTAX.at(begin, message).hint(hint));
            }
            (Written::Yaml, Syntax::Yaml | Syntax::Either(_)) => {}
        }
        let servers = self.places_of_servers(root, dialect);
        for (Duplicate { key, first, second }, number) in self.duplicates.iter().zip(1..=MOST_TOLD) {
            let (line, column) = source.position(first.start);
            let is_server = servers.as_ref().is_some_and(|places| places.are_names(*first, *second));
            let what = if is_server { "a server" } else { "a key" };
            let code = match (&self.written, is_server) {
                (Written::Yaml, _) => &codes::DUPLICATE,
                (Written::Json(..), true) => &codes::DUPLICATE_SERVER,
                (Written::Json(..), false) => &codes::DUPLICATE_KEY,
            };
            let fate = if self.is_yaml() { "the file is rejected" } else { "only this one counts" };
            let message = format!("`{key}` is {what} already at {line}:{column}: {fate}");
            let are_servers = !is_server && dialect.roots.iter().any(|keys| keys.last() == Some(&key.as_str()));
            let hint = if are_servers { "put the servers of both into one" } else { "keep one of them, or rename it" };
            let more = if number == MOST_TOLD { self.duplicates.len() - MOST_TOLD } else { 0 };
            findings.push(code.at(*second, message).hint(hint).followed_by(more));
        }
    }

    /// How many kinds of liberties the text takes that the program does not grant.
    pub(super) fn liberties_against(&self, dialect: &Dialect) -> u32 {
        let Written::Json(_, kinds) = &self.written else { return 0 };
        let allowed = match dialect.syntax {
            Syntax::Json(allowed) | Syntax::Either(allowed) => allowed,
            Syntax::Yaml => &[],
        };
        u32::try_from(kinds.iter().filter(|kind| !allowed.contains(kind)).count()).unwrap_or_default()
    }

    fn places_of_servers(&self, root: &Node, dialect: &Dialect) -> Option<PlacesOfServers> {
        let servers = dialect.servers(root).filter(|_| !self.duplicates.is_empty())?;
        let mut each: Vec<_> = servers.as_entries()?.iter().map(|entry| entry.node.span).collect();
        each.sort_by_key(|span| span.start);
        Some(PlacesOfServers { all: servers.span, each })
    }
}

/// Where the servers of a file stand.
struct PlacesOfServers {
    all: Span,
    /// In the order of the text.
    each: Vec<Span>,
}

impl PlacesOfServers {
    /// Whether both keys are names of servers.
    fn are_names(&self, first: Span, second: Span) -> bool {
        let after = self.each.partition_point(|span| span.start <= first.start);
        let is_inside = after.checked_sub(1).is_some_and(|before| second.end <= self.each[before].end);
        self.all.start <= first.start && second.end <= self.all.end && !is_inside
    }
}

fn judge_liberties(
    liberties: &[Liberty],
    allowed: &[LibertyKind],
    source: &Source,
    dialect: &Dialect,
    findings: &mut Vec<Finding>,
) {
    let rejected: Vec<_> = liberties.iter().filter(|liberty| !allowed.contains(&liberty.kind)).collect();
    let missing = missing_brackets(&rejected, source);
    for (liberty, more) in told(&rejected) {
        // Whoever adds the bracket adds the comma after it.
        if liberty.kind == LibertyKind::MissingComma && missing.contains_key(&Some(liberty.span.start)) {
            continue;
        }
        let (code, message, hint) = complaint(liberty, source, dialect.program);
        findings.push(code.at(liberty.span, message).hint(hint).followed_by(more));
    }
    let commas = rejected.iter().filter(|it| it.kind == LibertyKind::MissingComma && !missing.is_empty());
    let commas: HashSet<_> = commas.map(|it| it.span.start).collect();
    for (start, Missing { brackets, first, before }) in missing.into_iter().take(MOST_TOLD) {
        let Some(before) = before else {
            let end = Span { start: source.text.len(), end: source.text.len() };
            let message = "the text ends before what was opened is closed";
            let hint = format!("add {brackets} here, or where it belongs");
            findings.push(codes::JSON_UNCLOSED.at(end, message).hint(hint));
            continue;
        };
        let (line, column) = source.position(first.start);
        let message = format!("the `{}` at {line}:{column} is still open here", written(source, first));
        let comma = if start.is_some_and(|start| commas.contains(&start)) { "," } else { "" };
        findings.push(codes::JSON_UNCLOSED.at(before, message).hint(format!("add `{brackets}{comma}` before this")));
    }
}

/// Brackets that are missing at one place.
#[derive(Default)]
struct Missing {
    /// In the order in which they have to stand there.
    brackets: String,
    /// The outermost that they close.
    first: Span,
    /// What has to come after them, unless they are missing at the end of the text.
    before: Option<Span>,
}

/// The brackets that are missing, by the place before which they belong.
fn missing_brackets(rejected: &[&Liberty], source: &Source) -> BTreeMap<Option<usize>, Missing> {
    let mut missing = BTreeMap::<_, Missing>::new();
    // Of brackets that end at one place, the inner ones are closed first.
    for liberty in rejected.iter().rev().filter(|liberty| liberty.kind == LibertyKind::Unclosed) {
        let at = missing.entry(liberty.other.map(|before| before.start)).or_default();
        at.brackets.push(closing(written(source, liberty.span)));
        (at.first, at.before) = (liberty.span, liberty.other);
    }
    missing
}

fn written(source: &Source, span: Span) -> &str {
    &source.text[span.start..span.end]
}

/// What closes what this bracket opens.
fn closing(bracket: &str) -> char {
    if bracket == "{" { '}' } else { ']' }
}

/// Warns of liberties that the program seems to grant.
fn warn_of_liberties(
    liberties: &[Liberty],
    source: &Source,
    dialect: &Dialect,
    is_guessed: bool,
    findings: &mut Vec<Finding>,
) {
    let doubtful: Vec<_> = liberties.iter().filter(|liberty| dialect.doubtful.contains(&liberty.kind)).collect();
    for (liberty, more) in told(&doubtful) {
        let (_, message, hint) = complaint(liberty, source, "");
        let what = message.split(':').next().unwrap_or_default();
        let message = match is_guessed {
            true => format!("{what}: most programs do not read it"),
            false => format!("{what}: nobody says that {} reads it", dialect.program),
        };
        findings.push(codes::JSON_DOUBTFUL.at(liberty.span, message).hint(hint).followed_by(more));
    }
}

/// The liberties of which to tell, of each kind as many as somebody may want to read of: the last of them has with it how
/// many more there are.
fn told<'l>(liberties: &'l [&Liberty]) -> impl Iterator<Item = (&'l Liberty, usize)> {
    let mut all = [0; KINDS];
    liberties.iter().for_each(|liberty| all[liberty.kind as usize] += 1);
    let mut seen = [0; KINDS];
    liberties.iter().filter_map(move |liberty| {
        let kind = liberty.kind as usize;
        seen[kind] += 1;
        let most = match liberty.kind {
            LibertyKind::Comment | LibertyKind::HashComment => 1,
            _ => MOST_TOLD,
        };
        let more = if seen[kind] == most { all[kind] - most } else { 0 };
        (seen[kind] <= most).then_some((*liberty, more))
    })
}
