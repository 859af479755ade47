use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

/// Opens a file with these options. If that creates it, it is private; one that exists keeps its permissions.
///
/// # Errors
/// Those of the system.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    options.mode(0o600).open(path)
}

/// Creates a folder, which must not exist.
///
/// # Errors
/// It exists, or cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Creates a folder, and those above it, unless they exist.
///
/// # Errors
/// One of them cannot be created.
pub fn create_folders(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes the permissions of all others from a file or a folder.
///
/// # Errors
/// It does not exist, or its permissions cannot be changed.
pub fn restrict(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 { Ok(()) } else { fs::set_permissions(path, Permissions::from_mode(mode & 0o700)) }
}

/// Who may read and write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// Only its owner.
    pub const OWNER: Access = Access(0o600);
    /// As the system gives it.
    pub const USUAL: Access = Access(0o777);

    /// That of a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn of(path: &Path) -> io::Result<Access> {
        Ok(Access(fs::metadata(path)?.permissions().mode() & 0o777))
    }

    /// What both allow.
    pub fn within(self, most: Access) -> Access {
        Access(self.0 & most.0)
    }

    /// Creates a file, which must not exist; others have at most this access.
    ///
    /// # Errors
    /// It exists, or cannot be created.
    pub fn create_new(self, path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).mode(self.0 & 0o666).open(path)
    }

    /// As [`Access::create_new`], with just this access, whatever is usual.
    ///
    /// # Errors
    /// As there.
    pub fn create_exactly(self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new().write(true).create_new(true).mode(self.0).open(path)?;
        file.set_permissions(Permissions::from_mode(self.0))?;
        Ok(file)
    }
}
