use std::fmt::Write;

use crate::{
    convert::{
        Notation, convert,
        reference::{ValueContext, translate},
    },
    dialect::{Dialect, Field, by_name},
    lint,
};
use rehearse_document::Source;

fn dialect(name: &str) -> &'static Dialect {
    by_name(name).expect(name)
}

/// A line of `cases.txt` is the dialect of a file, that of the new file, and the text, with ⏎ for a line break.
#[test]
fn every_file_is_converted_with_its_losses() {
    let mut shown = String::new();
    for line in include_str!("cases.txt").lines() {
        let [from, to, text] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let source = Source::new("f", text.replace('⏎', "\n"));
        let (report, to) = (lint(&source, None, Some(dialect(from)), None), dialect(to));
        let notation = Notation::for_file(to, None).expect("a notation");
        let converted = convert(&report, to, notation).expect("a dialect");
        writeln!(shown, "# {line}\n{}", converted.text).expect("a string");
        converted.losses.iter().for_each(|loss| writeln!(shown, "! {loss}").expect("a string"));
    }
    insta::assert_snapshot!(shown);
}

/// A line of `references.txt` is the dialect of a value, that of the new value, the field, and the value.
#[test]
fn every_reference_is_written_as_the_other_program_reads_it() {
    let mut shown = String::new();
    for line in include_str!("references.txt").lines() {
        let [from, to, field, text] = line.splitn(4, ' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let fields = [Field::Command, Field::Args, Field::Cwd, Field::Env, Field::Headers];
        let field = fields.into_iter().find(|it| format!("{it:?}") == field).expect(line);
        let context = |name| ValueContext { dialect: dialect(name), field };
        let translated = translate(text, context(from), context(to));
        writeln!(shown, "{line} => {}", translated.text).expect("a string");
        translated.troubles.iter().for_each(|trouble| writeln!(shown, "  {trouble}").expect("a string"));
    }
    insta::assert_snapshot!(shown);
}
