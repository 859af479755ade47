//! An access list of the user and the system, which does not inherit from the folder above.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use windows_permissions::{
    LocalBox, SecurityDescriptor,
    constants::{SeObjectType, SecurityInformation},
    utilities::current_process_sid,
    wrappers::{ConvertSidToStringSid, SetNamedSecurityInfo},
};

/// Opens a file with these options. If that creates it, it is private; one that exists keeps its access list.
///
/// # Errors
/// Those of the system.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let is_new = fs::symlink_metadata(path).is_err();
    let file = options.open(path)?;
    if is_new {
        restrict(path)?;
    }
    Ok(file)
}

/// Creates a folder, which must not exist.
///
/// # Errors
/// It exists, or cannot be created.
pub fn create_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)?;
    restrict(path)
}

/// Creates a folder, and those above it, unless they exist.
///
/// # Errors
/// One of them cannot be created.
pub fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    match create_folder(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}

/// Removes the permissions of all others from a file or a folder, and what is created in it later.
///
/// # Errors
/// It does not exist, or its access list cannot be changed.
pub fn restrict(path: &Path) -> io::Result<()> {
    let user = ConvertSidToStringSid(&*current_process_sid()?)?;
    let user = user.to_string_lossy();
    let inherited = if fs::metadata(path)?.is_dir() { "OICI" } else { "" };
    let text = format!("D:P(A;{inherited};FA;;;{user})(A;{inherited};FA;;;SY)");
    let descriptor: LocalBox<SecurityDescriptor> = text.parse()?;
    SetNamedSecurityInfo(
        path.as_os_str(),
        SeObjectType::SE_FILE_OBJECT,
        SecurityInformation::Dacl | SecurityInformation::ProtectedDacl,
        None,
        None,
        descriptor.dacl(),
        None,
    )
}

/// Who may read and write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Owner,
    /// As the folder says.
    Usual,
}

impl Access {
    /// Only its owner.
    pub const OWNER: Access = Access::Owner;
    /// As the system gives it.
    pub const USUAL: Access = Access::Usual;

    /// That of a file: as its folder says.
    ///
    /// # Errors
    /// There is no such file.
    pub fn of(path: &Path) -> io::Result<Access> {
        fs::metadata(path).map(|_| Access::Usual)
    }

    /// What both allow.
    pub fn within(self, most: Access) -> Access {
        if self == Access::Owner { self } else { most }
    }

    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// It exists, or cannot be created.
    pub fn create_new(self, path: &Path) -> io::Result<File> {
        match self {
            Access::Owner => super::create_new(path),
            Access::Usual => File::create_new(path),
        }
    }

    /// As [`Access::create_new`].
    ///
    /// # Errors
    /// As there.
    pub fn create_exactly(self, path: &Path) -> io::Result<File> {
        self.create_new(path)
    }
}

#[cfg(test)]
mod tests {
    use windows_permissions::wrappers::{ConvertSecurityDescriptorToStringSecurityDescriptor, GetNamedSecurityInfo};

    use super::*;

    fn access_list(path: &Path) -> String {
        let kind = SeObjectType::SE_FILE_OBJECT;
        let descriptor = GetNamedSecurityInfo(path.as_os_str(), kind, SecurityInformation::Dacl).expect("known");
        let text = ConvertSecurityDescriptorToStringSecurityDescriptor(&descriptor, SecurityInformation::Dacl);
        text.expect("a list").to_string_lossy().into_owned()
    }

    #[test]
    fn the_user_and_the_system_have_all_rights_and_others_have_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let (private, file) = (folder.path().join("a/b"), folder.path().join("a/b/c"));
        create_folders(&private).expect("creates");
        super::super::create_new(&file).expect("creates");
        for path in [&private, &file] {
            let list = access_list(path);
            let user = ConvertSidToStringSid(&*current_process_sid().expect("a user")).expect("a text");
            for sid in ["SY", &user.to_string_lossy()] {
                assert!(list.contains(&format!(";FA;;;{sid})")), "{list}");
            }
            // Wine 8 keeps what is inherited from the folder above.
            let is_wine = Path::new(r"C:\windows\system32\winecfg.exe").exists();
            assert!(is_wine || (list.starts_with("D:P") && list.matches("(A;").count() == 2), "{list}");
        }
    }
}
