use std::{collections::BTreeSet, env};

use winsafe::{FILETIME, HPROCESS, HPROCESSLIST, co};

use super::{SystemState, Usage};

/// `FILETIME`: units of 100 ns.
const UNITS: f64 = 1e7;

/// What is known of this system.
pub fn system_state() -> SystemState {
    SystemState { release: None, processor: env::var("PROCESSOR_IDENTIFIER").ok(), load: None }
}

/// A process and those that it has started, as far as they run.
pub fn of_group(leader: u32) -> Option<Usage> {
    let mut usage = Usage::default();
    for id in descendants(leader) {
        let access = co::PROCESS::QUERY_LIMITED_INFORMATION | co::PROCESS::VM_READ;
        let Ok(process) = HPROCESS::OpenProcess(access, false, id) else { continue };
        usage.cpu_seconds += seconds(&process).unwrap_or_default();
        let memory = process.GetProcessMemoryInfo().map_or(0, |memory| memory.PeakWorkingSetSize);
        usage.peak_memory = usage.peak_memory.max(memory as u64);
    }
    Some(usage).filter(|usage| usage.peak_memory > 0)
}

/// The processor time of this process in seconds.
pub fn own_seconds() -> Option<f64> {
    seconds(&HPROCESS::GetCurrentProcess())
}

fn seconds(process: &HPROCESS) -> Option<f64> {
    let (_, _, kernel, user) = process.GetProcessTimes().ok()?;
    let of =
        |time: FILETIME| (f64::from(time.dwHighDateTime) * 4_294_967_296.0 + f64::from(time.dwLowDateTime)) / UNITS;
    Some(of(kernel) + of(user))
}

fn descendants(leader: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::from([leader]);
    let Ok(mut list) = HPROCESSLIST::CreateToolhelp32Snapshot(co::TH32CS::SNAPPROCESS, None) else { return found };
    let pairs: Vec<_> =
        list.iter_processes().flatten().map(|entry| (entry.th32ProcessID, entry.th32ParentProcessID)).collect();
    loop {
        let before = found.len();
        found.extend(pairs.iter().filter(|(_, parent)| found.contains(parent)).map(|(id, _)| *id).collect::<Vec<_>>());
        if found.len() == before {
            return found;
        }
    }
}
