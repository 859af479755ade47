use crate::config::{Source, parse_yaml};

#[test]
fn what_was_forgotten_is_told_where_it_was() {
    for (text, expected) in [
        ("a:\n  args: [-y, x\n  env: {A: b}\n", "2:9: not valid YAML: this `[` is never closed (add the missing `]`)"),
        (
            "a:\n  b:\n    args: [-y, x\n  c:\n    d: e\n",
            "3:11: not valid YAML: this `[` is never closed (add the missing `]`)",
        ),
        ("a:\n  env: {\n    A: b,\n\n  c: d\n", "2:8: not valid YAML: this `{` is never closed (add the missing `}`)"),
        ("a: [b, [c]\n", "1:4: not valid YAML: this `[` is never closed (add the missing `]`)"),
        (
            "a:\n    type:stdio\n    command: npx\n",
            "2:9: not valid YAML: there is no blank after the `:` (put a blank after the `:`)",
        ),
        (
            "a:\n  - type:stdio\n    command: npx\n",
            "2:9: not valid YAML: there is no blank after the `:` (put a blank after the `:`)",
        ),
        ("a: {b:\"c\", d:[e]}\n", "1:13: not valid YAML: there is no blank after the `:` (put a blank after the `:`)"),
        (
            "a:\n  b:\n  - c\n  ---flag\nd: e\n",
            "4:3: not valid YAML: this dash begins no item of a list: no blank is after it (put a blank after the first dash)",
        ),
        ("a:\n- -y\n- @b/c\n", "3:3: not valid YAML: unexpected character: `@' (put the whole value into quotes)"),
        ("a:\n  args: [\"-y\" \"x\"]\n", "2:15: not valid YAML: no comma before this (add a comma)"),
        ("a:\n  env: {B: 'c' D: e}\n", "2:16: not valid YAML: no comma before this (add a comma)"),
        (
            "a:\n  args: [-y, ${{ s.B }}]\n",
            "2:14: not valid YAML: within brackets, a brace begins a mapping and ends the text before it (put the whole value into quotes)",
        ),
        (
            "a:\n  env: {A: Bearer ${X}, B: c}\n",
            "2:19: not valid YAML: within brackets, a brace begins a mapping and ends the text before it (put the whole value into quotes)",
        ),
        (
            "a:\n  args: [\"-y, \"x\"]\n",
            "2:16: not valid YAML: invalid trailing content after double-quoted scalar (look at the quotes before this: one is missing, or one too many)",
        ),
        (
            "a:\n  b: 'c' -d\n",
            "2:10: not valid YAML: invalid trailing content after single-quoted scalar (put the whole value into one pair of quotes)",
        ),
        (
            "a: \"C:\\x41\\\\\\x4\"\n",
            "1:13: not valid YAML: there is no escape `\\x` (write each backslash twice, or put the text into single quotes)",
        ),
        (
            "a:\n  b: \"c\n  args: [\"x\"]\n",
            "2:6: not valid YAML: a text that its line does not end (a double quote is missing at the end of the line)",
        ),
        (
            "a:\n  - 'b\n  - c\n",
            "2:5: not valid YAML: a text that its line does not end (a single quote is missing at the end of the line)",
        ),
        (
            "a: \"C:\\Users\"\n",
            "1:7: not valid YAML: there is no escape `\\U` (write each backslash twice, or put the text into single quotes)",
        ),
        (
            "a: \"C:\\new\\data\"\n",
            "1:11: not valid YAML: there is no escape `\\d` (write each backslash twice, or put the text into single quotes)",
        ),
        ("a: `b`\n", "1:4: not valid YAML: unexpected character: ``' (put the whole value into quotes)"),
        (
            "a:\n  b: Bearer: x\n",
            "2:12: not valid YAML: mapping values are not allowed in this context (put the whole value into quotes)",
        ),
        ("a: [\n  b,\n  @c\n]\n", "3:3: not valid YAML: unexpected character: `@' (put the whole value into quotes)"),
    ] {
        let source = Source::new("t", text);
        let problem = parse_yaml(&source).expect_err(text).in_source(&source).to_string();
        assert_eq!(problem, format!("t:{expected}"), "{text}");
    }
}

