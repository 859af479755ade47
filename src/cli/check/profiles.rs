//! `check --profile`: whether a server works in hosts, with providers and in directories.

use url::Url;

use crate::cli::{
    Failure,
    mcp::target::Server,
    output,
    profile::{evidence, profile_named},
};
use rehearse_check::VersionTraces;
use rehearse_client::Target;
use rehearse_diff::read_surface;
use rehearse_profile::{Profile, ServerEvidence, builtins, read_traffic};
use rehearse_protocol::Era;
use rehearse_report::{Format, check::CheckedServer, profile::ProfileFit};

/// A profile, and whether the check fails if it is blocked.
pub(super) struct SelectedProfile {
    profile: Profile,
    is_required: bool,
}

/// The profiles of these names. A name with a dot or a separator is a file.
///
/// # Errors
/// There is no such profile, or a file has mistakes.
pub(super) fn select(names: &[String]) -> Result<Vec<SelectedProfile>, Failure> {
    let mut selected: Vec<SelectedProfile> = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => {
                let others = builtins().iter().filter(|it| names.iter().all(|name| *name != it.name));
                selected.extend(others.map(|it| SelectedProfile { profile: it.clone(), is_required: false }));
            }
            name => selected.push(SelectedProfile { profile: profile_named(name)?, is_required: true }),
        }
    }
    Ok(selected)
}

/// Prints the profiles that come with the program.
pub(super) fn list(format: Format) -> Result<(), Failure> {
    let entry = |it: &Profile| serde_json::json!({ "name": it.name, "title": it.title, "kind": it.kind.as_str(), "rules": it.rule_count() });
    let line =
        |it: &Profile| format!("{:20} {:10} {:3} rules   {}\n", it.name, it.kind.as_str(), it.rule_count(), it.title);
    let text: String = builtins().iter().map(line).collect();
    output::write_list("--profile list", format, &text, &builtins().iter().map(entry).collect())
}

/// What the profiles say of a server that was checked.
pub(super) fn judge(
    profiles: &[SelectedProfile],
    deployed_at: Option<&Url>,
    is_of_all_versions: bool,
    server: &Server,
    checked: &CheckedServer,
    versions: &[VersionTraces],
) -> Vec<ProfileFit> {
    // Most hosts still speak a version with a handshake.
    let legacy = versions.iter().filter(|it| it.version.era() == Era::Legacy).max_by_key(|it| it.version);
    let Some(shown) = legacy.or_else(|| versions.iter().max_by_key(|it| it.version)).filter(|_| !profiles.is_empty())
    else {
        return Vec::new();
    };
    let mut surface = read_surface(&shown.traces);
    if is_of_all_versions {
        surface.protocol_versions = Some(checked.versions.iter().map(|it| it.version.to_string()).collect());
    }
    let traffic = read_traffic(versions.iter().flat_map(|it| &it.traces));
    let url = match &server.resolved.config.target {
        Target::Stdio(_) => None,
        target => target.endpoint().and_then(|endpoint| endpoint.url.parse().ok()),
    };
    let evidence = ServerEvidence {
        transport: Some(checked.transport),
        url: url.as_ref(),
        deployed_at,
        traffic: Some(&traffic),
        ..evidence(Some(server.name()).filter(|_| !server.is_from_command_line()), &surface)
    };
    let judge =
        |selected: &SelectedProfile| ProfileFit { required: selected.is_required, ..selected.profile.judge(&evidence) };
    profiles.iter().map(judge).collect()
}
