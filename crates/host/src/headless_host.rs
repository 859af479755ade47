//! The hosts by their names, and where their programs are.

use std::{
    io,
    path::{Path, PathBuf},
};

use rehearse_client_configs::headless::{Headless, Package, Registry, headless_hosts, not_headless, read_host};
use rehearse_document::{Diagnostics, Source, nearest};
use rehearse_system::program;

/// A host that is started without a person.
#[derive(Clone, Debug)]
pub struct HeadlessHost {
    /// Its name, such as `claude-code`.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// How it is started.
    pub headless: Headless,
    /// The folder of its file, if that is one of the user.
    folder: Option<PathBuf>,
}

/// Why there is no host of a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnknownHost {
    /// There is none.
    #[error("there is no host {name:?}{near} (`rehearse host list` names them)")]
    Name {
        /// The name.
        name: String,
        /// A name like it, as a question.
        near: String,
    },
    /// It needs a person.
    #[error("{title} cannot be run without a person: {reason}")]
    NotHeadless {
        /// What people call it.
        title: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// Its file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its file has mistakes.
    #[error(transparent)]
    Invalid(#[from] Diagnostics),
    /// Its file does not say how it is started.
    #[error("{} does not say how the host is started: it has no `headless`", .0.display())]
    NoStart(PathBuf),
}

impl HeadlessHost {
    /// All that `rehearse` knows, in the order of their names.
    pub fn all() -> Vec<HeadlessHost> {
        let host = |(name, title, headless): (&str, &str, &Headless)| HeadlessHost {
            name: name.to_owned(),
            title: title.to_owned(),
            headless: headless.clone(),
            folder: None,
        };
        let mut all: Vec<_> = headless_hosts().map(host).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    /// The host of this name. A name with a dot or a separator is a file, whose path starts at `folder`.
    ///
    /// # Errors
    /// There is no such host; or its file cannot be read, has mistakes, or does not say how the host is started.
    pub fn named(name: &str, folder: &Path) -> Result<HeadlessHost, UnknownHost> {
        if name.contains(['/', '\\', '.']) {
            return HeadlessHost::of_file(folder.join(name));
        }
        let all = HeadlessHost::all();
        if let Some(host) = all.iter().find(|host| host.name == name) {
            return Ok(host.clone());
        }
        if let Some((_, title, reason)) = not_headless().find(|(known, ..)| *known == name) {
            return Err(UnknownHost::NotHeadless { title, reason });
        }
        let known: Vec<_> = all.iter().map(|host| host.name.as_str()).collect();
        let near = nearest(name, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        Err(UnknownHost::Name { name: name.to_owned(), near })
    }

    fn of_file(path: PathBuf) -> Result<HeadlessHost, UnknownHost> {
        let source = Source::read(&path).map_err(|source| UnknownHost::Read { path: path.clone(), source })?;
        let read = read_host(&source).map_err(|problems| problems.in_source(&source))?;
        let Some((name, title, headless)) = read else { return Err(UnknownHost::NoStart(path)) };
        Ok(HeadlessHost { name, title, headless, folder: path.parent().map(Path::to_owned) })
    }

    /// Its program, if it is on this machine: beside its file, in `hosts`, the folder with installed hosts, or in `PATH`.
    pub fn program(&self, hosts: Option<&Path>) -> Option<PathBuf> {
        let name = self.headless.program();
        let beside = self.folder.as_ref().and_then(|folder| std::path::absolute(folder.join(name)).ok());
        let installed = hosts.map(|hosts| hosts.join(&self.name).join(&self.headless.package.program));
        beside.into_iter().chain(installed).find(|path| path.is_file()).or_else(|| program::find(name))
    }

    /// How it is installed.
    pub fn install(&self) -> String {
        let Package { registry, name, version, .. } = &self.headless.package;
        match registry {
            Registry::Npm => format!("npm install {name}@{version}"),
            Registry::PyPi => format!("pip install {name}=={version}"),
        }
    }

    /// What to say if its program is not on this machine.
    pub fn missing(&self) -> String {
        format!("{} is not on this machine; {}, or name its folder with --hosts", self.title, self.install())
    }
}
