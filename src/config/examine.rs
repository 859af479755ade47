//! From a file to what is in it and what is wrong with it.

use std::{panic::resume_unwind, path::Path, sync::Arc, thread};

use super::{
    ClientConfig, Machine, Node, Problems, Source, Span,
    check::{self, Subject},
    dialect::{Detected, Dialect, by_path, detect, is_about_other_things, of_other_program, without_ending},
    document::{self, Document},
    finding::{Finding, Severity, codes},
    read::{self, read_guessed},
    secret::secrets_of,
};

/// From so many bytes on, the secrets of a text are looked for while it is checked.
const LARGE: usize = 100_000;

/// A file with nothing but faults has one in so many bytes: there is room for all of them from the beginning.
const DENSE: usize = 12;

/// A config with everything that was found in it.
#[derive(Clone, Debug)]
pub struct Examined {
    pub source: Arc<Source>,
    /// Whether the text could be read at all, in the syntax of its program.
    pub is_readable: bool,
    /// What the text says; `None` if it could not be read.
    pub root: Option<Node>,
    /// `None` if nobody can read the text, or it has no servers in any dialect's place.
    pub detected: Option<Detected>,
    /// The servers that could be understood; none if there is no dialect.
    pub config: Option<ClientConfig>,
    /// What must not be shown, in the order of the text.
    pub secrets: Vec<Span>,
    /// In the order of the text.
    pub findings: Vec<Finding>,
}

impl Examined {
    /// How many findings are as bad as this.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.code.severity() == severity).count()
    }

    /// Why its program takes nothing from the file; errors that are about one server are that server's.
    pub fn rejections(&self) -> impl Iterator<Item = &Finding> {
        let is_of_all = |finding: &&Finding| finding.code.severity() == Severity::Error && finding.server.is_none();
        self.findings.iter().filter(is_of_all)
    }
}

/// A config that nobody can read.
pub(super) fn unreadable(source: &Arc<Source>, problems: Problems) -> Examined {
    let finding = |problem| Finding { code: &codes::SYNTAX, problem, server: None };
    Examined {
        source: source.clone(),
        is_readable: false,
        root: None,
        detected: None,
        config: None,
        secrets: secrets_of(source, None),
        findings: problems.0.into_iter().map(finding).collect(),
    }
}

/// Says that the servers of a file in one program's place are another's.
fn of_another(path: &Path, dialect: &Dialect, root: &Node) -> Option<Finding> {
    let (owner, _) = by_path(&without_ending(path)).filter(|(owner, _)| !std::ptr::eq(*owner, dialect))?;
    let servers = dialect.servers(root).filter(|_| owner.servers(root).is_none())?;
    let entry = root.as_entries()?.iter().find(|entry| std::ptr::eq(&raw const entry.node, servers))?;
    let message = format!("{} looks into this file as well, and finds no servers", owner.program);
    let hint = format!("it looks for them under `{}`", owner.place_in(root, false).join("."));
    Some(codes::NO_SERVERS.at(entry.key_span, message).hint(hint))
}

/// Whether a value is told twice, for how it is written and for its type: whoever mends the type writes it anew.
fn mends_both(later: &mut Finding, earlier: &mut Finding) -> bool {
    let is_twice = later.problem.span == earlier.problem.span
        && (later.code, earlier.code) == (&codes::VALUE_TYPE, &codes::JSON_FORM);
    if is_twice {
        earlier.problem.hint = later.problem.hint.take();
    }
    is_twice
}

/// Reads and checks a config. Nothing is started or fetched.
///
/// The dialect is told by the path, then by what the file holds, unless it is `forced`. Without a machine, nothing is
/// said about what is there on one machine and not on another: programs, folders, variables.
pub fn examine(
    source: &Arc<Source>,
    path: Option<&Path>,
    forced: Option<&'static Dialect>,
    machine: Option<&Machine>,
) -> Examined {
    let document = match document::read(source, path) {
        Ok(document) => document,
        Err(problems) => return unreadable(source, problems),
    };
    let secrets = || secrets_of(source, Some(&document.root));
    let judge = || judge(source, &document, path, forced, machine);
    let (secrets, judged) = match source.text.len() < LARGE {
        true => (secrets(), judge()),
        false => at_once(&secrets, judge),
    };
    judged.with(source, document.root, secrets)
}

/// What two functions give, of which the first works in a thread of its own if there can be one.
fn at_once<A: Send, B>(aside: &(impl Fn() -> A + Sync), here: impl FnOnce() -> B) -> (A, B) {
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, aside);
        let here = here();
        let aside = match other {
            Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
            Err(_) => aside(),
        };
        (aside, here)
    })
}

/// What a program makes of a text, and what is wrong with that.
pub(super) struct Judged {
    pub(super) detected: Option<Detected>,
    pub(super) config: Option<ClientConfig>,
    /// What the text says to its program, if that is not all of it.
    pub(super) part: Option<Node>,
    /// In no order.
    pub(super) findings: Vec<Finding>,
}

impl Judged {
    /// The whole, with what the text says and what of it must not be shown.
    pub(super) fn with(self, source: &Arc<Source>, root: Node, secrets: Vec<Span>) -> Examined {
        let Judged { detected, config, part, mut findings } = self;
        findings.sort_by_key(|finding| finding.problem.span.start);
        findings.dedup_by(mends_both);
        let is_readable = findings.iter().all(|finding| finding.code != &codes::SYNTAX);
        let root = Some(part.unwrap_or(root));
        Examined { source: source.clone(), is_readable, root, detected, config, secrets, findings }
    }
}

fn judge(
    source: &Arc<Source>,
    document: &Document,
    path: Option<&Path>,
    forced: Option<&'static Dialect>,
    machine: Option<&Machine>,
) -> Judged {
    let mut findings = Vec::with_capacity(source.text.len() / DENSE);
    let of_other_program = if forced.is_none() { of_other_program(path, &document.root) } else { None };
    let detected = match (forced, &of_other_program) {
        (Some(dialect), _) => Some(Detected::certain(dialect, "it was asked for")),
        (None, Some(_)) => None,
        (None, None) => detect(path, document, source),
    };
    let is_section = path.is_some_and(|path| is_about_other_things(&path.to_string_lossy()));
    let part = detected.as_ref().and_then(|it| it.dialect.as_settings(&document.root, is_section));
    let root = part.as_ref().unwrap_or(&document.root);
    let config = detected.as_ref().map(|Detected { dialect, rivals, .. }| {
        let has_owner = path.is_some_and(|path| by_path(&without_ending(path)).is_some() || dialect.is_in_name(path));
        document.judge(root, source, dialect, forced.is_none() && !has_owner, &mut findings);
        if document.is_empty() {
            return ClientConfig::new(dialect);
        }
        let config = read_guessed(root, dialect, rivals, source, &mut findings);
        check::all(&Subject::new(&config, root, source, machine), &mut findings);
        if forced.is_none() && dialect.is_without_servers(&source.name) {
            // What nobody reads cannot be wrong.
            findings.retain(|it| it.server.is_none() || it.code == &codes::SECRET);
        }
        config
    });
    if let (Some(Detected { dialect, .. }), None) = (&detected, forced) {
        findings.extend(path.and_then(|path| of_another(path, dialect, root)));
    }
    if document.is_empty() && findings.is_empty() {
        findings.push(document.emptiness());
    } else if detected.is_none() {
        findings.push(of_other_program.unwrap_or_else(|| read::nowhere(root)));
    }
    Judged { detected, config, part, findings }
}

#[cfg(test)]
mod tests;
