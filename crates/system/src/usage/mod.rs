//! What processes and the machine use; unknown where the system does not say it without privileges.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{of_group, own_seconds, system_state};
#[cfg(windows)]
pub use windows::{of_group, own_seconds, system_state};

/// What a process and those that it has started use.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// The processor time in seconds, of all together.
    pub cpu_seconds: f64,
    /// The largest resident memory of one of them, in bytes.
    pub peak_memory: u64,
}

/// What is known of the system.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemState {
    /// The version of the kernel.
    pub release: Option<String>,
    /// The name of the processor.
    pub processor: Option<String>,
    /// How many processes have been running or waiting in the last minute.
    pub load: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(target_os = "linux", windows))]
    #[test]
    fn this_process_uses_time_and_memory() {
        assert!(own_seconds().is_some());
        assert!(of_group(leader()).expect("this process").peak_memory > 100_000);
    }

    #[cfg(target_os = "linux")]
    fn leader() -> u32 {
        rustix::process::getpgrp().as_raw_pid().cast_unsigned()
    }

    #[cfg(windows)]
    fn leader() -> u32 {
        std::process::id()
    }
}
