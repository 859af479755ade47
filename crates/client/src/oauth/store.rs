//! Storage of tokens.

use std::{
    collections::{BTreeMap, HashMap},
    fs::{self, File, TryLockError},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::Url;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use super::{
    AuthError,
    identity::{DynamicClient, StoredClient},
    token::Token,
};
use rehearse_net::http_client::display_url;
use rehearse_system::{IS_MACOS, private};

/// How often to try to get the lock.
const AGAIN: Duration = Duration::from_millis(20);
/// A renewal takes at most four requests of half a minute each.
const PATIENCE: Duration = Duration::from_secs(120);

/// Stores the tokens of each server, separately for each issuer. Clones share them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TokenStore {
    /// In memory, until this process ends.
    Memory(MemoryStore),
    /// In files that only their owner can read.
    Folder(PathBuf),
    /// In one file, for a single server. The tokens of another server in it are not used, and are replaced.
    File(PathBuf),
}

/// Tokens in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<HashMap<String, Record>>>);

/// The record of one server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The server, for readers of the file.
    pub(super) server: String,
    /// The issuer whose token is in use.
    pub(super) issuer: Option<String>,
    /// The tokens and registrations of each issuer, which no other may get (2026-07-28, Authorization Server Binding).
    #[serde(default)]
    pub(super) issuers: BTreeMap<String, Issued>,
    /// The issuer of each registered client: the first one that gave it a token. It outlives the tokens.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) bound: BTreeMap<String, String>,
}

/// The token and registration of one issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Issued {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<DynamicClient>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<Token>,
    /// The client of the token, unless it is a dynamic registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) stored_client: Option<StoredClient>,
    /// Whether the user has named the issuer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_chosen: bool,
}

/// While it is held, no other process changes the record of the server.
#[derive(Debug)]
pub(super) struct StoreLock {
    _file: Option<File>,
}

impl Record {
    /// The token in use.
    pub(super) fn token(&self) -> Option<&Token> {
        self.issued()?.token.as_ref()
    }

    /// The entry of the issuer whose token is in use.
    pub(super) fn issued(&self) -> Option<&Issued> {
        self.issuers.get(self.issuer.as_ref()?)
    }
}

impl Issued {
    /// Whether the token belongs to a client that acts for itself.
    pub(super) fn is_unattended(&self, token: &Token) -> bool {
        self.stored_client
            .as_ref()
            .is_some_and(|stored_client| stored_client.is_unattended && stored_client.id == token.client)
    }
}

impl TokenStore {
    /// An empty store in memory.
    pub fn memory() -> TokenStore {
        TokenStore::Memory(MemoryStore::default())
    }

    /// The default folder of tokens: `$XDG_DATA_HOME/rehearse/tokens`, or in the data folder of the platform, which on
    /// Windows is `%LOCALAPPDATA%`. `None` without a home.
    pub fn default_folder(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
        let path = |name| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let below_home = if IS_MACOS { "Library/Application Support" } else { ".local/share" };
        // Only Windows has this variable, also under a shell that sets `HOME` there.
        let data = path("XDG_DATA_HOME").or_else(|| path("LOCALAPPDATA"));
        let data = data.or_else(|| Some(path("HOME")?.join(below_home)))?;
        Some(data.join("rehearse").join("tokens"))
    }

    /// The file of a server; nothing in memory.
    fn path(&self, server: &Url) -> PathBuf {
        match self {
            TokenStore::Memory(_) => PathBuf::new(),
            TokenStore::Folder(folder) => file(folder, server),
            TokenStore::File(path) => path.clone(),
        }
    }

    /// Whether there is a record of the server.
    pub(super) fn contains(&self, server: &Url) -> bool {
        match self {
            TokenStore::Memory(memory) => memory.records().contains_key(&key(server)),
            TokenStore::Folder(_) | TokenStore::File(_) => fs::symlink_metadata(self.path(server)).is_ok(),
        }
    }

