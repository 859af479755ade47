//! The faults of a script and the requests to which they apply.

use super::{Condition, ItemKind, ScriptReader, keys::KEYS};
use crate::faults::Fault;
use rehearse_document::{Entry, Fields, Node, Problem, Problems, nearest};
use rehearse_protocol::Transport;

/// The methods and notifications of the protocol that a client may send.
const METHODS: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/list",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "subscriptions/listen",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
];

/// An entry of `faults`.
#[derive(Debug)]
pub struct FaultRule {
    /// The target requests of the entry.
    pub target: FaultTarget,
    /// The condition on a request.
    pub when: Condition,
    /// The faults in order. Never empty.
    pub faults: Vec<Fault>,
}

/// The target of an entry of `faults`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultTarget {
    /// Every request.
    Everything,
    /// The requests or notifications of a method.
    Method(String),
    /// The requests for a tool, prompt or resource of this name or URI.
    Item(ItemKind, String),
}

impl FaultRule {
    pub(super) fn read(node: &Node, reader: &mut ScriptReader) -> Result<FaultRule, Problems> {
        let fields = KEYS.fields(node, "faultRule")?;
        let (target, when) = match fields.get("on") {
            Some(on) => read_on(on, reader)?,
            None => (FaultTarget::Everything, Condition::default()),
        };
        let action = fields.required("do")?;
        let faults = if action.as_items().is_some() { action.each(Fault::read)? } else { vec![Fault::read(action)?] };
        if faults.is_empty() {
            return Err(action.problem("`do` must name a fault").into());
        }
        if let Some(on) = fields.get("on") {
            check_transports(on, &faults)?;
        }
        Ok(FaultRule { target, when, faults })
    }
}

fn read_on(node: &Node, reader: &mut ScriptReader) -> Result<(FaultTarget, Condition), Problems> {
    let fields = KEYS.fields(node, "on")?;
    let target = match item(&fields)? {
        Some((kind, Entry { node, .. })) => {
            let name = node.str()?.to_owned();
            // A resource may come from a template.
            if kind != ItemKind::Resource {
                reader.mentioned.push((kind, name.clone(), node.span));
            }
            FaultTarget::Item(kind, name)
        }
        None => fields
            .read("method", |node| read_method(node, reader))?
            .map_or(FaultTarget::Everything, FaultTarget::Method),
    };
    Ok((target, Condition::read_fields(&fields, reader)?))
}

/// The named tool, prompt or resource.
fn item<'n>(fields: &Fields<'n>) -> Result<Option<(ItemKind, &'n Entry)>, Problems> {
    let Some(entry) = fields.at_most_one(&["tool", "prompt", "resource"])? else { return Ok(None) };
    let kind = ItemKind::of_key(&entry.key).unwrap_or(ItemKind::Resource);
    let method = kind.item_method();
    match fields.read("method", |node| Ok((node, node.str()?)))? {
        Some((node, said)) if said != method => {
            let message = format!("a {} is named by `{method}` alone", kind.noun());
            Err(node.problem(message).hint(format!("leave `method` out, or `{}`", entry.key)).into())
        }
        _ => Ok(Some((kind, entry))),
    }
}

fn read_method(node: &Node, reader: &mut ScriptReader) -> Result<String, Problems> {
    let method = node.str()?;
    if !METHODS.contains(&method) {
        if let Some(near) = nearest(method, METHODS) {
            let problem = node.problem(format!("there is no method `{method}`"));
            return Err(problem.hint(format!("did you mean `{near}`?")).into());
        }
        reader.mentioned.push((ItemKind::Method, method.to_owned(), node.span));
    }
    Ok(method.to_owned())
}

/// Faults for certain transports must exist on one of them.
fn check_transports(on: &Node, faults: &[Fault]) -> Result<(), Problems> {
    let Some(node) = on.get("transport") else { return Ok(()) };
    let named = node.items().map_or_else(|_| vec![node], |items| items.iter().collect());
    let named: Vec<Transport> = named.iter().filter_map(|node| node.as_str()?.parse().ok()).collect();
    for info in faults.iter().map(Fault::info) {
        if !named.iter().any(|transport| info.transports.contains(transport)) {
            let exists: Vec<_> = info.transports.iter().map(|transport| transport.as_str()).collect();
            let problem = Problem::new(node.span, format!("there is no `{}` on this transport", info.name));
            return Err(problem.hint(format!("it exists on {}", exists.join(" and "))).into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use rehearse_document::Source;

    fn script(faults: &str) -> Result<Script, String> {
        let text = format!(
            "tools: [{{ name: echo, reply: x }}]\nprompts: [{{ name: p, messages: [] }}]\nmethods: [{{ method: x/y, reply: {{ result: {{}} }} }}]\nfaults: {faults}\n"
        );
        Script::parse(&Source::new("m", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn an_entry_aims_at_everything_a_method_or_something_by_name() {
        for (on, target) in [
            ("", FaultTarget::Everything),
            ("on: { era: legacy }, ", FaultTarget::Everything),
            ("on: { method: tools/list }, ", FaultTarget::Method("tools/list".into())),
            ("on: { method: x/y }, ", FaultTarget::Method("x/y".into())),
            ("on: { tool: echo, method: tools/call }, ", FaultTarget::Item(ItemKind::Tool, "echo".into())),
            ("on: { prompt: p }, ", FaultTarget::Item(ItemKind::Prompt, "p".into())),
            ("on: { resource: 'file:///a' }, ", FaultTarget::Item(ItemKind::Resource, "file:///a".into())),
        ] {
            let script = script(&format!("[{{ {on}do: hang }}]")).expect(on);
            assert_eq!(script.faults[0].target, target, "{on}");
        }
        let names = |faults: &str| {
            let script = script(faults).expect(faults);
            script.faults.iter().flat_map(|it| &it.faults).map(|it| it.info().name).collect::<Vec<_>>()
        };
        assert_eq!(names("[{ do: hang }, { do: [{ delay: 1s }, duplicate] }]"), ["hang", "delay", "duplicate"]);
    }
}
