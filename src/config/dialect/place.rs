//! Where programs keep their files.

/// A file of a program: where the program looks for it, and how to know it by its path. Parts are separated by `/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Below the folder of a project.
    Project(&'static str),
    /// Below the home folder.
    Home(&'static str),
    /// Below the folder that a system has for settings: `~/.config`, `~/Library/Application Support`, `%APPDATA%`.
    Config(&'static str),
    /// Below `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    Xdg(&'static str),
    /// Anywhere: only its name tells.
    Named(&'static str),
}

impl Place {
    /// How a path ends that is this place.
    pub const fn suffix(self) -> &'static str {
        match self {
            Place::Project(path) | Place::Home(path) | Place::Config(path) | Place::Xdg(path) | Place::Named(path) => {
                path
            }
        }
    }
}
