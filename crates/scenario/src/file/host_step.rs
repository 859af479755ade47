//! The action `host`: a real host works on a prompt with the server.

use std::{path::Path, sync::Arc};

use super::{model_list::valid_script, named_file};
use crate::keys::KEYS;
use rehearse_document::{
    Node, Problems, Source,
    template::{Templates, Text},
};
use rehearse_host::{HeadlessHost, UnknownHost};

/// A host, its model, and what it has to do.
#[derive(Debug)]
pub struct HostStep {
    pub(crate) host: HeadlessHost,
    /// A valid script. Each run reads it again, because a model counts its errors.
    pub(crate) model: Arc<Source>,
    pub(crate) prompt: Text,
    /// The version that it must have.
    pub(crate) version: Option<String>,
}

impl HostStep {
    /// Paths are relative to `folder`.
    ///
    /// # Errors
    /// There is no such host, its file or the script cannot be read or is invalid, or a value is wrong.
    pub(crate) fn read(node: &Node, folder: &Path, templates: &mut Templates) -> Result<HostStep, Problems> {
        let fields = KEYS.fields(node, "host")?;
        let name = fields.required("name")?;
        let problem = |error: UnknownHost| Problems::from(name.problem(error.to_string()));
        Ok(HostStep {
            host: HeadlessHost::named(name.str()?, folder).map_err(problem)?,
            model: named_file::read(fields.required("model")?, folder, valid_script)?,
            prompt: templates.text(fields.required("prompt")?)?,
            version: fields.read("version", |node| Ok(node.str()?.to_owned()))?,
        })
    }
}
