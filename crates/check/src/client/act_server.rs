//! The mock of an act.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use rehearse_mock::{
    engine::{Engine, Seed},
    journal::Journal,
    script::{ActRules, ProcessRules},
    serve::{ListenOptions, MockServer, ServerRecorder},
};
use rehearse_protocol::{Closed, Direction, Frame, Message, Trace, Transport};
use rehearse_system::program::{quoted, write_launcher};
use serde_json::{Map, Value};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{ActRun, ActScript, ClientEnvironment, ClientError, process_end, serve_relays};

/// The file of the program for the variable `BROWSER`.
const BROWSER: &str = "browser";
/// The folder in which relays note how they are ended.
const NOTES: &str = "notes";
/// How long what is left may take to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long a process may take to end after its client.
const LOOK: Duration = Duration::from_millis(100);
/// A mock that serves an act over the network, and over stdio through relays.
///
/// ```
/// use rehearse_check::client::{ActScript, ActServer, judge_client};
/// use rehearse_client::{CallOptions, Endpoint, ServerParams, Session, Target};
/// use rehearse_protocol::{Protocol, Transport};
/// use rehearse_report::check::CheckVerdict;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut runs = Vec::new();
/// for act in ActScript::select(&["pages".to_owned()])? {
///     let server = ActServer::start(act, 1, ([127, 0, 0, 1], 0).into(), None).await?;
///     // The client that is checked, here ours: connect, list, call a tool, end.
///     let url = server.mock().url(Transport::Http).ok_or("it listens")?;
///     let target = Target::Http(Endpoint { url, headers: Vec::new() });
///     let client = Session::connect(&ServerParams::new("act", target), Protocol::Auto).await?;
///     client.list_tools(CallOptions::default()).await?;
///     client.close().await;
///     runs.push(server.finish(false).await);
/// }
/// let checked = judge_client(&runs, &["client-list.page".to_owned()]);
/// let check = checked[0].versions[0].checks.iter().find(|check| check.id == "client-list.page.followed").ok_or("a check")?;
/// assert_eq!(check.verdict, CheckVerdict::Pass);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ActServer {
    name: String,
    acts: Vec<String>,
    rules: ActRules,
    server: MockServer,
    /// The program `rehearse`.
    program: Option<PathBuf>,
    /// The program that the client opens pages with.
    browser: Option<PathBuf>,
    environment: ClientEnvironment,
    recorder: Arc<ServerRecorder>,
    stop: CancellationToken,
    relays: JoinHandle<()>,
    /// How many events there were, and since when.
    seen: (usize, Instant),
}

impl ActServer {
    /// Serves an act. `program` is `rehearse`; with it the client can start the mock on stdio, and open pages.
    ///
    /// # Errors
    /// It cannot listen, or its files cannot be written.
    pub async fn start(
        act: ActScript,
        seed: u64,
        address: SocketAddr,
        program: Option<&Path>,
    ) -> Result<ActServer, ClientError> {
        let (ActScript { name, acts, script }, recorder) = (act, Arc::<ServerRecorder>::default());
        let rules = script.act.clone();
        let engine = Engine::new(script, Seed::from(seed), Journal::default());
        let recorded = Some(recorder.clone());
        let listen = ListenOptions { address, lenient: true, recorder: recorded, ..ListenOptions::default() };
        let server = MockServer::start(engine, listen).await;
        let server = server.map_err(|source| ClientError::Listen { address, source })?;
        // URLs of the mock that no client may fetch.
        let mut state = Map::clone(&server.engine().state().get());
        state.insert("canary".to_owned(), format!("http://{}/canary", server.address()).into());
        server.engine().state().replace(state);
        let (environment, listener) = ClientEnvironment::create(&server)?;
        let notes = environment.path(NOTES);
        let cannot = |what, path, source| ClientError::Create { what, path, source };
        // It requests the page, and follows the redirect to the client. It returns at once, as a client may wait for it.
        let write_browser = |program: &Path| {
            let path = environment.path(BROWSER);
            write_launcher(&path, program, "browse").map_err(|error| cannot("the program", path, error))
        };
        let browser = program.map(write_browser).transpose()?;
        fs::create_dir(&notes).map_err(|error| cannot("the folder", notes, error))?;
        let stop = CancellationToken::new();
        let relays = tokio::spawn(serve_relays(listener, server.pipes(), stop.clone()));
        let (program, seen) = (program.map(Path::to_owned), (0, Instant::now()));
        Ok(ActServer { name, acts, rules, server, program, browser, environment, recorder, stop, relays, seen })
    }

