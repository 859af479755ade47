//! What differs between systems, one module for each thing. No other crate asks which system it is on.
//!
//! | module | Unix | Windows |
//! | --- | --- | --- |
//! | [`process`] | a process group, a tag in the environment, a reaper | a Job Object that the system ends with us |
//! | [`program`] | the folders of `PATH` | also the endings of `PATHEXT`; `.cmd` and `.bat` run by `cmd.exe` |
//! | [`signal`] | SIGINT, SIGTERM, SIGQUIT, SIGHUP | Ctrl-C, Ctrl-Break, the end of the console or of the session |
//! | [`stdio`] | polled pipes and sockets | threads |
//! | [`terminal`] | process groups in the foreground, termios | one console for all |
//! | [`local_pipe`] | a socket in a folder for the user | a named pipe for the user |
//! | [`private`] | modes 0600 and 0700 | an access list of the user and the system |
//! | [`special_file`] | pipes and devices have paths | they have none |
//! | [`usage`] | `/proc`; nothing on macOS | the times and sizes of a process and its children |

/// Whether this is Windows.
pub const IS_WINDOWS: bool = cfg!(windows);
/// Whether this is macOS.
pub const IS_MACOS: bool = cfg!(target_os = "macos");

pub mod local_pipe;
pub mod private;
pub mod process;
pub mod program;
pub mod signal;
pub mod special_file;
pub mod stdio;
mod temp_folder;
pub mod terminal;
pub mod usage;

pub use signal::Signal;
pub use temp_folder::TempFolder;
