//! What a model asks for in a message of text: read by the tools that there are, and called in its order.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{
    call_tool::CallToolArgs,
    called::{Called, Report},
    content::print_json,
    form::hide,
    front_end,
    target::Select,
    trouble::Trouble,
    visit::{Visit, visit_with},
};
use crate::{
    cli::{
        Exit, Failure,
        ask::Person,
        input,
        style::{self, BAD, printable},
    },
    client::hub::Registry,
    config::Source,
    llm::xml::{Parser, RequestError, ToolRequest},
};

/// Something that a message asks for.
enum Asked {
    Call(ToolRequest),
    Wrong(RequestError),
}

/// What became of it all, each in the order of the message.
#[derive(Default)]
struct Followed {
    called: Vec<Called>,
    wrong: Vec<RequestError>,
}

/// What programs are told.
#[derive(Serialize)]
struct All<'a> {
    calls: Vec<Report<'a>>,
    errors: Vec<Value>,
}

/// Calls what the message in a file asks for. A request that is wrong spoils no other.
///
/// # Errors
/// The message cannot be read, and what ends any command over servers.
pub(super) fn run(args: &CallToolArgs, path: &Path) -> Result<Exit, Failure> {
    let message = input::read(path)?;
    let servers = args.common.servers(Select::of(args.content.server.as_deref()))?;
    let person = Person::at_terminal();
    visit_with(
        person.clone(),
        &args.common,
        &servers,
        |options| {
            args.policy.apply(options);
            options.approval = args.approve.approval(person.as_ref());
        },
        async |visit| {
            let found = visit.discover().await?;
            visit.tell_unlisted(&found)?;
            let registry = found.registry;
            let asked = asked(args, &message, &registry);
            if asked.is_empty() {
                visit.note("the message asks for no tool");
            }
            let mut followed = Followed::default();
            // What was done before something ended it is told as well.
            let done = Box::pin(followed.follow(args, visit, &message, &registry, asked)).await;
            if args.is_for_programs() {
                print_json(&followed.report(args, visit, &message))?;
            }
            done.map(|()| followed.exit())
        },
    )
}

/// Everything that a message asks for, in its order.
fn asked(args: &CallToolArgs, message: &Source, registry: &Registry) -> Vec<Asked> {
    let tools = registry.tools().iter().map(|tool| tool.for_model());
    let requests = Parser::new(tools, front_end::options(args.max_calls)).parse(&message.text);
    let calls = requests.calls.into_iter().map(Asked::Call);
    let mut asked: Vec<_> = calls.chain(requests.errors.into_iter().map(Asked::Wrong)).collect();
    asked.sort_by_key(|asked| match asked {
        Asked::Call(call) => call.range.start,
        Asked::Wrong(error) => error.range.start,
    });
    asked
}

impl Followed {
    /// Makes the calls one after another, and tells what is wrong.
    ///
    /// # Errors
    /// What is to be saved cannot be.
    async fn follow(
        &mut self,
        args: &CallToolArgs,
        visit: &Visit,
        message: &Source,
        registry: &Registry,
        asked: Vec<Asked>,
    ) -> Result<(), Trouble> {
        let are_several = asked.len() > 1;
        for asked in asked {
            if visit.is_interrupted() {
                break;
            }
            let request = match asked {
                Asked::Call(request) => request,
                Asked::Wrong(error) => {
                    tell(visit, message, &error);
                    self.wrong.push(error);
                    continue;
                }
            };
            // The parser knows no other names.
            let Some(tool) = registry.get(&request.name) else { continue };
            if are_several {
                visit.note(&format!("calling '{}'", request.name));
            }
            let before = self.called.iter().map(Called::files).sum();
            self.called.push(Called::approved(visit, tool, request.arguments).await);
            if let Some(called) = self.called.last_mut() {
                called.show(visit, args, before).await?;
            }
        }
        Ok(())
    }

    fn report(&self, args: &CallToolArgs, visit: &Visit, message: &Source) -> All<'_> {
        let described = |error: &RequestError| {
            let mut described = error.to_json();
            hide(&mut described, visit);
            let (line, column) = message.position(error.range.start);
            described["line"] = line.into();
            described["column"] = column.into();
            described
        };
        All {
            calls: self.called.iter().map(|called| called.report(visit, args.form)).collect(),
            errors: self.wrong.iter().map(described).collect(),
        }
    }

    fn exit(&self) -> Exit {
        let exits: Vec<_> = self.called.iter().map(Called::exit).collect();
        match (&*self.wrong, &*exits) {
            ([], []) => Exit::NothingSelected,
            (_, exits) if exits.contains(&Exit::CannotRun) => Exit::CannotRun,
            ([], exits) if exits.iter().all(|exit| *exit == Exit::Success) => Exit::Success,
            _ => Exit::Violation,
        }
    }
}

/// Tells what is wrong with a request, at its place.
fn tell(visit: &Visit, message: &Source, error: &RequestError) {
    let (line, column) = message.position(error.range.start);
    let (code, text) = (error.fault.code(), visit.hidden(&error.to_string()));
    let text = format!("{}:{line}:{column}: {code}: {text}", message.name);
    style::print(&format!("{BAD}error:{BAD:#} {}\n", printable(&text)));
}
