//! Faults in how a text is written.

use crate::config::{
    dialect::{Dialect, Syntax},
    finding::{Code, codes},
    json::LibertyKind as Kind,
};

pub(super) fn faults(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    let (Syntax::Json(allowed) | Syntax::Either(allowed)) = dialect.syntax else {
        add(&codes::SYNTAX, format!("{whole}\n«»@"));
        return;
    };
    let inner = &whole[1..whole.len() - 1];
    let all = [
        (Kind::ByteOrderMark, &codes::BYTE_ORDER_MARK, format!("«\u{feff}»{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("«// mine»\n{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("{{«/* mine */» {inner}}}")),
        (Kind::HashComment, &codes::JSON_COMMENT, format!("«# mine»\n{whole}")),
        (Kind::TrailingComma, &codes::JSON_COMMA, format!("{{{inner}«,»}}")),
        (Kind::SurplusComma, &codes::JSON_COMMA, format!("{{«,»{inner}}}")),
        (Kind::MissingComma, &codes::JSON_COMMA, format!("{{{inner} «\"»_note\": 1}}")),
        (Kind::SingleQuotes, &codes::JSON_FORM, format!("{{\"_note\": «'a'», {inner}}}")),
        (Kind::BareKey, &codes::JSON_FORM, format!("{{«_note»: 1, {inner}}}")),
        (Kind::BareValue, &codes::JSON_FORM, format!("{{\"_note\": «None», {inner}}}")),
        (Kind::NumberForm, &codes::JSON_FORM, format!("{{\"_note\": «0x10», {inner}}}")),
        (Kind::CurlyQuotes, &codes::JSON_FORM, format!("{{\"_note\": «“a”», {inner}}}")),
        (Kind::Blank, &codes::JSON_BLANK, format!("{{«\u{a0}»{inner}}}")),
        (Kind::UnknownEscape, &codes::JSON_FORM, format!("{{\"_note\": \"C:«\\U»sers\", {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("«{{»{inner}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{\"_note\": «[»1, {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{\"_note\": [1«,» {inner}}}")),
        (Kind::Unclosed, &codes::JSON_UNCLOSED, format!("{{{inner}, \"_note\": [1«}}»")),
        (Kind::WrongBracket, &codes::JSON_UNCLOSED, format!("{{\"_note\": [1«}}», {inner}}}")),
        (Kind::SurplusBracket, &codes::JSON_AFTER, format!("{{\"_note\": [1]«]», {inner}}}")),
        (Kind::BareReference, &codes::JSON_FORM, format!("{{\"_note\": «{{env:A}}», {inner}}}")),
        (Kind::Fragment, &codes::JSON_FORM, format!("«\"_note\"»: 1, {inner}")),
        (Kind::TextAfter, &codes::JSON_AFTER, format!("{whole} «}}»")),
        (Kind::Nothing, &codes::SYNTAX, " «»".into()),
    ];
    for (kind, code, text) in all {
        if dialect.doubtful.contains(&kind) {
            add(&codes::JSON_DOUBTFUL, text);
        } else if !allowed.contains(&kind) {
            add(code, text);
        }
    }
    add(&codes::SYNTAX, format!("{{\"a\": «@», {inner}}}"));
}
