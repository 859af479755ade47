//! Conversations on disk: the file `.cpeconvo` of cpe, a SQLite database.
//!
//! ```text
//! messages(id, parent_id, title, role, tool_result_error, created_at)
//! blocks(id, message_id, block_type, modality_type, mime_type, content, extra_fields, sequence_order, created_at)
//! ```
//!
//! A message names the one before it, so conversations are trees. Messages are only added. Any number of processes may
//! add to one file at the same time.

mod block_row;
mod sink;
mod summary;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    time::Duration,
};

use parking_lot::Mutex;
use rand::RngExt as _;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Row, TransactionBehavior, params};
use serde::Serialize;

pub use self::{
    sink::ConversationSink,
    summary::{ConversationSummary, MessageSummary},
};
use block_row::BlockRow;
use rehearse_llm::model::{Message, ToolResult};

/// The name of the file in a working directory.
pub const FILE_NAME: &str = ".cpeconvo";

/// How long a write waits for other processes. The client of a run waits, too.
const BUSY_LIMIT: Duration = Duration::from_secs(1);
/// How often an id is drawn again because it is taken.
const ID_TRIES: u32 = 10;

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS messages (
    id TEXT PRIMARY KEY,
    parent_id TEXT NULL REFERENCES messages(id) ON DELETE RESTRICT,
    title TEXT NULL,
    role TEXT NOT NULL,
    tool_result_error BOOLEAN NOT NULL DEFAULT 0,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX IF NOT EXISTS idx_messages_created_at ON messages(created_at);
CREATE INDEX IF NOT EXISTS idx_messages_parent_id ON messages(parent_id);
CREATE TABLE IF NOT EXISTS blocks (
    id TEXT NULL,
    message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
    block_type TEXT NOT NULL,
    modality_type INTEGER NOT NULL,
    mime_type TEXT NOT NULL,
    content TEXT NOT NULL,
    extra_fields TEXT NULL,
    sequence_order INTEGER NOT NULL,
    created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (message_id, sequence_order)
);
";

/// A file with conversations.
#[derive(Debug)]
pub struct ConversationStore {
    path: PathBuf,
    connection: Mutex<Connection>,
    layout: Layout,
}

/// How the file marks the messages of subagents. Files of cpe have had both forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// The column `title` has the label.
    Titled,
    /// The column `is_subagent` says only that it is one.
    Flagged,
}

/// Why a file with conversations cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("there is no conversation file {}", .0.display())]
    NoFile(PathBuf),
    #[error("there is no message {id} in {}", .path.display())]
    NoMessage { id: String, path: PathBuf },
    #[error("{}: {error}", .path.display())]
    Sqlite { path: PathBuf, error: rusqlite::Error },
}

/// A message in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredMessage {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<String>,
    /// `subagent:NAME:RUNID` for messages of a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `2026-11-25 09:30:00`, in UTC.
    pub created_at: String,
    #[serde(flatten)]
    pub message: Message,
}

