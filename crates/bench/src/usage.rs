//! What processes use, and the machine; from /proc, and unknown where there is none.

use std::{fs, thread};

use rehearse_report::bench::{Machine, ProcessUsage};

/// Clock ticks per second in /proc, on every Linux that there is.
const TICKS: f64 = 100.0;

/// This machine, as it is before a run.
pub fn machine() -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let release = read("/proc/sys/kernel/osrelease");
    let information = read("/proc/cpuinfo");
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    Machine {
        system: format!("{} {}", std::env::consts::OS, release.trim()).trim_end().to_owned(),
        processor: model.map_or(std::env::consts::ARCH, |(_, model)| model).to_owned(),
        processors: thread::available_parallelism().map_or(1, usize::from),
        load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
    }
}

/// The members of a process group, such as a server that a script starts.
pub(crate) fn of_group(group: u32) -> Option<ProcessUsage> {
    let entries = fs::read_dir("/proc").ok()?;
    let processes = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut usage = ProcessUsage { processes: 1, ..ProcessUsage::default() };
    for pid in processes {
        let Some(stat) = Stat::read(&pid.to_string()).filter(|stat| stat.group == group) else { continue };
        usage.cpu_seconds += stat.cpu_seconds;
        usage.peak_memory = usage.peak_memory.max(peak_memory(pid).unwrap_or_default());
    }
    Some(usage).filter(|usage| usage.peak_memory > 0)
}

/// The processor time of this process in seconds.
pub(crate) fn own_seconds() -> Option<f64> {
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_time_and_a_group_with_memory() {
        assert!(own_seconds().is_some());
        let stat = Stat::read("self").expect("/proc");
        assert!(of_group(stat.group).expect("this process").peak_memory > 100_000);
        assert!(machine().processors >= 1);
    }
}
