//! Skills (SEP-2640, `io.modelcontextprotocol/skills`): the methods that list and describe them. Their files are
//! resources.

use super::{
    call::Call,
    catalog::Catalog,
    decision::Decision,
    instance::Engine,
    pages::Pages,
    params::{invalid, optional_text, text},
};
use crate::script::skill_directory;
use rehearse_protocol::RpcError;

impl Catalog {
    /// The pages of `skills/list`.
    pub(super) fn skill_pages(&self, seed: u64) -> Pages {
        let listed = self.script.skills.iter().filter(|skill| skill.listed);
        let entries: Vec<_> = listed.map(|skill| skill.entry.as_str()).collect();
        Pages::new("skills", &entries, self.script.page_size, seed)
    }
}

impl Engine {
    pub(super) fn list_skills(&self, call: &Call<'_>) -> Result<Decision, RpcError> {
        self.answer_page(call, &call.catalog.skill_pages(self.seed))
    }

    pub(super) fn get_skill(&self, call: &Call<'_>) -> Result<Decision, RpcError> {
        let uri = text("uri", call.params.uri)?;
        let skill = call.catalog.script.skills.iter().find(|skill| skill.uri == uri);
        let skill = skill.ok_or_else(|| invalid(format!("Unknown skill: {uri}")))?;
        let members = format!("\"skill\":{}", skill.entry);
        Ok(self.answer(call.catalog, call.request, call.era(), &members, call.incoming))
    }

    pub(super) fn read_directory(&self, call: &Call<'_>) -> Result<Decision, RpcError> {
        let uri = text("uri", call.params.uri)?;
        let children = skill_directory(&call.catalog.script.skills, &uri);
        let children = children.ok_or_else(|| invalid(format!("Not a directory: {uri}")))?;
        let children: Vec<_> = children.iter().map(String::as_str).collect();
        self.answer_page(call, &Pages::new("resources", &children, call.catalog.script.page_size, self.seed))
    }

    /// The page of a list that the request asks for.
    fn answer_page(&self, call: &Call<'_>, pages: &Pages) -> Result<Decision, RpcError> {
        let cursor = optional_text("cursor", call.params.cursor)?;
        let page = pages.get(cursor.as_deref()).ok_or_else(|| invalid("Invalid cursor"))?;
        Ok(self.answer(call.catalog, call.request, call.era(), page, call.incoming))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_client::TestClient;

    const SCRIPT: &str = "
pageSize: 1
skills:
  - { name: first, description: One., body: Do it., files: { 'notes/a.md': A } }
  - { name: second, description: Two., body: Do that. }
";

    #[test]
    fn skills_are_listed_in_pages_shown_and_their_files_are_resources() {
        let client = TestClient::modern(SCRIPT, json!({}));
        let first = client.call("skills/list", json!({}))["result"].clone();
        assert_eq!(first["skills"][0]["uri"], "skill://first/SKILL.md");
        let second = client.call("skills/list", json!({ "cursor": first["nextCursor"] }))["result"].clone();
        assert_eq!((&second["skills"][0]["frontmatter"]["name"], second.get("nextCursor")), (&json!("second"), None));
        let shown = client.call("skills/get", json!({ "uri": "skill://first/SKILL.md" }));
        assert_eq!(shown["result"]["skill"], first["skills"][0]);
        let read = client.call("resources/read", json!({ "uri": "skill://first/notes/a.md" }));
        assert_eq!(read["result"]["contents"][0]["text"], "A");
        let children = client.call("resources/directory/read", json!({ "uri": "skill://first" }));
        assert_eq!(children["result"]["resources"][0]["uri"], "skill://first/SKILL.md");
        for (method, uri) in
            [("skills/get", "skill://none/SKILL.md"), ("resources/directory/read", "skill://first/SKILL.md")]
        {
            assert_eq!(client.call(method, json!({ "uri": uri }))["error"]["code"], -32602, "{method}");
        }
    }

    #[test]
    fn the_extension_is_declared_to_modern_clients_only() {
        let modern = TestClient::modern(SCRIPT, json!({})).call("server/discover", json!({}));
        let extensions = &modern["result"]["capabilities"]["extensions"];
        assert_eq!(extensions["io.modelcontextprotocol/skills"], json!({ "directoryRead": true }));
        let legacy = TestClient::legacy(SCRIPT, json!({}));
        assert_eq!(legacy.call("skills/list", json!({}))["error"]["code"], -32601);
        let read = legacy.call("resources/read", json!({ "uri": "skill://second/SKILL.md" }));
        assert!(read["result"]["contents"][0]["text"].as_str().is_some_and(|text| text.ends_with("Do that.")));
    }
}
