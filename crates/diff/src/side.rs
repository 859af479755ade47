//! The two sides of a comparison, and its result.

use std::{iter::successors, sync::Arc};

use crate::{Baseline, RecordedCall, Surface, calls::refused_calls, compare, compare_calls, semver::advice};
use rehearse_document::{Node, Source};
use rehearse_report::{
    Verdict,
    diff::{Change, ChangePlace, Class, DiffResult, FORMAT, Side},
};

/// A surface, and what it is of.
#[derive(Debug)]
pub struct DiffSide {
    pub surface: Surface,
    pub side: Side,
    /// The calls of a trace.
    pub calls: Vec<RecordedCall>,
    /// The surface file, if it is in the working folder.
    pub file: Option<(Arc<Source>, Node)>,
}

impl DiffSide {
    /// A side without calls.
    pub fn new(name: &str, surface: Surface, file: Option<(Arc<Source>, Node)>) -> DiffSide {
        let side = Side { name: name.to_owned(), server: surface.server_name() };
        DiffSide { surface, side, calls: Vec::new(), file }
    }

    /// The line of a JSON pointer in the file.
    fn place(&self, pointer: Option<&str>) -> Option<ChangePlace> {
        let (source, tree) = self.file.as_ref()?;
        let node = tree.pointer(pointer?)?;
        Some(ChangePlace { file: self.side.name.clone(), line: source.position(node.span.start).0 })
    }

    /// The line of what would surround a JSON pointer in the file.
    fn place_near(&self, pointer: Option<&str>) -> Option<ChangePlace> {
        let mut around = successors(pointer, |it| Some(it.rsplit_once('/')?.0)).skip(1);
        around.find_map(|it| self.place(Some(it)))
    }
}

/// The changes from one side to another, with `more` of them, and the recorded calls that the new side refuses; each list
/// of calls has the name of its trace. No change is accepted yet, and there is no verdict.
pub fn diff(
    old: &DiffSide,
    new: &DiffSide,
    more: Vec<Change>,
    calls: &[(String, Vec<RecordedCall>)],
    fail_on: Option<Class>,
) -> DiffResult {
    let mut changes = compare(&old.surface, &new.surface);
    changes.extend(compare_calls(&old.calls, &new.calls));
    changes.extend(more);
    Change::sort(&mut changes);
    for change in &mut changes {
        let places = [new.place(change.new.as_deref()), old.place(change.old.as_deref())];
        change.place = places.into_iter().flatten().next().or_else(|| old.place_near(change.new.as_deref()));
    }
    let each = calls.iter().flat_map(|(trace, calls)| calls.iter().map(move |call| (trace.as_str(), call)));
    let (refused_calls, held) = refused_calls(&new.surface, each);
    DiffResult {
        format: FORMAT,
        rehearse: env!("CARGO_PKG_VERSION").to_owned(),
        old: old.side.clone(),
        new: new.side.clone(),
        fail_on,
        changes,
        refused_calls,
        calls: (!calls.is_empty()).then_some(held),
        advice: None,
        stale: Vec::new(),
        verdict: Verdict::default(),
    }
}

/// Accepts the changes of a baseline, and gives the advice and the verdict.
pub fn accept(result: &mut DiffResult, baseline: &Baseline, old: &DiffSide, new: &DiffSide) {
    result.stale = baseline.apply(&mut result.changes);
    result.advice = advice(&old.surface, &new.surface, &result.changes);
    result.decide();
}
