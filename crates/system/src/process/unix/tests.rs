use std::time::Duration;

use tokio::{process::Command, time::Instant};

use super::{ProcessGroup, group::has_others, scan};
use crate::{Signal, process::ProcessChange};

const PATIENCE: Duration = Duration::from_secs(60);

fn shell(script: &str) -> ProcessGroup {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    ProcessGroup::start(command).expect("starts")
}

async fn change(process: &mut ProcessGroup) -> ProcessChange {
    tokio::time::timeout(PATIENCE, process.change()).await.expect("in time").expect("a child of ours")
}

#[tokio::test]
async fn a_command_can_be_stopped_and_continued_and_ends_with_its_code() {
    let mut process = shell("kill -STOP $$; exit 7");
    assert_eq!(change(&mut process).await, ProcessChange::Stopped { uses_terminal: false });
    process.signal(Signal::Continue);
    let ProcessChange::Ended(status) = change(&mut process).await else { panic!("it was continued") };
    assert_eq!(status.code(), Some(7));
    process.finish(PATIENCE).await;
}

#[tokio::test]
async fn a_command_that_ends_during_the_check_was_not_stopped() {
    let mut process = shell("exit 0");
    assert!(matches!(change(&mut process).await, ProcessChange::Ended(_)));
    assert_eq!(process.stop_signal(), Ok(None));
    process.finish(PATIENCE).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn remaining_processes_of_a_command_get_sigterm_and_then_sigkill() {
    let deaf = "sh -c \"trap '' TERM; sleep 4332; sleep 4333\"";
    for (left, grace) in [
        ("sleep 4331", PATIENCE),
        ("setsid sleep 4331", PATIENCE),
        ("env -i sleep 4331", PATIENCE),
        (deaf, Duration::ZERO),
        (&format!("setsid {deaf}"), Duration::ZERO),
    ] {
        let mut process = shell(&format!("{left} & exit 0"));
        let (tag, group) = (process.tag.clone().expect("tracked"), process.leader);
        assert!(matches!(change(&mut process).await, ProcessChange::Ended(status) if status.success()));
        assert!(process.has_others().await, "{left}");
        process.finish(grace).await;
        let deadline = Instant::now() + PATIENCE;
        while has_others(group) || !scan::processes(&tag).is_empty() {
            assert!(Instant::now() < deadline, "{left} is gone");
            tokio::task::yield_now().await;
        }
    }
}