#[test]
fn brackets_in_texts_are_not_taken_for_open_ones() {
    for text in [
        "a: x [y\nb: c: d\n",
        "a: 'x [y'\nb: c: d\n",
        "a: [x] # [\nb: c: d\n",
        "a: \"[\"\nb: c: d\n",
        "e: [c,\n  d]\nb: c: d\n",
    ] {
        let source = Source::new("t", text);
        let problem = parse_yaml(&source).expect_err(text).in_source(&source).to_string();
        assert!(problem.contains(":5: not valid YAML: mapping values"), "{text}: {problem}");
    }
}

fn told(text: &str) -> String {
    let source = Source::new("t", text);
    let problem = parse_yaml(&source).expect_err(text).in_source(&source).to_string();
    problem.replacen("not valid YAML: ", "", 1)
}

#[test]
fn a_colon_a_dash_or_a_comma_that_is_not_as_it_should_be_is_told_where_to_type() {
    let blank = "there is no blank after the `:` (put a blank after the `:`)";
    let comma = "a comma after the value (remove the comma)";
    let dash = "this dash begins no item of a list: no blank is after it";
    for (text, place, expected) in [
        ("a:\n  t: x\n  command:npx\n", "3:10", blank),
        ("a:\n  t: x\n  url:https://h\n  b: c\n", "3:6", blank),
        ("a:}\nb: c\n", "1:3", "this `}` belongs to nothing (remove it)"),
        ("a:\n  command: \"npx\",\n", "2:17", comma),
        ("a:\n  - \"x\"  , # c\n", "2:10", comma),
        (
            "a:\n  t: x\n  command npx\n  b: c\n",
            "3:10",
            "there is no colon behind `command` (put a colon behind `command`)",
        ),
        ("a:\n  args\n    - x\n  b: c\n", "2:7", "there is no colon behind `args` (put a colon behind `args`)"),
        ("a:\n  s\n    t: x\n", "2:4", "there is no colon behind `s` (put a colon behind `s`)"),
        ("a:\n  - name z\n    b: c\n", "2:9", "there is no colon behind `name` (put a colon behind `name`)"),
        ("a:\n  t: x\n  b = c\n", "3:5", "an equals sign between a key and its value (write a colon instead)"),
        (
            "a:\n  t: x\n  b=c\n",
            "3:4",
            "an equals sign between a key and its value (write a colon and a blank instead)",
        ),
        (
            "a: - x\n",
            "1:4",
            "a list does not begin in the line of its key (begin it in the next line, or put the whole value into quotes if it is a text)",
        ),
        (
            "a:\n  - n: x\n    - b: c\n",
            "3:5",
            "an item of a list among the keys of an object (remove the dash and the blank after it)",
        ),
        ("a:\n  - n: x\n  -n: z\n", "3:3", &format!("{dash} (put a blank after the dash)")),
        ("a:\n  -n: x\n    b: c\n", "2:3", &format!("{dash} (put a blank after the dash)")),
        (
            "a:\n  - x\n  -y\n",
            "3:3",
            &format!("{dash} (put a blank after the dash, or `- ` before it if it is a part of the value)"),
        ),
        ("a:\n  - b: 1\n    c: 2\n  b: 1\n", "4:3", "an item of a list without its dash (put `- ` before it)"),
        ("a:\n  \"-y\"\n  - x\n", "2:3", "an item of a list without its dash (put `- ` before it)"),
        ("a:\n  t x\n  b: c\n", "2:4", "there is no colon behind `t` (put a colon behind `t`)"),
        ("a:\n  - x\n  y\n", "3:3", "an item of a list without its dash (put `- ` before it)"),
        ("a: [\"x\", \"y\"}\n", "1:13", "this `}` closes nothing (write `]`)"),
        ("a: [{b: \"}\"}, [c]}\n", "1:18", "this `}` closes nothing (write `]`)"),
        ("a: {b: \"c\"\n  d: e }\n", "1:11", "no comma behind this (add a comma)"),
        ("a: {\n  b: c # x\n  d: e\n}\n", "2:7", "no comma behind this (add a comma)"),
        ("a: {b: c d: e}\n", "1:10", "no comma before this (add a comma)"),
    ] {
        assert_eq!(told(text), format!("t:{place}: {expected}"), "{text}");
    }
}

