//! Faults in what a program asks its user for.

use super::sample::{file, process};
use crate::config::{
    dialect::{Dialect, RootKeys},
    finding::{Code, codes},
};

pub(super) fn faults(dialect: &Dialect, whole: &str, add: &mut impl FnMut(&'static Code, String)) {
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
