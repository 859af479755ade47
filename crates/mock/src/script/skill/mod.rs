//! Skills that a server offers (extension `io.modelcontextprotocol/skills`, SEP-2640): each is a directory of resources
//! with a `SKILL.md` in it.
//!
//! ```yaml
//! skills:
//!   - name: refunds
//!     description: Process refund requests by company policy.
//!     license: Apache-2.0            # also compatibility, metadata, allowed-tools
//!     frontmatter: { author: me }    # any other field of the frontmatter
//!     path: acme/billing             # skill://acme/billing/refunds/SKILL.md
//!     body: |                        # the Markdown of SKILL.md
//!       Read `references/policy.md` first.
//!     files:
//!       references/policy.md: The customer is right.
//!       logo.png: { blob: iVBORw0KGgo=, mimeType: image/png }
//! ```
//!
//! `listed: false` keeps a skill out of `skills/list`; `dynamic: true` publishes no digests. To break a skill on
//! purpose, a file may have a wrong `digest` or `size`, and `files` may contain the whole `SKILL.md`. Texts are served
//! as they are written: `{{ … }}` is not a template here, because digests would change with it.

mod file;
mod frontmatter;
mod resource;

use std::collections::{HashMap, HashSet};

pub use self::resource::SkillResource;
use self::{
    file::{SkillFile, read_files},
    frontmatter::Frontmatter,
    resource::{SCHEME, quote},
};
use super::keys::KEYS;
use rehearse_document::{Node, Problem, Problems, Span};

const MANIFEST: &str = "SKILL.md";

/// A skill of the script.
#[derive(Debug)]
pub struct SkillItem {
    /// The URI of its `SKILL.md`.
    pub uri: String,
    /// The MCP `Skill` as JSON text, as `skills/list` and `skills/get` give it.
    pub entry: String,
    /// Whether `skills/list` has it.
    pub listed: bool,
    /// Its files, `SKILL.md` first; those of skills inside of it are theirs.
    pub resources: Vec<SkillResource>,
}

/// Reads the list of skills.
///
/// # Errors
/// Every name, path and file that the Agent Skills specification or SEP-2640 does not allow, and every URI that two
/// files have.
pub(super) fn read_all(list: &Node) -> Result<Vec<SkillItem>, Problems> {
    let (mut skills, drafts): (Vec<_>, Vec<_>) = list.each(read)?.into_iter().unzip();
    let problems = clashes(&skills);
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let entries: Vec<_> = skills.iter().zip(&drafts).map(|(skill, draft)| draft.entry(skill, &skills)).collect();
    for (skill, entry) in skills.iter_mut().zip(entries) {
        skill.entry = entry;
    }
    Ok(skills)
}

/// The direct children of a directory as MCP `Resource`s in JSON text, for `resources/directory/read`; `None` if there
/// is no directory with that URI. Prefixes of skills' paths are directories too.
pub(crate) fn directory(skills: &[SkillItem], uri: &str) -> Option<Vec<String>> {
    uri.strip_prefix(SCHEME)?;
    let inside = format!("{uri}/");
    let depth = inside.matches('/').count() - SCHEME.matches('/').count();
    let mut directories = HashSet::new();
    let children = skills.iter().flat_map(|skill| &skill.resources).filter_map(|resource| {
        let Some((child, _)) = resource.uri.strip_prefix(&inside)?.split_once('/') else {
            return Some(resource.definition.clone());
        };
        let name = resource.path.split('/').nth(depth).unwrap_or(child);
        let directory = || {
            format!(
                r#"{{"uri":{},"name":{},"mimeType":"inode/directory"}}"#,
                quote(&format!("{inside}{child}")),
                quote(name)
            )
        };
        directories.insert(child.to_owned()).then(directory)
    });
    let children: Vec<_> = children.collect();
    (!children.is_empty()).then_some(children)
}

/// A skill before its entry is written, because the entry has the files of all skills inside of it.
struct Draft {
    frontmatter: String,
    dynamic: bool,
}

