//! The content of results: printed as text, or saved to files.

pub(crate) mod complete;
pub(crate) mod get_prompt;
pub(crate) mod read_resource;

use std::{
    fs::{self, OpenOptions},
    io, mem,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::{
    error::{CommandError, FailureReport},
    print::{print, print_json, text_of},
    session::HubSession,
};
use crate::cli::{Exit, Failure, Format, background::BackgroundThread, output, style::printable};
use rehearse_client::{self as client, Content};

/// The result of a request as JSON: verbatim, or the failure.
#[derive(Serialize)]
struct Report<'a> {
    server: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureReport>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    saved: &'a [PathBuf],
}

impl<'a> Report<'a> {
    fn new(
        hub_session: &HubSession,
        server: &'a str,
        result: Result<&'a RawValue, &client::Failure>,
        saver: &'a Saver<'_>,
    ) -> Report<'a> {
        Report {
            server,
            result: result.ok(),
            failure: result.err().map(|failure| hub_session.failure_json(failure)),
            saved: &saver.saved,
        }
    }
}

/// Saves binary content to files.
pub(crate) struct Saver<'a> {
    output: Option<&'a Path>,
    stem: String,
    /// The number of files that earlier savers wrote under the same name.
    before: usize,
    /// The saved files.
    pub(super) saved: Vec<PathBuf>,
    /// The saved files that are not written yet.
    unwritten: Vec<(PathBuf, Vec<u8>)>,
}

/// The contents of a resource (2025-11-25, Resources: Resource Contents).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceContents {
    #[serde(default)]
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    /// Base64.
    blob: Option<String>,
}

/// Binary content.
struct Binary<'a> {
    mime_type: &'a str,
    /// Base64.
    data: &'a str,
    /// The URI at the server.
    uri: &'a str,
}

