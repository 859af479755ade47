//! Config files that are edited while their servers are in use.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};

use super::shell::{Never, Shell};
use crate::{
    cli::{
        background::BackgroundThread,
        mock::script_watcher::{EditDetector, read},
        style::{self, BAD},
    },
    client::hub::{ConnectMode, ReloadReport},
    config::policy::Unreachable,
};

/// How often the files are looked at. An edit counts when it was the same twice.
const PAUSE: Duration = Duration::from_millis(500);

/// Takes over every edit.
pub(super) async fn configs(shell: &Arc<Shell>) -> Never {
    let mut edits = EditDetector::new(content(shell));
    // What an edit has connected to may take longer than the next edit.
    let mut reloading = FuturesUnordered::new();
    loop {
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            Some(_) = reloading.next() => continue,
        }
        if edits.take(content(shell)) {
            reloading.push(Box::pin(shell.reload()));
        }
    }
}

/// What all the files hold, so that any change of them is one of it.
fn content(shell: &Shell) -> Vec<u8> {
    let mut content = Vec::new();
    for path in shell.loaded().files.paths() {
        content.extend(told_apart(path));
    }
    content
}

fn told_apart(path: &Path) -> Vec<u8> {
    match read(path) {
        Ok(text) => [b"+", &text.len().to_le_bytes()[..], &text].concat(),
        Err(_) => b"-".to_vec(),
    }
}

impl Shell {
    /// Reads the configs anew. What is wrong with an edited file is told, and then the servers stay what they are.
    pub(super) async fn reload(&self) -> bool {
        let one_at_a_time = self.reloading.lock().await;
        let before = self.loaded();
        let (target, show_secrets) = (self.args.target.clone(), self.args.connection.show_secrets);
        // A file may be a pipe that nobody writes to.
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
        self.hub_session().note(&format!("config reloaded: {}", told(&reloaded)));
        leave.await;
        if self.hub.options().connect == ConnectMode::Eager {
            let fresh = reloaded.added.into_iter().chain(reloaded.restarted).collect();
            self.connect_to(fresh, Unreachable::Skipped).await;
        }
        true
    }
}

fn told(reloaded: &ReloadReport) -> String {
    let ReloadReport { added, removed, restarted, .. } = reloaded;
    let kinds = [("added", added), ("removed", removed), ("restarted", restarted)];
    let told = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    let told: Vec<_> = told.map(|(what, names)| format!("{what} {}", names.join(", "))).collect();
    if told.is_empty() { "no server changed".to_owned() } else { told.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_changed_config_is_told() {
        assert_eq!(told(&ReloadReport::default()), "no server changed");
        let reloaded = ReloadReport {
            added: vec!["a".into(), "b".into()],
            restarted: vec!["c".into()],
            ..ReloadReport::default()
        };
        assert_eq!(told(&reloaded), "added a, b; restarted c");
    }

    #[test]
    fn a_file_that_is_not_there_is_not_an_empty_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        let gone = told_apart(&path);
        std::fs::write(&path, "").expect("writes");
        assert_ne!(told_apart(&path), gone);
    }
}
