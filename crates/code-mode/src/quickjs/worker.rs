//! The process that runs a program: no files, no processes, no network.

use std::{
    cell::{Cell, RefCell},
    io::{BufRead, Write},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    time::{Duration, Instant},
};

use rehearse_system::process::kill_self;
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime, Value, context::EvalOptions,
};

/// Makes the globals.
const PRELUDE: &str = include_str!("prelude.js");
/// How long a program that the engine cannot stop, such as a loop in one of its functions, goes on without a parent.
const ORPHAN_TIME: Duration = Duration::from_millis(500);
/// Its name is in stacks.
const FILE: &str = "program.js";
const OUT_OF_MEMORY: &str = "the program ran out of memory";

/// Why a worker cannot work.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the first message is invalid")]
    Request,
    #[error("the engine failed: {0}")]
    Engine(#[from] rquickjs::Error),
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

/// The first message.
struct Request {
    code: String,
    /// Functions and their tools, as JSON.
    tools: String,
    time: Duration,
    memory: usize,
}

impl Request {
    fn parse(line: &str) -> Option<Request> {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(Request {
            code: message.get("code")?.as_str()?.to_owned(),
            tools: message.get("tools")?.to_string(),
            time: Duration::from_millis(message.get("milliseconds")?.as_u64()?),
            memory: message.get("memory")?.as_u64()?.try_into().ok()?,
        })
    }
}

/// How a program was stopped.
#[derive(Clone, Copy, PartialEq)]
enum Stop {
    No,
    /// Its time is over.
    Time,
    /// The parent does not read.
    Closed,
}

/// Runs one program: `input` and `output` are the connection with the process that started this one, `console` is for
/// what the program prints. Returns when the program has ended, or when `input` ends; a program that cannot be stopped
/// then ends with its process.
///
/// # Errors
/// The first message is wrong, or a message cannot be written.
pub fn work(
    mut input: impl BufRead + Send + 'static,
    output: impl Write + 'static,
    console: impl Write + 'static,
) -> Result<(), WorkerError> {
    let mut first = String::new();
    input.read_line(&mut first)?;
    let request = Request::parse(&first).ok_or(WorkerError::Request)?;
    let deadline = Instant::now() + request.time;
    let (sender, answers) = channel();
    let is_closed = Arc::new(AtomicBool::new(false));
    let closed = Arc::clone(&is_closed);
    let (_running, has_ended) = channel::<()>();
    // Reads on while a program computes, so that the parent does not wait, and its end is noticed.
    std::thread::spawn(move || {
        input.lines().map_while(Result::ok).try_for_each(|line| sender.send(line).ok());
        closed.store(true, Ordering::Relaxed);
        if has_ended.recv_timeout(ORPHAN_TIME) == Err(RecvTimeoutError::Timeout) {
            kill_self();
        }
    });
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(request.memory);
    let stop = Rc::new(Cell::new(Stop::No));
    let stopped = Rc::clone(&stop);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        if is_closed.load(Ordering::Relaxed) {
            stopped.set(Stop::Closed);
        } else if stopped.get() == Stop::No && Instant::now() >= deadline {
            // Once: what follows describes where it was.
            stopped.set(Stop::Time);
            return true;
        }
        stopped.get() == Stop::Closed
    })));
    let reject = Rc::new(RefCell::new(None::<Persistent<Function<'static>>>));
    let rejects = Rc::clone(&reject);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let reject = rejects.borrow().clone().map(|reject| reject.restore(&ctx));
        // Out of memory: the end of the program says so.
        let _ = reject.and_then(Result::ok).map(|reject| reject.call::<_, ()>((promise, reason, is_handled)));
    })));
    let context = Context::full(&runtime)?;
    let done = context.with(|ctx| Program { ctx, stop, deadline }.run(&request, &answers, output, console, &reject));
    // Before the engine is freed.
    reject.take();
    done
}

/// A program in its context.
struct Program<'js> {
    ctx: Ctx<'js>,
    stop: Rc<Cell<Stop>>,
    deadline: Instant,
}

