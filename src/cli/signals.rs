//! The signals that ask a process to end.

use std::{
    future::pending,
    io,
    pin::pin,
    process::exit,
    sync::{Mutex, PoisonError, mpsc as blocking},
    thread,
    time::Duration,
};

use rustix::process::Signal as Number;
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::{self, error::TrySendError},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use super::{Exit, style};

/// So long a signal after another may wait to be heeded.
const PATIENCE: Duration = Duration::from_secs(1);

/// So many signals may wait at once.
const MOST: usize = 8;

/// Whether signals are caught.
static IS_INSTALLED: Mutex<bool> = Mutex::new(false);

/// Who heeds them, which is nobody any more if the channel is closed.
static LISTENER: Mutex<Option<mpsc::Sender<Number>>> = Mutex::new(None);

/// Catches the signals that [`Signals`] are, once for all. As long as nobody heeds them, one ends the process at once: with
/// its exit code, whatever is being read or written.
///
/// # Errors
/// The handlers cannot be installed.
pub(super) fn catch() -> io::Result<()> {
    let mut is_catching = IS_INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_catching {
        return Ok(());
    }
    let (told, installed) = blocking::channel();
    // A thread of its own, for all others may hang.
    thread::Builder::new().name("signals".to_owned()).spawn(move || listen(&told))?;
    installed.recv().map_err(io::Error::other)??;
    *is_catching = true;
    Ok(())
}

/// SIGINT, SIGTERM, SIGQUIT and SIGHUP. While this exists they no longer end the process by themselves, unless two of them
/// are not heeded: then something hangs, such as an output that nobody reads.
#[derive(Debug)]
pub(super) struct Signals(mpsc::Receiver<Number>);

impl Signals {
    /// # Errors
    /// The handlers cannot be installed.
    pub(super) fn install() -> io::Result<Signals> {
        catch()?;
        let (sender, receiver) = mpsc::channel(MOST);
        *LISTENER.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
        Ok(Signals(receiver))
    }

    /// The next signal. Cancel-safe.
    pub(super) async fn next(&mut self) -> Number {
        match self.0.recv().await {
            Some(signal) => signal,
            None => pending().await,
        }
    }

    /// Waits for what comes to its end sooner if there is haste. The first signal is told of with these words and makes
    /// haste; at one after that it is dropped, with all processes of it, and the result is `None`.
    pub(super) async fn run_until_signal<T>(
        &mut self,
        shutdown: &CancellationToken,
        told: &str,
        leaving: impl Future<Output = T>,
    ) -> Option<T> {
        let mut leaving = pin!(leaving);
        loop {
            tokio::select! {
                left = &mut leaving => return Some(left),
                _ = self.next() => {}
            }
            if shutdown.is_cancelled() {
                return None;
            }
            style::leave_line();
            style::print(told);
            shutdown.cancel();
        }
    }
}

/// The signals as they come.
struct SignalStreams {
    interrupt: Signal,
    terminate: Signal,
    quit: Signal,
    /// `None` under `nohup`: who has asked for the end of the terminal to be ignored is heeded.
    hangup: Option<Signal>,
}

impl SignalStreams {
    fn install() -> io::Result<SignalStreams> {
        let hangup = SignalKind::hangup();
        Ok(SignalStreams {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            hangup: if is_ignored(hangup) { None } else { Some(signal(hangup)?) },
        })
    }

    async fn next(&mut self) -> Number {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Number::INT,
            _ = self.terminate.recv() => Number::TERM,
            _ = self.quit.recv() => Number::QUIT,
            _ = hangup => Number::HUP,
        }
    }
}

/// Says whether the signals are caught, and passes them on.
fn listen(told: &blocking::Sender<io::Result<()>>) {
    let installed = runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
        let entered = runtime.enter();
        let caught = SignalStreams::install()?;
        drop(entered);
        Ok((runtime, caught))
    });
    // Whoever asks waits for it.
    match installed {
        Ok((runtime, caught)) => {
            let _ = told.send(Ok(()));
            runtime.block_on(pass_on(caught));
        }
        Err(error) => drop(told.send(Err(error))),
    }
}

/// Passes signals on as long as somebody heeds them. If nobody does, or two are not heeded, the process ends; the guard ends
/// its servers.
async fn pass_on(mut caught: SignalStreams) {
    loop {
        let signal = caught.next().await;
        let heeding = LISTENER.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let is_heeded = |it: &mpsc::Sender<Number>| !matches!(it.try_send(signal), Err(TrySendError::Closed(_)));
        let Some(heeding) = heeding.filter(is_heeded) else {
            print_interrupted();
            end();
        };
        let are_waiting = || heeding.max_capacity() - heeding.capacity() > 1;
        if are_waiting() {
            sleep(PATIENCE).await;
            if are_waiting() {
                end();
            }
        }
    }
}

/// Says that it is interrupted, unless nobody reads that.
fn print_interrupted() {
    let (told, was_told) = blocking::channel();
    thread::spawn(move || {
        style::leave_line();
        style::print("interrupted\n");
        let _ = told.send(());
    });
    let _ = was_told.recv_timeout(PATIENCE);
}

fn end() -> ! {
    #[expect(clippy::exit, reason = "whoever could return from `main` hangs")]
    exit(Exit::CannotRun.code().into());
}

/// Whether a signal was ignored when this process was started, as far as the system tells.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_some_and(|ignored| ignored >> (signal.as_raw_value() - 1) & 1 == 1)
}
