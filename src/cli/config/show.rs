//! `rehearse config show`: the effective servers, and the origin of each value.

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::{Value as Json, json};

use crate::cli::{
    Exit, Failure, Format, output,
    sources::{MOST_SHOWN, SourceArgs, check_readable, warnings},
    style::{self, BAD, DIM, DOUBTFUL, STRONG, printable},
};
use rehearse_client_configs::{
    Machine, Variables, resolve,
    secret::{KnownSecrets, mask},
    sources::{Effective, File, Kept, Missing, Setting, settings},
};
use rehearse_hub::configured::default_timeouts;
use rehearse_report::findings::Severity;

const EXAMPLES: &str = "\
Examples:
  rehearse config show                            the servers of all clients here
  rehearse config show --dialect cursor           the servers of one client
  rehearse config show --mcp-config team.json --mcp-config mine.json --format json

If two sources define a server with the same name, the first in this list wins, without merging:
  1. the variable CODE_AGENT_MCP_SERVERS, a JSON array of servers
  2. --mcp-config, the last one first
  3. --config
  4. the file in the variable CODE_AGENT_MCP_CONFIG_PATH
  5. without these: the files of all clients in this folder, then in the home folder
With --dialect both variables are used only for the client code_agent.";

/// The maximum width of the column of values. Longer values shift only their own origin.
const WIDEST: usize = 48;

/// Print the effective servers and where each value comes from
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// Output format: human or json
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "human", hide_possible_values = true)]
    format: Format,
    /// Show tokens and passwords
    #[arg(long)]
    show_secrets: bool,
    /// Expand the variables in values
    #[arg(long)]
    resolve: bool,
    /// Also print the files that were searched
    #[arg(short, long)]
    verbose: bool,
    #[command(flatten)]
    sources: SourceArgs,
}

pub(super) fn run(args: &ShowArgs) -> Result<Exit, Failure> {
    let machine = Machine::here();
    let mut effective = args.sources.load(&machine)?;
    check_readable(&effective, args.show_secrets)?;
    let mut warnings = warnings(&effective, args.show_secrets);
    if args.resolve {
        warnings.extend(replace_variables(&mut effective, machine.variables_in(&machine.directory), args.show_secrets));
    }
    let text = match args.format {
        Format::Human => human(&effective, args),
        Format::Json => format!("{:#}\n", json(&effective, args.show_secrets)),
    };
    output::write_styled(text.as_bytes())?;
    let warning = |line: &String| format!("{DOUBTFUL}warning:{DOUBTFUL:#} {}\n", printable(line));
    style::print(&warnings.iter().map(warning).collect::<String>());
    Ok(Exit::Success)
}

/// Replaces the variables in all servers, and returns a message for each variable without a value. A server with such a
/// variable is not changed.
///
/// The value of a secret variable is masked, whatever key it is used in.
fn replace_variables(effective: &mut Effective, mut variables: Variables, show_secrets: bool) -> Vec<String> {
    if !show_secrets {
        variables.iter_mut().for_each(|(name, value)| *value = mask(name, value).into_owned());
    }
    let mut lines = Vec::new();
    for kept in &mut effective.servers {
        match resolve(&kept.server, kept.dialect, &variables) {
            Ok(server) => kept.server = server,
            Err(unresolved) => lines.extend(unresolved.iter().take(MOST_SHOWN).map(|it| {
                let (line, column) = kept.server.source.position(it.span.start);
                let (file, what) = (&kept.server.source.name, it.describe(kept.dialect.program));
                format!("{file}:{line}:{column}: {what}")
            })),
        }
    }
    lines
}

/// The secrets of all files; `None` if secrets are shown.
fn known_secrets(effective: &Effective, show_secrets: bool) -> Option<KnownSecrets> {
    (!show_secrets).then(|| KnownSecrets::new(effective.secrets()))
}

/// The settings of a server, with the defaults of its program.
fn all_settings(kept: &Kept) -> Vec<Setting> {
    settings(kept, default_timeouts(kept.dialect).call)
}

fn value(setting: &Setting, known: Option<&KnownSecrets>) -> Json {
    known.map_or_else(|| setting.value.clone(), |known| setting.masked(known).into_owned())
}

