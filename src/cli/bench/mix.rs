//! The calls of a scenario, as a mix of requests.

use std::path::Path;

use mcp_rehearsal::builtin_scripts::BUILTIN_SCRIPTS;
use serde_json::{Map, Value};

use crate::cli::{Failure, style};
use rehearse_bench::BenchCall;
use rehearse_document::template::{Data, Text};
use rehearse_protocol::{List, Operation};
use rehearse_scenario::{Action, Scenario};

/// Reads the calls, resources, prompts, lists and pings of a scenario. Each is sent as often, by ratio, as it is in it.
///
/// # Errors
/// The scenario has mistakes, or nothing that can be sent.
pub(super) fn read(path: &Path) -> Result<Vec<BenchCall>, Failure> {
    let scenario = Scenario::load(path, BUILTIN_SCRIPTS)?;
    let mut calls: Vec<BenchCall> = Vec::new();
    for step in &scenario.steps {
        let request = match request(&step.action) {
            Ok(request) => request,
            Err(why) => {
                style::warn(&format!("{}:{}: this step is not measured: {why}", path.display(), step.line));
                continue;
            }
        };
        match calls.iter_mut().find(|call| call.request == request) {
            Some(call) => call.weight += 1,
            None => calls.push(BenchCall { request, weight: 1 }),
        }
    }
    match calls.is_empty() {
        true => Err(Failure::Usage(format!("{} has no step that can be measured", path.display()))),
        false => Ok(calls),
    }
}

/// What a step sends.
///
/// # Errors
/// It has a template, or does something else.
fn request(action: &Action) -> Result<Operation, &'static str> {
    match action {
        Action::Call(call) => Ok(Operation::call(&text(&call.tool)?, Some(object(call.args.as_ref())?))),
        Action::ReadResource { uri } => Ok(Operation::read(&text(uri)?)),
        Action::GetPrompt { name, args } => Ok(Operation::get(&text(name)?, Some(object(args.as_ref())?))),
        Action::Discover { .. } => Ok(Operation::list(List::Tools)),
        Action::Ping => Ok(Operation::ping()),
        _ => Err("only call, read_resource, get_prompt, discover and ping are"),
    }
}

fn text(text: &Text) -> Result<String, &'static str> {
    match text {
        Text::Literal(text) => Ok(text.clone()),
        _ => Err("it has a template"),
    }
}

fn object(data: Option<&Data>) -> Result<Map<String, Value>, &'static str> {
    match data {
        None => Ok(Map::new()),
        Some(Data::Literal(json)) => serde_json::from_str(json).map_err(|_| "its arguments are not an object"),
        Some(_) => Err("its arguments have a template"),
    }
}
