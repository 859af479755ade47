//! What the tools of a server do.

use rehearse_protocol::names::META_LOG_LEVEL;
use std::time::Duration;

use rehearse_conformance::{Case, CaseGroup, Material};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    CheckOptions,
    connection::{Answer, ProbeConnection},
    lists,
};

/// No further tool is called again after this time.
const LONGEST: Duration = Duration::from_secs(5);
/// The part of the budget in which every tool is called once.
const SHARE: u32 = 4;
/// How many tools are called again and again.
const CHOSEN: usize = 3;
/// A tool that takes longer can be cancelled, and the next one is called meanwhile.
pub(crate) const SLOW: Duration = Duration::from_millis(250);

/// One call of a tool.
struct Called {
    name: String,
    arguments: Value,
    /// How long a slow tool took; zero if it has not answered.
    took: Option<Duration>,
    is_success: bool,
    has_logged: bool,
    has_progressed: bool,
    /// Whether the tool needs a client that can be asked.
    needs_capability: bool,
}

/// The tools that may be called, with their arguments.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Each that was called and is not slow; if there is none, the slow ones.
    pub(crate) tools: Vec<(String, Value)>,
    /// The few of them that show most.
    pub(crate) chosen: Vec<(String, Value)>,
    /// The fastest of the slow ones.
    pub(crate) slow: Option<SlowTool>,
    /// How many tools were called, of those that may be.
    pub(crate) called: usize,
    pub(crate) allowed: usize,
    /// Why the others were not called.
    pub(crate) why: &'static str,
}

/// A tool whose calls can be cancelled, with its arguments.
#[derive(Clone, Debug)]
pub(crate) struct SlowTool {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) took: Duration,
}

/// Calls each tool that may be called once, as in normal work, with a progress token.
pub(crate) async fn survey(connection: &mut ProbeConnection, material: &Material, options: &CheckOptions) -> Survey {
    let tools: Vec<_> = lists::callable(&material.tools, options).collect();
    let has_levels = material.is_modern() && material.declares("logging");
    let with_meta = |number: usize, mut params: Value| {
        params["_meta"] = json!({ "progressToken": format!("rehearse-{number}") });
        if has_levels {
            params["_meta"][META_LOG_LEVEL] = json!("debug");
        }
        params
    };
    let calls = call(connection, &tools, "", options.budget / SHARE, with_meta).await;
    let has_time = calls.len() == tools.len() || !connection.has_room();
    let why = match connection.wire().is_closed() {
        true => "the server had ended the connection",
        false if has_time => "one run calls no more",
        false => "a longer `--budget` calls the others",
    };
    Survey { allowed: tools.len(), why, ..Survey::of(calls) }
}

/// Calls each of these tools, which may change something, as long as there is time.
pub(crate) async fn call_each(connection: &mut ProbeConnection, tools: &[(String, Value)], case: &str) {
    call(connection, tools, case, LONGEST, |_, params| params).await;
}

/// Calls each of these tools, as long as there is time. A slow one is waited for at the end.
async fn call(
    connection: &mut ProbeConnection,
    tools: &[(String, Value)],
    case: &str,
    longest: Duration,
    with_meta: impl Fn(usize, Value) -> Value,
) -> Vec<Called> {
    let end = Instant::now() + longest;
    let (mut calls, mut slow) = (Vec::new(), Vec::new());
    for (number, (name, arguments)) in tools.iter().enumerate() {
        if connection.is_over() || !connection.has_room() || Instant::now() >= end {
            break;
        }
        let params = with_meta(number, Material::call_params(name, arguments));
        let (from, sent) = (connection.wire().recorder().end(), Instant::now());
        let Some(begun) = connection.begin(&Case::request(case, CaseGroup::Calls, "tools/call", params)).await else {
            break;
        };
        let answer = connection.finish(&begun, SLOW).await;
        let frames = connection.wire().recorder().since(from);
        let has = |method: &str| {
            let messages = frames.iter().filter_map(|it| serde_json::from_slice::<Value>(&it.bytes).ok());
            messages.into_iter().any(|message| message["method"] == method)
        };
        if answer.message.is_none() {
            slow.push((calls.len(), begun, sent));
        }
        calls.push(Called {
            name: name.clone(),
            arguments: arguments.clone(),
            took: answer.message.is_none().then_some(Duration::ZERO),
            is_success: is_success(&answer),
            has_logged: has("notifications/message"),
            has_progressed: has("notifications/progress"),
            needs_capability: answer.message.as_ref().is_some_and(|it| it["error"]["code"] == -32021),
        });
    }
    let end = Instant::now() + connection.limit();
    for (number, begun, sent) in slow {
        let answer = connection.finish(&begun, end.saturating_duration_since(Instant::now())).await;
        if let (Some(call), Some(_)) = (calls.get_mut(number), &answer.message) {
            (call.took, call.is_success) = (Some(sent.elapsed()), is_success(&answer));
        }
    }
    calls
}

