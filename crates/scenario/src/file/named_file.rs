//! Files that a scenario names.

use std::{path::Path, sync::Arc};

use rehearse_document::{Diagnostic, Diagnostics, Node, Problem, Problems, Source};

/// Parses the file whose path is the value of a node. Its problems are reported at that node.
pub(crate) fn read<T>(
    node: &Node,
    folder: &Path,
    parse: impl FnOnce(&Arc<Source>) -> Result<T, Diagnostics>,
) -> Result<T, Problems> {
    let path = folder.join(node.str()?);
    let source = Source::read(&path);
    let source = source.map_err(|error| node.problem(format!("cannot read {}: {error}", path.display())))?;
    parse(&source).map_err(|diagnostics| {
        let problem =
            |it: Diagnostic| Problem { span: node.span, message: it.to_string().into(), hint: it.problem.hint };
        Problems(diagnostics.0.into_iter().map(problem).collect())
    })
}
