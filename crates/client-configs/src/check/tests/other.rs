//! Faults in inputs, in what a config says about the agent itself, and in the syntax.

use super::sample::{file, process};
use crate::{
    codes,
    dialect::{Dialect, RootKeys, Syntax},
};
use rehearse_document::json::SyntaxExtensionKind as Kind;
use rehearse_report::findings::Code;

pub(super) fn inputs(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    if let RootKeys::Known(keys) | RootKeys::Section(keys) = dialect.root_keys
        && keys.contains(&"inputs")
    {
        let server = process(dialect, "\"env\": {\"A\": «\"${input:there}\"»}");
        let inputs = "\"inputs\": [{\"id\": \"their\"}]}";
        add(&codes::INPUT_UNKNOWN, file(dialect, &[("\"s\"", server)]).replace("}}}}", &format!("}}}}}}, {inputs}")));
        let asked = |input: &str| {
            let server = process(dialect, "\"env\": {\"A\": \"${input:i}\"}");
            file(dialect, &[("\"s\"", server)]).replace("}}}}", &format!("}}}}}}, \"inputs\": [{input}]}}"))
        };
        for input in [
            "«{\"id\": \"i\"}»",
            "{\"id\": \"i\", \"type\": «\"prompt\"», \"description\": \"d\"}",
            "{\"id\": \"i\", \"type\": «\"promptString\"»}",
            "{\"id\": \"i\", \"type\": «\"pickString\"», \"description\": \"d\"}",
            "{\"id\": \"i\", \"type\": «\"command\"»}",
        ] {
            add(&codes::INPUT, asked(input));
        }
        for input in [
            "{\"id\": \"i\", \"type\": \"promptString\", \"description\": «1»}",
            "{\"id\": \"i\", \"type\": \"promptString\", \"description\": \"d\", \"default\": «[]»}",
            "{\"id\": \"i\", \"type\": \"pickString\", \"description\": \"d\", \"options\": «\"a\"»}",
            "{\"id\": \"i\", \"type\": \"pickString\", \"description\": \"d\", \"options\": [\"a\", «1»]}",
            "{\"id\": \"i\", \"type\": \"pickString\", \"description\": \"d\", \"options\": [{\"value\": «1»}]}",
        ] {
            add(&codes::VALUE_TYPE, asked(input));
        }
        add(
            &codes::IGNORED,
            asked("{\"id\": \"i\", \"type\": \"promptString\", \"description\": \"d\", \"password\": «\"true\"»}"),
        );
        add(&codes::VALUE_TYPE, asked("").replace("[]", "«{\"id\": \"i\"}»"));
        let good = "\"type\": \"promptString\", \"description\": \"d\"";
        let typo = format!("{{\"id\": \"i\", {good}, «\"pasword\"»: true}}");
        add(&codes::UNKNOWN_KEY, asked(&typo));
        let twice = format!("{{\"id\": \"i\", {good}}}, {{\"id\": «\"i\"», {good}}}");
        add(&codes::DUPLICATE_KEY, asked(&twice));
        add(&codes::INPUT_UNUSED, format!("{{\"inputs\": [{{\"id\": «\"a\"»}}], {}", &whole[1..]));
    }
}

pub(super) fn agent(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    if !dialect.describes_agent {
        return;
    }
    let and = |text: &str| format!("{}, {text}}}", &whole[..whole.len() - 1]);
    add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}], \"defaults\": {\"model\": «\"ones\"»}"));
    add(&codes::MODEL, and("\"models\": [«{}»]"));
    add(&codes::MODEL, and("\"models\": [{\"ref\": \"one\"}, {\"ref\": «\"one\"»}]"));
    add(&codes::VALUE_TYPE, and("\"models\": «{}»"));
    add(&codes::SUBAGENT, and("«\"subagent\"»: {\"name\": \"a\"}"));
    add(&codes::SUBAGENT, and("\"subagent\": {\"name\": \"a\", \"description\": «\"\"»}"));
    let schema = "\"subagent\": {\"name\": \"a\", \"description\": \"b\", \"outputSchemaPath\": «\"gone.json\"»}";
    add(&codes::SUBAGENT, and(schema));
    add(&codes::VALUE_TYPE, and("\"subagent\": «[]»"));
}

pub(super) fn syntax(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
    let allowed: &[Kind] = match dialect.syntax {
        Syntax::Json(allowed) => allowed,
        Syntax::JsonOrYaml => &[],
        Syntax::Yaml => return add(&codes::SYNTAX, format!("{whole}\n«»@")),
        Syntax::Toml => return,
    };
    let inner = &whole[1..whole.len() - 1];
    let all = [
        (Kind::ByteOrderMark, &codes::BYTE_ORDER_MARK, format!("«\u{feff}»{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("«// mine»\n{whole}")),
        (Kind::Comment, &codes::JSON_COMMENT, format!("{{«/* mine */» {inner}}}")),
        (Kind::TrailingComma, &codes::JSON_COMMA, format!("{{{inner}«,»}}")),
        (Kind::SingleQuotes, &codes::JSON_FORM, format!("{{\"_note\": «'a'», {inner}}}")),
        (Kind::BareKey, &codes::JSON_FORM, format!("{{«_note»: 1, {inner}}}")),
        (Kind::Space, &codes::JSON_FORM, format!("{{«\u{a0}»{inner}}}")),
        (Kind::Empty, &codes::SYNTAX, " «»".into()),
    ];
    for (kind, code, text) in all {
        if dialect.undocumented_syntax.contains(&kind) {
            add(&codes::JSON_UNDOCUMENTED, text);
        } else if !allowed.contains(&kind) {
            add(code, text);
        }
    }
    add(&codes::SYNTAX, format!("{{\"a\": «@», {inner}}}"));
}