/// Prints the result of a request as text or as JSON, and saves binary content.
///
/// # Errors
/// Something cannot be written; or the failure of the request.
pub(super) async fn print_result<T>(
    hub_session: &HubSession,
    format: Format,
    server: &str,
    got: &Result<(Box<RawValue>, T), client::Failure>,
    mut saver: Saver<'_>,
    text: impl FnOnce(&T, &mut Saver<'_>) -> Result<String, Failure>,
) -> Result<Exit, CommandError> {
    let shown = match got {
        Ok((_, parsed)) => text(parsed, &mut saver)?,
        Err(_) => String::new(),
    };
    saver.write_out(&hub_session.is_interrupted).await?;
    let result = got.as_ref().map(|(result, _)| &**result);
    if result.is_ok() {
        saver.print_saved(hub_session);
    }
    match format {
        Format::Human => print(&shown)?,
        Format::Json => print_json(&Report::new(hub_session, server, result, &saver))?,
    }
    result.map(|_| Exit::Success).map_err(|failure| failure.clone().into())
}

impl<'a> Saver<'a> {
    /// Content without a name is named after `stem`.
    pub(crate) fn new(output: Option<&'a Path>, stem: &str) -> Saver<'a> {
        Saver { output, stem: plain(stem), before: 0, saved: Vec::new(), unwritten: Vec::new() }
    }

    /// Continues the numbering after `before` files.
    pub(super) fn starting_after(self, before: usize) -> Saver<'a> {
        Saver { before, ..self }
    }

    /// Writes the pending files. A named pipe may block, so this can be cancelled.
    ///
    /// # Errors
    /// A file cannot be written, or the command was cancelled.
    pub(crate) async fn write_out(&mut self, given_up: &CancellationToken) -> Result<(), CommandError> {
        for (path, bytes) in mem::take(&mut self.unwritten) {
            let name = path.display().to_string();
            let writing = BackgroundThread::start(move || output::write_file(&path, &bytes));
            let Some(written) = given_up.run_until_cancelled(writing.join()).await else {
                return Err(client::Failure::Cancelled.into());
            };
            written.unwrap_or_else(|| Err(Failure::cannot(format!("cannot write {name}"))))?;
        }
        Ok(())
    }

    /// Prints which files were saved.
    pub(super) fn print_saved(&self, hub_session: &HubSession) {
        let files: Vec<_> = self.saved.iter().map(|path| path.display().to_string()).collect();
        match &files[..] {
            [] if self.output.is_some() => {
                hub_session.warn("nothing was saved: the result has no binary content");
            }
            [] => {}
            files => hub_session.note(&format!("saved {}", files.join(", "))),
        }
    }

    /// A content block as text. Binary content is saved or described.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn block(&mut self, content: &Content) -> Result<String, Failure> {
        Ok(match content {
            Content::Text { text, .. } => text_of(text),
            Content::Image { mime_type, data, .. } | Content::Audio { mime_type, data, .. } => {
                self.binary(&Binary { mime_type, data, uri: "" })?
            }
            Content::Resource { raw, .. } => {
                #[derive(Deserialize)]
                struct Embedded {
                    resource: ResourceContents,
                }
                match serde_json::from_str::<Embedded>(raw.get()) {
                    Ok(Embedded { resource }) => {
                        let mime = resource.mime_type.as_deref().map(|mime| format!(", {}", printable(mime)));
                        let head = format!("[resource {}{}]\n", printable(&resource.uri), mime.unwrap_or_default());
                        head + &self.resource(&resource, false)?
                    }
                    Err(_) => text_of(raw.get()),
                }
            }
            Content::ResourceLink { uri, name, .. } => {
                format!("[link to {}: {}]\n", printable(name), printable(uri))
            }
        })
    }

    /// The contents of a resource as text. With an output file they are saved, even if they are text.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn contents(&mut self, raw: &RawValue) -> Result<String, Failure> {
        match serde_json::from_str::<ResourceContents>(raw.get()) {
            Ok(contents) => self.resource(&contents, true),
            Err(_) => Ok(text_of(raw.get())),
        }
    }

    fn resource(&mut self, contents: &ResourceContents, saves_text: bool) -> Result<String, Failure> {
        let ResourceContents { uri, mime_type, text, blob } = contents;
        let or = |usual: &'static str| mime_type.as_deref().unwrap_or(usual);
        match (text, blob) {
            (Some(text), _) if saves_text && self.output.is_some() => self.save(text.as_bytes(), uri, or("text/plain")),
            (Some(text), _) => Ok(text_of(text)),
            (None, Some(data)) => self.binary(&Binary { mime_type: or("application/octet-stream"), data, uri }),
            (None, None) => Ok(format!("[no content at {}]\n", printable(uri))),
        }
    }

    fn binary(&mut self, Binary { mime_type, data, uri }: &Binary<'_>) -> Result<String, Failure> {
        match BASE64_STANDARD.decode(data) {
            Ok(bytes) if self.output.is_some() => self.save(&bytes, uri, mime_type),
            Ok(bytes) => Ok(format!("[{}, {} bytes; --output saves it]\n", printable(mime_type), bytes.len())),
            Err(error) => Ok(format!("[{}, but its data is not valid Base64: {error}]\n", printable(mime_type))),
        }
    }

    fn save(&mut self, bytes: &[u8], uri: &str, mime_type: &str) -> Result<String, Failure> {
        let path = self
            .write(bytes, uri, mime_type)
            .map_err(|(path, error)| Failure::cannot(format!("cannot write {}: {error}", path.display())))?;
        let message = format!("[{}, {} bytes; saved as {}]\n", printable(mime_type), bytes.len(), path.display());
        self.saved.push(path);
        Ok(message)
    }

    /// Chooses the file: the output file, numbered from the second on, which is written later; or a new file in the output
    /// folder, which is written at once.
    fn write(&mut self, bytes: &[u8], uri: &str, mime_type: &str) -> Result<PathBuf, (PathBuf, io::Error)> {
        let output = self.output.unwrap_or(Path::new(""));
        let is_folder = output.is_dir() || output.as_os_str().as_encoded_bytes().ends_with(b"/");
        if !is_folder {
            let path = numbered(output, self.before + self.saved.len() + 1);
            self.unwritten.push((path.clone(), bytes.to_owned()));
            return Ok(path);
        }
        fs::create_dir_all(output).map_err(|error| (output.to_owned(), error))?;
        let wanted = output.join(self.name(uri, mime_type));
        let mut number = 1;
        loop {
            let path = numbered(&wanted, number);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    return output::fill(file, &path, bytes).map(|()| path.clone()).map_err(|error| (path, error));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err((path, error)),
            }
        }
    }

    /// The last part of the URI if it is a file name, else a name with the extension of the type.
    fn name(&self, uri: &str, mime_type: &str) -> String {
        let last = plain(uri.split(['?', '#']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default());
        if last.contains('.') {
            last
        } else {
            format!("{}.{}", if last.is_empty() { &self.stem } else { &last }, extension(mime_type))
        }
    }
}

