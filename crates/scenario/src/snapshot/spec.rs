//! Which cells share a snapshot.

use crate::keys::KEYS;
use rehearse_document::{Node, Problems, Value};
use rehearse_protocol::{Era, Protocol, Version};
use rehearse_report::Cell;

/// The key `snapshot` of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotSpec {
    /// The name of the snapshot.
    pub name: String,
    /// The properties in which cells may differ; empty if all cells share one snapshot.
    pub per: Vec<SnapshotScope>,
}

/// A property of a cell that has its own snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotScope {
    /// One snapshot for each transport.
    Transport,
    /// One snapshot for each requested protocol version.
    Protocol,
    /// One snapshot for each era.
    Era,
}

impl SnapshotSpec {
    pub(crate) fn read(node: &Node) -> Result<SnapshotSpec, Problems> {
        let (name, per) = match &node.value {
            Value::Mapping(_) => {
                let fields = KEYS.fields(node, "snapshot")?;
                let read_per = |node: &Node| match node.str()? {
                    "transport" => Ok(SnapshotScope::Transport),
                    "protocol" => Ok(SnapshotScope::Protocol),
                    "era" => Ok(SnapshotScope::Era),
                    _ => Err(node.problem("`per` must be transport, protocol or era").into()),
                };
                let per = fields.read("per", |node| match node.items() {
                    Ok(_) => node.each(read_per),
                    Err(_) => Ok(vec![read_per(node)?]),
                })?;
                (fields.required("name")?, per.unwrap_or_default())
            }
            _ => (node, Vec::new()),
        };
        let text = name.str()?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if text.is_empty() || !text.chars().all(is_plain) || text.starts_with('.') {
            return Err(name.problem("a snapshot name may contain only letters, digits, `-`, `_` and `.`").into());
        }
        Ok(SnapshotSpec { name: text.to_owned(), per })
    }

    /// The file name, without extension, of the snapshot for a cell with this negotiated version.
    pub fn key(&self, cell: Cell, version: Option<Version>) -> String {
        let version = version.or(match cell.protocol {
            Protocol::Exact(version) => Some(version),
            Protocol::Auto => None,
        });
        let part = |per: &SnapshotScope| match per {
            SnapshotScope::Transport => cell.transport.to_string(),
            SnapshotScope::Protocol => cell.protocol.to_string(),
            SnapshotScope::Era => version.map_or(Era::Legacy, Version::era).to_string(),
        };
        let parts = self.per.iter().map(part);
        std::iter::once(self.name.clone()).chain(parts).collect::<Vec<_>>().join("@")
    }

    /// Whether the file name does not depend on the negotiated version.
    pub(crate) fn has_key_for(&self, cell: Cell) -> bool {
        cell.protocol != Protocol::Auto || !self.per.contains(&SnapshotScope::Era)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_protocol::Transport;

    #[test]
    fn snapshot_keys_contain_the_scopes_of_per() {
        let spec = |per: &[SnapshotScope]| SnapshotSpec { name: "info".into(), per: per.to_vec() };
        let cell = Cell { transport: Transport::Ws, protocol: Protocol::Exact(Version::V2025_06_18) };
        assert_eq!(spec(&[]).key(cell, None), "info");
        assert_eq!(spec(&[SnapshotScope::Protocol]).key(cell, None), "info@2025-06-18");
        let auto = Cell { protocol: Protocol::Auto, ..cell };
        assert_eq!(spec(&[SnapshotScope::Era]).key(auto, Some(Version::V2026_07_28)), "info@modern");
        assert_eq!(spec(&[SnapshotScope::Era]).key(auto, Some(Version::V2025_03_26)), "info@legacy");
        assert_eq!(spec(&[SnapshotScope::Transport, SnapshotScope::Era]).key(cell, None), "info@ws@legacy");
    }
}
