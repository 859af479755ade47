//! The servers of a command: from configs, or from the command line.

pub(crate) mod authorization;
mod command_line_server;
pub(crate) mod connection;
mod token;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use self::token::TokenArgs;

use self::command_line_server::{ServerArgs, ServersArgs};
use crate::cli::{
    Failure,
    secrets::Secrets,
    sources::SourceArgs,
    sources::{
        MOST_SHOWN, check_readable, diagnostics, folder,
        resolved_server::{ResolvedServer, prepare},
        warnings,
    },
    style::{self, STRONG},
    usage_hint::command_hint,
};
use rehearse_check::target_text;
use rehearse_client::Timeouts;
use rehearse_client_configs::{
    Machine, Variables, codes,
    dialect::{Detected, Dialect, by_name},
    policy::{ApprovalRule, Naming, Policy},
    server,
    sources::{Effective, File, Kept},
};
use rehearse_document::{Diagnostics, Source, nearest};
use rehearse_hub::configured::server_params;
use rehearse_report::findings::{Finding, Severity};
use rehearse_system::program::quoted;

/// The dialect whose commands have fixed output.
const CPE: &str = "cpe";

/// The policy for a server from the command line.
static COMMAND_LINE_POLICY: Policy = Policy { naming: Naming::Bare, approval: ApprovalRule::Never, ..Policy::USUAL };

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    ad_hoc: ServerArgs,
    #[command(flatten)]
    token: TokenArgs,
}

/// The same, of several servers.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    sources: SourceArgs,
    #[command(flatten)]
    ad_hoc: ServersArgs,
    #[command(flatten)]
    token: TokenArgs,
}

/// Selects servers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Select<'a> {
    Named(&'a str),
    /// All enabled servers.
    Enabled,
    All,
}

impl<'a> Select<'a> {
    pub(super) fn from_name(name: Option<&'a str>) -> Select<'a> {
        name.map_or(Select::Enabled, Select::Named)
    }

    fn name(self) -> Option<&'a str> {
        match self {
            Select::Named(name) => Some(name),
            Select::Enabled | Select::All => None,
        }
    }
}

/// A server that can be connected to.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) written: server::ConfiguredServer,
    pub(crate) policy: &'static Policy,
    pub(crate) resolved: ResolvedServer,
    /// The options of the command line that name its config.
    pub(crate) sources: Vec<String>,
}

/// All servers, and the secrets of their files.
#[derive(Debug)]
pub(super) struct FoundServers {
    pub(super) servers: Vec<FoundServer>,
    pub(super) secrets: Vec<String>,
    /// Whether one of the files is CPE's.
    pub(super) has_cpe: bool,
}

/// A server, enabled or not.
#[derive(Debug)]
pub(super) struct FoundServer {
    pub(super) written: server::ConfiguredServer,
    /// `None` for the server of a command line.
    pub(super) kept: Option<Kept>,
}

impl Server {
    pub(crate) fn name(&self) -> &str {
        &self.written.name.value
    }

    /// Whether the server is in a config of CPE.
    pub(super) fn is_of_cpe(&self) -> bool {
        by_name(CPE).is_some_and(|cpe| std::ptr::eq(self.policy, &raw const cpe.policy))
    }

    /// Whether the server is described on the command line.
    pub(crate) fn is_from_command_line(&self) -> bool {
        std::ptr::eq(self.policy, &COMMAND_LINE_POLICY)
    }

    /// The options of a command line that select it, without its headers and variables.
    pub(crate) fn options(&self) -> Vec<String> {
        let described = match &self.resolved.config.target {
            _ if !self.is_from_command_line() => return self.sources.clone(),
            rehearse_client::Target::Stdio(spec) => {
                let words = [&spec.program].into_iter().chain(&spec.args);
                words.map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
            }
            target => target_text(target),
        };
        vec![format!("--{}", self.resolved.config.target.transport()), described]
    }
}

impl TargetsArgs {
    /// The servers of the command line, or those of these names, or all enabled servers.
    ///
    /// # Errors
    /// A file cannot be read, or there is no such server.
    pub(crate) fn selected(&self, names: &[String]) -> Result<Vec<Server>, Failure> {
        let target = |ad_hoc| TargetArgs { sources: self.sources.clone(), ad_hoc, ..TargetArgs::default() };
        let described = self.ad_hoc.each().map_err(Failure::Usage)?;
        if !described.is_empty() && !names.is_empty() {
            let hint = self.ad_hoc.bare_command().map(|command| joined_command(command, names));
            return Err(Failure::Usage(
                hint.unwrap_or_else(|| "name servers of a config, or describe servers, not both".to_owned()),
            ));
        }
        let mut servers = Vec::new();
        for ad_hoc in described {
            servers.extend(target(ad_hoc).servers(Select::Enabled, false)?);
        }
        if servers.is_empty() {
            let selects = names.iter().map(|name| Select::Named(name));
            let selects: Vec<_> = if names.is_empty() { vec![Select::Enabled] } else { selects.collect() };
            servers = target(ServerArgs::default()).of_config(&selects, false)?;
        }
        self.token.add_to(servers)
    }

