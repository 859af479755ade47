//! Reloads edited config files.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::shell::{Never, Shell};
use crate::cli::{
    background::BackgroundThread,
    file_watch::{EditDetector, read},
    style::{self, BAD},
};
use rehearse_client_configs::policy::Unreachable;
use rehearse_hub::{ConnectMode, ReloadReport};

/// The polling interval. An edit is applied when two polls in a row read it.
const PAUSE: Duration = Duration::from_millis(500);

/// Applies every edit.
pub(super) async fn watch_configs(shell: &Arc<Shell>) -> Never {
    let mut edits = EditDetector::new(contents(shell));
    // Connecting after one edit may take longer than the next edit.
    let mut reloading = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            Some(_) = reloading.next() => continue,
        }
        if edits.accept(contents(shell)).is_some() {
            reloading.push(Box::pin(shell.reload()));
        }
    }
}

/// The contents of all files; `None` for a file that is not there.
fn contents(shell: &Shell) -> Vec<Option<Vec<u8>>> {
    shell.loaded().files.paths().map(|path| read(path).ok()).collect()
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
}