    /// Deletes the tokens and registrations of a server, but not which issuer its clients belong to. Returns whether
    /// there were any.
    ///
    /// # Errors
    /// [`AuthError::Store`] if they cannot be removed.
    pub(super) fn forget(&self, lock: &StoreLock, server: &Url) -> Result<bool, AuthError> {
        // An unreadable record can still be deleted.
        let record = self.load(server).ok();
        let was_there = record.as_ref().is_none_or(|record| !record.issuers.is_empty());
        match (record, self) {
            (Some(record), _) if !record.bound.is_empty() => {
                self.save(lock, server, &Record { issuer: None, issuers: BTreeMap::new(), ..record })?;
            }
            (_, TokenStore::Memory(memory)) => drop(memory.records().remove(&key(server))),
            (_, TokenStore::Folder(_) | TokenStore::File(_)) => {
                let path = self.path(server);
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(failed("remove", &path, &error));
                    }
                    _ => {}
                }
            }
        }
        Ok(was_there)
    }

    /// Waits for the lock on the record of the server.
    ///
    /// # Errors
    /// [`AuthError::Store`] if it cannot be locked, or another process keeps the lock.
    pub(super) async fn lock(&self, server: &Url) -> Result<StoreLock, AuthError> {
        if let TokenStore::Memory(_) = self {
            return Ok(StoreLock { _file: None });
        }
        let path = self.path(server).with_extension("lock");
        let folder = path.parent().unwrap_or(&path);
        private::create_folders(folder).map_err(|error| failed("make", folder, &error))?;
        close(folder).map_err(|error| failed("take from others", folder, &error))?;
        let opened = private::append(&path);
        let opened = opened.map_err(|error| failed("open", &path, &error))?;
        let locked = tokio::time::timeout(PATIENCE, async {
            loop {
                match opened.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(AGAIN).await,
                    Err(TryLockError::Error(error)) => return Err(failed("lock", &path, &error)),
                }
            }
        });
        match locked.await {
            Ok(locked) => locked.map(|()| StoreLock { _file: Some(opened) }),
            Err(_) => Err(AuthError::Store(format!("another process keeps the lock {}", path.display()))),
        }
    }

    /// The record of the server; empty at first.
    ///
    /// # Errors
    /// [`AuthError::Store`] if it cannot be read.
    pub(super) fn load(&self, server: &Url) -> Result<Record, AuthError> {
        let fresh = || Record { server: display_url(server.as_str()), ..Record::default() };
        match self {
            TokenStore::Memory(memory) => Ok(memory.records().get(&key(server)).cloned().unwrap_or_else(fresh)),
            TokenStore::Folder(_) | TokenStore::File(_) => {
                let path = self.path(server);
                for path in [path.parent().unwrap_or(&path), &path] {
                    close(path).map_err(|error| failed("take from others", path, &error))?;
                }
                let is_of_server = |record: &Record| record.server == display_url(server.as_str());
                match fs::read(&path) {
                    Ok(bytes) => match serde_json::from_slice(&bytes) {
                        Ok(record) if is_of_server(&record) => Ok(record),
                        Ok(_) => Ok(fresh()),
                        Err(_) => Err(AuthError::Store(format!(
                            "{} does not hold tokens; log out to start again",
                            path.display()
                        ))),
                    },
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(fresh()),
                    Err(error) => Err(failed("read", &path, &error)),
                }
            }
        }
    }

    /// Replaces the record of the server, atomically for readers.
    ///
    /// # Errors
    /// [`AuthError::Store`] if it cannot be written.
    pub(super) fn save(&self, _lock: &StoreLock, server: &Url, record: &Record) -> Result<(), AuthError> {
        match self {
            TokenStore::Memory(memory) => {
                memory.records().insert(key(server), record.clone());
                Ok(())
            }
            TokenStore::Folder(_) | TokenStore::File(_) => {
                let path = self.path(server);
                let bytes = serde_json::to_vec_pretty(record).map_err(|error| AuthError::Store(error.to_string()))?;
                replace(&path, &bytes).map_err(|error| failed("write", &path, &error))
            }
        }
    }
}

