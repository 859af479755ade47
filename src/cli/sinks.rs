//! What sees the traffic of a command: a trace file, a collector of spans.

use std::path::Path;

use futures_util::future::BoxFuture;

use super::{
    Failure,
    secrets::Secrets,
    spans::{OtlpArgs, SpanExporter},
    trace_file::TraceFileWriter,
};
use rehearse_client::{ClientRecorder, EventSink};
use rehearse_protocol::{Event, trace_file::ConnectionInfo};

/// What sees every event of every connection.
#[derive(Clone)]
pub(super) struct Sinks {
    pub(super) file: Option<TraceFileWriter>,
    pub(super) spans: Option<SpanExporter>,
}

/// The one sink of a connection, if there are two.
struct Both(Box<dyn EventSink>, Box<dyn EventSink>);

impl Sinks {
    /// # Errors
    /// The file cannot be written.
    pub(super) fn open(file: Option<&Path>, otlp: &OtlpArgs) -> Result<Sinks, Failure> {
        Ok(Sinks { file: file.map(TraceFileWriter::create).transpose()?, spans: otlp.exporter()? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.file.is_none() && self.spans.is_none()
    }

    /// Begins a connection. Without `secrets` the file has them; `is_observer` is whether another program sends the requests.
    pub(super) fn connection(
        &self,
        info: &ConnectionInfo,
        secrets: Option<Secrets>,
        is_observer: bool,
    ) -> Box<dyn EventSink> {
        let of_spans = secrets.clone().unwrap_or_default();
        let spans = self.spans.as_ref().map(|spans| spans.connection(info, of_spans, is_observer));
        let file = self.file.as_ref().map(|file| file.connection(info, secrets));
        match (file, spans) {
            (Some(file), Some(spans)) => Box::new(Both(Box::new(file), spans)),
            (Some(file), None) => Box::new(file),
            (None, Some(spans)) => spans,
            (None, None) => Box::new(|_: &Event| {}),
        }
    }

    /// Sees what a recorder records from now on.
    pub(super) fn follow(&self, info: &ConnectionInfo, recorder: &ClientRecorder, secrets: Secrets) {
        recorder.set_sink(self.connection(info, Some(secrets), false));
    }

    /// Waits until everything so far is written and sent. A collector that takes nothing is a warning.
    ///
    /// # Errors
    /// The file was not written.
    pub(super) fn finish(&self) -> Result<(), Failure> {
        self.spans.iter().for_each(SpanExporter::finish);
        self.file.as_ref().map_or(Ok(()), TraceFileWriter::check)
    }
}

impl EventSink for Both {
    fn take(&self, event: &Event) {
        self.0.take(event);
        self.1.take(event);
    }

    fn room(&self, exchange: Option<u32>) -> BoxFuture<'_, ()> {
        self.0.room(exchange)
    }
}
