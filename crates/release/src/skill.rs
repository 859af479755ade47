//! `SKILL.md` with its folder (agentskills.io, specification).

use rehearse_client_configs::codes;
use rehearse_document::{Node, Problems, Source, Span, yaml};
use rehearse_report::findings::Finding;

use super::{
    Folder, check_length,
    shape::{Kind, Shape},
    wrong,
};

static FRONTMATTER: Shape = Shape {
    keys: &[
        ("name*", Kind::Text),
        ("description*", Kind::Text),
        ("license", Kind::Text),
        ("compatibility", Kind::Text),
        ("metadata", Kind::Map(&Kind::Any)),
        ("allowed-tools", Kind::Any),
    ],
    // Programs have keys of their own, and some take lists of tools.
    is_closed: false,
};

/// What the YAML at the beginning says; null if there is none.
///
/// # Errors
/// The first syntax error.
pub(super) fn frontmatter(source: &Source) -> Result<Node, Problems> {
    let end = body(&source.text).unwrap_or_default();
    let text = Source::new(source.name.clone(), source.text[..end].trim_end_matches('-'));
    let read = yaml::read(&text).map(|(root, _)| root);
    read.map_err(|problems| problems.or_hint("look at the indentation and the quotes here and in the line before"))
}

/// Where the text begins behind the second line of dashes.
fn body(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("---")?;
    let at = rest.find("\n---")? + "---\n---".len();
    Some(at)
}

pub(super) fn check(source: &Source, root: &Node, folder: &Folder<'_>, findings: &mut Vec<Finding>) {
    let Some(body) = body(&source.text).filter(|_| root.as_entries().is_some()) else {
        let node = Node { span: Span::default(), value: root.value.clone() };
        let hint = "begin with a line ---, name: and description:, and another line ---";
        return findings.push(wrong(&node, "the file has no frontmatter".to_owned(), hint));
    };
    FRONTMATTER.check(root, findings);
    check_length(root.get("description"), "description", 1024, findings);
    check_length(root.get("compatibility"), "compatibility", 500, findings);
    if let Some((node, name)) = root.get("name").and_then(|node| Some((node, node.as_str()?))) {
        let is_letter = |it: char| it == '-' || (it.is_alphanumeric() && !it.is_uppercase());
        let is_name = (1..=64).contains(&name.chars().count()) && name.chars().all(is_letter);
        if !is_name || name.starts_with('-') || name.ends_with('-') || name.contains("--") {
            let hint = "1 to 64 lowercase letters, digits and single hyphens between them";
            findings.push(wrong(node, format!("`{name}` is no name of a skill"), hint));
        }
        let parent = folder.path.file_name().and_then(|it| it.to_str());
        if let Some(parent) = parent.filter(|it| *it != name) {
            let message = format!("the skill `{name}` is in the folder `{parent}`: some programs do not load it");
            findings.push(codes::PLACE.at(node.span, message).hint("give both one name"));
        }
    }
    for (at, target) in links(&source.text, body) {
        let path = target.split(['#', '?', ' ']).next().unwrap_or_default();
        // `[text](link)` stands in a template.
        if path.rsplit('/').next().is_some_and(|name| name.contains('.')) {
            folder.check(path, Span { start: at, end: at + target.len() }, findings);
        }
    }
}

/// The targets of links in the text, outside of code.
fn links(text: &str, from: usize) -> Vec<(usize, &str)> {
    let (mut found, mut is_code, mut at) = (Vec::new(), false, from);
    for line in text[from..].split_inclusive('\n') {
        is_code ^= line.trim_start().starts_with("```");
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("](").filter(|_| !is_code) {
            let is_quoted = line[..line.len() - rest.len() + before.len()].matches('`').count() % 2 == 1;
            let target = after.split(')').next().unwrap_or_default();
            let start = at + line.len() - after.len();
            found.extend(Some((start, target)).filter(|_| !is_quoted && !target.starts_with('#')));
            rest = after;
        }
        at += line.len();
    }
    found
}