fn is_success(answer: &Answer) -> bool {
    answer.result().is_some_and(|result| result["isError"] != true)
}

impl Survey {
    fn of(calls: Vec<Called>) -> Survey {
        let (called, allowed) = (calls.len(), calls.len());
        let answered = calls.iter().filter(|call| call.took.is_some_and(|took| !took.is_zero()));
        let slow = answered.min_by_key(|call| call.took).map(|call| SlowTool {
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            took: call.took.unwrap_or_default(),
        });
        let (mut tools, others): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.took.is_none());
        if tools.is_empty() {
            tools = others;
        }
        let chosen = choose(&tools);
        let tools = tools.into_iter().map(|call| (call.name, call.arguments)).collect();
        Survey { tools, chosen, slow, called, allowed, why: "" }
    }
}

/// The first that succeeded, one that logs, one that reports progress, one that asks, and then the next ones.
fn choose(calls: &[Called]) -> Vec<(String, Value)> {
    let mut all: Vec<_> = calls.iter().collect();
    all.sort_by_key(|call| (!call.is_success, call.took));
    let mut chosen: Vec<&Called> = all.first().copied().into_iter().collect();
    let shows: [fn(&Called) -> bool; 3] =
        [|call| call.has_logged, |call| call.has_progressed, |call| call.needs_capability];
    for shows in shows {
        if !chosen.iter().any(|call| shows(call)) {
            chosen.extend(all.iter().find(|call| shows(call)));
        }
    }
    for call in all {
        if chosen.len() < CHOSEN && !chosen.iter().any(|it| it.name == call.name) {
            chosen.push(call);
        }
    }
    chosen.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(name: &str) -> Called {
        Called {
            name: name.to_owned(),
            arguments: json!({}),
            took: None,
            is_success: true,
            has_logged: false,
            has_progressed: false,
            needs_capability: false,
        }
    }

    fn names(tools: &[(String, Value)]) -> Vec<&str> {
        tools.iter().map(|(name, _)| name.as_str()).collect()
    }

    #[test]
    fn the_tools_that_show_most_are_chosen() {
        let tools = [
            Called { is_success: false, ..called("fails") },
            called("a"),
            called("b"),
            Called { took: Some(SLOW * 2), ..called("slower") },
            Called { took: Some(SLOW), ..called("slow") },
            Called { took: Some(Duration::ZERO), is_success: false, ..called("silent") },
            Called { has_logged: true, ..called("logs") },
            Called { has_progressed: true, ..called("reports") },
            Called { needs_capability: true, is_success: false, ..called("asks") },
        ];
        let survey = Survey::of(tools.into());
        assert_eq!(names(&survey.tools), ["fails", "a", "b", "logs", "reports", "asks"]);
        assert_eq!(names(&survey.chosen), ["a", "logs", "reports", "asks"]);
        assert_eq!(survey.slow.map(|it| it.name).as_deref(), Some("slow"));
    }

    #[test]
    fn tools_that_are_slow_or_fail_are_called_if_there_are_no_others() {
        let silent = || Called { took: Some(Duration::ZERO), is_success: false, ..called("silent") };
        assert_eq!(names(&Survey::of(vec![silent(), called("a")]).chosen), ["a"]);
        assert_eq!(names(&Survey::of(vec![silent()]).chosen), ["silent"]);
    }
}