impl<'js> Program<'js> {
    fn run(
        &self,
        request: &Request,
        answers: &Receiver<String>,
        mut output: impl Write + 'static,
        mut console: impl Write + 'static,
        reject: &RefCell<Option<Persistent<Function<'static>>>>,
    ) -> Result<(), WorkerError> {
        let (ctx, finished) = (&self.ctx, Rc::new(Cell::new(None)));
        let last = Rc::clone(&finished);
        let mut write =
            move |line: &str| output.write_all(format!("{line}\n").as_bytes()).and_then(|()| output.flush());
        // Whether the parent can read it: it may be nested too deeply.
        let send = Function::new(
            ctx.clone(),
            rquickjs::function::MutFn::new(move |line: String| {
                let is_readable = serde_json::from_str::<serde_json::Value>(&line).is_ok();
                if is_readable {
                    last.set(write(&line).err().or(last.take()));
                }
                is_readable
            }),
        )?;
        let print = Function::new(
            ctx.clone(),
            rquickjs::function::MutFn::new(move |text: String| {
                // The parent is gone if this fails.
                let _ = console.write_all(text.as_bytes());
            }),
        )?;
        let prelude: Function<'js> = ctx.eval(PRELUDE)?;
        let tools: Value<'js> = ctx.json_parse(request.tools.as_str())?;
        let host: Object<'js> = prelude.call((send.clone(), print, tools))?;
        reject.replace(Some(Persistent::save(ctx, host.get::<_, Function<'js>>("reject")?)));
        let end = self.end(&host, &request.code, answers);
        if let Some(end) = end
            && !send.call::<_, bool>((end,))?
        {
            let why = "RangeError: what the program returned is nested too deeply";
            send.call::<_, bool>((message("exception", why),))?;
        }
        finished.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// The last message; `None` if the parent does not read.
    fn end(&self, host: &Object<'js>, code: &str, answers: &Receiver<String>) -> Option<String> {
        let options = || {
            let mut options = EvalOptions::default();
            options.strict = false;
            options.filename = Some(FILE.to_owned());
            options
        };
        // A function first: what fails here is not a program.
        let main = self.ctx.eval_with_options::<Function<'js>, _>(format!("(async () => {{{code}\n}})"), options());
        let main = match main.catch(&self.ctx) {
            Ok(main) => main,
            Err(error) => return Some(message("compile error", &self.describe(host, error))),
        };
        let step = |name: &str, argument: Option<Value<'js>>| -> Result<(), String> {
            let run: Function<'js> = host.get(name).map_err(|error| error.to_string())?;
            run.call::<_, ()>((argument,)).catch(&self.ctx).map_err(|error| self.describe(host, error))
        };
        let mut done = step("start", Some(main.into_value()));
        loop {
            // What promises have queued.
            while done.is_ok() && self.stop.get() == Stop::No && self.ctx.execute_pending_job() {}
            match (self.stop.get(), done) {
                (Stop::Closed, _) => return None,
                (Stop::Time, done) => return Some(message("timeout", &done.err().unwrap_or_default())),
                (Stop::No, Err(error)) => return Some(message("exception", &error)),
                (Stop::No, Ok(())) => {}
            }
            let pause = host.get("pause").and_then(|pause: Function<'js>| pause.call::<_, f64>(()));
            let pause = match pause {
                Ok(pause) if pause < 0.0 => return Some(self.finish(host)),
                Ok(pause) => Duration::try_from_secs_f64(pause / 1000.0).unwrap_or(Duration::MAX),
                Err(_) => return Some(message("exception", OUT_OF_MEMORY)),
            };
            let left = self.deadline.saturating_duration_since(Instant::now());
            done = match answers.recv_timeout(pause.min(left)) {
                Ok(line) => match rquickjs::String::from_str(self.ctx.clone(), &line) {
                    Ok(line) => step("settle", Some(line.into_value())),
                    Err(_) => Err(OUT_OF_MEMORY.to_owned()),
                },
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if pause < left => step("fire", None),
                Err(RecvTimeoutError::Timeout) => return Some(message("timeout", "")),
            };
        }
    }

    fn finish(&self, host: &Object<'js>) -> String {
        let end = host.get("end").and_then(|end: Function<'js>| end.call::<_, String>(()));
        end.unwrap_or_else(|_| message("exception", OUT_OF_MEMORY))
    }

    fn describe(&self, host: &Object<'js>, error: CaughtError<'js>) -> String {
        match error {
            CaughtError::Exception(exception) => self.describe_value(host, exception.into_value()),
            CaughtError::Value(value) => self.describe_value(host, value),
            CaughtError::Error(error) => error.to_string(),
        }
    }

    fn describe_value(&self, host: &Object<'js>, value: Value<'js>) -> String {
        // The engine has no memory left for an error.
        if value.is_null() {
            return OUT_OF_MEMORY.to_owned();
        }
        let text = host.get("describe").and_then(|describe: Function<'js>| describe.call::<_, String>((value,)));
        text.unwrap_or_else(|_| OUT_OF_MEMORY.to_owned())
    }
}

fn message(end: &str, text: &str) -> String {
    serde_json::json!({ "end": end, "message": text }).to_string()
}