/// Replaces characters so that the text is a file name, not a path and not hidden.
fn plain(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let kept: String = text.chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect();
    kept.trim_start_matches(['.', '-']).to_owned()
}

fn numbered(path: &Path, number: usize) -> PathBuf {
    if number == 1 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|extension| format!(".{}", extension.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{number}{extension}"))
}

fn extension(mime_type: &str) -> String {
    let essence = mime_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let known = match essence.as_str() {
        "text/plain" => "txt",
        "text/markdown" => "md",
        "text/javascript" => "js",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "audio/mpeg" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        "application/octet-stream" => "bin",
        _ => "",
    };
    let subtype = essence.rsplit(['/', '+']).next().unwrap_or_default();
    let is_short = !subtype.is_empty() && subtype.len() <= 5 && subtype.chars().all(|c| c.is_ascii_alphanumeric());
    match known {
        "" if is_short => subtype.to_owned(),
        "" => "bin".to_owned(),
        known => known.to_owned(),
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_server_cannot_choose_where_its_files_go() {
        let saver = Saver::new(None, "call tool");
        for (uri, mime_type, name) in [
            ("file:///a/b.png", "image/png", "b.png"),
            ("file:///a/..", "image/png", "call_tool.png"),
            ("x://.bashrc", "text/plain", "bashrc.txt"),
            ("x://a/b%2fc d?e=/f.g", "application/x-very-long", "b_2fc_d.bin"),
            ("", "audio/mpeg", "call_tool.mp3"),
            ("", "application/ld+json; charset=utf-8", "call_tool.json"),
        ] {
            assert_eq!(saver.name(uri, mime_type), name, "{uri}");
        }
    }

    #[tokio::test]
    async fn several_contents_are_numbered_by_position_despite_existing_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let path = file("out.bin");
        for round in ["1", "2"] {
            let mut saver = Saver::new(Some(&path), "x");
            for content in ["a", "b"] {
                saver.save(format!("{round}{content}").as_bytes(), "x://a.png", "image/png").expect("a name");
            }
            saver.write_out(&CancellationToken::new()).await.expect("writes");
            let mut next = Saver::new(Some(&path), "y").starting_after(saver.saved.len());
            next.save(round.as_bytes(), "", "").expect("a name");
            next.write_out(&CancellationToken::new()).await.expect("writes");
            assert_eq!([saver.saved, next.saved].concat(), ["out.bin", "out-2.bin", "out-3.bin"].map(file));
        }
        let read = ["out.bin", "out-2.bin", "out-3.bin"].map(|name| fs::read_to_string(file(name)).expect(name));
        assert_eq!(read, ["2a", "2b", "2"]);
    }

    #[test]
    fn a_file_in_a_folder_is_never_overwritten() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut saver = Saver::new(Some(folder.path()), "x");
        for name in ["a.png", "a-2.png", "a-3.png"] {
            let message = saver.save(b"1", "x://a.png", "image/png").expect("writes");
            let path = folder.path().join(name);
            assert!(message.contains(&format!("saved as {}]", path.display())), "{message}");
        }
    }
}
