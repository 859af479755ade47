//! Standard input, as a client writes to it.

use std::str;

use super::super::{
    Judge,
    io::{is_part, no_newline, text},
};
use super::completes;
use crate::{Kind, Level, without_mark};

pub(in crate::areas) const JUDGES: &[(&str, Judge)] = &[
    ("client-io.stdin.only-messages", |e, j| {
        for line in e.sent().filter(|it| !it.is_in_batch) {
            // Lines that are part of a message have a row of their own.
            let is_message = line.kind != Kind::Other || str::from_utf8(line.bytes).is_ok_and(is_part);
            let is_blank = line.bytes.iter().all(u8::is_ascii_whitespace);
            j.check(is_message, line, || match is_blank {
                true => "an empty line".to_owned(),
                false => format!("the line {}", text(line)),
            });
            if !is_message && is_blank {
                j.at_level(Level::Derived);
            }
        }
    }),
    ("client-io.stdin.no-embedded-newline", no_newline),
    ("client-io.stdin.no-bom", |e, j| {
        for line in e.sent().filter(|it| !it.is_in_batch) {
            let is_marked = without_mark(line.bytes).len() < line.bytes.len();
            j.check(!is_marked, line, || format!("a byte order mark before {}", text(line)));
        }
    }),
    ("client-io.stdout.split-reads", |e, j| completes(e, j, "pieces")),
    ("client-io.stdout.large-line", |e, j| completes(e, j, "large")),
];
