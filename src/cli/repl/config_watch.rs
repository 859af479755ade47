//! Reloads edited config files.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::shell::{Never, Shell};
use crate::cli::{
    background::BackgroundThread,
    mock::script_watcher::{EditDetector, read},
    style::{self, BAD},
};
use rehearse_client_configs::policy::Unreachable;
use rehearse_hub::{ConnectMode, ReloadReport};

/// The polling interval. An edit is applied when two polls in a row read it.
const PAUSE: Duration = Duration::from_millis(500);

/// Applies every edit.
pub(super) async fn watch_configs(shell: &Arc<Shell>) -> Never {
    let mut edits = EditDetector::new(content(shell));
    // Connecting after one edit may take longer than the next edit.
    let mut reloading = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            Some(_) = reloading.next() => continue,
        }
        if edits.accept(content(shell)) {
            reloading.push(Box::pin(shell.reload()));
        }
    }
}

/// The contents of all files.
fn content(shell: &Shell) -> Vec<u8> {
    let mut content = Vec::new();
    for path in shell.loaded().files.paths() {
        content.extend(file_state(path));
    }
    content
}

fn file_state(path: &Path) -> Vec<u8> {
    match read(path) {
        Ok(text) => [b"+", &text.len().to_le_bytes()[..], &text].concat(),
        Err(_) => b"-".to_vec(),
    }
}

impl Shell {
    /// Reloads the configs. If an edited file has mistakes, they are printed and the servers stay as they are.
    pub(super) async fn reload(&self) -> bool {
        let one_at_a_time = self.reloading.lock().await;
        let before = self.loaded();
        let (target, show_secrets) = (self.args.target.clone(), self.args.connection.show_secrets);
        // A file may be a pipe without a writer.
        let reading = BackgroundThread::start(move || target.read(Some(&before.files), show_secrets));
        let Some(read) = reading.join().await else { return false };
        let members = match read.and_then(|(servers, files)| self.load(servers, files)) {
            Ok(members) => members,
            Err(failure) => {
                style::print(&format!(
                    "{}{BAD}not reloaded{BAD:#}: still using the previous servers\n",
                    failure.text()
                ));
                return false;
            }
        };
        let (reloaded, leave) = self.hub.replace(members);
        drop(one_at_a_time);
        self.hub_session().note(&format!("config reloaded: {}", summary(&reloaded)));
        leave.await;
        if self.hub.options().connect == ConnectMode::Eager {
            let fresh = reloaded.added.into_iter().chain(reloaded.restarted).collect();
            self.connect_to(fresh, Unreachable::Skipped).await;
        }
        true
    }
}

fn summary(reloaded: &ReloadReport) -> String {
    let ReloadReport { added, removed, restarted, .. } = reloaded;
    let kinds = [("added", added), ("removed", removed), ("restarted", restarted)];
    let changes = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let changes: Vec<_> = changes.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
    if changes.is_empty() { "no server changed".to_owned() } else { changes.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effects_of_a_changed_config_are_reported() {
        assert_eq!(summary(&ReloadReport::default()), "no server changed");
        let reloaded = ReloadReport {
            added: vec!["a".into(), "b".into()],
            restarted: vec!["c".into()],
            ..ReloadReport::default()
        };
        assert_eq!(summary(&reloaded), "added a, b; restarted c");
    }

    #[test]
    fn a_file_that_is_not_there_is_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let gone = file_state(&path);
        std::fs::write(&path, "").expect("writes");
        assert_ne!(file_state(&path), gone);
    }
}
