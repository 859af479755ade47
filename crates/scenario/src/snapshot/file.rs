//! A snapshot file: the accepted result of a step.
//!
//! It has the format of insta, so that `cargo insta review` works.

use std::{fs, io, path::Path};

use rehearse_document::{Diagnostics, Problem, Problems, Source, Span, text::text_of};

/// The text of a snapshot file; `None` if the file does not exist.
///
/// # Errors
/// The file cannot be read, or is not a snapshot.
pub fn read(path: &Path) -> Result<Option<String>, Diagnostics> {
    let name = path.display().to_string();
    let invalid = |text: String, what: String| {
        let problem = Problem::new(Span::default(), what);
        let problem = problem.hint("restore the file, or delete it and accept the result with --update");
        Problems::from(problem).in_source(&Source::new(name.clone(), text))
    };
    let text = match text_of(path) {
        Ok(text) => text.replace("\r\n", "\n"),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(invalid(String::new(), format!("cannot read the snapshot: {error}"))),
    };
    let body = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"));
    match body.map(|(_, body)| body.trim_end_matches('\n').to_owned()) {
        Some(body) => Ok(Some(body)),
        None => Err(invalid(text, "not a snapshot: the header between two `---` lines is missing".into())),
    }
}

/// Checks every snapshot file in a folder.
///
/// # Errors
/// A file cannot be read, or is not a snapshot.
pub(crate) fn check_all(folder: &Path) -> Result<(), Diagnostics> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "snap"))
        .try_for_each(|path| read(path).map(drop))
}

/// Writes a snapshot file.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write(path: &Path, source: &str, title: &str, text: &str) -> io::Result<()> {
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let head = format!("---\nsource: {}\nexpression: {}\n---\n", quote(source), quote(title));
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    // Several runs may write the same snapshot at once.
    let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
    let written = fs::write(&unfinished, format!("{head}{text}\n")).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| remove(&unfinished)).map_err(failed)
}

/// Removes a file, if it can.
pub(crate) fn remove(path: &Path) {
    // Best effort: a file that stays does not change the verdict.
    let _ = fs::remove_file(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_a_snapshot_is_a_mistake_and_line_ends_do_not_matter() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("demo.snap");
        fs::write(&path, "\u{feff}---\r\nsource: x\r\n---\r\na\r\nb\r\n").expect("writes");
        assert_eq!(read(&path), Ok(Some("a\nb".into())));
        for broken in [&b"no head"[..], b"<<<<<<< HEAD\n---\n", b"---\n\xff"] {
            fs::write(&path, broken).expect("writes");
            let shown = check_all(folder.path()).expect_err("a mistake").to_string();
            assert!(shown.contains("demo.snap:1:1: "), "{shown}");
        }
        assert_eq!(read(&folder.path().join("none.snap")), Ok(None));
    }

    #[test]
    fn a_written_snapshot_is_one_of_insta() {
        let folder = tempfile::tempdir().expect("a folder");
        let text = "{\n  \"a\": \"---\",\n  \"b\": \" \"\n}";
        write(&folder.path().join("demo.snap"), "demo.yaml", "call \"x\"", text).expect("writes");
        let mut settings = insta::Settings::new();
        settings.set_snapshot_path(folder.path());
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("demo", text));
        assert_eq!(read(&folder.path().join("demo.snap")), Ok(Some(text.to_owned())));
    }
}
