//! `ARCHITECTURE.md`: which files and folders of a crate import each other in circles.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    sync::LazyLock,
};

use regex::Regex;

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");

/// The path and the text of each file of a folder, without tests.
fn files(folder: &Path, within: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(within).expect("within").display().to_string();
        match path.is_dir() {
            _ if name.contains("test") => {}
            true => files(&path, within, found),
            false if name.ends_with(".rs") => found.push((name, fs::read_to_string(path).expect("a text"))),
            false => {}
        }
    }
}

fn module(path: &str) -> Vec<&str> {
    let mut names: Vec<_> = path.trim_end_matches(".rs").split('/').collect();
    names.pop_if(|last| ["mod", "lib", "main"].contains(last));
    names
}

/// The paths of a `use`: `a::{b, c::d}` has two.
fn expanded(tree: &str) -> Vec<String> {
    let Some((head, tail)) = tree.split_once('{') else { return vec![tree.trim().to_owned()] };
    let mut depth = 0;
    let trees = tail.trim_end().trim_end_matches('}').split(|character| {
        depth += i32::from(character == '{') - i32::from(character == '}');
        character == ',' && depth == 0
    });
    trees.filter(|tree| !tree.trim().is_empty()).flat_map(expanded).map(|path| head.trim().to_owned() + &path).collect()
}

fn imports(text: &str) -> Vec<String> {
    static PATTERNS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        ["//[^\n]*", r"\buse\s+([^;]+);", r"\b(crate|super)(::\w+)+"].map(|it| Regex::new(it).expect("a regex"))
    });
    let [comment, import, path] = &*PATTERNS;
    let text = comment.replace_all(text.split("\nmod tests {").next().unwrap_or_default(), "");
    let mut imports: Vec<_> = import.captures_iter(&text).flat_map(|found| expanded(&found[1])).collect();
    imports.extend(path.find_iter(&import.replace_all(&text, "")).map(|found| found.as_str().to_owned()));
    imports
}

/// The file that imports, and the file that is imported, for each import.
fn edges(files: &[(String, String)]) -> BTreeSet<(&str, &str)> {
    let modules: BTreeMap<_, _> = files.iter().map(|(path, _)| (module(path), path.as_str())).collect();
    let mut edges = BTreeSet::new();
    for (path, text) in files {
        for import in imports(text) {
            let mut names = module(path);
            for name in import.split("::") {
                match name {
                    "crate" => names.clear(),
                    "super" => drop(names.pop()),
                    name => names.push(name),
                }
            }
            let target = (0..=names.len()).rev().find_map(|length| modules.get(&names[..length]));
            edges.extend(target.map(|target| (path.as_str(), *target)));
        }
    }
    edges
}

/// Two folders, or a folder and a file beside it, of which the one takes from the other.
fn siblings(from: &str, to: &str) -> Option<(String, String)> {
    let (from, to) = (module(from), module(to));
    let at = from.iter().zip(&to).position(|(one, other)| one != other)?;
    Some((from[..=at].join("/"), to[..=at].join("/")))
}

/// What takes from each other.
fn circles(edges: impl Iterator<Item = (String, String)>) -> BTreeSet<Vec<String>> {
    let mut targets = BTreeMap::<String, BTreeSet<String>>::new();
    for (from, to) in edges {
        targets.entry(from).or_default().insert(to);
    }
    let reached = |from: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
        while let Some(file) = next.pop() {
            next.extend(targets.get(file).into_iter().flatten().filter(|target| reached.insert((*target).clone())));
        }
        reached
    };
    let reached: BTreeMap<_, _> = targets.keys().map(|file| (file, reached(file))).collect();
    let in_a_circle = reached.iter().filter(|(file, all)| all.contains(**file));
    let is_back = |file: &String, other: &String| reached.get(other).is_some_and(|back| back.contains(file));
    in_a_circle.map(|(file, all)| all.iter().filter(|other| is_back(file, other)).cloned().collect()).collect()
}

/// The files that import each other, without what a module takes from its own files; and the folders whose files do.
fn all_circles(files: &[(String, String)]) -> BTreeSet<Vec<String>> {
    let edges = edges(files);
    let others = edges.iter().filter(|(from, to)| !module(to).starts_with(&module(from)));
    let mut found = circles(others.map(|(from, to)| ((*from).to_owned(), (*to).to_owned())));
    let is_folder = |name: &String| files.iter().any(|(path, _)| path.starts_with(&format!("{name}/")));
    let folders = circles(edges.iter().filter_map(|(from, to)| siblings(from, to)));
    found.extend(folders.into_iter().filter(|circle| circle.iter().any(is_folder)));
    found
}

#[test]
fn every_circle_of_files_is_in_the_architecture() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut found = Vec::new();
    for folder in crates.chain([root.to_owned()]) {
        let (source, mut sources) = (folder.join("src"), Vec::new());
        files(&source, &source, &mut sources);
        let name =
            if folder == root { "mcp-rehearsal".into() } else { folder.file_name().expect("a name").to_string_lossy() };
        found.extend(all_circles(&sources).iter().map(|circle| format!("{name}: `{}`", circle.join("`, `"))));
    }
    let (_, section) = ARCHITECTURE.split_once("## Circles of files").expect("the section");
    let rows = section.lines().filter(|line| line.contains(": `"));
    let mut listed: Vec<_> = rows.filter_map(|line| line.split(" | ").next()?.strip_prefix("| ")).collect();
    found.sort();
    listed.sort();
    assert_eq!(found, listed);
}

#[test]
fn a_circle_is_found_through_every_kind_of_import() {
    let files = [
        ("lib.rs", "mod a; mod b; pub use a::A;"),
        ("a/mod.rs", "mod inner; use crate::{b::B, other};"),
        ("a/inner.rs", "use super::A; use std::b::B;"),
        ("b.rs", "use super::c;"),
        ("c.rs", "fn c() { crate::a::inner::f() } // super::d::D"),
        ("d.rs", "use super::c::C;"),
        ("e.rs", "mod deep; use deep::F;"),
        ("e/deep.rs", "use crate::f::F;"),
        ("f.rs", "use super::e::E;"),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
    let found = [["a/inner.rs", "a/mod.rs", "b.rs", "c.rs"].as_slice(), &["a", "b", "c"], &["e", "f"]];
    let found = found.map(|circle| circle.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(all_circles(&files), BTreeSet::from(found));
}
