//! The signals that ask a process to end.

use std::{future::pending, io, process::exit, sync::mpsc as blocking, thread, time::Duration};

use parking_lot::Mutex;
use rehearse_system::{Signal, signal::SignalStreams, terminal::restore_settings};
use tokio::{
    runtime,
    sync::mpsc::{self, error::TrySendError},
    time::sleep,
};

use super::{Exit, Failure, style};

/// How long a second signal may wait for its receiver.
const RECEIVER_TIMEOUT: Duration = Duration::from_secs(1);

/// How long a single signal may wait for its receiver.
const SINGLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The capacity of the signal channel.
const CAPACITY: usize = 8;

/// Whether the signal handlers are installed.
static IS_INSTALLED: Mutex<bool> = Mutex::new(false);

/// The receiver of signals; the channel is closed if there is none.
static LISTENER: Mutex<Option<mpsc::Sender<Signal>>> = Mutex::new(None);

/// Installs the handlers for [`Signals`], once. Without a receiver, a signal exits the process at once with its exit code.
///
/// # Errors
/// The handlers cannot be installed.
pub(super) fn catch() -> io::Result<()> {
    let mut is_catching = IS_INSTALLED.lock();
    if *is_catching {
        return Ok(());
    }
    let (sender, installed) = blocking::channel();
    // All other threads may hang.
    thread::Builder::new().name("signals".to_owned()).spawn(move || listen(&sender))?;
    installed.recv().map_err(io::Error::other)??;
    *is_catching = true;
    Ok(())
}

/// Receives the signals of [`SignalStreams`]. They do not end the process while this exists, unless they stay unread
/// because something hangs.
#[derive(Debug)]
pub(super) struct Signals(mpsc::Receiver<Signal>);

impl Signals {
    /// # Errors
    /// The handlers cannot be installed.
    pub(super) fn install() -> Result<Signals, Failure> {
        catch().map_err(|error| Failure::cannot(format!("cannot handle signals: {error}")))?;
        let (sender, receiver) = mpsc::channel(CAPACITY);
        *LISTENER.lock() = Some(sender);
        Ok(Signals(receiver))
    }

    /// The next signal. Cancel-safe.
    pub(super) async fn next(&mut self) -> Signal {
        match self.0.recv().await {
            Some(signal) => signal,
            None => pending().await,
        }
    }
}

/// Installs the handlers, reports the result, and forwards signals.
fn listen(result: &blocking::Sender<io::Result<()>>) {
    let installed = runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let entered = runtime.enter();
        let caught = SignalStreams::install()?;
        drop(entered);
        Ok((runtime, caught))
    });
    // The receiver waits for the result.
    match installed {
        Ok((runtime, caught)) => {
            let _ = result.send(Ok(()));
            runtime.block_on(forward(caught));
        }
        Err(error) => drop(result.send(Err(error))),
    }
}

/// Ends the process after this time if it still runs then, even if every other thread hangs.
pub(super) fn limit_shutdown(time: Duration) {
    thread::spawn(move || {
        thread::sleep(time);
        exit_now();
    });
}

/// Forwards signals to the receiver. Without one, or if signals stay unread, the process exits, and the guard kills its
/// servers.
async fn forward(mut caught: SignalStreams) {
    loop {
        let signal = caught.next().await;
        let listener = LISTENER.lock().clone();
        let is_open = |it: &mpsc::Sender<Signal>| !matches!(it.try_send(signal), Err(TrySendError::Closed(_)));
        let Some(listener) = listener.filter(is_open) else {
            print_interrupted();
            exit_now();
        };
        let unread = listener.max_capacity() - listener.capacity();
        tokio::spawn(async move {
            sleep(if unread > 1 { RECEIVER_TIMEOUT } else { SINGLE_TIMEOUT }).await;
            if listener.max_capacity() - listener.capacity() >= unread.max(1) {
                exit_now();
            }
        });
    }
}

/// Prints that the command was interrupted, unless stderr blocks.
fn print_interrupted() {
    let (sender, printed) = blocking::channel();
    thread::spawn(move || {
        style::leave_line();
        style::print("interrupted\n");
        let _ = sender.send(());
    });
    let _ = printed.recv_timeout(RECEIVER_TIMEOUT);
}

fn exit_now() -> ! {
    restore_settings();
    #[expect(clippy::exit, reason = "`main` may hang and never return")]
    exit(Exit::CannotRun.code().into());
}