    /// The token of the command line.
    pub(crate) fn token(&self) -> Option<&str> {
        self.token.value()
    }

    /// Whether the command line describes a server or names a config.
    pub(crate) fn is_described(&self) -> bool {
        self.ad_hoc.each().is_ok_and(|each| !each.is_empty())
    }

    /// The headers and the variables of the command line.
    pub(crate) fn pairs(&self) -> (&[String], &[String]) {
        (&self.ad_hoc.headers, &self.ad_hoc.env)
    }
}

impl TargetArgs {
    /// The headers, the variables and the token of the command line, each with its option.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let headers = self.ad_hoc.headers.iter().map(|header| ("--header", header.clone()));
        let env = self.ad_hoc.env.iter().map(|variable| ("--env", variable.clone()));
        headers.chain(env).chain(self.token.value().map(|_| ("--token", "TOKEN".to_owned())))
    }

    /// The server of a URL, or of a command on stdio, which needs neither header nor token.
    pub(crate) fn described(text: &str, headers: &[String], token: &TokenArgs) -> TargetArgs {
        let ad_hoc = ServerArgs::described(text, headers);
        let token = if ad_hoc.is_url() { token.clone() } else { TokenArgs::default() };
        TargetArgs { ad_hoc, token, ..TargetArgs::default() }
    }

    /// The servers of these configs.
    pub(crate) fn of_sources(sources: &SourceArgs) -> TargetArgs {
        TargetArgs { sources: sources.clone(), ..TargetArgs::default() }
    }

    /// The servers of one config of this program.
    pub(crate) fn for_file(path: &Path, dialect: Option<&'static Dialect>) -> TargetArgs {
        TargetArgs::of_sources(&SourceArgs::for_file(path, dialect))
    }

    /// What is wrong if the words of a command line belong to the command of a server: the first is a file.
    pub(super) fn unquoted(&self, words: &[String]) -> Option<String> {
        let command = self.ad_hoc.bare_command()?;
        let file = Path::new(words.first()?);
        (file.extension().is_some() && file.is_file()).then(|| joined_command(command, words))
    }

    /// The only server; `which` are the arguments that describe one.
    ///
    /// # Errors
    /// As [`TargetArgs::servers`]; or there is no server, or there are several.
    pub(crate) fn one(&self, which: &str) -> Result<Server, Failure> {
        let mut servers = self.servers(Select::Enabled, false)?;
        check_single(&servers, which)?;
        servers.pop().ok_or_else(|| Failure::Usage(format!("no server: describe one with {which}")))
    }

    /// The program or the URL of the server that the command line describes.
    ///
    /// # Errors
    /// The description is malformed.
    pub(crate) fn described_command(&self) -> Result<Option<String>, String> {
        let at = self.ad_hoc.server()?.and_then(|server| server.command.or(server.url));
        Ok(at.map(|at| at.value))
    }

    /// The named config with the highest precedence.
    pub(crate) fn named_file(&self) -> Option<&Path> {
        self.sources.named_file()
    }

    /// All servers, in order.
    ///
    /// # Errors
    /// A named file cannot be read.
    pub(super) fn all(&self, show_secrets: bool) -> Result<FoundServers, Failure> {
        if let Some(written) = self.ad_hoc.server().map_err(Failure::Usage)? {
            return Ok(FoundServers {
                servers: vec![FoundServer { written, kept: None }],
                secrets: Vec::new(),
                has_cpe: false,
            });
        }
        let effective = self.effective(&Machine::here(), show_secrets)?;
        warn_of_surprises(&effective);
        for unread in &effective.unread {
            style::warn(&format!("the server '{}' is ignored: {}, {}", unread.name, unread.code.name, unread.origin));
        }
        for kept in &effective.servers {
            let (name, file) = (&kept.server.name.value, &effective.files[kept.file]);
            if errors(file, name).next().is_some() {
                let found = diagnostics(errors(file, name), &file.report, show_secrets);
                style::warn(&format!("MCP server '{name}' cannot be used: {}", joined(&found)));
            }
        }
        let secrets = effective.secrets().map(str::to_owned).collect();
        let dialects = effective.files.iter().filter_map(|file| Some(file.report.detected.as_ref()?.dialect));
        let has_cpe = self.sources.dialect().into_iter().chain(dialects).any(|dialect| dialect.name == CPE);
        let found = |kept: Kept| FoundServer { written: kept.server.clone(), kept: Some(kept) };
        Ok(FoundServers { servers: effective.servers.into_iter().map(found).collect(), secrets, has_cpe })
    }

    /// The selected servers, in order; may be empty.
    ///
    /// # Errors
    /// The server is unknown or disabled; a named file cannot be read; or the named server, or a server in a named file,
    /// has errors.
    pub(super) fn servers(&self, select: Select<'_>, show_secrets: bool) -> Result<Vec<Server>, Failure> {
        let name = select.name();
        if let Some(written) = self.ad_hoc.server().map_err(Failure::Usage)? {
            let server = command_line_server(written, show_secrets)?;
            return match name {
                Some(name) if name != server.name() => {
                    let hint = self.ad_hoc.bare_command().map(|command| joined_command(command, &[name.to_owned()]));
                    Err(Failure::Usage(hint.unwrap_or_else(|| {
                        format!("unknown server {name:?}; the command line defines {:?}", server.name())
                    })))
                }
                _ => self.token.add_to(vec![server]),
            };
        }
        self.token.add_to(self.of_config(&[select], show_secrets)?)
    }

    /// The selected servers of configs.
    fn of_config(&self, selects: &[Select<'_>], show_secrets: bool) -> Result<Vec<Server>, Failure> {
        let machine = Machine::here();
        let effective = self.effective(&machine, show_secrets)?;
        warn_of_surprises(&effective);
        let mut servers = Vec::new();
        for select in selects {
            servers.extend(selected(&effective, &machine, *select, |file| file.precedence.is_named(), show_secrets)?);
        }
        let is_off = |kept: &Kept| !kept.server.is_enabled();
        if servers.is_empty() && !effective.servers.is_empty() && effective.servers.iter().all(is_off) {
            let name = |kept: &Kept| format!("{} ({})", kept.server.name.value, kept.origin());
            let names: Vec<_> = effective.servers.iter().take(MOST_SHOWN).map(name).collect();
            return Err(Failure::AllDisabled(names.join(", ")));
        }
        servers.iter_mut().for_each(|server| server.sources = self.sources.words());
        Ok(servers)
    }

    /// All valid servers, enabled or not, and their files. Files that have changed since `before` must have no errors.
    ///
    /// # Errors
    /// As [`TargetArgs::servers`]; or the errors of a changed file.
    pub(crate) fn read(&self, before: Option<&Files>, show_secrets: bool) -> Result<(Vec<Server>, Files), Failure> {
        if let Some(written) = self.ad_hoc.server().map_err(Failure::Usage)? {
            let servers = vec![command_line_server(written, show_secrets)?];
            return Ok((self.token.add_to(servers)?, Files::default()));
        }
        let machine = Machine::here();
        let effective = self.effective(&machine, show_secrets)?;
        if before.is_none() {
            warn_of_surprises(&effective);
        }
        let files = Files::new(&effective);
        let has_changed = |file: &File| before.is_some_and(|before| before.has_changed(file));
        let wrong = effective.files.iter().filter(|file| has_changed(file)).flat_map(|file| {
            let errors = file.report.findings.iter().filter(|finding| finding.code.severity() == Severity::Error);
            diagnostics(errors, &file.report, show_secrets).0
        });
        let wrong: Vec<_> = wrong.collect();
        if !wrong.is_empty() {
            return Err(Failure::Invalid(Diagnostics(wrong)));
        }
        let is_strict = |file: &File| file.precedence.is_named() || has_changed(file);
        let mut servers = selected(&effective, &machine, Select::All, is_strict, show_secrets)?;
        servers.iter_mut().for_each(|server| server.sources = self.sources.words());
        Ok((self.token.add_to(servers)?, files))
    }

    /// Loads the configs, without the default files that their programs reject.
    ///
    /// # Errors
    /// A named file cannot be read, or its program rejects it.
    fn effective(&self, machine: &Machine, show_secrets: bool) -> Result<Effective, Failure> {
        let mut effective = self.sources.load(machine)?;
        check_readable(&effective, show_secrets)?;
        let rejections = |file: &File| diagnostics(file.report.rejections(), &file.report, show_secrets);
        let is_rejected = |file: &File| file.report.is_readable && file.report.rejections().next().is_some();
        if let Some(file) = effective.files.iter().find(|file| file.precedence.is_named() && is_rejected(file)) {
            return Err(Failure::Invalid(rejections(file)));
        }
        warnings(&effective, show_secrets).iter().for_each(|line| style::warn(line));
        for file in effective.files.iter().filter(|file| is_rejected(file) && file.is_whole()) {
            style::warn(&format!("{} is ignored: {}", file.report.source.name, joined(&rejections(file))));
        }
        effective.leave_out(is_rejected);
        Ok(effective)
    }
}

