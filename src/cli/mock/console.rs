//! Messages on stderr, which may be a pipe without a reader.

use std::{
    io::IsTerminal,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender},
    },
};

use crate::cli::{background::BackgroundThread, style};

/// How many texts wait for stderr before more of them are dropped.
const QUEUE: usize = 1024;

/// Says texts in order and never waits.
#[derive(Clone, Debug)]
pub(super) struct Console {
    queue: SyncSender<String>,
    unsaid: Arc<AtomicUsize>,
}

impl Console {
    /// The thread behind it ends when every clone is dropped and everything is said.
    pub(super) fn open() -> (Console, BackgroundThread<()>) {
        Console::onto(style::print)
    }

    fn onto(print: impl FnMut(&str) + Send + 'static) -> (Console, BackgroundThread<()>) {
        let (queue, texts) = mpsc::sync_channel(QUEUE);
        let unsaid = Arc::<AtomicUsize>::default();
        let console = Console { queue, unsaid: unsaid.clone() };
        (console, BackgroundThread::start(move || say(&texts, &unsaid, print)))
    }

    pub(super) fn say(&self, text: impl Into<String>) {
        if self.queue.try_send(text.into()).is_err() {
            self.unsaid.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Leaves the line on which a terminal shows `^C`.
    pub(super) fn leave_line(&self) {
        if std::io::stderr().is_terminal() {
            self.say("\n");
        }
    }
}

/// A text is dropped only while others wait: the batch in which those are said tells of it.
fn say(texts: &Receiver<String>, unsaid: &AtomicUsize, mut print: impl FnMut(&str)) {
    while let Ok(first) = texts.recv() {
        let mut batch: String = std::iter::once(first).chain(texts.try_iter().take(QUEUE)).collect();
        match unsaid.swap(0, Ordering::Relaxed) {
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
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn unread_messages_are_counted_and_dropped() {
        let (read, reads) = mpsc::channel::<()>();
        let (sender, printed) = mpsc::channel();
        let (console, end) = Console::onto(move |text| {
            sender.send(text.to_owned()).expect("a test");
            let _ = reads.recv();
        });
        console.say("first\n");
        let mut text = printed.recv_timeout(PATIENCE).expect("the first");
        (0..QUEUE + 7).for_each(|number| console.say(format!("{number}\n")));
        drop((read, console));
        end.join_timeout(PATIENCE).expect("ends");
        text.extend(printed.iter());
        let text = anstream::adapter::strip_str(&text).to_string();
        let last = format!("\n{}\n7 messages were dropped: stderr was not read in time\n", QUEUE - 1);
        assert!(text.starts_with("first\n0\n1\n") && text.ends_with(&last), "{text}");
    }

    #[test]
    fn a_reader_that_never_comes_is_given_up_on() {
        let (never, reads) = mpsc::channel::<()>();
        let (console, end) = Console::onto(move |_| {
            let _ = reads.recv();
        });
        console.say("unread");
        drop(console);
        assert!(end.join_timeout(Duration::ZERO).is_none());
        drop(never);
    }
}
