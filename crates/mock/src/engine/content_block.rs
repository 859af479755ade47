//! Content blocks, and substitutes for those that a later version added (2025-11-25, Lifecycle: both parties respect
//! the version that was negotiated).

use serde_json::{Map, Value as Json, json};

use rehearse_protocol::Version;

/// The first version that has blocks of a kind.
fn first_version(kind: &str) -> Version {
    match kind {
        "audio" => Version::V2025_03_26,
        "resource_link" => Version::V2025_06_18,
        "tool_use" | "tool_result" => Version::V2025_11_25,
        _ => Version::V2024_11_05,
    }
}

/// The members of a result of a tool or a prompt, which are JSON members without braces, for a client of this version.
pub(super) fn downgrade(version: Version, members: String) -> String {
    let has = |kind: &str| members.contains(&format!("\"{kind}\""));
    if version >= Version::V2025_06_18 || !(has("resource_link") || has("audio")) {
        return members;
    }
    let Ok(mut result) = serde_json::from_str::<Map<String, Json>>(&format!("{{{members}}}")) else { return members };
    let blocks = result.get_mut("content").and_then(Json::as_array_mut);
    blocks.into_iter().flatten().for_each(|block| replace(version, block));
    let messages = result.get_mut("messages").and_then(Json::as_array_mut);
    messages.into_iter().flatten().filter_map(|it| it.get_mut("content")).for_each(|block| replace(version, block));
    let result = Json::Object(result).to_string();
    result[1..result.len() - 1].to_owned()
}

/// The messages of an input request to a client of this version. Before 2025-11-25 a message has one block, not a list.
pub(super) fn downgrade_messages(version: Version, messages: Vec<Json>) -> Vec<Json> {
    let one_each = |mut message: Json| match message.get_mut("content").map(Json::take) {
        Some(Json::Array(blocks)) if version < Version::V2025_11_25 => {
            let with = |mut block: Json| {
                replace(version, &mut block);
                let mut message = message.clone();
                message["content"] = block;
                message
            };
            blocks.into_iter().map(with).collect()
        }
        Some(mut block) => {
            replace(version, &mut block);
            message["content"] = block;
            vec![message]
        }
        None => vec![message],
    };
    messages.into_iter().flat_map(one_each).collect()
}

/// Replaces a block that the version does not have with a text block.
fn replace(version: Version, block: &mut Json) {
    let text = |name: &str| block.get(name).and_then(Json::as_str);
    let Some(kind) = text("type").filter(|kind| first_version(kind) > version) else { return };
    let says = match (text("name"), text("uri"), text("mimeType")) {
        (Some(name), Some(uri), _) => format!("{name}: {uri}"),
        (.., Some(mime_type)) => format!("[{kind}: {mime_type}]"),
        _ => format!("[{kind}]"),
    };
    let mut instead = json!({ "type": "text", "text": says });
    if let Some(annotations) = block.get("annotations") {
        instead["annotations"] = annotations.clone();
    }
    *block = instead;
}

#[cfg(test)]
mod tests {
    use super::{super::tests::Mock, *};

    const SCRIPT: &str = "
tools:
  - name: t
    reply:
      content:
        - { type: text, text: 'an \"audio\"' }
        - { type: audio, data: aGk=, mimeType: audio/wav, annotations: { priority: 1 } }
        - { type: resource_link, uri: 'file:///a', name: '{{ args.name }}' }
  - { name: written, reply: { result: { content: [{ type: audio, data: '', mimeType: m }] } } }
prompts:
  - name: p
    messages:
      - { role: user, content: { type: resource_link, uri: 'file:///a', name: a } }
";

    #[test]
    fn a_text_replaces_a_block_that_the_version_does_not_have() {
        let link = json!({ "type": "resource_link", "uri": "file:///a", "name": "n" });
        let audio =
            json!({ "type": "audio", "data": "aGk=", "mimeType": "audio/wav", "annotations": { "priority": 1 } });
        let link_text = json!({ "type": "text", "text": "n: file:///a" });
        let audio_text = json!({ "type": "text", "text": "[audio: audio/wav]", "annotations": { "priority": 1 } });
        for (version, expected) in [
            ("2024-11-05", [&audio_text, &link_text]),
            ("2025-03-26", [&audio, &link_text]),
            ("2025-06-18", [&audio, &link]),
            ("2025-11-25", [&audio, &link]),
        ] {
            let mock = Mock::legacy(SCRIPT, version);
            let call = |name: &str| mock.call("tools/call", json!({ "name": name, "arguments": { "name": "n" } }));
            let result = call("t")["result"].take();
            assert_eq!(result["content"][0], json!({ "type": "text", "text": "an \"audio\"" }));
            assert_eq!([&result["content"][1], &result["content"][2]], expected, "{version}");
            let prompt = mock.call("prompts/get", json!({ "name": "p" }));
            let kind = if version < "2025-06-18" { "text" } else { "resource_link" };
            assert_eq!(prompt["result"]["messages"][0]["content"]["type"], kind, "{version}");
            assert_eq!(call("written")["result"]["content"][0]["type"], "audio", "what is written out stays");
        }
    }

    #[test]
    fn messages_with_several_blocks_become_several_messages() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let message = |content: Json| json!({ "role": "user", "content": content });
        let both = vec![message(json!([text("a"), { "type": "tool_use", "id": "1", "name": "t", "input": {} }]))];
        assert_eq!(downgrade_messages(Version::V2025_11_25, both.clone()), both);
        let apart = [message(text("a")), message(text("[tool_use]"))];
        assert_eq!(downgrade_messages(Version::V2025_06_18, both), apart);
    }
}