#[test]
fn a_line_that_is_not_as_far_in_as_others_is_told_which() {
    let (deep, stray) = ("this is further in than what it belongs beside", "this is as far in as nothing above it");
    for (text, place, what, like) in [
        ("a:\n  t: x\n    b: c\n", "3:5", deep, "t"),
        ("a:\n  t: \"x\"\n   b: c\n", "3:4", deep, "t"),
        ("a:\n  - n: x\n      b: c\n", "3:7", deep, "n"),
        ("a:\n  b:\n    - x\n      c: d\n", "4:7", deep, "b"),
        ("a:\n    t: x\n   b: c\n    d: e\n", "3:4", stray, "t"),
        ("a:\n    t: x\n  b: c\n    d: e\n", "3:3", stray, "t"),
        ("m:\n  a:\n    t: x\n   b:\n    d: e\n", "4:4", stray, "a"),
        ("a:\n  - n: x\n  b: c\n", "3:3", stray, "n"),
    ] {
        assert_eq!(told(text), format!("t:{place}: {what} (indent it as far as `{like}` above)"), "{text}");
    }
    let first = "this is not as far in as what follows it";
    let list = "put `- ` before it if a list has it, and else ";
    for (text, place, before) in [
        ("a:\n   t: x\n  b: c\n  d: e\n", "2:4", ""),
        ("a:\n  t: x\n   b: c\n   d: e\n", "2:3", ""),
        ("a:\n  t: x\n    b: c\n    d: e\n", "2:3", list),
    ] {
        assert_eq!(told(text), format!("t:{place}: {first} ({before}indent it as far as `b` below)"), "{text}");
    }
    let so = "indent it so that `t` begins as far in as `b` below";
    assert_eq!(told("a:\n - t: x\n    b: c\n    d: e\n"), format!("t:2:2: {first} ({so})"));
    let item = "this item is as far in as nothing above it (indent it as far as the item above)";
    assert_eq!(told("a:\n  b:\n     - x\n    - y\n"), format!("t:4:5: {item}"));
}

#[test]
fn what_is_no_yaml_is_told_with_what_to_write_instead() {
    let merge = "two versions that were not merged (resolve the merge: keep one side and remove the lines with <<<<<<<, ======= and >>>>>>>)";
    let star = "`*` before a name stands for another value, and there is none (put the whole value into quotes)";
    for (text, place, expected) in [
        ("a: b\n<<<<<<< HEAD\nc: d\n=======\nc: e\n>>>>>>> x\n", "2:1", merge),
        ("a: b\n// x\nc: d\n", "2:1", "a comment of another language (write `#` instead of `//`)"),
        (
            "a:\n  t: x\n  b:\u{a0}c\n",
            "3:5",
            "a character that looks like a blank (U+00A0) (type an ordinary blank in its place)",
        ),
        (
            "a:\n  t: x\n \u{a0}b: c\n",
            "3:2",
            "a character that looks like a blank (U+00A0) (type an ordinary blank in its place)",
        ),
        ("a: [*]\n", "1:5", star),
        ("a:\n  - *.js\n", "2:5", star),
        ("a: \"x\n", "1:4", "a text that its line does not end (a double quote is missing at the end of the line)"),
        ("a: *TOKEN*\n", "1:4", star),
        (
            "a:\n  <<: *b\n",
            "2:7",
            "nothing before this is called `&b` (write `&b` before the mapping that is to be merged, further up)",
        ),
        ("a: {{ b }}\n", "1:4", "a key must be a text (put the whole value into quotes)"),
        ("a: {b: c, {d}: e}\n", "1:11", "a key must be a text (put the key into quotes)"),
    ] {
        assert_eq!(told(text), format!("t:{place}: {expected}"), "{text}");
    }
}

#[test]
fn tabs_within_brackets_indent_nothing() {
    let json = |text: &str| parse_yaml(&Source::new("t", text)).map(|node| node.to_json_text());
    assert_eq!(json("a:\n  b: [\n\t\"x\",\n\t \ty\n\t]\n").as_deref(), Ok(r#"{"a":{"b":["x","y"]}}"#));
    assert_eq!(told("a:\n  b: [\n\tx]\n  c:\n\td: e\n"), "t:5:1: a tab in the indentation (indent with spaces)");
}
