//! What a release file says of a server, compared with the server.

use rehearse_client_configs::codes;
use rehearse_document::Node;
use rehearse_report::findings::Finding;

use super::Release;

/// What a running server is and has.
#[derive(Clone, Debug, Default)]
pub struct Offered {
    pub name: String,
    pub version: String,
    pub tools: Vec<String>,
    pub prompts: Vec<String>,
}

/// Findings where the file and the server differ.
pub fn compare(release: Release, root: &Node, offered: &Offered) -> Vec<Finding> {
    let mut findings = Vec::new();
    if release == Release::Skill {
        return findings;
    }
    let text = |key: &str| root.get(key).and_then(|node| Some((node, node.as_str()?)));
    if let Some((node, version)) = text("version").filter(|(_, version)| *version != offered.version) {
        let message = format!("the file says version {version}, the server {}", offered.version);
        findings.push(codes::RELEASE_MISMATCH.at(node.span, message).hint("give both the version of this release"));
    }
    // The name in the registry has a domain before it.
    if let Some((node, name)) = text("name") {
        let last = name.rsplit('/').next().unwrap_or(name);
        if last != offered.name && name != offered.name {
            let message = format!("the file names the server `{last}`, and it names itself `{}`", offered.name);
            findings.push(codes::RELEASE_NAME.at(node.span, message).hint("one name is easier to find in logs"));
        }
    }
    for (key, has, generated) in
        [("tools", &offered.tools, "tools_generated"), ("prompts", &offered.prompts, "prompts_generated")]
    {
        let Some(list) = root.get(key).filter(|_| release == Release::Bundle) else { continue };
        let listed: Vec<_> = list.as_items().unwrap_or_default().iter().filter_map(|item| item.get("name")).collect();
        for node in listed.iter().filter(|node| !has.iter().any(|it| node.as_str() == Some(it))) {
            let message = format!("the server has no `{}` in its {key}", node.as_str().unwrap_or_default());
            findings
                .push(codes::RELEASE_MISMATCH.at(node.span, message).hint("remove it here, or add it to the server"));
        }
        let is_listed = |name: &String| listed.iter().any(|node| node.as_str() == Some(name));
        let more: Vec<_> = has.iter().filter(|name| !is_listed(name)).map(String::as_str).collect();
        let is_generated = root.get(generated).and_then(Node::as_bool) == Some(true);
        if !more.is_empty() && !is_generated {
            let message = format!("the server has {key} that are not listed: {}", more.join(", "));
            let finding = codes::RELEASE_MISMATCH.at(list.span, message);
            findings.push(finding.hint(format!("list them, or set `{generated}: true`")));
        }
    }
    findings
}
