//! The code of `docs/testing-in-rust.md` is that of examples, which are run.

const PAGE: &str = include_str!("../../docs/testing-in-rust.md");
const EXAMPLES: [&str; 2] = [include_str!("../../examples/rust_test.rs"), include_str!("../../examples/rmcp_test.rs")];

/// Code without indentation, empty lines and imports.
fn bare(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("use "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_block_is_in_an_example() {
    let blocks: Vec<_> = PAGE.split("\n```rust\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(blocks.len(), 8);
    for block in blocks {
        let is_shown = EXAMPLES.iter().any(|example| bare(example).contains(&bare(block)));
        assert!(is_shown, "no example has\n{block}");
    }
}
