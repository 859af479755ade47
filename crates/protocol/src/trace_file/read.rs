//! Reads a trace file.

use std::collections::BTreeMap;

use super::{
    FORMAT, RecordedConnection, TraceFile, VERSION,
    line::{EventName, Header, Line, LineError},
};
use crate::{Event, Trace};

/// A file is not a trace that this program can read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceFileError {
    /// Its first line is not a header.
    #[error("it is not a trace of rehearse: its first line must be {{\"format\":\"{FORMAT}\",\"version\":{VERSION}}}")]
    NotATrace,
    /// It has another version of the format.
    #[error("the trace has version {0} of its format; this program reads version {VERSION}")]
    Version(u32),
    /// A line, counted from 1, is wrong.
    #[error("line {line}: {source}")]
    Line {
        /// The number of the line.
        line: usize,
        /// What is wrong.
        source: LineError,
    },
}

impl TraceFile {
    /// Reads a file. A line may be cut, and a number may be used again for a new connection.
    ///
    /// # Errors
    /// It is not a trace, is one of another version of the format, or a line is wrong.
    pub fn parse(bytes: &[u8]) -> Result<TraceFile, TraceFileError> {
        let mut lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(1..);
        let header = lines.next().and_then(|(line, _)| serde_json::from_slice::<Header>(line).ok());
        match header.filter(|header| header.format == FORMAT) {
            Some(Header { version: VERSION, .. }) => {}
            Some(Header { version, .. }) => return Err(TraceFileError::Version(version)),
            None => return Err(TraceFileError::NotATrace),
        }
        let mut file = TraceFile::default();
        let mut indices = BTreeMap::new();
        for (bytes, line) in lines {
            if bytes.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            // A line end would be a wrong character in a text that is cut.
            match serde_json::from_slice(bytes.trim_ascii_end()) {
                Ok(parsed) => {
                    file.add(&mut indices, parsed).map_err(|source| TraceFileError::Line { line, source })?;
                }
                // A recorder was killed; another one may have written after it.
                Err(error) if error.is_eof() => file.is_cut = true,
                Err(error) => return Err(TraceFileError::Line { line, source: error.into() }),
            }
        }
        Ok(file)
    }

    fn add(&mut self, indices: &mut BTreeMap<u32, usize>, line: Line) -> Result<(), LineError> {
        let number = line.connection;
        if line.event == EventName::Connection {
            indices.insert(number, self.connections.len());
            self.connections.push(RecordedConnection { info: line.info()?, trace: Trace::default() });
            return Ok(());
        }
        let connection = indices.get(&number).and_then(|index| self.connections.get_mut(*index));
        let connection = connection.ok_or(LineError::NotOpened(number))?;
        let (at, exchange) = (line.at()?, line.exchange);
        connection.trace.push_event(Event { at, exchange, kind: line.kind(at)? });
        Ok(())
    }
}
