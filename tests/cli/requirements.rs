//! `tests/requirements.txt`: every requirement has a place that shows it.

use std::{fs, path::Path};

use crate::pages::anchors;

const LIST: &str = include_str!("../requirements.txt");

/// How many requirements each source system has.
const COUNTS: [usize; 5] = [113, 143, 137, 95, 60];

/// How many requirements may be `open`.
const OPEN: usize = 1;

/// All ids, in order.
fn ids() -> Vec<String> {
    let of = |(system, count)| (1..=count).map(move |number| format!("S{system}-{number:02}"));
    COUNTS.into_iter().enumerate().flat_map(of).collect()
}

/// The lines of the list that are not comments: an id and its places.
fn lines(list: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| line.split_once("  ").map_or((line, Vec::new()), |(id, places)| (id, places.split(' ').collect())))
}

/// What is wrong with a place: the path of a file or folder, a test as `PATH::FUNCTION`, or a section of a console page as
/// `PATH#heading-in-small-letters`.
fn problem(place: &str) -> Option<String> {
    if let Some((path, heading)) = place.split_once('#') {
        let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap_or_default();
        return (!anchors(&page).contains(heading)).then(|| format!("{path} has no heading {heading}"));
    }
    let (path, function) = place.split_once("::").map_or((place, None), |(path, function)| (path, Some(function)));
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let Some(function) = function else {
        return (path.is_empty() || !whole.exists()).then(|| format!("there is no {path:?}"));
    };
    let text = fs::read_to_string(whole).unwrap_or_default();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let begins = format!("fn {function}(");
    let is_test = |line: usize| {
        let attributes = lines[..line].iter().rev().take_while(|line| line.starts_with("#["));
        attributes.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
    };
    let mut places = lines.iter().enumerate().filter(|(_, line)| line.contains(&begins));
    (!places.any(|(line, _)| is_test(line))).then(|| format!("{path} has no test {function}"))
}

/// What is wrong with a list.
fn problems(list: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let known: Vec<_> = lines(list).map(|(id, _)| id).collect();
    if let Some((index, expected)) =
        ids().iter().enumerate().find(|(index, id)| known.get(*index) != Some(&id.as_str()))
    {
        problems.push(format!("{expected} is expected, found {:?}", known.get(index)));
    } else if known.len() > ids().len() {
        problems.push(format!("{} is one too many", known[ids().len()]));
    }
    for (id, places) in lines(list) {
        match &places[..] {
            ["open"] => {}
            [] => problems.push(format!("{id} has no place")),
            places => problems.extend(places.iter().filter_map(|place| Some(format!("{id}: {}", problem(place)?)))),
        }
    }
    problems
}

#[test]
fn every_requirement_has_an_existing_place() {
    assert_eq!(problems(LIST), [""; 0]);
    let open: Vec<_> = lines(LIST).filter(|(_, places)| places == &["open"]).map(|(id, _)| id).collect();
    assert!(open.len() <= OPEN, "{} are open: {open:?}", open.len());
}

#[test]
fn a_mistake_in_the_list_is_found() {
    let list = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines: Vec<_> = ids().into_iter().map(|id| format!("{id}  README.md")).collect();
        change(&mut lines);
        problems(&("# A comment.\n".to_owned() + &lines.join("\n")))
    };
    assert_eq!(list(&|_| {}), [""; 0]);
    assert_eq!(list(&|lines| lines.swap(3, 4)), [r#"S0-04 is expected, found Some("S0-05")"#]);
    assert_eq!(list(&|lines| lines.insert(1, lines[0].clone())), [r#"S0-02 is expected, found Some("S0-01")"#]);
    assert_eq!(list(&|lines| drop(lines.pop())), ["S4-60 is expected, found None"]);
    assert_eq!(list(&|lines| lines.push("S4-61  open".into())), ["S4-61 is one too many"]);
    for (places, expected) in [
        ("", "S0-01 has no place"),
        ("gone.md", "S0-01: there is no \"gone.md\""),
        ("gone.rs::test", "S0-01: gone.rs has no test test"),
        ("tests/cli/requirements.rs::gone", "S0-01: tests/cli/requirements.rs has no test gone"),
        ("tests/cli/requirements.rs::problems", "S0-01: tests/cli/requirements.rs has no test problems"),
        ("tests/console/validate-config.md#gone", "S0-01: tests/console/validate-config.md has no heading gone"),
        ("README.md open", "S0-01: there is no \"open\""),
        ("README.md  LICENSE-MIT", "S0-01: there is no \"\""),
    ] {
        let line = if places.is_empty() { "S0-01".to_owned() } else { format!("S0-01  {places}") };
        assert_eq!(list(&|lines| lines[0].clone_from(&line)), [expected], "{places}");
    }
    let several = "S0-01  README.md tests/cli/requirements.rs::a_mistake_in_the_list_is_found docs README.md#install";
    assert_eq!(list(&|lines| lines[0] = several.into()), [""; 0]);
}
