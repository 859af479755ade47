//! Rules that are added to a script while it is served.

use std::sync::Arc;

use super::{ItemKind, ReplySubject, Rule, ScriptReader, ToolItem, repeat};
use crate::handler::Handler;
use rehearse_document::{Diagnostics, Entry, Node, Problem, Problems, Source, Span, nearest, parse_yaml};

/// A rule that is added before those of an item of the script, from a separate text:
/// `{ tool: echo, rule: { when: { args: { text: hi } }, reply: hello } }`.
#[derive(Debug)]
pub struct AddedRule {
    /// The id of the rule.
    pub id: String,
    /// The kind of the item.
    pub kind: ItemKind,
    /// The name, URI, URI template or method of the item.
    pub name: String,
    name_span: Span,
    rule: Node,
    source: Arc<Source>,
    /// The handlers that the text names.
    handlers: Vec<Handler>,
}

impl AddedRule {
    /// Reads the text, YAML or JSON. The rule is checked against the script when it is added.
    ///
    /// # Errors
    /// The mistakes in the rule, with positions in the text.
    pub fn parse(id: &str, text: &str) -> Result<AddedRule, Diagnostics> {
        AddedRule::parse_with(id, text, Vec::new())
    }

    /// Reads a text that may name these handlers.
    ///
    /// # Errors
    /// Like [`AddedRule::parse`].
    pub(crate) fn parse_with(id: &str, text: &str, handlers: Vec<Handler>) -> Result<AddedRule, Diagnostics> {
        let source = Source::new(format!("<rule {id}>"), text);
        let keys = ItemKind::ALL.map(ItemKind::key);
        let read = |root: Node| {
            let fields = root.fields("an added rule", &[&keys[..], &["rule"]].concat())?;
            let Entry { key, node, .. } = fields.exactly_one(&keys)?;
            let kind = ItemKind::ALL.into_iter().find(|kind| kind.key() == key.as_str()).unwrap_or(ItemKind::Tool);
            let (name, rule) = (node.str()?.to_owned(), fields.required("rule")?.clone());
            let (id, source, name_span) = (id.to_owned(), source.clone(), node.span);
            Ok(AddedRule { id, kind, name, name_span, rule, source, handlers })
        };
        parse_yaml(&source).and_then(read).map_err(|problems| problems.in_source(&source))
    }

    /// The label in the journal: `tools.echo.rules[r1]`.
    pub fn label(&self) -> String {
        format!("{}.{}.rules[{}]", self.kind.list_key(), self.name, self.id)
    }

    /// The rule, for the script at `root`.
    ///
    /// # Errors
    /// The script has no such item, or the rule is wrong for it.
    pub(super) fn read(
        &self,
        root: &Node,
        tools: &[ToolItem],
        reader: &mut ScriptReader,
    ) -> Result<Arc<Rule>, Diagnostics> {
        self.read_in(root, tools, reader).map_err(|problems| problems.in_source(&self.source))
    }

