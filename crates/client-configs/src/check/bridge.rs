//! `mcp-remote`, by which programs that start servers reach one by its URL (read in geelen/mcp-remote `src/lib/utils.ts`
//! @bef40f8).

use url::Url;

use super::CheckedConfig;
use crate::{At, ConfiguredServer, codes, dialect::Field, policy::Environment, server::Text};
use rehearse_document::{Form, references};
use rehearse_report::findings::Finding;

/// Whether a word is the name of the package.
pub(super) fn is_bridge(word: &At<String>) -> bool {
    word.value == "mcp-remote" || word.value.starts_with("mcp-remote@")
}

pub(super) fn check(checked: &CheckedConfig<'_>, server: &ConfiguredServer, findings: &mut Vec<Finding>) {
    let mut words = server.command.iter().chain(&server.args);
    if !words.any(is_bridge) {
        return;
    }
    let words: Vec<_> = words.collect();
    let is_plain = |word: &&&At<String>| {
        let url = Url::parse(&word.value).ok().filter(|url| url.scheme() == "http");
        url.is_some_and(|url| !matches!(url.host_str(), Some("localhost" | "127.0.0.1")))
    };
    if let Some(url) = words.iter().find(is_plain).filter(|_| words.iter().all(|word| word.value != "--allow-http")) {
        let finding = codes::URL_SCHEME.at(url.span, "mcp-remote refuses http:// except for localhost and 127.0.0.1");
        findings.push(finding.hint("write https://, or add \"--allow-http\" if you trust the network"));
    }
    // It replaces `${NAME}` in headers by what it finds in its environment, and by nothing if there is none.
    let rule = checked.dialect().rule(Field::Args);
    let is_inherited = checked.dialect().policy.environment == Environment::Inherited;
    let is_replaced = rule.forms.contains(&Form::Braced) && rule.holds_in(Field::Args);
    let headers = words.windows(2).filter(|pair| pair[0].value == "--header" && !is_replaced).map(|pair| pair[1]);
    for word in headers {
        for reference in references(&word.value).filter(|it| it.form == Form::Braced) {
            let is_own = server.env.iter().any(|pair| pair.name.value == reference.name);
            let is_of_machine = match checked.machine_for(server) {
                Some(machine) => machine.variable(reference.name).is_some(),
                None => true,
            };
            let is_found = is_own || is_inherited && is_of_machine;
            if !is_found && server.env_file.is_none() {
                let place = checked.part(Text { field: Field::Args, name: "", at: word }, reference.range.clone());
                let message = format!("mcp-remote finds no variable {}, and sends nothing for it", reference.name);
                findings.push(codes::VARIABLE_UNSET.at(place, message).hint("add it to `env` of this server"));
            }
        }
    }
}