/// Says for which program a file is read, if that is a guess, and which servers only look switched off.
fn warn_of_surprises(effective: &Effective) {
    for file in &effective.files {
        let is_on = |finding: &&Finding| finding.code.name == codes::NOT_DISABLED.name;
        for finding in file.report.findings.iter().filter(is_on) {
            let (line, column) = file.report.source.position(finding.problem.span.start);
            let (name, hint) = (&file.report.source.name, finding.problem.hint.as_deref().unwrap_or_default());
            style::warn(&format!("{name}:{line}:{column}: {}; {hint}", finding.problem.message));
        }
        if let Some(Detected { dialect, is_guess: true, .. }) = &file.report.detected {
            let name = &file.report.source.name;
            style::warn(&format!("{name} is read as a config of {}, a guess: --dialect says which", dialect.program));
        }
    }
}

/// The files of servers, including missing ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(BTreeMap<PathBuf, Option<Arc<Source>>>);

impl Files {
    fn new(effective: &Effective) -> Files {
        let read =
            effective.files.iter().filter_map(|file| Some((file.path.clone()?, Some(file.report.source.clone()))));
        let missing = effective.missing.iter().map(|missing| (missing.path.clone(), None));
        Files(missing.chain(read).collect())
    }

    /// Whether the content of a file has changed.
    fn has_changed(&self, file: &File) -> bool {
        let known = file.path.as_ref().map(|path| self.0.get(path).and_then(Option::as_ref));
        known.is_some_and(|known| known.is_none_or(|known| known.text != file.report.source.text))
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }
}

