//! Recordings of other programs as traces.
//!
//! Each format has a file with its mark and its reader, which fills a `Recording`. What a recording does not have is
//! said and not invented. Where a format has a message as JSON and not as text, its bytes are those of compact JSON.

mod content;
mod direction;
mod har;
mod http_exchange;
mod inspector_network;
mod inspector_protocol;
mod json_rpc_log;
mod mcp_cassette_npm;
mod mcp_cassette_pypi;
mod mcp_recorder_devhelm;
mod mcp_recorder_toddegray;
mod mcporter;
mod mcpsnoop;
mod mcpsnoop_export;
mod recording;
mod time;

use crate::trace_file::TraceFile;
use content::Content;
use recording::Recording;

/// Every format, by which a file is recognized. The last one is for a file that has the mark of no other.
pub const FORMATS: &[Format] = &[
    har::FORMAT,
    inspector_protocol::FORMAT,
    inspector_network::FORMAT,
    mcporter::FORMAT,
    mcp_recorder_devhelm::FORMAT,
    mcp_recorder_toddegray::FORMAT,
    mcpsnoop::FORMAT,
    mcpsnoop_export::FORMAT,
    mcp_cassette_npm::FORMAT,
    mcp_cassette_pypi::FORMAT,
    json_rpc_log::FORMAT,
];

/// A format of another program.
#[derive(Debug)]
pub struct Format {
    /// The name by which a user chooses it.
    pub name: &'static str,
    /// The program, and the version in which the format was seen.
    pub source: &'static str,
    /// The date of that version.
    pub date: &'static str,
    /// What every file of the format has.
    pub mark: &'static str,
    has_mark: fn(&Content) -> bool,
    read: fn(&Content, &mut Recording),
}

/// A recording as a trace.
#[derive(Debug)]
pub struct Import {
    /// The trace.
    pub file: TraceFile,
    /// The format of the recording.
    pub format: &'static Format,
    /// What is missing or was guessed, a phrase each.
    pub lost: Vec<String>,
}

/// Why a file cannot be imported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// It has the mark of no format.
    #[error("it is no recording that is known; these are looked for:\n{}", marks())]
    Unknown,
    /// It is another file that this program knows.
    #[error("it is {0}")]
    Other(&'static str),
    /// It has the marks of several formats.
    #[error("it may be {}: choose one with --from", .0.join(" or "))]
    Several(Vec<&'static str>),
    /// There is no format with this name.
    #[error("there is no format `{0}`; choose one of these:\n{marks}", marks = marks())]
    NoFormat(String),
    /// There is no message in it.
    #[error("there is no message of MCP in it, read as `{0}`")]
    NoMessage(&'static str),
}

/// The name and the mark of each format.
fn marks() -> String {
    let line = |format: &Format| format!("  {:24}{} ({})", format.name, format.mark, format.source);
    FORMATS.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Reads a recording, in the format with this name or in the one whose mark it has.
///
/// ```
/// use rehearse_protocol::trace_import::import;
///
/// let log = r#"> {"jsonrpc":"2.0","id":1,"method":"ping"}
/// < {"jsonrpc":"2.0","id":1,"result":{}}"#;
/// let read = import(log.as_bytes(), None)?;
/// assert_eq!(read.format.name, "json-rpc-log");
/// assert_eq!(read.file.connections[0].trace.frames().count(), 2);
/// # Ok::<(), rehearse_protocol::trace_import::ImportError>(())
/// ```
///
/// # Errors
/// It has the mark of no format or of several, or no message.
pub fn import(bytes: &[u8], name: Option<&str>) -> Result<Import, ImportError> {
    let content = Content::new(bytes);
    let format = match name {
        Some(name) => {
            let named = FORMATS.iter().find(|format| format.name == name);
            named.ok_or_else(|| ImportError::NoFormat(name.to_owned()))?
        }
        None => recognized(&content)?,
    };
    let mut recording = Recording::default();
    (format.read)(&content, &mut recording);
    let (file, lost) = recording.finish();
    if file.connections.iter().all(|connection| connection.trace.frames().next().is_none()) {
        return Err(ImportError::NoMessage(format.name));
    }
    Ok(Import { file, format, lost })
}

fn recognized(content: &Content) -> Result<&'static Format, ImportError> {
    let Some((last, formats)) = FORMATS.split_last() else { return Err(ImportError::Unknown) };
    let found: Vec<_> = formats.iter().filter(|format| (format.has_mark)(content)).collect();
    match found[..] {
        [format] => Ok(format),
        [] if content.lines_have(&["format", "version"]) => Err(ImportError::Other("a trace already: use it as it is")),
        [] if content.has(&["mcpServers"]) || content.has(&["servers"]) => {
            Err(ImportError::Other("a config of a client, which `rehearse validate-config` checks"))
        }
        [] if (last.has_mark)(content) => Ok(last),
        [] => Err(ImportError::Unknown),
        _ => Err(ImportError::Several(found.iter().map(|format| format.name).collect())),
    }
}
