//! Rules that are added and removed while the script is served.

use std::{
    collections::HashSet,
    sync::{Arc, atomic::Ordering},
};

use serde::Serialize;

use super::instance::Engine;
use crate::{
    handler::Handler,
    script::{AddedRule, Item, ItemRef, Rule, Script},
};
use rehearse_document::Diagnostics;

/// A rule that is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleStatus {
    /// The id of a rule that was added; none for those of the script.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What kind of item it belongs to: `tool`, `prompt`, …
    pub kind: &'static str,
    /// The name, URI, URI template or method of the item.
    pub name: String,
    /// As the journal shows it: `tools.echo.rules[1]`, or `tools.echo.rules[r1]` if it was added.
    pub label: Arc<str>,
    /// The number of its answers.
    pub calls: u64,
    /// The expected number of answers, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
}

impl Engine {
    /// Adds a rule before those of an item: `{ tool: echo, rule: { when: …, reply: … } }`, as YAML or JSON in the
    /// language of scripts. Counters, state and lists continue. Returns the id of the rule. The rule is removed by a
    /// [`reset`](Engine::reset) and when another script is [loaded](Engine::load).
    ///
    /// # Errors
    /// The mistakes in the rule, with positions in this text.
    pub fn add_rule(&self, text: &str) -> Result<String, Diagnostics> {
        self.add_rule_with(text, Vec::new())
    }

    /// Adds a rule that may name these handlers.
    ///
    /// # Errors
    /// Like [`Engine::add_rule`].
    pub(crate) fn add_rule_with(&self, text: &str, handlers: Vec<Handler>) -> Result<String, Diagnostics> {
        let mut added = self.added.lock();
        let number = self.added.ids.load(Ordering::Relaxed) + 1;
        let id = format!("r{number}");
        let mut rules = added.clone();
        rules.push(Arc::new(AddedRule::parse_with(&id, text, handlers)?));
        self.replace_script(self.catalog().script.with_rules(&rules)?);
        *added = rules;
        self.added.ids.store(number, Ordering::Relaxed);
        Ok(id)
    }

    /// Removes a rule that was added; `false` if there is no such rule.
    pub fn remove_rule(&self, id: &str) -> bool {
        let mut added = self.added.lock();
        let rules: Vec<_> = added.iter().filter(|rule| rule.id != id).cloned().collect();
        if rules.len() == added.len() {
            return false;
        }
        // The rules that stay were added to this script before, and no rule depends on another.
        if let Ok(script) = self.catalog().script.with_rules(&rules) {
            self.replace_script(script);
            *added = rules;
        }
        true
    }

    /// Every rule that is in force, item after item, in the order in which they are tried.
    pub fn rules(&self) -> Vec<RuleStatus> {
        let added = self.added.lock();
        let catalog = self.catalog();
        // An added rule is in an item and in its replacements.
        let mut seen = HashSet::new();
        let status = |(item_ref, item): (ItemRef, &Item)| {
            let id = |label: &str| {
                let is_it = |rule: &&Arc<AddedRule>| label == rule.label();
                added.iter().find(is_it).map(|rule| rule.id.clone())
            };
            let status = |(rule, calls): (&Arc<Rule>, u64)| RuleStatus {
                id: id(&rule.label),
                kind: item_ref.kind.key(),
                name: item.name.clone(),
                label: rule.label.clone(),
                calls,
                expected: rule.expect.map(|calls| calls.to_string()),
            };
            let rules = item.rules.iter().zip(catalog.counts(item).1);
            rules.filter(|(rule, _)| seen.insert(Arc::as_ptr(rule))).map(status).collect::<Vec<_>>()
        };
        catalog.script.all_items().flat_map(status).collect()
    }

    /// The script as it was loaded. Rules that were added since are removed.
    pub(super) fn original(&self, added: &mut Vec<Arc<AddedRule>>) -> Arc<Script> {
        let script = self.catalog().script.clone();
        match std::mem::take(added).is_empty() {
            true => script,
            // The same text was parsed before.
            false => script.with_rules(&[]).map_or(script, Arc::new),
        }
    }

    fn replace_script(&self, script: Script) {
        self.catalog.store(Arc::new(self.catalog().with_script(Arc::new(script))));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value as Json, json};

    use super::super::{test_client::TestClient, tests::Mock};
    use crate::script::Script;
    use rehearse_document::Source;

