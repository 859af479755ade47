//! Skills: they are listed, got, and read with their files and folders.

use rehearse_conformance::{Case, CaseGroup};
use rehearse_protocol::names::SKILLS_EXTENSION;
use serde_json::{Value, json};

use crate::{connection::ProbeConnection, lists, prober::Prober};

const DIRECTORY: &str = "resources/directory/read";
/// How many listed skills are looked at, and how many files of each besides `SKILL.md`.
const USED_SKILLS: usize = 3;
const USED_FILES: usize = 5;

/// Reads the list, and up to three skills in it.
pub(super) async fn skills(prober: &Prober<'_>, connection: &mut ProbeConnection) {
    let skills = lists::pages(connection, "skills/list", "skills", json!({})).await;
    let has_directories = prober.material.capabilities["extensions"][SKILLS_EXTENSION]["directoryRead"] == true;
    for skill in skills.iter().take(USED_SKILLS) {
        let Some(uri) = skill["uri"].as_str() else { continue };
        connection.request("skills/get", json!({ "uri": uri })).await;
        read_files(connection, skill, uri).await;
        let Some(folder) = uri.strip_suffix("/SKILL.md") else { continue };
        let unknown = json!({ "uri": format!("{folder}/{}.md", prober.material.unknown_name()) });
        connection.send(&Case::request("skills/unknown-file", CaseGroup::Negative, "resources/read", unknown)).await;
        if has_directories {
            let children = lists::pages(connection, DIRECTORY, "resources", json!({ "uri": folder })).await;
            if let Some(below) = children.iter().find(|child| child["mimeType"] == "inode/directory") {
                lists::pages(connection, DIRECTORY, "resources", json!({ "uri": below["uri"] })).await;
            }
            let name = "skills/not-a-directory/file";
            connection.send(&Case::request(name, CaseGroup::Negative, DIRECTORY, json!({ "uri": uri }))).await;
        }
    }
    // Once more: a skill may have changed meanwhile.
    lists::pages(connection, "skills/list", "skills", json!({})).await;
}

/// Reads `SKILL.md` and the smallest other files.
async fn read_files(connection: &mut ProbeConnection, skill: &Value, uri: &str) {
    let files = skill["resources"].as_array().into_iter().flatten();
    let mut others: Vec<_> = files.filter(|file| file["uri"].is_string() && file["uri"] != uri).collect();
    others.sort_by_key(|file| file["size"].as_u64().unwrap_or(u64::MAX));
    connection.request("resources/read", json!({ "uri": uri })).await;
    for file in others.iter().take(USED_FILES) {
        connection.request("resources/read", json!({ "uri": file["uri"] })).await;
    }
}
