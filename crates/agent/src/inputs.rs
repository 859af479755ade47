//! Files and web pages that a prompt comes with.
//!
//! An input is a path or an http(s) URL. Its content decides what it is: text, an image, a PDF file, audio or video.

use std::{
    io::{self, Read},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use rehearse_client::DownloadError;
use rehearse_document::ByteCount;
use rehearse_llm::model::{Block, Media};

/// The largest input, in bytes.
pub const MAX_SIZE: usize = 50 << 20;
/// The largest size of all inputs of a call, in bytes.
pub const MAX_TOTAL: usize = 2 * MAX_SIZE;
/// How long a download may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The inputs that a caller may name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InputSources {
    /// Every file that this process can read, and every URL: for a caller that has started this process.
    #[default]
    Any,
    /// Files below these folders, which must exist.
    Folders(Vec<PathBuf>),
}

/// Why an input cannot be used. The message names the input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Also for what does not exist, so that a caller learns nothing of other folders.
    #[error("input {0} is refused: inputs of callers over the network must be files below a folder of --allow-input")]
    Refused(String),
    #[error("input file does not exist: {0}")]
    Missing(String),
    #[error("failed to read input file {0}: {1}")]
    Unreadable(String, #[source] io::Error),
    #[error("failed to download content from URL {0}: {1}")]
    Download(String, #[source] DownloadError),
    #[error("input content from {0} exceeds maximum size limit ({limit})", limit = ByteCount(MAX_SIZE))]
    TooLarge(String),
    #[error("the inputs together exceed {limit}", limit = ByteCount(MAX_TOTAL))]
    TooLargeTogether,
    #[error("failed to detect input type for {name}: unsupported file type: {mime_type}")]
    Unsupported { name: String, mime_type: &'static str },
}

/// Reads all inputs, in order. Relative paths start at the working directory.
///
/// # Errors
/// The first input that cannot be used.
pub async fn read_all(inputs: &[String], sources: &InputSources) -> Result<Vec<Block>, InputError> {
    let (mut blocks, mut total) = (Vec::new(), 0);
    for input in inputs {
        let bytes = match (sources, is_url(input)) {
            (InputSources::Folders(_), true) => return Err(InputError::Refused(input.clone())),
            (InputSources::Any, true) => download(input).await?,
            (sources, false) => read_file(input, sources.clone()).await?,
        };
        total += bytes.len();
        if total > MAX_TOTAL {
            return Err(InputError::TooLargeTogether);
        }
        let name = input.rsplit(std::path::is_separator).find(|part| !part.is_empty()).unwrap_or(input);
        blocks.push(block(input, name, bytes)?);
    }
    Ok(blocks)
}

fn is_url(input: &str) -> bool {
    let scheme = input.split_once("://").map(|(scheme, rest)| (scheme.to_ascii_lowercase(), !rest.is_empty()));
    scheme.is_some_and(|(scheme, has_host)| has_host && matches!(&*scheme, "http" | "https"))
}

impl InputSources {
    /// The path with its links followed, if a caller may read it.
    ///
    /// # Errors
    /// It is somewhere else, or cannot be found.
    fn resolve(&self, input: &str) -> Result<PathBuf, InputError> {
        let path = Path::new(input);
        let InputSources::Folders(folders) = self else { return Ok(path.to_owned()) };
        let is_below = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
        // Of a path that does not exist, the nearest folder that does decides.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let nearest = || absolute.ancestors().find_map(|path| path.canonicalize().ok());
        let goes_up = path.components().any(|part| part == Component::ParentDir);
        match path.canonicalize() {
            Ok(path) if is_below(&path) => Ok(path),
            Err(_) if !goes_up && nearest().is_some_and(|path| is_below(&path)) => {
                Err(InputError::Missing(input.to_owned()))
            }
            _ => Err(InputError::Refused(input.to_owned())),
        }
    }
}

async fn read_file(input: &str, sources: InputSources) -> Result<Vec<u8>, InputError> {
    let path = input.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let resolved = sources.resolve(&path)?;
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => InputError::Missing(path.clone()),
            _ => InputError::Unreadable(path.clone(), error),
        };
        // Windows does not open a folder.
        if std::fs::metadata(&resolved).map_err(unreadable)?.is_dir() {
            return Err(unreadable(io::ErrorKind::IsADirectory.into()));
        }
        let file = std::fs::File::open(resolved).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MAX_SIZE as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() > MAX_SIZE { Err(InputError::TooLarge(path)) } else { Ok(bytes) }
    });
    read.await.unwrap_or_else(|error| Err(InputError::Unreadable(input.to_owned(), error.into())))
}

