//! Tables, such as that of the connection states.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::cli::style::{BAD, DIM, DOUBTFUL, GOOD, printable};
use rehearse_hub::{ConnectionState, Hub, ServerStatus};
use rehearse_protocol::List;

/// How long a table waits for the numbers of resources and prompts.
const ITEMS_LIMIT: Duration = Duration::from_secs(2);

/// Asks connected servers for their resources and prompts, so that [`callable_statuses`] has their numbers. A server that
/// is slow does not hold up a table.
pub(crate) async fn list_items(hub: &Hub) {
    let listed = futures_util::future::join(hub.items(List::Resources), hub.items(List::Prompts));
    // What is missing has no number.
    let _ = tokio::time::timeout(ITEMS_LIMIT, listed).await;
}

/// The status of each server with the number of callable tools.
pub(crate) fn callable_statuses(hub: &Hub) -> Vec<(Arc<str>, ServerStatus)> {
    let registry = hub.registry();
    let mut statuses = hub.status();
    for (name, status) in &mut statuses {
        status.tools = status.tools.map(|_| registry.server_tools(name).count());
    }
    statuses
}

/// The table of servers with its title and hints. It has columns of resources and prompts if a server has any; `prefix` is the prefix of commands.
pub(crate) fn status_table(servers: &[(impl AsRef<str>, ServerStatus)], now: SystemTime, prefix: &str) -> String {
    status_table_in(servers, now, prefix, |state| state.to_string())
}

/// As [`status_table`], with other words for states.
pub(crate) fn status_table_in(
    servers: &[(impl AsRef<str>, ServerStatus)],
    now: SystemTime,
    prefix: &str,
    word: impl Fn(ConnectionState) -> String,
) -> String {
    let count = |count: Option<usize>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    let cells = |(name, status): &(_, ServerStatus)| {
        let name: &str = AsRef::as_ref(name);
        let [tools, resources, prompts] = [status.tools, status.resources, status.prompts].map(count);
        let status = (word(status.state), updated(status, now));
        (printable(name).into_owned(), status, [tools, resources, prompts])
    };
    let rows = servers.iter().map(cells);
    let style = |row: usize, column: usize| match servers[row].1.state {
        _ if column != 1 => Style::new(),
        ConnectionState::Connected => GOOD,
        ConnectionState::Failed => BAD,
        ConnectionState::Connecting => DOUBTFUL,
        ConnectionState::NotConnected | ConnectionState::Disabled => DIM,
    };
    let has_items = |(_, status): &(_, ServerStatus)| status.resources.max(status.prompts) > Some(0);
    let table = match servers.iter().any(has_items) {
        false => {
            let rows = rows.map(|(name, (state, updated), [tools, ..])| [name, state, tools, updated]);
            draw(["Server", "Status", "Tools", "Updated"], &rows.collect::<Vec<_>>(), style)
        }
        true => {
            let rows = rows.map(|(name, (state, updated), [tools, resources, prompts])| {
                [name, state, tools, resources, prompts, updated]
            });
            let heads = ["Server", "Status", "Tools", "Resources", "Prompts", "Updated"];
            draw(heads, &rows.collect::<Vec<_>>(), style)
        }
    };
    format!(
        "MCP Servers Status:\n{table}\nUse '{prefix}list-tools' to see all tools\nUse '{prefix}debug <server>' for more details\n"
    )
}

/// Draws a table; `style` is the style of a cell by row and column.
pub(crate) fn draw<const N: usize>(
    heads: [&str; N],
    rows: &[[String; N]],
    style: impl Fn(usize, usize) -> Style,
) -> String {
    let columns: [usize; N] = std::array::from_fn(|column| column);
    let widths = columns.map(|column| {
        let cells = rows.iter().map(|row| row[column].width());
        cells.chain([heads[column].width()]).max().unwrap_or_default()
    });
    let rule = |left: &str, between: &str, right: &str| {
        let parts = widths.map(|width| "─".repeat(width + 2));
        format!("{left}{}{right}\n", parts.join(between))
    };
    let line = |cells: [String; N]| format!("│ {} │\n", cells.join(" │ "));
    let mut text = rule("┌", "┬", "┐");
    let padding = |text: &str, column: usize| " ".repeat(widths[column] - text.width());
    text.push_str(&line(columns.map(|column| format!("{}{}", heads[column], padding(heads[column], column)))));
    text.push_str(&rule("├", "┼", "┤"));
    for (index, row) in rows.iter().enumerate() {
        text.push_str(&line(columns.map(|column| {
            let style = style(index, column);
            format!("{style}{}{}{style:#}", row[column], padding(&row[column], column))
        })));
    }
    text + &rule("└", "┴", "┘")
}

/// The time since `time`.
pub(crate) fn ago(time: SystemTime, now: SystemTime) -> String {
    format!("{} ago", age(now.duration_since(time).unwrap_or_default()))
}

fn updated(status: &ServerStatus, now: SystemTime) -> String {
    match status.state {
        ConnectionState::Failed => "Error".to_owned(),
        ConnectionState::NotConnected | ConnectionState::Disabled => "-".to_owned(),
        ConnectionState::Connected | ConnectionState::Connecting => ago(status.since, now),
    }
}

/// A duration in its largest unit.
fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86_400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_of_the_table_depends_on_its_cells() {
        let since = SystemTime::UNIX_EPOCH;
        let status =
            |state, tools| ServerStatus { state, since, last_error: None, tools, resources: None, prompts: None };
        let servers = [
            ("filesystem", status(ConnectionState::Connected, Some(8))),
            ("web", status(ConnectionState::Failed, None)),
            ("b\u{1b}x", status(ConnectionState::Disabled, None)),
            ("日本語🦀", status(ConnectionState::NotConnected, None)),
        ];
        let table = |servers: &[_]| {
            let text = status_table(servers, since + Duration::from_secs(130), "/mcp ");
            anstream::adapter::strip_str(&text).to_string()
        };
        let text = table(&servers);
        assert_eq!(
            text,
            "\
MCP Servers Status:
┌────────────┬───────────────┬───────┬─────────┐
│ Server     │ Status        │ Tools │ Updated │
├────────────┼───────────────┼───────┼─────────┤
│ filesystem │ Connected     │ 8     │ 2m ago  │
│ web        │ Failed        │ -     │ Error   │
│ b\\u{1b}x   │ Disabled      │ -     │ -       │
│ 日本語🦀   │ Not connected │ -     │ -       │
└────────────┴───────────────┴───────┴─────────┘

Use '/mcp list-tools' to see all tools
Use '/mcp debug <server>' for more details
"
        );
        let docs = ServerStatus { resources: Some(2), prompts: Some(0), ..status(ConnectionState::Connected, Some(8)) };
        let text = table(&[("docs", docs), ("web", status(ConnectionState::Failed, None))]);
        assert_eq!(
            text.lines().skip(1).take(5).collect::<Vec<_>>().join("\n"),
            "\
┌────────┬───────────┬───────┬───────────┬─────────┬─────────┐
│ Server │ Status    │ Tools │ Resources │ Prompts │ Updated │
├────────┼───────────┼───────┼───────────┼─────────┼─────────┤
│ docs   │ Connected │ 8     │ 2         │ 0       │ 2m ago  │
│ web    │ Failed    │ -     │ -         │ -       │ Error   │"
        );
    }

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        let ages = [0, 59, 60, 3599, 3600, 90_000].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["0s", "59s", "1m", "59m", "1h", "1d"]);
    }
}