impl ConversationStore {
    /// Opens a file to which messages can be added; if it does not exist, it is created for its owner alone.
    ///
    /// # Errors
    /// The file cannot be created, or is no such database.
    pub fn open(path: &Path) -> Result<ConversationStore, StoreError> {
        // SQLite gives its files beside this one the same mode. What is wrong with the path, it says better.
        let _ = rehearse_system::private::create_new(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|mut connection| {
            prepare(&mut connection)?;
            let layout = Layout::of(&connection)?;
            Ok((connection, layout))
        });
        ConversationStore::new(path, opened)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// There is no such file, or it is no such database.
    pub fn read(path: &Path) -> Result<ConversationStore, StoreError> {
        if !path.exists() {
            return Err(StoreError::NoFile(path.to_owned()));
        }
        // SQLite may have to bring the file up to date after a process was killed.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(path, flags).and_then(|connection| {
            connection.busy_timeout(BUSY_LIMIT)?;
            let layout = Layout::of(&connection)?;
            Ok((connection, layout))
        });
        ConversationStore::new(path, opened)
    }

    fn new(path: &Path, opened: rusqlite::Result<(Connection, Layout)>) -> Result<ConversationStore, StoreError> {
        let path = path.to_owned();
        match opened {
            Ok((connection, layout)) => Ok(ConversationStore { path, connection: Mutex::new(connection), layout }),
            Err(error) => Err(StoreError::Sqlite { path, error }),
        }
    }

    /// Adds a message after `parent`, in one transaction. Returns its id: 6 letters and digits.
    ///
    /// # Errors
    /// There is no such parent, or the file cannot be written.
    pub fn append(&self, parent: Option<&str>, label: Option<&str>, message: &Message) -> Result<String, StoreError> {
        let rows = BlockRow::of_message(message);
        self.insert(parent, label, message, &rows).map_err(|error| match (parent, &error) {
            (Some(parent), rusqlite::Error::SqliteFailure(cause, _))
                if cause.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY =>
            {
                self.no_message(parent)
            }
            _ => self.failure(error),
        })
    }

    fn insert(
        &self,
        parent: Option<&str>,
        label: Option<&str>,
        message: &Message,
        rows: &[BlockRow],
    ) -> rusqlite::Result<String> {
        let (column, mark): (_, rusqlite::types::Value) = match self.layout {
            Layout::Titled => ("title", label.map(str::to_owned).into()),
            Layout::Flagged => ("is_subagent", label.is_some().into()),
        };
        let is_error = matches!(message, Message::ToolResult(ToolResult { is_error: true, .. }));
        let insert = format!(
            "INSERT OR IGNORE INTO messages (id, parent_id, {column}, role, tool_result_error) VALUES (?, ?, ?, ?, ?)"
        );
        let mut connection = self.connection.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut tries = 1..=ID_TRIES;
        let id = loop {
            let id = new_id();
            if transaction.execute(&insert, params![id, parent, mark, role(message), is_error])? == 1 {
                break id;
            }
            if tries.next().is_none() {
                return Err(rusqlite::Error::StatementChangedRows(0));
            }
        };
        for (position, row) in rows.iter().enumerate() {
            row.insert(&transaction, &id, position)?;
        }
        transaction.commit()?;
        Ok(id)
    }

    /// All messages in the order in which they were added.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn list(&self) -> Result<Vec<MessageSummary>, StoreError> {
        let sql = format!(
            "SELECT m.id, m.parent_id, {}, m.role, m.tool_result_error, CAST(m.created_at AS TEXT), (SELECT b.content \
             FROM blocks b WHERE b.message_id = m.id AND b.block_type = 'content' AND b.modality_type = 0 \
             ORDER BY b.sequence_order LIMIT 1) FROM messages m ORDER BY m.rowid",
            self.layout.label()
        );
        let read = |connection: &Connection| -> rusqlite::Result<Vec<MessageSummary>> {
            let mut statement = connection.prepare(&sql)?;
            statement.query_map([], MessageSummary::read)?.collect()
        };
        read(&self.connection.lock()).map_err(|error| self.failure(error))
    }

    /// The conversation that ends with a message, its first message first.
    ///
    /// # Errors
    /// There is no such message, or the file cannot be read.
    pub fn load(&self, id: &str) -> Result<Vec<StoredMessage>, StoreError> {
        let chain = self.load_chain(id).map_err(|error| self.failure(error))?;
        if chain.is_empty() { Err(self.no_message(id)) } else { Ok(chain) }
    }

    fn load_chain(&self, id: &str) -> rusqlite::Result<Vec<StoredMessage>> {
        let connection = self.connection.lock();
        let sql = format!(
            "SELECT m.id, m.parent_id, {}, CAST(m.created_at AS TEXT), m.role, m.tool_result_error FROM messages m \
             WHERE m.id = ?",
            self.layout.label()
        );
        let mut find = connection.prepare(&sql)?;
        let mut blocks = connection.prepare(BlockRow::SELECT)?;
        let (mut next, mut seen, mut chain) = (Some(id.to_owned()), HashSet::new(), Vec::new());
        while let Some(id) = next.take().filter(|id| seen.insert(id.clone())) {
            let header = |row: &Row<'_>| {
                let (role, is_error): (String, bool) = (row.get(4)?, row.get(5)?);
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, role, is_error))
            };
            let Some((id, parent_id, label, created_at, role, is_error)) = find.query_row([&id], header).optional()?
            else {
                break;
            };
            let rows = blocks.query_map([&id], BlockRow::read)?.collect::<rusqlite::Result<Vec<_>>>()?;
            let message = BlockRow::to_message(rows, &role, is_error);
            next.clone_from(&parent_id);
            chain.push(StoredMessage { id, parent_id, label, created_at, message });
        }
        chain.reverse();
        name_tools(&mut chain);
        Ok(chain)
    }

    fn failure(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Sqlite { path: self.path.clone(), error }
    }

    fn no_message(&self, id: &str) -> StoreError {
        StoreError::NoMessage { id: id.to_owned(), path: self.path.clone() }
    }
}

impl Layout {
    fn of(connection: &Connection) -> rusqlite::Result<Layout> {
        let sql = "SELECT count(*) FROM pragma_table_info('messages') WHERE name = 'is_subagent'";
        let is_flagged = connection.query_row(sql, [], |row| row.get::<_, i64>(0))? > 0;
        Ok(if is_flagged { Layout::Flagged } else { Layout::Titled })
    }

    /// The SQL expression of the label.
    fn label(self) -> &'static str {
        match self {
            Layout::Titled => "m.title",
            Layout::Flagged => "CASE m.is_subagent WHEN 0 THEN NULL ELSE 'subagent' END",
        }
    }
}

/// Readers and one writer can use the file at the same time, and a writer waits for another one.
fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_LIMIT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Another process may do this now; the file keeps it.
    match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
        done => done?,
    }
    // A killed process loses nothing with it.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.commit()
}

fn role(message: &Message) -> &'static str {
    match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::ToolResult(_) => "tool_result",
    }
}

fn new_id() -> String {
    let mut random = rand::rng();
    (0..6).map(|_| char::from(random.sample(rand::distr::Alphanumeric))).collect()
}

/// The file has the id of a result's call, but not the name of its tool.
fn name_tools(chain: &mut [StoredMessage]) {
    for index in 0..chain.len() {
        let (before, rest) = chain.split_at_mut(index);
        let Message::ToolResult(result) = &mut rest[0].message else { continue };
        let mut calls = before.iter().rev().flat_map(|stored| stored.message.tool_calls());
        if let Some(call) = calls.find(|call| call.id == result.call_id) {
            result.tool.clone_from(&call.name);
        }
    }
}