async fn download(url: &str) -> Result<Vec<u8>, InputError> {
    let fetched = rehearse_client::download(url, TIMEOUT, MAX_SIZE).await;
    fetched
        .map_err(|error| InputError::Download(url.to_owned(), error))?
        .ok_or_else(|| InputError::TooLarge(url.to_owned()))
}

/// The block for the content of an input.
///
/// # Errors
/// No model takes this kind of content.
fn block(input: &str, name: &str, bytes: Vec<u8>) -> Result<Block, InputError> {
    match sniff(&bytes) {
        Kind::Text => Ok(Block::Text { text: String::from_utf8_lossy(&bytes).into_owned() }),
        Kind::Media(mime_type) => {
            let name = (mime_type == "application/pdf").then(|| name.to_owned());
            Ok(Block::Media(Media { mime_type: mime_type.to_owned(), data: STANDARD.encode(bytes), name }))
        }
        Kind::Other(mime_type) => Err(InputError::Unsupported { name: input.to_owned(), mime_type }),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Media(&'static str),
    Other(&'static str),
}

/// What the first bytes of common formats are.
const SIGNATURES: &[(usize, &[u8], Kind)] = &[
    (0, b"\x89PNG\r\n\x1a\n", Kind::Media("image/png")),
    (0, b"\xff\xd8\xff", Kind::Media("image/jpeg")),
    (0, b"GIF87a", Kind::Media("image/gif")),
    (0, b"GIF89a", Kind::Media("image/gif")),
    (8, b"WEBP", Kind::Media("image/webp")),
    (0, b"%PDF-", Kind::Media("application/pdf")),
    (8, b"WAVE", Kind::Media("audio/wav")),
    (0, b"ID3", Kind::Media("audio/mpeg")),
    (0, b"\xff\xfb", Kind::Media("audio/mpeg")),
    (0, b"OggS", Kind::Media("audio/ogg")),
    (0, b"fLaC", Kind::Media("audio/flac")),
    (4, b"ftyp", Kind::Media("video/mp4")),
    (0, b"\x1aE\xdf\xa3", Kind::Media("video/webm")),
    (0, b"PK\x03\x04", Kind::Other("application/zip")),
    (0, b"\x1f\x8b", Kind::Other("application/gzip")),
    (0, b"\x7fELF", Kind::Other("application/x-executable")),
];

/// What the content is. Text in UTF-8 without NUL bytes is text.
fn sniff(bytes: &[u8]) -> Kind {
    let is_at = |offset: usize, signature: &[u8]| bytes.get(offset..).is_some_and(|rest| rest.starts_with(signature));
    let known = SIGNATURES.iter().find(|(offset, signature, _)| is_at(*offset, signature));
    match known {
        Some((.., kind)) => *kind,
        None if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() => Kind::Text,
        None => Kind::Other("application/octet-stream"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_content_of_a_file_decides_what_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).expect("writes");
            path.to_str().expect("UTF-8").to_owned()
        };
        let text = write("a.json", br#"{"a": "\u00e9"}"#);
        let image = write("b.txt", b"\x89PNG\r\n\x1a\n0");
        let pdf = write("c.pdf", b"%PDF-1.7");
        let blocks = read_all(&[text, image, pdf], &InputSources::Any).await.expect("readable");
        let media = |mime_type: &str, bytes: &[u8], name: Option<&str>| {
            let data = STANDARD.encode(bytes);
            Block::Media(Media { mime_type: mime_type.into(), data, name: name.map(str::to_owned) })
        };
        let image = media("image/png", b"\x89PNG\r\n\x1a\n0", None);
        let pdf = media("application/pdf", b"%PDF-1.7", Some("c.pdf"));
        assert_eq!(blocks, [Block::text(r#"{"a": "\u00e9"}"#), image, pdf]);
        let binary = write("d", b"\x00\x01");
        let error = read_all(std::slice::from_ref(&binary), &InputSources::Any).await.expect_err("binary").to_string();
        let expected =
            format!("failed to detect input type for {binary}: unsupported file type: application/octet-stream");
        assert_eq!(error, expected);
    }

    #[tokio::test]
    async fn inputs_that_cannot_be_read_are_named() {
        let error = |input: &str| {
            let inputs = [input.to_owned()];
            async move { read_all(&inputs, &InputSources::Any).await.expect_err("no input").to_string() }
        };
        assert_eq!(error("no/such/file").await, "input file does not exist: no/such/file");
        assert_eq!(error("/").await, "failed to read input file /: is a directory");
        let refused = error("http://127.0.0.1:1/x").await;
        assert!(refused.starts_with("failed to download content from URL http://127.0.0.1:1/x: "), "{refused}");
        assert!(is_url("HTTPS://host/a") && !is_url("file:///a") && !is_url("http://"));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn inputs_may_be_limited_to_folders() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let (open, closed) = (root.join("open"), root.join("closed"));
        let file = |folder: &Path| folder.join("a.txt").display().to_string();
        for folder in [&open, &closed] {
            std::fs::create_dir(folder).expect("creates");
            std::fs::write(file(folder), "text").expect("writes");
        }
        std::os::unix::fs::symlink(&closed, open.join("link")).expect("links");
        let sources = InputSources::Folders(vec![open.clone()]);
        let read = async |input: String| read_all(&[input], &sources).await;
        assert_eq!(read(file(&open)).await.expect("readable"), [Block::text("text")]);
        let missing = read(open.join("b.txt").display().to_string()).await.expect_err("missing");
        assert!(matches!(missing, InputError::Missing(_)), "{missing}");
        let others = [
            file(&closed),
            open.join("link/a.txt").display().to_string(),
            open.join("link/b.txt").display().to_string(),
            open.join("../closed/a.txt").display().to_string(),
            open.join("../closed/b.txt").display().to_string(),
            closed.join("b.txt").display().to_string(),
            "/etc/passwd".to_owned(),
            "http://127.0.0.1:1/x".to_owned(),
            format!("{}x", open.display()),
        ];
        for input in others {
            let refused = read(input.clone()).await.expect_err("refused");
            assert!(matches!(refused, InputError::Refused(_)), "{input}: {refused}");
        }
    }

    #[tokio::test]
    async fn an_input_has_a_largest_size() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        std::fs::File::create(&path).expect("creates").set_len(MAX_SIZE as u64 + 1).expect("grows");
        let path = path.to_str().expect("UTF-8").to_owned();
        let error = read_all(std::slice::from_ref(&path), &InputSources::Any).await.expect_err("too large");
        assert!(matches!(&error, InputError::TooLarge(large) if *large == path), "{error}");
        assert!(error.to_string().ends_with("exceeds maximum size limit (50 MiB)"), "{error}");
        let text = folder.path().join("text");
        std::fs::write(&text, "a".repeat(MAX_SIZE)).expect("writes");
        let three = vec![text.display().to_string(); 3];
        let error = read_all(&three, &InputSources::Any).await.expect_err("too large");
        assert!(matches!(&error, InputError::TooLargeTogether), "{error}");
    }
}
