//! Holds the rules of a profile against a server.

use crate::{
    Profile, ServerEvidence,
    condition::{Condition, Judged},
    schema::{Draft, SchemaLimit},
};
use rehearse_protocol::{Era, List, Transport, Version};
use rehearse_report::profile::{Fit, ProfileFinding, ProfileFit, ProfileKind, RuleLevel, UntriedRule};

impl Profile {
    /// What it says of a server. A rule that blocks an item degrades the server, unless all tools are blocked.
    pub fn judge(&self, server: &ServerEvidence<'_>) -> ProfileFit {
        let (mut findings, mut untried, mut kept, mut is_blocked) = (Vec::new(), Vec::new(), 0, false);
        let server = &self.placed(*server);
        let name = server.config_name();
        for rule in &self.rules {
            match rule.condition.judge(server, &|tool| self.tool_name(&name, tool)) {
                Judged::Kept => kept += 1,
                Judged::Untried(reason) => untried.push(UntriedRule { rule: rule.id.clone(), reason }),
                Judged::Broken(items) => {
                    let blocks_all = rule.is_of_server || items.iter().any(|(subject, _)| subject.is_none());
                    is_blocked |= rule.level == RuleLevel::Blocks && blocks_all;
                    findings.extend(items.into_iter().map(|(subject, message)| ProfileFinding {
                        rule: rule.id.clone(),
                        level: rule.level,
                        subject,
                        message,
                        effect: rule.effect.clone(),
                        source: rule.source.clone(),
                        seen: rule.seen.clone(),
                        measured: rule.measured.clone(),
                    }));
                }
            }
        }
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        let is_tool_blocked = |name: &str| {
            let subject = format!("{} {name}", List::Tools.noun());
            findings.iter().any(|it| it.level == RuleLevel::Blocks && it.subject.as_ref() == Some(&subject))
        };
        let tools = server.surface.list(List::Tools).unwrap_or_default();
        let mut names = tools.iter().filter_map(|tool| tool["name"].as_str());
        is_blocked |= !tools.is_empty() && names.all(is_tool_blocked);
        let unknown = self.unknown(server);
        let fit = match findings.first().map(|finding| finding.level) {
            _ if is_blocked => Fit::Blocked,
            _ if !unknown.is_empty() => Fit::Unknown,
            Some(RuleLevel::Blocks | RuleLevel::Degrades) => Fit::Degraded,
            _ => Fit::Works,
        };
        let topics: &[&str] = match self.kind {
            ProfileKind::Host => &["schemas", "results", "versions"],
            ProfileKind::Provider => &["schemas", "results"],
            ProfileKind::Directory => &[],
        };
        let is_silent = |topic: &&&str| self.rules.iter().all(|rule| rule.condition.topic() != Some(**topic));
        ProfileFit {
            profile: self.name.clone(),
            title: self.title.clone(),
            kind: self.kind,
            fit,
            required: false,
            findings,
            rules: self.rules.len(),
            kept,
            untried,
            unknown,
            silent_on: topics.iter().filter(is_silent).map(|topic| (*topic).to_owned()).collect(),
        }
    }

