use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::script::Script;
use rehearse_document::{Source, parse_yaml};

fn read_script(text: &str) -> Result<Vec<SkillItem>, String> {
    let source = Source::new("t", text);
    let root = parse_yaml(&source).expect("valid YAML");
    read_all(&root).map_err(|problems| problems.in_source(&source).to_string())
}

fn skills(text: &str) -> Vec<SkillItem> {
    read_script(text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn problems(text: &str) -> String {
    read_script(text).expect_err(text)
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).expect(text)
}

fn text_of(resource: &SkillResource) -> String {
    json(&resource.contents)[0]["text"].as_str().expect("a text").to_owned()
}

/// The frontmatter of a `SKILL.md` as a reader finds it.
fn frontmatter_of(resource: &SkillResource) -> Json {
    let text = text_of(resource);
    let (yaml, _) = text.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n")).expect("frontmatter");
    parse_yaml(&Source::new("SKILL.md", yaml)).expect("valid YAML").to_json()
}

const SKILLS: &str = r#"
- name: pdf-processing
  description: Extract, fill and assemble PDF documents
  license: Apache-2.0
  metadata: { version: "2.1.0" }
  frontmatter: { tags: [pdf, forms], limits: { pages: 10, strict: true } }
  body: |
    # PDF
    Fill in {{ forms }} with `references/FORMS.md`.
  files:
    references/FORMS.md: "hello\n"
    templates/regional/eu ä.md: { text: x, mimeType: text/x-template }
    logo.png: { blob: aGVsbG8K }
- { name: refunds, path: acme/billing, description: Process refunds, listed: false, dynamic: true }
"#;

#[test]
fn an_entry_names_every_file_with_its_true_digest_and_size() {
    let skills = skills(SKILLS);
    let entry = json(&skills[0].entry);
    let manifest = text_of(&skills[0].resources[0]);
    assert_eq!(skills[0].uri, "skill://pdf-processing/SKILL.md");
    assert_eq!(entry["uri"], skills[0].uri);
    assert_eq!(
        entry["frontmatter"],
        json!({ "name": "pdf-processing", "description": "Extract, fill and assemble PDF documents",
            "license": "Apache-2.0", "metadata": { "version": "2.1.0" },
            "tags": ["pdf", "forms"], "limits": { "pages": 10, "strict": true } })
    );
    // printf 'hello\n' | sha256sum; printf x | sha256sum
    let hello = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
    let x = "sha256:2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881";
    let listed = entry["resources"].as_array().expect("a list");
    assert_eq!(listed.len(), 4);
    assert_eq!(listed[0]["uri"], "skill://pdf-processing/SKILL.md");
    assert_eq!(listed[0]["size"], manifest.len());
    assert_eq!(
        listed[1..],
        [
            json!({ "uri": "skill://pdf-processing/references/FORMS.md", "digest": hello, "size": 6 }),
            json!({ "uri": "skill://pdf-processing/templates/regional/eu%20%C3%A4.md", "digest": x, "size": 1 }),
            json!({ "uri": "skill://pdf-processing/logo.png", "digest": hello, "size": 6 }),
        ]
    );
}

#[test]
fn a_skill_md_is_a_document_that_people_can_read() {
    let skills = skills(SKILLS);
    assert_eq!(
        text_of(&skills[0].resources[0]),
        "---\nname: pdf-processing\ndescription: Extract, fill and assemble PDF documents\nlicense: Apache-2.0\n\
         metadata:\n  version: \"2.1.0\"\ntags: [\"pdf\",\"forms\"]\nlimits:\n  pages: 10\n  strict: true\n---\n\n\
         # PDF\nFill in {{ forms }} with `references/FORMS.md`.\n"
    );
    assert_eq!(text_of(&skills[1].resources[0]), "---\nname: refunds\ndescription: Process refunds\n---\n");
}

#[test]
fn resources_have_the_metadata_of_their_files() {
    let skills = skills(SKILLS);
    let resources: Vec<_> = skills[0].resources.iter().map(|resource| json(&resource.definition)).collect();
    let uri = |path: &str| format!("skill://pdf-processing/{path}");
    let eu = uri("templates/regional/eu%20%C3%A4.md");
    assert_eq!(
        resources,
        [
            json!({ "uri": uri("SKILL.md"), "name": "pdf-processing",
                "description": "Extract, fill and assemble PDF documents", "mimeType": "text/markdown" }),
            json!({ "uri": uri("references/FORMS.md"), "name": "FORMS.md", "mimeType": "text/markdown" }),
            json!({ "uri": eu, "name": "eu ä.md", "mimeType": "text/x-template" }),
            json!({ "uri": uri("logo.png"), "name": "logo.png", "mimeType": "image/png" }),
        ]
    );
    let contents: Vec<_> = skills[0].resources[1..].iter().map(|resource| json(&resource.contents)).collect();
    assert_eq!(
        contents,
        [
            json!([{ "uri": uri("references/FORMS.md"), "mimeType": "text/markdown", "text": "hello\n" }]),
            json!([{ "uri": eu, "mimeType": "text/x-template", "text": "x" }]),
            json!([{ "uri": uri("logo.png"), "mimeType": "image/png", "blob": "aGVsbG8K" }]),
        ]
    );
    let other =
        self::skills("[{ name: a, description: d, files: { LICENSE: x, data.BIN: { blob: aGk= }, a.JSON: '{}' } }]");
    let types: Vec<_> = other[0].resources[1..].iter().map(|it| json(&it.definition)["mimeType"].clone()).collect();
    assert_eq!(types, ["text/plain", "application/octet-stream", "application/json"]);
}

#[test]
fn a_skill_may_be_unlisted_and_without_digests() {
    let skills = skills(SKILLS);
    assert!(skills[0].listed && !skills[1].listed);
    assert_eq!(
        json(&skills[1].entry),
        json!({ "uri": "skill://acme/billing/refunds/SKILL.md",
            "frontmatter": { "name": "refunds", "description": "Process refunds" }, "resources": "dynamic" })
    );
}

#[test]
fn a_skill_inside_of_another_is_among_its_files_too() {
    let text = "
- { name: inner, path: outer/deep, description: d, files: { b.md: b } }
- { name: outer, description: d, files: { a.md: a } }
- { name: outer-two, description: d }
";
    let skills = skills(text);
    let uris = |skill: &SkillItem| -> Vec<String> {
        let entry = json(&skill.entry);
        let list = entry["resources"].as_array().expect("a list").iter();
        list.map(|it| it["uri"].as_str().expect("a uri").trim_start_matches("skill://").to_owned()).collect()
    };
    assert_eq!(uris(&skills[0]), ["outer/deep/inner/SKILL.md", "outer/deep/inner/b.md"]);
    assert_eq!(
        uris(&skills[1]),
        ["outer/SKILL.md", "outer/a.md", "outer/deep/inner/SKILL.md", "outer/deep/inner/b.md"]
    );
    assert_eq!(uris(&skills[2]), ["outer-two/SKILL.md"]);
    assert_eq!(skills[1].resources.len(), 2);
}

#[test]
fn a_directory_lists_its_direct_children_once() {
    let skills = skills(&format!("{SKILLS}\n- {{ name: chargebacks, path: acme/billing, description: d }}"));
    let list = |uri: &str| -> Option<Vec<(String, String)>> {
        let children = directory(&skills, uri)?;
        let text = |value: &Json| value.as_str().expect("a text").to_owned();
        let child = |child: &Json| (text(&child["uri"]).replace(uri, ""), text(&child["name"]));
        Some(children.iter().map(|it| child(&json(it))).collect())
    };
    let pairs = |pairs: &[(&str, &str)]| Some(pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect());
    assert_eq!(
        list("skill://pdf-processing"),
        pairs(&[
            ("/SKILL.md", "pdf-processing"),
            ("/references", "references"),
            ("/templates", "templates"),
            ("/logo.png", "logo.png")
        ])
    );
    assert_eq!(list("skill://pdf-processing/templates/regional"), pairs(&[("/eu%20%C3%A4.md", "eu ä.md")]));
    assert_eq!(list("skill://acme"), pairs(&[("/billing", "billing")]));
    assert_eq!(list("skill://acme/billing"), pairs(&[("/refunds", "refunds"), ("/chargebacks", "chargebacks")]));
    assert_eq!(
        directory(&skills, "skill://pdf-processing/templates").expect("a directory"),
        [r#"{"uri":"skill://pdf-processing/templates/regional","name":"regional","mimeType":"inode/directory"}"#]
    );
    let encoded = self::skills("[{ name: a, description: d, files: { 'ä b/c/d': x } }]");
    let children = directory(&encoded, "skill://a").expect("a directory");
    assert_eq!(json(&children[1])["name"], "ä b");
    assert_eq!(json(&directory(&encoded, "skill://a/%C3%A4%20b").expect("a directory")[0])["name"], "c");
}

#[test]
fn files_and_what_does_not_exist_are_not_directories() {
    let skills = skills(SKILLS);
    for uri in [
        "skill://pdf-processing/SKILL.md",
        "skill://pdf-processing/logo.png",
        "skill://pdf-processing/",
        "skill://pdf-process",
        "skill://pdf-processing/templates/none",
        "skill://",
        "skill:/",
        "skill:",
        "",
        "file:///pdf-processing",
    ] {
        assert_eq!(directory(&skills, uri), None, "{uri}");
    }
}

#[test]
fn a_skill_can_lie_on_purpose() {
    let text = "
- name: liar
  description: The truth
  files:
    SKILL.md: { text: \"---\\nname: liar\\ndescription: A lie\\n---\\n\", size: 3 }
    a.md: { text: a, digest: 'sha256:0' }
";
    let skills = skills(text);
    let entry = json(&skills[0].entry);
    assert_eq!(entry["frontmatter"]["description"], "The truth");
    assert_eq!(frontmatter_of(&skills[0].resources[0])["description"], "A lie");
    assert_eq!(entry["resources"][0]["size"], 3);
    assert_eq!(entry["resources"][1], json!({ "uri": "skill://liar/a.md", "digest": "sha256:0", "size": 1 }));
    assert_eq!(skills[0].resources.len(), 2);
}

#[test]
fn names_are_those_of_the_agent_skills_specification() {
    for name in ["a", "0", "pdf-processing", "a-b-c", &"a".repeat(64)] {
        assert!(read_script(&format!("[{{ name: '{name}', description: d }}]")).is_ok(), "{name}");
    }
    for (name, hint) in [
        ("PDF Processing", "such as `pdf-processing`"),
        ("-a-", "such as `a`"),
        ("a--b", "such as `a-b`"),
        ("it''s_me", "such as `its-me`"),
        ("größe", "such as `gr-e`"),
        ("a/b", "such as `a-b`"),
        ("", "such as `pdf-processing`"),
        ("ä", "such as `pdf-processing`"),
        (&"a".repeat(65), "such as `pdf-processing`"),
    ] {
        let found = problems(&format!("[{{ name: '{name}', description: d }}]"));
        let message = "a skill's name has 1 to 64 small letters, digits and single hyphens between them";
        assert_eq!(found, format!("t:1:10: {message} ({hint})"), "{name}");
    }
}

proptest! {
    #[test]
    fn the_frontmatter_of_the_file_is_that_of_the_entry(
        description in "[ -~]{1,10}\\PC{0,20}[\u{7f}-\u{9f}\u{2028}\u{feff}\n\t\"\\\\:#'-]{0,4}x",
        keys in prop::collection::vec("[a-z]{1,3}|\\PC{1,8}|[:#?\\[{\"'&*!|>% ~-][ a]{0,2}", 0..4),
        value in "true|a |NO|~|null|1e3|0x1|2026-07-28|- a|a: b|a #b|[ -~]{0,12}|[\n\r\u{85}\u{7f}]a",
        number in any::<f64>().prop_filter("JSON", |number| number.is_finite()),
    ) {
        let mut more = serde_json::Map::new();
        for key in keys.into_iter().filter(|key| key != "<<" && !frontmatter::is_field(key)) {
            more.insert(key, json!({ "text": value, "list": [value, number, null], "none": {}, &*value: true }));
        }
        let skill = json!([{ "name": "a", "description": description, "metadata": { "k": value }, "frontmatter": more }]);
        // As people would have to write it: YAML has no such characters.
        let escape = |c: char| if c < '\u{7f}' { c.to_string() } else { format!("\\U{:08x}", u32::from(c)) };
        let skills = skills(&skill.to_string().chars().map(escape).collect::<String>());
        prop_assert_eq!(&frontmatter_of(&skills[0].resources[0]), &json(&skills[0].entry)["frontmatter"]);
    }
}

#[test]
fn a_resource_is_not_a_file_of_a_skill() {
    let text = "resources: [{ uri: 'x:a', text: x }, { uri: 'skill://a/SKILL.md', text: x }]\nskills: [{ name: a, description: d }]";
    let error = Script::parse(&Source::new("t", text)).expect_err("twice").to_string();
    assert_eq!(error, "t:1:45: a skill has a file of this URI (keep one of them)");
}
