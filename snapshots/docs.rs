//! Runs the examples of `docs/`: a block `yaml` with a script, and the block `yaml scenario` after it.
//! A block `yaml example` is not run. A comment of HTML hides steps that a reader does not need.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use libtest_mimic::{Failed, Trial};
use mcp_rehearsal::{
    builtin_scripts::BUILTIN_SCRIPTS,
    document::{Source, parse_yaml},
    mock::script::schema,
    scenario::{Scenario, Selection},
};
use serde_json::Value as Json;

/// A block of code.
pub(crate) struct Block {
    heading: String,
    pub(crate) line: usize,
    /// The text after the fence.
    pub(crate) language: String,
    pub(crate) text: String,
    /// The line above it that is not empty.
    pub(crate) before: String,
}

/// One trial for each example, and one that no block is of an unknown language.
pub(crate) fn trials(page: &Path) -> Vec<Trial> {
    let name = page_name(page);
    let blocks = blocks(&page_text(page));
    let mut trials = Vec::new();
    let mut yaml = blocks.iter().filter(|block| ["yaml", "yaml scenario"].contains(&block.language.as_str()));
    while let Some(script) = yaml.next() {
        let steps = yaml.next().filter(|steps| script.language == "yaml" && steps.language == "yaml scenario");
        let title = format!("docs::{name}::{}::line_{}", script.heading, script.line);
        trials.push(match steps {
            Some(steps) => {
                let (script, steps) = (script.text.clone(), steps.text.clone());
                Trial::test(title, move || run(&script, &steps))
            }
            None => Trial::test(title, || Err("a script and a block `yaml scenario` belong together".into())),
        });
    }
    let languages: Vec<_> = blocks.into_iter().map(|block| block.language).collect();
    trials.push(Trial::test(format!("docs::{name}::every_block_is_run"), move || {
        let known = ["yaml", "yaml scenario", "yaml example", "sh"];
        match languages.iter().find(|language| !known.contains(&language.as_str())) {
            Some(language) => Err(format!("nothing runs a block of {language:?}").into()),
            None => Ok(()),
        }
    }));
    trials
}

/// Checks that the pages mention every key of scripts and every built-in script.
pub(crate) fn reference_trial(pages: &[PathBuf]) -> Trial {
    let text: String = pages.iter().map(|page| page_text(page)).collect();
    Trial::test("docs::mock::everything_is_mentioned", move || mentions_everything(&text))
}

/// The pages of `docs/` and the README.
pub(crate) fn pages(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("docs")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<_> = entries.filter(|path| path.extension().is_some_and(|it| it == "md")).collect();
    pages.push(root.join("README.md"));
    pages.sort();
    pages
}

pub(crate) fn page_text(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

pub(crate) fn page_name(page: &Path) -> String {
    page.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let (mut blocks, mut heading, mut before, mut open) = (Vec::new(), String::new(), "", None::<Block>);
    for (line, number) in text.lines().zip(1..) {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => {
                open = Some(Block {
                    heading: heading.clone(),
                    line: number,
                    language: language.to_owned(),
                    text: String::new(),
                    before: std::mem::take(&mut before).to_owned(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(block), None) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            (None, None) if line.is_empty() => {}
            (None, None) if line.starts_with('#') => heading = line.trim_matches(['#', ' ']).replace(' ', "_"),
            (None, None) => before = line,
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn run(script: &str, steps: &str) -> Result<(), Failed> {
    let json = parse_yaml(&Source::new("mock.yaml", script)).map_err(|problems| format!("{problems:?}"))?.to_json();
    let validator = jsonschema::draft7::new(&schema())?;
    if let Some(error) = validator.iter_errors(&json).next() {
        return Err(format!("the schema of scripts refuses it: {}: {error}", error.instance_path()).into());
    }
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("mock.yaml"), script)?;
    let added = [
        ("servers:", "servers: { mock: { mock: mock.yaml } }\n"),
        ("matrix:", "matrix: { transport: [memory, http], protocol: [2025-11-25, 2026-07-28] }\n"),
    ];
    let added = added.into_iter().filter(|(key, _)| !steps.lines().any(|line| line.starts_with(key)));
    let added: String = added.map(|(_, text)| text).collect();
    let path = folder.path().join("try.yaml");
    std::fs::write(&path, added + steps)?;
    let scenario = Scenario::load(&path, BUILTIN_SCRIPTS)?;
    let result = super::play(scenario, &Selection::default())?;
    super::judge(&result, folder.path())
}

/// Every key that the schema of scripts knows, and every built-in script.
fn mentions_everything(text: &str) -> Result<(), Failed> {
    let mut keys = BTreeSet::new();
    collect(&schema(), &mut keys);
    keys.extend(BUILTIN_SCRIPTS.iter().map(|script| script.name.to_owned()));
    let words: BTreeSet<_> = text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).collect();
    let missing: Vec<_> = keys.iter().filter(|key| !words.contains(key.as_str())).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("not mentioned: {missing:?}").into()),
    }
}

fn collect(schema: &Json, keys: &mut BTreeSet<String>) {
    match schema {
        Json::Object(members) => {
            for (name, member) in members {
                // The options of faults are printed by `rehearse mock --faults`.
                if name.starts_with("fault-") {
                    continue;
                }
                if let ("properties", Json::Object(properties)) = (name.as_str(), member) {
                    keys.extend(properties.keys().cloned());
                }
                if name != "examples" {
                    collect(member, keys);
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, keys)),
        _ => {}
    }
}