fn read(node: &Node) -> Result<(SkillItem, Draft), Problems> {
    let fields = KEYS.fields(node, "skill")?;
    let own = fields.read("body", Node::str).and_then(|body| {
        if let (Some(_), Some(file)) = (body, fields.get("files").and_then(|files| files.get(MANIFEST))) {
            let problem = file.problem("`body` and a `SKILL.md` in `files` exclude each other");
            return Err(problem.hint("keep one of them; the one in `files` is served as it is").into());
        }
        let flag = |key, default| fields.read(key, Node::bool).map(|flag| flag.unwrap_or(default));
        Ok((body.unwrap_or_default(), flag("listed", true)?, flag("dynamic", false)?))
    });
    let (frontmatter, prefix, files, (body, listed, dynamic)) = Problems::all4(
        Frontmatter::read(&fields),
        fields.read("path", read_prefix),
        fields.read("files", read_files),
        own,
    )?;
    let mut files = files.unwrap_or_default();
    let manifest = match files.iter().position(|file| file.path == MANIFEST) {
        Some(index) => files.remove(index),
        None => SkillFile::text(MANIFEST, &frontmatter.document(body), fields.required("name")?.span),
    };
    let root = format!("{}{}", prefix.map(|prefix| format!("{prefix}/")).unwrap_or_default(), frontmatter.name);
    let labels = (frontmatter.name.as_str(), frontmatter.description.as_str());
    let mut resources = vec![manifest.into_resource(&root, Some(labels))];
    resources.extend(files.into_iter().map(|file| file.into_resource(&root, None)));
    let skill = SkillItem { uri: resources[0].uri.clone(), entry: String::new(), listed, resources };
    Ok((skill, Draft { frontmatter: frontmatter.json, dynamic }))
}

impl Draft {
    /// SEP-2640, Resources: complete, including the skills inside.
    fn entry(&self, skill: &SkillItem, all: &[SkillItem]) -> String {
        let root = skill.uri.strip_suffix(MANIFEST).unwrap_or(&skill.uri);
        let inside = all.iter().filter(|other| other.uri != skill.uri).flat_map(|other| &other.resources);
        let inside = inside.filter(|resource| resource.uri.starts_with(root));
        let listed = skill.resources.iter().chain(inside).map(|SkillResource { uri, digest, size, .. }| {
            format!(r#"{{"uri":{},"digest":{},"size":{size}}}"#, quote(uri), quote(digest))
        });
        let resources = match self.dynamic {
            true => quote("dynamic"),
            false => format!("[{}]", listed.collect::<Vec<_>>().join(",")),
        };
        format!(r#"{{"uri":{},"frontmatter":{},"resources":{resources}}}"#, quote(&skill.uri), self.frontmatter)
    }
}

/// URIs that two files have, or a file and a directory.
fn clashes(skills: &[SkillItem]) -> Vec<Problem> {
    let mut files: HashMap<&str, Span> = HashMap::new();
    let resources = || skills.iter().flat_map(|skill| &skill.resources);
    let mut problems = Vec::new();
    for resource in resources() {
        if files.insert(&resource.uri, resource.span).is_some() {
            let problem = Problem::new(resource.span, format!("{} occurs twice", resource.uri));
            problems.push(problem.hint("change the `name` or the `path` of one skill"));
        }
    }
    let mut reported = HashSet::new();
    for resource in resources() {
        for (end, _) in resource.uri.match_indices('/') {
            let directory = &resource.uri[..end];
            if let Some(span) = files.get(directory).filter(|_| reported.insert(directory)) {
                let message = format!("{directory} is a file, and a directory of {}", resource.uri);
                problems.push(Problem::new(*span, message).hint("rename one of them"));
            }
        }
    }
    problems.sort_by_key(|problem| problem.span.start);
    problems
}

/// SEP-2640, Resource Mapping: the first segment is the authority of the URI, so that it needs the characters of a
/// host.
fn read_prefix(node: &Node) -> Result<String, Problems> {
    let text = node.str()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(c);
    let segment = |segment: &str| !segment.trim_matches('.').is_empty() && segment.chars().all(allowed);
    if text.split('/').all(segment) {
        return Ok(text.to_owned());
    }
    let problem =
        node.problem("the `path` of a skill must be one or more names in characters of a URI, with `/` between them");
    Err(problem.hint("such as `acme/billing`, without the skill's own name").into())
}

#[cfg(test)]
mod tests;