    fn read_in(&self, root: &Node, tools: &[ToolItem], reader: &mut ScriptReader) -> Result<Arc<Rule>, Problems> {
        let declared = root.get(self.kind.list_key()).and_then(|list| list.as_items()).unwrap_or_default();
        let name = |item: &Node| item.get(self.kind.name_key()).and_then(|name| Some(name.as_str()?.to_owned()));
        let Some(item) = declared.iter().find(|item| name(item).as_ref() == Some(&self.name)) else {
            let names: Vec<_> = declared.iter().filter_map(name).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let noun = self.kind.noun();
            let problem = Problem::new(self.name_span, format!("there is no {noun} `{}`", self.name));
            let near = nearest(&self.name, &names).map(|near| format!("did you mean `{near}`?"));
            return Err(problem
                .hint(near.unwrap_or_else(|| "rules are added to what the script declares".into()))
                .into());
        };
        let items = reader.item_count;
        // Those of the script are already checked.
        reader.mentioned.clear();
        reader.handlers.clone_from(&self.handlers);
        reader.repeats = item.get(repeat::KEY).is_some();
        reader.templates.read_from(&self.source);
        let rule = Arc::new(Rule::read(&self.rule, self.label(), &ReplySubject::for_item(self.kind, item), reader)?);
        if reader.item_count != items {
            let problem = self.rule.problem("an added rule cannot `replace` anything");
            return Err(problem.hint("let the script declare both, and `enable` one of them").into());
        }
        let unknown = reader.unknown_names(root);
        if !unknown.is_empty() {
            return Err(Problems(unknown));
        }
        if let Some(tool) = tools.iter().find(|tool| self.kind == ItemKind::Tool && tool.item.name == self.name) {
            tool.check_replies(std::slice::from_ref(&rule), &self.rule)?;
        }
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    const SCRIPT: &str = "
tools:
  - { name: echo, reply: base }
  - { name: typed, outputSchema: { type: object, required: [ok] } }
prompts: [{ name: greet, description: Greets. }]
resources: [{ uri: 'file:///a', text: x }]
";

    fn added(texts: &[&str]) -> Result<Script, Diagnostics> {
        let script = Script::parse(&Source::new("m", SCRIPT)).unwrap_or_else(|error| panic!("{error}"));
        let rules = texts.iter().zip(1..).map(|(text, number)| AddedRule::parse(&format!("r{number}"), text));
        script.with_rules(&rules.map(|rule| rule.map(Arc::new)).collect::<Result<Vec<_>, _>>()?)
    }

    #[test]
    fn the_latest_rule_is_in_front_and_those_of_the_script_keep_their_labels() {
        let script = added(&[
            r#"{"tool": "echo", "rule": {"when": {"args": {"a": 1}}, "reply": "one"}}"#,
            r#"{"tool": "echo", "rule": {"steps": [{"log": "hi"}, {"reply": "{{ args.a }}"}]}}"#,
            r#"{"prompt": "greet", "rule": {"messages": []}}"#,
        ]);
        let script = script.unwrap_or_else(|error| panic!("{error}"));
        let labels: Vec<_> = script.tools[0].item.rules.iter().map(|rule| &*rule.label).collect();
        assert_eq!(labels, ["tools.echo.rules[r2]", "tools.echo.rules[r1]", "tools.echo"]);
        assert_eq!(script.prompts[0].item.rules.len(), 2);
        assert!(script.uses.logging, "what rules make use of is declared");
    }

    #[test]
    fn errors_of_a_rule_are_reported_with_their_location_in_its_text() {
        for (text, expected) in [
            ("{ tool: ecko, rule: { reply: x } }", "<rule r1>:1:9: there is no tool `ecko` (did you mean `echo`?)"),
            (
                "{ tool: echo, rule: { repply: x } }",
                "<rule r1>:1:23: a rule has no key `repply` (did you mean `reply`?)",
            ),
            (
                "{ tool: echo,\n  rule: { reply: '{{ arg }}' } }",
                "<rule r1>:2:18: template: there is no `arg` (did you mean `args`?)",
            ),
            ("{ tool: echo }", "<rule r1>:1:1: an added rule needs a `rule`"),
            (
                "{ rule: { reply: x } }",
                "an added rule needs one of `tool`, `resource`, `resourceTemplate`, `prompt` or",
            ),
            (
                "{ tool: typed, rule: { reply: x } }",
                "<rule r1>:1:22: a tool with an outputSchema must give `structured`",
            ),
            ("{ tool: typed, rule: { reply: { structured: {} } } }", "breaks the tool's outputSchema"),
            (
                "{ tool: echo, rule: { steps: [{ enable: { tool: none } }, { reply: x }] } }",
                "<rule r1>:1:49: there is no tool `none`",
            ),
            (
                "{ tool: echo, rule: { steps: [{ replace: { tool: { name: echo } } }, { reply: x }] } }",
                "an added rule cannot `replace` anything",
            ),
        ] {
            let error = added(&[text]).expect_err(text).to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