    const SCRIPT: &str = "
state: { n: 0 }
tools:
  - name: echo
    steps: [{ set: { n: '{{ state.n + 1 }}' } }, { reply: 'base {{ call }} {{ state.n }}' }]
  - { name: seq, replies: [one, two, three] }
  - { name: hides, steps: [{ disable: { tool: echo } }, { reply: x }] }
";

    fn text(answer: &Json) -> &str {
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
    }

    fn say(mock: &Mock, tool: &str) -> String {
        text(&mock.call("tools/call", json!({ "name": tool, "arguments": {} }))).to_owned()
    }

    #[test]
    fn a_rule_comes_and_goes_while_counters_and_state_go_on() {
        let mock = Mock::legacy(SCRIPT, "2025-11-25");
        assert_eq!((say(&mock, "echo"), say(&mock, "seq")), ("base 1 1".into(), "one".into()));
        let id = mock.engine.add_rule(r#"{"tool": "echo", "rule": {"expect": {"calls": 2}, "reply": "{{ call }}"}}"#);
        assert_eq!(id.as_deref(), Ok("r1"));
        assert_eq!((say(&mock, "echo"), say(&mock, "seq")), ("2".into(), "two".into()));
        let rules = mock.engine.rules();
        let shown: Vec<_> = rules.iter().map(|rule| (rule.id.as_deref(), &*rule.label, rule.calls)).collect();
        let hides = (None, "tools.hides", 0);
        let expected =
            [(Some("r1"), "tools.echo.rules[r1]", 1), (None, "tools.echo", 1), (None, "tools.seq", 2), hides];
        assert_eq!(shown, expected);
        assert_eq!(mock.engine.verify().to_string(), "tools.echo.rules[r1]: expected 2 calls, got 1 call\n");
        assert!(mock.engine.remove_rule("r1") && !mock.engine.remove_rule("r1"));
        assert_eq!((say(&mock, "echo"), say(&mock, "seq")), ("base 3 2".into(), "three".into()));
        assert!(mock.engine.verify().holds());
    }

    /// Added rules cannot `replace`, so they change neither the items of a script nor their positions, and earlier
    /// items are found again.
    #[test]
    fn a_replaced_rule_is_found_again_after_other_changes() {
        let inner = "replace: { tool: { name: echo, steps: [{ replace: { prompt: { name: p, messages: [] } } }, { reply: inner }] } }";
        let outer = format!("replace: {{ tool: {{ name: swap, steps: [{{ {inner} }}, {{ reply: outer }}] }} }}");
        let first = format!("{{ name: swap, steps: [{{ {outer} }}, {{ reply: swapped }}] }}");
        let script =
            format!("tools:\n  - {first}\n  - {{ name: echo, reply: base }}\nprompts: [{{ name: p, messages: [] }}]\n");
        let mock = Mock::legacy(&script, "2025-11-25");
        let add = |rule: &str| mock.engine.add_rule(rule);
        let places = || {
            let catalog = mock.engine.catalog();
            let places = catalog.script.all_items().map(|(place, item)| (place, item.number, item.name.clone()));
            places.collect::<Vec<_>>()
        };
        let before = places();
        assert_eq!((say(&mock, "swap"), say(&mock, "swap")), ("swapped".into(), "outer".into()));
        for kind in ["tool", "resource", "resourceTemplate", "prompt"] {
            let replace = format!("replace: {{ {kind}: {{ name: new, uri: 'x:a', uriTemplate: 'x:b' }} }}");
            let nested = format!("replace: {{ tool: {{ name: new, steps: [{{ {replace} }}, {{ reply: x }}] }} }}");
            for step in [replace, nested] {
                add(&format!("{{ tool: echo, rule: {{ steps: [{{ {step} }}, {{ reply: x }}] }} }}"))
                    .expect_err("replaces");
            }
        }
        add("{ tool: echo, rule: { when: { call: 100 }, reply: x } }").expect("fits");
        add("{ tool: swap, rule: { when: { call: 100 }, reply: x } }").expect("fits");
        add("{ prompt: p, rule: { messages: [] } }").expect("fits");
        assert_eq!((say(&mock, "echo"), say(&mock, "swap")), ("inner".into(), "outer".into()));
        let id = add("{ tool: echo, rule: { expect: { calls: 1 }, reply: added } }").expect("fits");
        assert_eq!(say(&mock, "echo"), "added");
        assert!(mock.engine.verify().holds());
        assert!(mock.engine.remove_rule(&id));
        assert_eq!(mock.engine.rules().iter().filter(|rule| rule.id.is_some()).count(), 3);
        for id in mock.engine.rules().into_iter().filter_map(|rule| rule.id) {
            assert!(mock.engine.remove_rule(&id));
            assert_eq!((say(&mock, "echo"), say(&mock, "swap")), ("inner".into(), "outer".into()));
            assert_eq!(places(), before);
        }
        let counts = |catalog: &super::super::catalog::Catalog| {
            catalog
                .script
                .all_items()
                .map(|(_, item)| catalog.counts(item).1.len() == item.rules.len())
                .collect::<Vec<_>>()
        };
        assert!(counts(&mock.engine.catalog()).into_iter().all(|fits| fits));
    }

    #[test]
    fn an_added_rule_leaves_the_draws_of_the_others_as_they_are() {
        let script = "tools: [{ name: coin, rules: [{ when: { probability: 0.5 }, reply: 1 }, { reply: 0 }] }]";
        let script = script.replace("reply: 1", "reply: '1'").replace("reply: 0", "reply: '0'");
        let mock = Mock::legacy(&script, "2025-11-25");
        let draw = || (0..20).map(|_| say(&mock, "coin")).collect::<String>();
        let before = draw();
        mock.engine.reset(Duration::ZERO);
        mock.engine.add_rule("{ tool: coin, rule: { when: { call: 100 }, reply: x } }").expect("fits");
        assert_eq!(draw(), before);
        assert!(before.contains('0') && before.contains('1'));
    }

    #[test]
    fn a_wrong_rule_changes_nothing() {
        let mock = Mock::legacy(SCRIPT, "2025-11-25");
        let error = mock.engine.add_rule("{ tool: echo, rule: { reply: '{{ nothing }}' } }").expect_err("wrong");
        assert!(error.to_string().starts_with("<rule r1>:1:30: template: there is no `nothing`"), "{error}");
        assert_eq!((say(&mock, "echo"), mock.engine.rules().len()), ("base 1 1".into(), 3));
    }

    #[test]
    fn disabled_rules_stay_disabled_when_a_rule_is_added() {
        let mock = Mock::legacy(SCRIPT, "2025-11-25");
        say(&mock, "hides");
        mock.engine.add_rule("{ tool: echo, rule: { reply: x } }").expect("fits");
        assert!(mock.call("tools/call", json!({ "name": "echo" }))["error"].is_object());
    }

    #[test]
    fn a_call_of_several_rounds_goes_on_with_its_rule() {
        let ask = "elicit: { as: guest, message: Who?, requestedSchema: { type: object, properties: {} } }";
        let script =
            format!("tools: [{{ name: t, steps: [{{ {ask} }}, {{ reply: 'hello {{{{ guest.action }}}}' }}] }}]");
        let client = TestClient::modern(&script, json!({ "elicitation": {} }));
        let first = client.call("tools/call", json!({ "name": "t" }));
        client.engine.add_rule("{ tool: t, rule: { reply: another } }").expect("fits");
        let (state, answers) = (&first["result"]["requestState"], json!({ "guest": { "action": "decline" } }));
        let params = json!({ "name": "t", "requestState": state, "inputResponses": answers });
        assert_eq!(text(&client.call("tools/call", params)), "hello decline");
    }

    #[test]
    fn added_rules_are_gone_after_a_reset_and_with_another_script() {
        let add = |mock: &Mock| mock.engine.add_rule("{ tool: echo, rule: { reply: added } }").expect("fits");
        let mock = Mock::legacy(SCRIPT, "2025-11-25");
        add(&mock);
        assert_eq!(say(&mock, "echo"), "added");
        mock.engine.reset(Duration::ZERO);
        assert_eq!((say(&mock, "echo"), mock.engine.rules().len()), ("base 1 1".into(), 3));
        add(&mock);
        let script = Script::parse(&Source::new("m", SCRIPT)).expect("valid");
        mock.engine.load(script, Duration::ZERO);
        assert_eq!((say(&mock, "echo"), add(&mock)), ("base 1 1".into(), "r3".into()));
    }
}
