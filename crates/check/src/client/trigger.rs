//! Commands that make the client do something while it runs.

use std::{ffi::OsString, str::FromStr};

use rehearse_mock::script::ItemKind;

use super::ActScript;

/// For how many items of an act a command runs.
const MAX_ITEMS: usize = 16;

/// What a command makes the application do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Call a tool: once for each tool, as `{tool}` with `{arguments}`.
    Call,
    /// Read a resource: once for each, as `{uri}`.
    Read,
    /// Get a prompt: once for each, as `{prompt}`.
    Prompt,
    /// Anything: once.
    Any,
}

/// A command that makes the client do something: `call=COMMAND` for each tool, `read=` for each resource, `prompt=` for
/// each prompt, or once, without a name or with `any=`.
#[derive(Clone, Debug)]
pub struct Trigger {
    work: Work,
    command: String,
}

/// A trigger has no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a command, such as call='curl -s localhost:3000/ask'")]
pub struct NoCommand;

impl FromStr for Trigger {
    type Err = NoCommand;

    fn from_str(text: &str) -> Result<Trigger, NoCommand> {
        let (work, command) = match text.split_once('=') {
            Some(("call", command)) => (Work::Call, command),
            Some(("read", command)) => (Work::Read, command),
            Some(("prompt", command)) => (Work::Prompt, command),
            Some(("any", command)) => (Work::Any, command),
            _ => (Work::Any, text),
        };
        match command.trim().is_empty() {
            true => Err(NoCommand),
            false => Ok(Trigger { work, command: command.to_owned() }),
        }
    }
}

/// A command line for a shell, and the variables that it gets beside those of the client.
#[derive(Debug)]
pub(super) struct TriggerRun {
    pub(super) command: String,
    pub(super) variables: Vec<(&'static str, OsString)>,
}

impl Trigger {
    /// The runs of the command in an act.
    pub(super) fn runs(&self, act: &ActScript) -> Vec<TriggerRun> {
        let run = |variables: Vec<(&'static str, OsString)>| TriggerRun { command: self.command.clone(), variables };
        let named = |variable: &'static str, names: Vec<String>| {
            names.into_iter().map(|name| run(vec![(variable, name.into())])).collect()
        };
        let mut runs: Vec<_> = match self.work {
            Work::Any => vec![run(Vec::new())],
            Work::Read => named("REHEARSE_RESOURCE", act.names(ItemKind::Resource)),
            Work::Prompt => named("REHEARSE_PROMPT", act.names(ItemKind::Prompt)),
            Work::Call => {
                let variables = |(tool, arguments): (String, serde_json::Value)| {
                    run(vec![("REHEARSE_TOOL", tool.into()), ("REHEARSE_ARGUMENTS", arguments.to_string().into())])
                };
                act.tools().into_iter().map(variables).collect()
            }
        };
        runs.truncate(MAX_ITEMS);
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rehearse_document::Source;
    use rehearse_mock::script::Script;

    #[test]
    fn a_command_runs_for_each_tool_with_its_arguments() {
        let text = "tools:\n- { name: a, inputSchema: { type: object, properties: { n: { type: integer } }, required: [n] }, reply: x }\n- { name: b, reply: y }";
        let script = Script::parse(&Source::new("act", text)).expect("a script");
        let act = ActScript::new("act".to_owned(), script);
        let runs = "call=app ask".parse::<Trigger>().expect("a trigger").runs(&act);
        let tools: Vec<_> = runs.iter().map(|run| run.variables[0].1.clone()).collect();
        assert_eq!((tools, &*runs[0].command), (vec!["a".into(), "b".into()], "app ask"));
        assert_eq!(runs[0].variables[1].1, r#"{"n":1}"#);
        let runs = |text: &str| text.parse::<Trigger>().map(|trigger| trigger.runs(&act).len());
        assert_eq!((runs("A=b app"), runs("read=app")), (Ok(1), Ok(0)));
        assert!(runs("call=").is_err());
    }
}
