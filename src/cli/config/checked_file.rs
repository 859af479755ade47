//! A checked config file.

use std::path::PathBuf;

use rehearse_client_configs::ClientConfig;
use rehearse_document::Node;
use rehearse_release::Release;
use rehearse_report::findings::File;

/// A checked file and its servers, for `--connect`.
pub(super) struct CheckedFile {
    pub(super) file: File,
    /// The servers of a file without errors; `None` without `--connect`.
    pub(super) config: Option<ClientConfig>,
    /// What a release file is and says.
    pub(super) release: Option<(Release, Node)>,
    /// Whether to start what the release file describes.
    pub(super) is_to_start: bool,
    /// The base of relative paths in the file.
    pub(super) folder: PathBuf,
}
