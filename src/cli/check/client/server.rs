//! The mock of an act.

use std::{collections::BTreeSet, ffi::OsString, fs, net::SocketAddr, sync::Arc, time::Duration};

use serde_json::{Map, Value as Json};
use tokio::{task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{super::browser, process_end};
use crate::cli::{
    Failure,
    mock::{exec_environment::ExecEnvironment, relay, server::listen_failure},
};
use rehearse_check::ActRun;
use rehearse_client::example;
use rehearse_mock::{
    engine::{Engine, Seed},
    journal::Journal,
    script::{ActRules, ItemKind, ProcessRules, Script},
    serve::{ListenOptions, MockServer, TraceRecorder},
};
use rehearse_protocol::{Closed, Direction, Message, Transport};

/// The file of the program that the client opens pages with.
const BROWSER: &str = "browser";
/// How long what is left may take to end.
const GRACE: Duration = Duration::from_secs(2);
/// How long a process may take to end after its client.
const LOOK: Duration = Duration::from_millis(100);
/// An act: a script, and its name.
pub(super) struct ActScript {
    pub(super) name: String,
    pub(super) script: Script,
}

impl ActScript {
    /// The tools, with example arguments.
    pub(super) fn tools(&self) -> Vec<(String, Json)> {
        let declared = self.script.tools.iter().take(self.script.declared(ItemKind::Tool));
        let arguments = |definition: &str| {
            let definition: Json = serde_json::from_str(definition).unwrap_or_default();
            Json::Object(example::object(&definition["inputSchema"]))
        };
        declared.map(|tool| (tool.item.name.clone(), arguments(&tool.definition))).collect()
    }

    /// The names of the declared items of a kind.
    pub(super) fn names(&self, kind: ItemKind) -> Vec<String> {
        let count = self.script.declared(kind);
        match kind {
            ItemKind::Tool => self.script.tools.iter().take(count).map(|it| it.item.name.clone()).collect(),
            ItemKind::Resource => self.script.resources.iter().take(count).map(|it| it.item.name.clone()).collect(),
            ItemKind::Prompt => self.script.prompts.iter().take(count).map(|it| it.item.name.clone()).collect(),
            ItemKind::ResourceTemplate | ItemKind::Method => Vec::new(),
        }
    }

    /// The methods that a client must have used before the act is over.
    pub(super) fn needs(&self) -> Vec<String> {
        let has = |kind| self.script.declared(kind) > 0;
        let usual = [
            (ItemKind::Tool, ["tools/list", "tools/call"]),
            (ItemKind::Resource, ["resources/list", "resources/read"]),
            (ItemKind::Prompt, ["prompts/list", "prompts/get"]),
        ];
        let usual = usual.into_iter().filter(|(kind, _)| has(*kind)).flat_map(|(_, methods)| methods);
        self.script.act.needs.clone().unwrap_or_else(|| usual.map(ToOwned::to_owned).collect())
    }
}

/// A mock that serves an act over the network, and over stdio through relays.
pub(super) struct ActServer {
    pub(super) name: String,
    pub(super) rules: ActRules,
    pub(super) server: MockServer,
    environment: ExecEnvironment,
    recorder: Arc<TraceRecorder>,
    stop: CancellationToken,
    relays: JoinHandle<()>,
    /// How many events there were, and since when.
    seen: (usize, Instant),
}

impl ActServer {
    /// # Errors
    /// It cannot listen, or its files cannot be written.
    pub(super) async fn start(act: ActScript, seed: u64, address: SocketAddr) -> Result<ActServer, Failure> {
        let (ActScript { name, script }, recorder) = (act, Arc::<TraceRecorder>::default());
        let rules = script.act.clone();
        let engine = Engine::new(script, Seed::from(seed), Journal::default());
        let recorded = Some(recorder.clone());
        let listen = ListenOptions { address, lenient: true, recorder: recorded, ..ListenOptions::default() };
        let server = MockServer::start(engine, listen).await;
        let server = server.map_err(|error| listen_failure(address, "--listen :0", &error))?;
        // URLs of the mock that no client may fetch.
        let mut state = Map::clone(&server.engine().state().get());
        state.insert("canary".to_owned(), format!("http://{}/canary", server.address()).into());
        server.engine().state().replace(state);
        let (environment, listener) = ExecEnvironment::create(&server)?;
        browser::write(&environment.path(BROWSER))
            .map_err(|error| Failure::cannot(format!("cannot write a program: {error}")))?;
        let notes = environment.path("notes");
        fs::create_dir(&notes)
            .map_err(|error| Failure::cannot(format!("cannot create {}: {error}", notes.display())))?;
        let stop = CancellationToken::new();
        let relays = tokio::spawn(relay::serve(listener, server.pipes(), stop.clone()));
        Ok(ActServer { name, rules, server, environment, recorder, stop, relays, seen: (0, Instant::now()) })
    }

    /// The environment of a client.
    ///
    /// # Errors
    /// The path of this program is not known.
    pub(super) fn variables(&self) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let variables = self.environment.variables(&self.server);
        let variables = variables.map_err(|error| Failure::cannot(format!("cannot run the client: {error}")))?;
        let browser = ("BROWSER", self.path(BROWSER).into_os_string());
        let mut variables: Vec<_> = variables.into_iter().chain([browser]).collect();
        if let Some((_, relay)) = variables.iter_mut().find(|(name, _)| *name == "REHEARSE_STDIO") {
            let ProcessRules { stderr, linger, deaf } = self.rules.process;
            let (notes, linger) = (self.path("notes"), linger.as_millis());
            relay.push(format!(" --notes {} --stderr {stderr} --linger {linger}", notes.display()));
            relay.push(if deaf { " --deaf" } else { "" });
        }
        Ok(variables)
    }

    /// Notes which processes live, if they should live on until they are killed.
    pub(super) async fn note_left(&self) {
        if self.rules.process.deaf {
            tokio::time::sleep(LOOK).await;
            process_end::note_left(&self.path("notes"));
        }
    }

    /// A path for a file of the act.
    pub(super) fn path(&self, name: &str) -> std::path::PathBuf {
        self.environment.path(name)
    }

    /// Since when nothing has happened; `None` before the first event.
    pub(super) fn quiet_for(&mut self) -> Option<Duration> {
        let events = self.recorder.events();
        if events != self.seen.0 {
            self.seen = (events, Instant::now());
        }
        (events > 0).then(|| self.seen.1.elapsed())
    }

    /// The methods that clients have used.
    pub(super) fn used_methods(&self) -> BTreeSet<String> {
        let mut used = BTreeSet::new();
        for trace in self.recorder.traces() {
            let sent = trace.frames().filter(|frame| frame.direction == Direction::ClientToServer);
            used.extend(sent.filter_map(|frame| Some(Message::parse(&frame.bytes).ok()?.method()?.to_owned())));
        }
        used
    }

    /// Ends the mock. Returns what the client has done, without its exit code; with how it has ended the processes of the
    /// mock, if it has ended by itself.
    pub(super) async fn finish(self, has_ended: bool) -> ActRun {
        self.stop.cancel();
        let _ = tokio::time::timeout(GRACE, self.relays).await;
        self.recorder.close(&Closed::by_client("the client has ended"));
        let mut traces = self.recorder.traces();
        if has_ended {
            process_end::add(&mut traces, &self.environment.path("notes"));
        }
        let endpoint = self.server.url(Transport::Http);
        self.server.stop(Duration::ZERO).await;
        ActRun { act: self.name, like: self.rules.like, endpoint, traces, exit_code: None }
    }
}