fn origin(setting: &Setting) -> String {
    setting.origin.as_ref().map_or_else(|| "default".to_owned(), ToString::to_string)
}

/// A name with secrets masked.
fn masked_name<'n>(name: &'n str, known: Option<&KnownSecrets>) -> Cow<'n, str> {
    known.map_or_else(|| name.into(), |known| known.mask(mask("", name)))
}

fn json(effective: &Effective, show_secrets: bool) -> Json {
    let known = known_secrets(effective, show_secrets);
    let server = |kept: &Kept| {
        let server = &kept.server;
        let values = all_settings(kept).into_iter().map(|setting| {
            let shown = json!({ "value": value(&setting, known.as_ref()), "origin": origin(&setting) });
            (masked_name(&setting.key(), known.as_ref()).into_owned(), shown)
        });
        json!({
            "name": masked_name(&server.name.value, known.as_ref()),
            "transport": server.transport.value,
            "dialect": kept.dialect.name,
            "origin": kept.origin().to_string(),
            "enabled": kept.server.is_enabled(),
            "values": values.collect::<serde_json::Map<_, _>>(),
        })
    };
    let file = |file: &File| {
        let report = &file.report;
        json!({
            "name": report.source.name,
            "path": file.path,
            "source": file.precedence.as_str(),
            "dialect": report.detected.as_ref().map(|detected| detected.dialect.name),
            "found": true,
            "errors": report.count(Severity::Error),
            "warnings": report.count(Severity::Warning),
            "advice": report.count(Severity::Advice),
        })
    };
    let missing = |missing: &Missing| {
        let error = missing.error.as_ref().map(ToString::to_string);
        json!({
            "name": missing.name,
            "path": missing.path,
            "source": missing.precedence.as_str(),
            "found": false,
            "error": error,
        })
    };
    let lost = effective.lost.iter();
    let unread = effective.unread.iter();
    json!({
        "servers": effective.servers.iter().map(server).collect::<Vec<_>>(),
        "lost": lost.map(|lost| json!({
            "name": masked_name(&lost.name, known.as_ref()),
            "origin": lost.origin.to_string(),
            "to": lost.to.to_string(),
        })).collect::<Vec<_>>(),
        "unread": unread.map(|unread| json!({
            "name": masked_name(&unread.name, known.as_ref()),
            "origin": unread.origin.to_string(),
            "code": unread.code.name,
        })).collect::<Vec<_>>(),
        "files": effective.files.iter().map(file).chain(effective.missing.iter().map(missing)).collect::<Vec<_>>(),
    })
}

fn human(effective: &Effective, args: &ShowArgs) -> String {
    let mut out = String::new();
    let known = known_secrets(effective, args.show_secrets);
    for kept in &effective.servers {
        show_server(&mut out, kept, known.as_ref());
    }
    let others = effective.unread.iter().map(|unread| {
        let code = unread.code;
        (&unread.name, &unread.origin, format!("{BAD}not understood:{BAD:#} {}, {}", code.name, code.title))
    });
    let lost = effective.lost.iter().map(|lost| (&lost.name, &lost.origin, format!("lost to {}", lost.to)));
    let others: Vec<_> = others
        .chain(lost)
        .map(|(name, origin, fate)| (masked_name(name, known.as_ref()), origin.to_string(), fate))
        .collect();
    let width = others.iter().map(|(name, ..)| columns(&printable(name))).max().unwrap_or_default();
    let second = others.iter().map(|(_, origin, _)| columns(origin)).max().unwrap_or_default();
    for (name, origin, fate) in &others {
        let name = padded(&printable(name), width);
        out.push_str(&format!("{name}  {DIM}{}{DIM:#}  {fate}\n", padded(&printable(origin), second)));
    }
    if !others.is_empty() {
        out.push('\n');
    }
    if args.verbose {
        searched_files(&mut out, effective);
    }
    out.push_str(&summary(effective));
    out
}

