//! `--connect`: the servers that release files describe, or that of `--stdio`.

use super::{checked_file::CheckedFile, connect::Candidate};
use crate::cli::{
    Exit, Failure,
    mcp::{
        self,
        target::{TargetArgs, TokenArgs, connection::ConnectionArgs},
    },
    secrets::Secrets,
    sources::resolved_server::ResolvedServer,
};
use rehearse_client::Timeouts;
use rehearse_client_configs::{
    Machine, Variables, codes,
    policy::Policy,
    server::{OAuth, ToolFilter},
};
use rehearse_hub::configured::server_params;
use rehearse_protocol::List;
use rehearse_release::{Offered, Start, compare, starts};
use rehearse_report::findings::{Contact, Server};

/// Starts the server once, and compares every release file with it. `Some` is the exit code after a failure that has been
/// printed.
///
/// # Errors
/// There is no release file, or the server cannot be started.
pub(super) fn compare_all(checked: &mut [CheckedFile], command: &str) -> Result<Option<Exit>, Failure> {
    if checked.iter().all(|checked| checked.release.is_none()) {
        let text = "--stdio names the server of a release file: name a server.json or a manifest.json";
        return Err(Failure::Usage(text.to_owned()));
    }
    let connection = ConnectionArgs::default();
    let servers = mcp::servers(&TargetArgs::described(command, &[], &TokenArgs::default()), &connection, None)?;
    let surface = match mcp::surface_of(&connection, &servers)? {
        Ok(surface) => surface,
        Err(exit) => return Ok(Some(exit)),
    };
    let info =
        |key: &str| surface.server.as_ref().and_then(|server| server[key].as_str()).unwrap_or_default().to_owned();
    let names = |list: List| {
        let names = surface.list(list).into_iter().flatten().filter_map(|item| item["name"].as_str());
        names.map(ToOwned::to_owned).collect()
    };
    let (name, version) = (info("name"), info("version"));
    let offered = Offered { name, version, tools: names(List::Tools), prompts: names(List::Prompts) };
    for CheckedFile { file, release, .. } in checked {
        if let Some((release, root)) = release {
            file.add(compare(*release, root, &offered));
        }
    }
    Ok(None)
}

/// The servers that the named release files without errors describe, which become servers of the files.
pub(super) fn plan(checked: &mut [CheckedFile]) -> Vec<Candidate> {
    let (mut plan, machine) = (Vec::new(), Machine::here());
    for (number, CheckedFile { file, release, is_to_start, folder, .. }) in checked.iter_mut().enumerate() {
        let Some((release, root)) = release.as_ref().filter(|_| *is_to_start) else { continue };
        for Start { name, transport, server } in
            starts(*release, root, &file.source, &machine.directory.join(folder), &machine)
        {
            let prepared = server.and_then(|server| {
                let config = server_params(&server, &Policy::USUAL, Timeouts::default(), &machine.directory);
                let config = config.map_err(|error| vec![codes::CONNECT.at(name.span, error.to_string())])?;
                let secrets = Secrets::from_server(&server, &server, &config, &Variables::default());
                Ok(ResolvedServer { config, oauth: OAuth::default(), secrets })
            });
            plan.push(Candidate {
                file: number,
                server: file.servers.len(),
                config: prepared,
                name: name.clone(),
                tools: ToolFilter::default(),
                others: Vec::new(),
                policy: &Policy::USUAL,
                profile: None,
                release: Some((*release, root.clone(), file.source.clone())),
            });
            let (name, transport, contact) = (name.value, transport.as_str(), Contact::NotTried);
            file.servers.push(Server { name, project: None, transport, is_enabled: true, contact });
        }
    }
    plan
}