    /// The name of the act.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How the act is served.
    pub fn rules(&self) -> &ActRules {
        &self.rules
    }

    /// The mock.
    pub fn mock(&self) -> &MockServer {
        &self.server
    }

    /// The environment of a client.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let program = self.program.as_deref();
        let mut variables: Vec<_> = self.environment.variables(&self.server, program).into_iter().collect();
        variables.extend(self.browser.as_ref().map(|path| ("BROWSER", path.into())));
        if let Some((_, relay)) = variables.iter_mut().find(|(name, _)| *name == "REHEARSE_STDIO") {
            let ProcessRules { stderr, linger, deaf } = self.rules.process;
            let (notes, linger) = (self.path(NOTES), linger.as_millis());
            let notes = quoted(&notes.display().to_string());
            relay.push(format!(" --notes {notes} --stderr {stderr} --linger {linger}"));
            relay.push(if deaf { " --deaf" } else { "" });
        }
        variables
    }

    /// Notes which processes live, if they should live on until they are killed.
    pub(super) async fn note_left(&self) {
        if self.rules.process.deaf {
            tokio::time::sleep(LOOK).await;
            process_end::note_left(&self.path(NOTES));
        }
    }

    /// A path for a file of the act.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.environment.path(name)
    }

    /// Since when nothing has happened; `None` before the first event.
    pub fn quiet_for(&mut self) -> Option<Duration> {
        let events = self.recorder.events();
        if events != self.seen.0 {
            self.seen = (events, Instant::now());
        }
        (events > 0).then(|| self.seen.1.elapsed())
    }

    /// Whether a client has sent a message of this method, for the item of this name if it is not empty.
    pub(crate) fn has_got(&self, method: &str, name: &str) -> bool {
        let is_it = |frame: &Frame| {
            let message: Value = serde_json::from_slice(&frame.bytes).unwrap_or_default();
            message["method"] == method && (name.is_empty() || message["params"]["name"] == name)
        };
        self.recorder.traces().iter().flat_map(Trace::frames).any(is_it)
    }

    /// The methods that clients have used.
    pub fn used_methods(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for trace in self.recorder.traces() {
            let sent = trace.frames().filter(|frame| frame.direction == Direction::ClientToServer);
            used.extend(sent.filter_map(|frame| Some(Message::parse(&frame.bytes).ok()?.method()?.to_owned())));
        }
        used
    }

    /// Ends the mock. Returns what the client has done, without its exit code and its duration; with how it has ended the processes of the
    /// mock, if it has ended by itself.
    pub async fn finish(self, has_ended: bool) -> ActRun {
        self.stop.cancel();
        let _ = tokio::time::timeout(GRACE, self.relays).await;
        self.recorder.close(&Closed::by_client("the client has ended"));
        let mut traces = self.recorder.traces();
        if has_ended {
            process_end::add(&mut traces, &self.environment.path(NOTES));
        }
        let endpoint = self.server.url(Transport::Http);
        self.server.stop(Duration::ZERO).await;
        ActRun {
            acts: self.acts,
            like: self.rules.like,
            endpoint,
            traces,
            exit_code: None,
            said: String::new(),
            undriven: None,
            duration: Duration::ZERO,
        }
    }
}