    /// The server where this host or directory meets it.
    fn placed<'s>(&self, server: ServerEvidence<'s>) -> ServerEvidence<'s> {
        let starts_servers = self.kind != ProfileKind::Directory
            && self.transports().is_none_or(|transports| transports.contains(&Transport::Stdio));
        match server.deployed_at {
            Some(url) if !starts_servers => {
                let transport = server.transport.filter(|it| *it == Transport::Sse).unwrap_or(Transport::Http);
                ServerEvidence { transport: Some(transport), url: Some(url), ..server }
            }
            _ => server,
        }
    }

    /// What decides whether the server works here, and no rule says: the era of the server, and schemas that are not valid.
    fn unknown(&self, server: &ServerEvidence<'_>) -> Vec<String> {
        let is_client =
            self.kind == ProfileKind::Host || (self.kind == ProfileKind::Provider && self.transports().is_some());
        let versions = server.surface.protocol_versions.as_deref().unwrap_or_default();
        let is_modern = |version: &String| version.parse::<Version>().is_ok_and(|it| it.era() == Era::Modern);
        let has_rule = |is_meant: fn(&Condition) -> bool| self.rules.iter().any(|rule| is_meant(&rule.condition));
        let knows_versions = has_rule(|it| matches!(it, Condition::ProtocolVersions(_)));
        let is_open = is_client && !knows_versions && !versions.is_empty() && versions.iter().all(is_modern);
        let era = is_open.then(|| {
            format!("The server speaks only {}, and it is not known whether {} does.", versions.join(", "), self.title)
        });
        let knows_validity =
            has_rule(|it| matches!(it, Condition::Schema { is_output: false, limit: SchemaLimit::Valid(..) }));
        let valid = Condition::Schema { is_output: false, limit: SchemaLimit::Valid(Draft::Draft202012, None) };
        let schema = match valid.judge(server, &str::to_owned) {
            Judged::Broken(tools) if self.kind != ProfileKind::Directory && !knows_validity => {
                let tools: Vec<_> = tools.into_iter().filter_map(|(subject, _)| subject).collect();
                Some(format!(
                    "An input schema is not valid JSON Schema 2020-12 ({}), and it is not known what {} does with it.",
                    tools.join(", "),
                    self.title
                ))
            }
            _ => None,
        };
        era.into_iter().chain(schema).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};
    use url::Url;

    use super::*;
    use crate::builtin;
    use rehearse_diff::Surface;

    /// What the profile of this name says of a server, which may be deployed elsewhere.
    fn judged(profile: &str, surface: &Json, over: Option<Transport>, deployed_at: Option<&Url>) -> ProfileFit {
        let surface = Surface::from_json(surface);
        let server = ServerEvidence { transport: over, deployed_at, ..ServerEvidence::of(&surface) };
        builtin(profile).expect("a profile").judge(&server)
    }

    #[test]
    fn a_schema_that_is_not_valid_blocks_the_server_or_makes_the_fit_unknown() {
        let schemas = [
            json!({ "type": "array", "items": [{ "type": "number" }, { "type": "number" }] }),
            json!({ "type": "number", "minimum": 0, "exclusiveMinimum": true }),
            json!({ "type": "datetime" }),
        ];
        for (profile, fits) in [
            ("anthropic", [Fit::Blocked; 3]),
            ("openai", [Fit::Blocked; 3]),
            ("claude-code", [Fit::Blocked; 3]),
            ("claude-desktop", [Fit::Blocked; 3]),
            // It mends lists in `items`, for some models.
            ("vscode", [Fit::Degraded, Fit::Blocked, Fit::Blocked]),
            ("cursor", [Fit::Unknown; 3]),
            ("mcp-registry", [Fit::Works; 3]),
        ] {
            for (schema, fit) in schemas.iter().zip(fits) {
                let schema = json!({ "type": "object", "properties": { "a": schema }, "required": ["a"], "additionalProperties": false });
                let tools = json!({ "tools": [{ "name": "a", "description": "It is.", "inputSchema": schema }] });
                let found = judged(profile, &tools, None, None);
                assert_eq!(found.fit, fit, "{profile}: {schema}: {:?}", found.findings);
                assert_eq!(found.unknown.is_empty(), fit != Fit::Unknown, "{profile}");
            }
        }
    }

    #[test]
    fn what_no_rule_knows_of_the_versions_of_a_server_is_unknown() {
        let fit =
            |profile: &str, versions: &[&str]| judged(profile, &json!({ "protocolVersions": versions }), None, None);
        assert_eq!(fit("cursor", &["2026-07-28"]).fit, Fit::Unknown);
        assert_eq!(
            fit("cursor", &["2026-07-28"]).unknown,
            ["The server speaks only 2026-07-28, and it is not known whether Cursor does."]
        );
        assert_eq!(fit("cursor", &["2025-06-18", "2026-07-28"]).fit, Fit::Works);
        assert_eq!(fit("zed", &["2026-07-28"]).fit, Fit::Blocked, "a rule says it");
        assert_eq!(fit("anthropic-mcp-connector", &["2026-07-28"]).fit, Fit::Unknown);
        assert_eq!(fit("anthropic", &["2026-07-28"]).fit, Fit::Works, "an API meets no server");
        let silent = ["cursor", "zed", "anthropic-directory"].map(|profile| fit(profile, &[]).silent_on);
        assert_eq!(silent, [vec!["schemas", "results", "versions"], vec![], vec![]]);
    }

    #[test]
    fn clouds_and_directories_meet_a_server_where_it_is_deployed() {
        let url = |text: &str| Url::parse(text).expect("a URL");
        let fit = |profile: &str, at: Option<&Url>| judged(profile, &json!({}), Some(Transport::Stdio), at);
        let (public, plain) = (url("https://shop.example.com/mcp"), url("http://shop.example.com/mcp"));
        for profile in ["anthropic-directory", "openai-directory", "anthropic-mcp-connector"] {
            assert_eq!(fit(profile, None).fit, Fit::Blocked, "{profile}");
            assert_eq!(fit(profile, Some(&public)).fit, Fit::Works, "{profile}");
            assert_eq!(fit(profile, Some(&plain)).fit, Fit::Blocked, "{profile}");
        }
        let is_untried = |fit: &ProfileFit| fit.untried.iter().any(|it| it.rule == "url.scheme");
        assert_eq!([None, Some(&plain)].map(|at| is_untried(&fit("mcp-registry", at))), [true, false]);
        assert_eq!(fit("mcp-registry", Some(&plain)).fit, Fit::Blocked);
        assert_eq!(fit("claude-desktop", Some(&plain)), fit("claude-desktop", None), "it starts the server itself");
    }

    #[test]
    fn a_directory_wants_the_one_hint_that_applies() {
        let rules = |annotations: Json| {
            let tools = json!({ "tools": [{ "name": "a", "title": "A", "description": "It is.", "annotations": annotations }] });
            judged("anthropic-directory", &tools, None, None).findings.into_iter().map(|it| it.rule).collect::<Vec<_>>()
        };
        for right in [json!({ "readOnlyHint": true }), json!({ "readOnlyHint": false, "destructiveHint": true })] {
            assert_eq!(rules(right), [""; 0]);
        }
        for wrong in [json!({}), json!({ "readOnlyHint": false }), json!({ "openWorldHint": true })] {
            assert_eq!(rules(wrong), ["tool-annotations.hints"]);
        }
    }
}