impl MemoryStore {
    fn records(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(server: &Url) -> String {
    let mut server = server.clone();
    server.set_fragment(None);
    server.into()
}

/// The file of a server: its host and a digest of the URL, which may contain a secret.
fn file(folder: &Path, server: &Url) -> PathBuf {
    let sum = digest(&SHA256, key(server).as_bytes());
    let sum: String = sum.as_ref()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let host: String = server.host_str().unwrap_or_default().chars().filter(|&c| is_plain(c)).take(100).collect();
    folder.join(format!("{host}-{sum}.json"))
}

/// Removes the permissions of all others from an existing file or folder.
fn close(path: &Path) -> io::Result<()> {
    match private::restrict(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        restricted => restricted,
    }
}

/// Replaces the file, for its owner only. The lock is held, so no other process uses the temporary name.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private::create_new(&unfinished)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&unfinished, path));
    written.inspect_err(|_| {
        // The first error is reported.
        let _ = fs::remove_file(&unfinished);
    })
}

fn failed(what: &str, path: &Path, error: &io::Error) -> AuthError {
    AuthError::Store(format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    #[cfg(unix)]
    use std::{
        fs::DirBuilder,
        os::unix::fs::{DirBuilderExt, PermissionsExt},
    };

    use super::*;
    use crate::oauth::Secret;

    fn url(text: &str) -> Url {
        text.parse().expect("a URL")
    }

    fn record(server: &Url, access: &str) -> Record {
        let token = Token {
            access: Secret::new(access),
            refresh: Some(Secret::new("r")),
            expires: Some(7),
            life: None,
            scopes: vec!["a".into()],
            requested: vec!["a".into(), "b".into()],
            resource: "https://h".into(),
            client: "me".into(),
            key: None,
        };
        let issued = Issued { token: Some(token), ..Issued::default() };
        let issuers = BTreeMap::from([("https://as".to_owned(), issued)]);
        Record {
            server: display_url(server.as_str()),
            issuer: Some("https://as".into()),
            issuers,
            bound: BTreeMap::new(),
        }
    }

    async fn save(store: &TokenStore, server: &Url, access: &str) {
        let lock = store.lock(server).await.expect("a lock");
        store.save(&lock, server, &record(server, access)).expect("saves");
    }

    #[tokio::test]
    async fn every_store_keeps_servers_apart_until_they_are_logged_out() {
        let folder = tempfile::tempdir().expect("a folder");
        for store in [TokenStore::memory(), TokenStore::Folder(folder.path().join("tokens"))] {
            let (one, other) = (url("https://h/mcp?key=1"), url("https://h/mcp?key=2"));
            assert_eq!(store.load(&one).expect("loads").token(), None);
            save(&store, &one, "first").await;
            save(&store, &one, "second").await;
            save(&store, &other, "other").await;
            assert_eq!(store.load(&one).expect("loads"), record(&one, "second"));
            let lock = store.lock(&one).await.expect("a lock");
            assert!(store.contains(&one) && store.forget(&lock, &one).expect("forgets"));
            assert_eq!((store.contains(&one), store.load(&one).expect("loads").token()), (false, None));
            let token = store.load(&other).expect("loads").token().cloned();
            assert_eq!(token.expect("a token").access, Secret::new("other"));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_of_one_server_gives_no_token_to_another() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("mcp-tokens/web.json");
        let store = TokenStore::File(path.clone());
        let (one, other) = (url("https://h/mcp"), url("https://other/mcp"));
        save(&store, &one, "first").await;
        assert_eq!(store.load(&one).expect("loads"), record(&one, "first"));
        assert_eq!(store.load(&other).expect("loads").token(), None, "the URL of the server has changed");
        save(&store, &other, "second").await;
        assert_eq!((store.load(&one).expect("loads").token(), path.is_file()), (None, true));
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn files_are_for_their_owner_only_and_none_is_left_unfinished() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = folder.path().join("tokens");
        let (store, server) = (TokenStore::Folder(tokens.clone()), url("https://user:pass@h:1/mcp?key=secret"));
        save(&store, &server, "a").await;
        fs::write(file(&tokens, &server).with_extension("new"), "half").expect("writes");
        save(&store, &server, "b").await;
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        assert_eq!(mode(&tokens), 0o700);
        let mut names = Vec::new();
        for entry in fs::read_dir(&tokens).expect("lists") {
            let path = entry.expect("an entry").path();
            assert_eq!(mode(&path), 0o600, "{}", path.display());
            names.push(path.extension().expect("an ending").to_string_lossy().into_owned());
            assert!(!path.to_string_lossy().contains("secret") && !path.to_string_lossy().contains("pass"));
        }
        names.sort();
        assert_eq!(names, ["json", "lock"]);
        let text = fs::read_to_string(file(&tokens, &server)).expect("reads");
        assert!(!text.contains("secret") && !text.contains("pass"), "{text}");
    }

    #[tokio::test]
    async fn the_issuer_of_a_client_is_kept_without_its_token() {
        let folder = tempfile::tempdir().expect("a folder");
        for store in [TokenStore::memory(), TokenStore::Folder(folder.path().to_owned())] {
            let server = url("https://h/mcp");
            let bound = BTreeMap::from([("me".to_owned(), "https://as".to_owned())]);
            let lock = store.lock(&server).await.expect("a lock");
            store.save(&lock, &server, &Record { bound: bound.clone(), ..record(&server, "a") }).expect("saves");
            for was_there in [true, false] {
                assert_eq!(store.forget(&lock, &server).expect("forgets"), was_there);
                let left = store.load(&server).expect("loads");
                assert_eq!((left.issuers.len(), left.issuer, &left.bound), (0, None, &bound));
            }
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_readable_by_others_becomes_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let tokens = folder.path().join("tokens");
        let (store, server) = (TokenStore::Folder(tokens.clone()), url("https://h/mcp"));
        let path = file(&tokens, &server);
        let mode = |path: &Path| fs::metadata(path).expect("is there").permissions().mode() & 0o777;
        let open = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("opens");
        DirBuilder::new().mode(0o755).create(&tokens).expect("a folder");
        open(&tokens, 0o755);
        save(&store, &server, "a").await;
        assert_eq!((mode(&tokens), mode(&path)), (0o700, 0o600));
        open(&tokens, 0o755);
        open(&path, 0o644);
        assert!(store.load(&server).expect("loads").token().is_some());
        assert_eq!((mode(&tokens), mode(&path)), (0o700, 0o600));
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_waits_for_its_lock_and_reports_a_foreign_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, server) = (TokenStore::Folder(folder.path().to_owned()), url("https://h/mcp"));
        let held = store.lock(&server).await.expect("a lock");
        let error = store.lock(&server).await.expect_err("held").to_string();
        assert!(error.starts_with("another process keeps the lock "), "{error}");
        drop(held);
        store.lock(&server).await.expect("a lock");
        fs::write(file(folder.path(), &server), "{ half").expect("writes");
        let error = store.load(&server).expect_err("nonsense").to_string();
        assert!(error.ends_with("does not hold tokens; log out to start again"), "{error}");
    }

    #[test]
    fn tokens_are_usually_among_the_data_of_programs() {
        // `/d` has no drive, and is relative on Windows.
        let absolute = |path: &str| path.replace('/', if cfg!(windows) { "C:/" } else { "/" });
        let folder = |variables: &'static [(&str, &str)]| {
            let known: HashMap<_, _> = variables.iter().copied().collect();
            let folder = TokenStore::default_folder(|name| known.get(name).map(|&value| absolute(value)));
            folder.map(|path| PathBuf::from(path.to_string_lossy().replace("C:", "")))
        };
        assert_eq!(folder(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]), Some("/d/rehearse/tokens".into()));
        assert_eq!(folder(&[("LOCALAPPDATA", "/l"), ("HOME", "/h")]), Some("/l/rehearse/tokens".into()));
        let home = folder(&[("XDG_DATA_HOME", "relative"), ("HOME", "/h")]).expect("a folder");
        assert!(home.starts_with("/h") && home.ends_with("rehearse/tokens"), "{}", home.display());
        assert_eq!(folder(&[]), None);
    }
}
