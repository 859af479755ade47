//! From /proc, and unknown where there is none.

use std::fs;

use super::{SystemState, Usage};

/// Clock ticks per second in /proc, on every Linux that there is.
const TICKS: f64 = 100.0;

/// What is known of this system.
pub fn system_state() -> SystemState {
    let read = |path: &str| fs::read_to_string(path).ok();
    let information = read("/proc/cpuinfo").unwrap_or_default();
    let processor = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    SystemState {
        release: read("/proc/sys/kernel/osrelease").map(|release| release.trim().to_owned()),
        processor: processor.map(|(_, name)| name.to_owned()),
        load: read("/proc/loadavg").and_then(|load| load.split(' ').next()?.parse().ok()),
    }
}

/// The members of a process group, such as a server that a script starts.
pub fn of_group(group: u32) -> Option<Usage> {
    let entries = fs::read_dir("/proc").ok()?;
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut usage = Usage::default();
    for pid in processes {
        let Some(stat) = Stat::read(&pid.to_string()).filter(|stat| stat.group == group) else { continue };
        usage.cpu_seconds += stat.cpu_seconds;
        usage.peak_memory = usage.peak_memory.max(peak_memory(pid).unwrap_or_default());
    }
    Some(usage).filter(|usage| usage.peak_memory > 0)
}

/// The processor time of this process in seconds.
pub fn own_seconds() -> Option<f64> {
    Stat::read("self").map(|stat| stat.cpu_seconds)
}

struct Stat {
    group: u32,
    cpu_seconds: f64,
}

impl Stat {
    /// `man 5 proc_pid_stat`: fields 5, 14 and 15; the name of the program, which is before them, may have spaces.
    fn read(pid: &str) -> Option<Stat> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let fields: Vec<_> = text.rsplit_once(") ")?.1.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
        Some(Stat { group: fields.get(2)?.parse().ok()?, cpu_seconds: (ticks(11)? + ticks(12)?) / TICKS })
    }
}

/// The largest resident memory in bytes.
fn peak_memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