fn show_server(out: &mut String, kept: &Kept, known: Option<&KnownSecrets>) {
    let name = masked_name(&kept.server.name.value, known);
    let name = printable(&name);
    let off = if kept.server.is_enabled() { String::new() } else { format!("  {DOUBTFUL}disabled{DOUBTFUL:#}") };
    let (program, place) = (kept.dialect.program, kept.origin().to_string());
    out.push_str(&format!("{STRONG}{name}{STRONG:#}{off}  {DIM}{program}, {}{DIM:#}\n", printable(&place)));
    let text = |json: &Json| match json {
        Json::String(text) => printable(text).into_owned(),
        Json::Array(items) => {
            let items: Vec<_> = items.iter().filter_map(Json::as_str).map(printable).collect();
            if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
        }
        other => other.to_string(),
    };
    let rows: Vec<_> = all_settings(kept)
        .iter()
        .map(|setting| {
            let path = masked_name(&setting.path, known);
            let shown = match setting.time {
                Some(time) => humantime::format_duration(time).to_string(),
                None => text(&value(setting, known)),
            };
            (printable(&path).into_owned(), shown, origin(setting))
        })
        .collect();
    let lengths = rows.iter().map(|(path, ..)| columns(path));
    let path_width = lengths.filter(|length| *length <= WIDEST).max().unwrap_or_default();
    let lengths = rows.iter().map(|(_, value, _)| columns(value));
    let value_width = lengths.filter(|length| *length <= WIDEST).max().unwrap_or_default();
    for (path, value, origin) in rows {
        let (path, value) = (padded(&path, path_width), padded(&value, value_width));
        out.push_str(&format!("  {path}  {value}  {DIM}{}{DIM:#}\n", printable(&origin)));
    }
    out.push('\n');
}

/// The files that were searched.
fn searched_files(out: &mut String, effective: &Effective) {
    let read = effective.files.iter().map(|file| {
        let program = file.report.detected.as_ref().map(|detected| detected.dialect.program);
        (file.report.source.name.as_str(), file.precedence, program.unwrap_or("no program's").to_owned())
    });
    let missing = effective.missing.iter().map(|missing| {
        let why = if missing.error.is_some() { "cannot be read" } else { "not there" };
        (missing.name.as_str(), missing.precedence, why.to_owned())
    });
    for (name, precedence, fate) in read.chain(missing) {
        out.push_str(&format!("{}  {DIM}{precedence}, {fate}{DIM:#}\n", printable(name)));
    }
    out.push('\n');
}

fn summary(effective: &Effective) -> String {
    let (servers, missing) = (effective.servers.len(), effective.missing.len());
    if effective.files.is_empty() {
        return format!(
            "no servers: of {missing} files that programs would read, none is there (--verbose lists them)\n"
        );
    }
    let sources: BTreeSet<_> = effective.servers.iter().map(|kept| kept.file).collect();
    let off = effective.servers.iter().filter(|kept| !kept.server.is_enabled()).count();
    let mut text = match servers {
        0 => format!("no servers in {}", many(effective.files.len(), "source")),
        _ => format!("{} from {}", many(servers, "server"), many(sources.len(), "source")),
    };
    for (number, what) in
        [(off, "disabled"), (effective.lost.len(), "lost"), (effective.unread.len(), "not understood")]
    {
        if number > 0 {
            text.push_str(&format!(", {number} {what}"));
        }
    }
    text.push('\n');
    let whole: Vec<_> = effective.files.iter().filter(|file| file.is_whole()).collect();
    let count = |severity| whole.iter().map(|file| file.report.count(severity)).sum::<usize>();
    let counts: Vec<_> = [(count(Severity::Error), "error"), (count(Severity::Warning), "warning")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| many(number, what))
        .collect();
    if !counts.is_empty() {
        let is_wrong = |file: &&&File| file.report.findings.iter().any(|it| it.code.severity() > Severity::Advice);
        let names: Vec<_> = whole.iter().filter(is_wrong).map(|file| &*file.report.source.name).collect();
        let names = printable(&names.join(" ")).into_owned();
        text.push_str(&format!("{}; see `rehearse validate-config {names}`\n", counts.join(", ")));
    }
    text
}

fn many(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn columns(text: &str) -> usize {
    text.chars().count()
}

/// A text with blanks after it, unless it is longer.
fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}
