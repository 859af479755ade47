//! Messages on stderr, which may be a pipe without a reader.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
    time::Duration,
};

use crate::cli::{Exit, Failure, background::BackgroundThread, style};

/// The capacity of the queue; further messages are dropped.
const CAPACITY: usize = 1024;

/// How long printing the rest of stderr may take.
const STDERR_TIMEOUT: Duration = Duration::from_secs(1);

/// Prints messages in order and never blocks.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    queue: SyncSender<String>,
    dropped: Arc<AtomicUsize>,
}

impl Console {
    /// Runs `work` with a console that prints on a thread of its own. A failure is printed there, too.
    pub(crate) fn run(work: impl FnOnce(&Console) -> Result<Exit, Failure>) -> Exit {
        let (console, printer) = Console::start(style::print);
        let exit = work(&console).unwrap_or_else(|failure| {
            console.print(failure.text());
            failure.exit()
        });
        drop(console);
        printer.join_timeout(STDERR_TIMEOUT);
        exit
    }

    /// Starts the printing thread, which ends when all clones are dropped and all messages are printed.
    fn start(print: impl FnMut(&str) + Send + 'static) -> (Console, BackgroundThread<()>) {
        let (queue, messages) = mpsc::sync_channel(CAPACITY);
        let dropped = Arc::<AtomicUsize>::default();
        let console = Console { queue, dropped: dropped.clone() };
        (console, BackgroundThread::start(move || print_all(&messages, &dropped, print)))
    }

    pub(crate) fn print(&self, text: impl Into<String>) {
        if self.queue.try_send(text.into()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Leaves the line on which a terminal shows `^C`.
    pub(crate) fn leave_line(&self) {
        if std::io::stderr().is_terminal() {
            self.print("\n");
        }
    }
}

/// Prints messages in batches. Messages are dropped only while others wait, so every batch can report the dropped ones.
fn print_all(messages: &Receiver<String>, dropped: &AtomicUsize, mut print: impl FnMut(&str)) {
    while let Ok(first) = messages.recv() {
        let mut batch: String = std::iter::once(first).chain(messages.try_iter().take(CAPACITY)).collect();
        match dropped.swap(0, Ordering::Relaxed) {
            0 => {}
            count => {
                let doubtful = style::DOUBTFUL;
                batch.push_str(&format!(
                    "{doubtful}{count} messages were dropped: stderr was not read in time{doubtful:#}\n"
                ));
            }
        }
        print(&batch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn unread_messages_are_counted_and_dropped() {
        let (read, reads) = mpsc::channel::<()>();
        let (sender, printed) = mpsc::channel();
        let (console, end) = Console::start(move |text| {
            sender.send(text.to_owned()).expect("a test");
            let _ = reads.recv();
        });
        console.print("first\n");
        let mut text = printed.recv_timeout(TIMEOUT).expect("the first");
        (0..CAPACITY + 7).for_each(|number| console.print(format!("{number}\n")));
        drop((read, console));
        end.join_timeout(TIMEOUT).expect("ends");
        text.extend(printed.iter());
        let text = anstream::adapter::strip_str(&text).to_string();
        let last = format!("\n{}\n7 messages were dropped: stderr was not read in time\n", CAPACITY - 1);
        assert!(text.starts_with("first\n0\n1\n") && text.ends_with(&last), "{text}");
    }

    #[test]
    fn joining_without_a_reader_times_out() {
        let (never, reads) = mpsc::channel::<()>();
        let (console, end) = Console::start(move |_| {
            let _ = reads.recv();
        });
        console.print("unread");
        drop(console);
        assert!(end.join_timeout(Duration::ZERO).is_none());
        drop(never);
    }
}
