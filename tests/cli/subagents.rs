//! The page about subagents and its examples.

use crate::mcp::commands_with;

const PAGE: &str = include_str!("../../docs/subagents.md");

/// The files of `examples/subagent`.
fn examples() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/subagent");
    let entries = std::fs::read_dir(folder).expect("the examples");
    let file = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().expect("UTF-8");
        let text = std::fs::read_to_string(entry.path()).expect("reads");
        (name, text)
    };
    entries.map(|entry| file(entry.expect("an entry"))).collect()
}

#[test]
fn every_command_of_the_page_has_the_shown_output() {
    assert_eq!(commands_with(PAGE, &examples()), 3);
}

#[test]
fn the_configs_of_the_page_are_those_of_the_examples() {
    let examples = examples();
    let text = |name: &str| &examples.iter().find(|(known, _)| known == name).expect("an example").1;
    let blocks: Vec<_> =
        PAGE.split("\n```yaml\n").skip(1).filter_map(|rest| Some(rest.split_once("\n```")?.0)).collect();
    let configs = ["review.cpe.yaml", "coder.cpe.yaml", "parent.cpe.yaml"];
    assert_eq!(blocks.len(), configs.len());
    for (block, config) in blocks.iter().zip(configs) {
        assert!(text(config).contains(block), "{config}:\n{block}");
    }
}