/// The selected servers. A server with errors is an error if its file `is_strict`, else it is skipped.
///
/// # Errors
/// As [`TargetArgs::servers`].
fn selected(
    effective: &Effective,
    machine: &Machine,
    select: Select<'_>,
    is_strict: impl Fn(&File) -> bool,
    show_secrets: bool,
) -> Result<Vec<Server>, Failure> {
    let name = select.name();
    let (mut servers, mut problems) = (Vec::new(), Vec::new());
    for kept in &effective.servers {
        let is_selected = match select {
            Select::Named(name) => name == kept.server.name.value,
            Select::Enabled => kept.server.is_enabled(),
            Select::All => true,
        };
        if !is_selected {
            continue;
        }
        if name.is_some() && !kept.server.is_enabled() {
            return Err(Failure::Usage(format!(
                "the server {:?} is disabled in {}",
                kept.server.name.value,
                kept.origin()
            )));
        }
        let file = &effective.files[kept.file];
        match resolve_server(kept, file, machine, show_secrets) {
            Ok(server) => servers.push(server),
            Err(found) if name.is_some() || (is_strict(file) && kept.server.is_enabled()) => {
                problems.extend(found.0);
            }
            Err(found) => warn_skipped(&kept.server.name.value, &found),
        }
    }
    for unread in effective.unread.iter().filter(|unread| name.is_none_or(|name| name == unread.name)) {
        let Some(file) = effective.files.iter().find(|file| Arc::ptr_eq(&file.report.source, &unread.origin.source))
        else {
            continue;
        };
        let found = diagnostics(errors(file, &unread.name), &file.report, show_secrets);
        match name.is_some() || is_strict(file) {
            true => problems.extend(found.0),
            false => warn_skipped(&unread.name, &found),
        }
    }
    match (name, servers.is_empty()) {
        _ if !problems.is_empty() => Err(Failure::Invalid(Diagnostics(problems))),
        (Some(name), true) => Err(not_found(name, effective)),
        _ => Ok(servers),
    }
}

/// What is wrong with a command whose words are not one argument.
fn joined_command(command: &str, names: &[String]) -> String {
    let line = format!("{command} {}", names.join(" "));
    format!("--stdio takes one argument, the whole command: write `--stdio '{line}'`, or at the end `-- {line}`")
}

