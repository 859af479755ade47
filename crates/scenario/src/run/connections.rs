//! The connections of a running cell.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use super::{CellServer, RecordSink, TrafficHooks};
use crate::{file::Scenario, snapshot::observation::MAX_EVENTS};
use rehearse_client::ClientRecorder;
use rehearse_protocol::{Frame, Trace};
use rehearse_report::{Cell, TraceLine, WireLine, last_lines};

/// How many lines of a step are kept of each connection.
const TRACE_LINES: usize = 200;

/// Every connection of a cell so far. Clones share the list.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Shared>);

struct Shared {
    scenario: String,
    path: PathBuf,
    cell: Cell,
    has_hooks: bool,
    sink: Option<RecordSink>,
    list: Mutex<Vec<Connection>>,
}

struct Connection {
    /// The index of the server in the scenario.
    server: usize,
    /// The name of the server, or that of a server of its config.
    name: String,
    recorder: ClientRecorder,
}

impl Connections {
    pub(crate) fn new(scenario: &Scenario, cell: Cell, hooks: &TrafficHooks) -> Connections {
        Connections(Arc::new(Shared {
            scenario: scenario.name.clone(),
            path: scenario.path.clone(),
            cell,
            has_hooks: hooks.record_sink.is_some() || hooks.judge.is_some(),
            sink: hooks.record_sink.clone(),
            list: Mutex::default(),
        }))
    }

    /// A recorder for the next session with a server.
    pub(crate) fn recorder(&self, server: usize, name: &str) -> ClientRecorder {
        let recorder = ClientRecorder::with_limit(MAX_EVENTS);
        let recorder = if self.0.has_hooks { recorder.with_details() } else { recorder.with_brief_details() };
        self.add(server, name, &recorder);
        let (all, name) = (self.clone(), name.to_owned());
        recorder.on_another(move |another| all.add(server, &name, another));
        recorder
    }

    /// Adds a connection before its first frame.
    pub(crate) fn add(&self, server: usize, name: &str, recorder: &ClientRecorder) {
        let Shared { scenario, path, cell, sink, .. } = &*self.0;
        if let Some(sink) = sink {
            sink(CellServer { scenario, path, cell: *cell, server: name }, recorder);
        }
        self.0.list.lock().push(Connection { server, name: name.to_owned(), recorder: recorder.clone() });
    }

    /// How many frames each connection has recorded.
    pub(crate) fn marks(&self) -> Vec<usize> {
        self.0.list.lock().iter().map(|it| it.recorder.end()).collect()
    }

    /// The frames of each connection with a server since the marks.
    pub(crate) fn frames(&self, server: usize, marks: &[usize]) -> Vec<Vec<Frame>> {
        let list = self.0.list.lock();
        let own = list.iter().enumerate().filter(|(_, it)| it.server == server);
        own.map(|(index, it)| it.recorder.since(mark(marks, index))).collect()
    }

    /// The name and the traces of each server, in the order of their names.
    pub(crate) fn traces(&self) -> Vec<(String, Vec<Trace>)> {
        let list = self.0.list.lock();
        let names: BTreeSet<_> = list.iter().map(|it| it.name.clone()).collect();
        let of = |name: &String| list.iter().filter(|it| it.name == *name).map(|it| it.recorder.trace()).collect();
        names.iter().map(|name| (name.clone(), of(name))).collect()
    }

    /// The last lines of the traffic since the marks.
    pub(crate) fn lines(&self, marks: &[usize]) -> Vec<TraceLine> {
        let mut lines = Vec::new();
        for (index, Connection { name, recorder, .. }) in self.0.list.lock().iter().enumerate() {
            let events = recorder.read(&mut mark(marks, index));
            let all: Vec<_> = events.iter().filter_map(|event| WireLine::from_event(event, &[])).collect();
            let all: Vec<_> = all.into_iter().map(|line| TraceLine { server: name.clone(), line }).collect();
            lines.extend(last_lines(&all, TRACE_LINES).cloned());
        }
        lines
    }
}

/// The mark of a connection. One that is newer than the marks is new from its start.
fn mark(marks: &[usize], connection: usize) -> usize {
    marks.get(connection).copied().unwrap_or_default()
}
