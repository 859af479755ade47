//! Profiles by their names, and what they say of tools.

use std::path::Path;

use serde_json::Value;

use super::Failure;
use rehearse_client::ClientInfo;
use rehearse_diff::Surface;
use rehearse_document::{Source, nearest};
use rehearse_llm::tokens::Encoding;
use rehearse_profile::{Profile, ServerEvidence, builtin, builtins};
use rehearse_protocol::List;
use rehearse_report::profile::{ProfileFinding, RuleLevel};
use rehearse_scenario::Host;

/// The profile of this name. A name with a dot or a separator is a file.
///
/// # Errors
/// There is no such profile, or a file has mistakes.
pub(super) fn profile_named(name: &str) -> Result<Profile, Failure> {
    if let Some(profile) = builtin(name) {
        return Ok(profile.clone());
    }
    if name.contains(['.', '/', '\\']) {
        let source =
            Source::read(Path::new(name)).map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))?;
        return Profile::parse(&source).map_err(|problems| Failure::Invalid(problems.in_source(&source)));
    }
    let known: Vec<_> = builtins().iter().map(|profile| profile.name.as_str()).collect();
    let near = nearest(name, &known).map(|near| format!("; did you mean {near}?"));
    let hint =
        near.unwrap_or_else(|| "; `rehearse check --profile list` prints all, and a file needs its path".to_owned());
    Err(Failure::Usage(format!("there is no profile {name}{hint}")))
}

/// What is known of a server of which only the surface is.
pub(super) fn evidence<'s>(name: Option<&'s str>, surface: &'s Surface) -> ServerEvidence<'s> {
    ServerEvidence { name, count_tokens: token_counter(), ..ServerEvidence::of(surface) }
}

/// Counts tokens, if this program can.
pub(super) fn token_counter() -> Option<fn(&str) -> usize> {
    (!Encoding::ALL.is_empty()).then_some(|text| Encoding::ALL.first().map_or(0, |it| it.count(text)))
}

/// The findings about tools: those that cannot be used, and those of which something is lost.
pub(super) fn tool_findings(profile: &Profile, server: Option<&str>, tools: Vec<Value>) -> Vec<ProfileFinding> {
    let surface = Surface::of_list(List::Tools, tools);
    let findings = profile.judge(&evidence(server, &surface)).findings.into_iter();
    let is_of_tool = |it: &ProfileFinding| it.subject.as_ref().is_some_and(|it| it.starts_with(List::Tools.noun()));
    findings.filter(|it| it.level > RuleLevel::Advice && (it.level == RuleLevel::Blocks || is_of_tool(it))).collect()
}

/// The host of this name, as far as its profile says how it connects.
///
/// # Errors
/// There is no such profile, or it does not say so.
pub(super) fn host_named(name: &str) -> Result<Host, Failure> {
    let profile = profile_named(name)?;
    let Some(client) = &profile.client else {
        let known: Vec<_> = builtins().iter().filter(|it| it.client.is_some()).map(|it| it.name.as_str()).collect();
        let hint = format!("use one of {}", known.join(", "));
        return Err(Failure::Usage(format!(
            "it is not known how {} introduces itself to a server; {hint}",
            profile.title
        )));
    };
    let client_info = ClientInfo { name: client.name.clone(), title: None, version: client.version.clone() };
    let protocol = client.protocol_version.as_deref().map(str::parse).transpose();
    let protocol = protocol.map_err(|error| Failure::Usage(format!("in the profile {name}: {error}")))?;
    Ok(Host {
        client_info,
        capabilities: client.capabilities.clone(),
        protocol,
        transports: profile.transports().map(<[_]>::to_vec),
        call_time: profile.call_time(),
        start_time: profile.start_time(),
    })
}
