use std::io;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown,
};

use super::Signal;

/// The events of the console that ask this process to end.
#[derive(Debug)]
pub struct SignalStreams {
    interrupt: CtrlC,
    quit: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl SignalStreams {
    /// Must be called within a tokio runtime. From then on, Ctrl-C and Ctrl-Break do not end this process; after the others,
    /// the system ends it within seconds.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn install() -> io::Result<SignalStreams> {
        Ok(SignalStreams {
            interrupt: ctrl_c()?,
            quit: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// The next event. Cancel-safe.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.quit.recv() => Signal::Quit,
            _ = self.close.recv() => Signal::Hangup,
            _ = self.logoff.recv() => Signal::Terminate,
            _ = self.shutdown.recv() => Signal::Terminate,
        }
    }
}