fn not_found(name: &str, effective: &Effective) -> Failure {
    if effective.servers.is_empty() {
        return Failure::Usage(format!("no MCP servers configured; {}", connection_hint(name)));
    }
    if name.contains("://") {
        return Failure::Usage(format!("a URL is not a server name; {}", connection_hint(name)));
    }
    let names: Vec<_> = effective.servers.iter().map(|kept| &*kept.server.name.value).collect();
    let hint = match nearest(name, &names) {
        Some(near) => format!("did you mean '{near}'?"),
        None => command_hint(name).unwrap_or_else(|| format!("servers are {}", names.join(", "))),
    };
    Failure::Usage(format!("server '{name}' not found in configuration; {hint}"))
}

/// A hint for a name that is not configured.
fn connection_hint(name: &str) -> String {
    match name.split_once("://") {
        Some(("ws" | "wss", _)) => "use --ws URL".to_owned(),
        Some(_) => "use --http URL or --sse URL".to_owned(),
        None => command_hint(name).unwrap_or_else(|| WITHOUT_SERVERS.to_owned()),
    }
}

/// The hint if there are no servers.
const WITHOUT_SERVERS: &str = "--http URL or -- COMMAND connects without a config, --mcp-config FILE uses a config file; \
                               see `rehearse config show`";

/// Prints that no servers are configured.
pub(crate) fn print_no_servers() {
    style::print("No MCP servers configured.\n");
    print_server_hint();
}

/// Prints the hint if there are no servers.
pub(super) fn print_server_hint() {
    style::print(&format!("{STRONG}hint:{STRONG:#} {WITHOUT_SERVERS}\n"));
}

/// The errors of a server.
fn errors<'f>(file: &'f File, name: &str) -> impl Iterator<Item = &'f Finding> {
    let is_error =
        move |finding: &&Finding| finding.code.severity() == Severity::Error && finding.server.as_deref() == Some(name);
    file.report.findings.iter().filter(is_error)
}

fn resolve_server(kept: &Kept, file: &File, machine: &Machine, show_secrets: bool) -> Result<Server, Diagnostics> {
    let Kept { server, dialect, .. } = kept;
    if errors(file, &server.name.value).next().is_some() {
        return Err(diagnostics(errors(file, &server.name.value), &file.report, show_secrets));
    }
    let folder = folder(file, machine);
    let resolved = prepare(server, dialect, &machine.variables_in(&folder), &folder);
    let resolved = resolved.map_err(|findings| diagnostics(findings.iter(), &file.report, show_secrets))?;
    Ok(server_of(server.clone(), dialect, resolved, show_secrets))
}

fn server_of(
    written: server::ConfiguredServer,
    dialect: &'static Dialect,
    resolved: ResolvedServer,
    show_secrets: bool,
) -> Server {
    let secrets = if show_secrets { Secrets::default() } else { resolved.secrets.remembered() };
    let resolved = ResolvedServer { secrets, ..resolved };
    Server { written, policy: &dialect.policy, resolved, sources: Vec::new() }
}

fn command_line_server(written: server::ConfiguredServer, show_secrets: bool) -> Result<Server, Failure> {
    let folder = std::env::current_dir().unwrap_or_default();
    let config = server_params(&written, &COMMAND_LINE_POLICY, Timeouts::default(), &folder)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let secrets = match show_secrets {
        true => Secrets::default(),
        false => Secrets::from_server(&written, &written, &config, &Variables::default()).remembered(),
    };
    config.target.check().map_err(|error| Failure::Usage(secrets.hidden(&error.to_string())))?;
    Ok(Server {
        written,
        policy: &COMMAND_LINE_POLICY,
        resolved: ResolvedServer { config, oauth: server::OAuth::default(), secrets },
        sources: Vec::new(),
    })
}

fn warn_skipped(name: &str, problems: &Diagnostics) {
    style::warn(&format!("MCP server '{name}' is ignored: {}", joined(problems)));
}

fn joined(problems: &Diagnostics) -> String {
    let what: Vec<_> = problems.0.iter().map(ToString::to_string).collect();
    what.join("; ")
}

/// Checks that there is at most one server.
///
/// # Errors
/// There are several; `which` is the argument that selects one.
pub(super) fn check_single(servers: &[Server], which: &str) -> Result<(), Failure> {
    match servers {
        [] | [_] => Ok(()),
        several => {
            let names: Vec<_> = several.iter().map(Server::name).collect();
            Err(Failure::Usage(format!(
                "several servers are configured; select one with {which}: {}",
                names.join(", ")
            )))
        }
    }
}
