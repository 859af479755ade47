//! The table of servers and how it stands with them, as code_agent draws it.

use std::time::{Duration, SystemTime};

use crate::{
    cli::style::{BAD, DIM, DOUBTFUL, GOOD, printable},
    client::hub::{State, Status},
};

const HEADS: [&str; 4] = ["Server", "Status", "Tools", "Updated"];

/// The table with its title, and below it what to type next; `prefix` is what commands begin with.
pub(in crate::cli) fn status_table(servers: &[(impl AsRef<str>, Status)], now: SystemTime, prefix: &str) -> String {
    let row = |(name, status): &(_, Status)| {
        let name: &str = AsRef::as_ref(name);
        let tools = status.tools.map_or_else(|| "-".to_owned(), |tools| tools.to_string());
        [printable(name).into_owned(), status.state.to_string(), tools, updated(status, now)]
    };
    let rows: Vec<_> = servers.iter().map(row).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row: &[String; 4]| row[column].chars().count());
        cells.chain([HEADS[column].len()]).max().unwrap_or_default()
    };
    let widths = [0, 1, 2, 3].map(width);
    let rule = |left: &str, between: &str, right: &str| {
        let parts = widths.map(|width| "─".repeat(width + 2));
        format!("{left}{}{right}\n", parts.join(between))
    };
    let line = |cells: [String; 4]| format!("│ {} │\n", cells.join(" │ "));
    let mut text = format!("MCP Servers Status:\n{}", rule("┌", "┬", "┐"));
    text.push_str(&line([0, 1, 2, 3].map(|column| format!("{:1$}", HEADS[column], widths[column]))));
    text.push_str(&rule("├", "┼", "┤"));
    for (row, (_, status)) in rows.iter().zip(servers) {
        let style = match status.state {
            State::Connected => GOOD,
            State::Failed => BAD,
            State::Connecting => DOUBTFUL,
            State::NotConnected | State::Disabled => DIM,
        };
        text.push_str(&line([0, 1, 2, 3].map(|column| {
            let cell = format!("{:1$}", row[column], widths[column]);
            if column == 1 { format!("{style}{cell}{style:#}") } else { cell }
        })));
    }
    text.push_str(&rule("└", "┴", "┘"));
    text.push_str(&format!(
        "\nUse '{prefix}list-tools' to see all tools\nUse '{prefix}debug <server>' for more details\n"
    ));
    text
}

fn updated(status: &Status, now: SystemTime) -> String {
    match status.state {
        State::Failed => "Error".to_owned(),
        State::NotConnected | State::Disabled => "-".to_owned(),
        State::Connected | State::Connecting => {
            format!("{} ago", age(now.duration_since(status.since).unwrap_or_default()))
        }
    }
}

/// In its largest unit.
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
    fn the_table_is_as_wide_as_what_it_holds() {
        let since = SystemTime::UNIX_EPOCH;
        let status = |state, tools| Status { state, since, last_error: None, tools };
        let servers = [
            ("filesystem", status(State::Connected, Some(8))),
            ("web", status(State::Failed, None)),
            ("b\u{1b}x", status(State::Disabled, None)),
        ];
        let text = status_table(&servers, since + Duration::from_secs(130), "/mcp ");
        assert_eq!(
            anstream::adapter::strip_str(&text).to_string(),
            "\
MCP Servers Status:
┌────────────┬───────────┬───────┬─────────┐
│ Server     │ Status    │ Tools │ Updated │
├────────────┼───────────┼───────┼─────────┤
│ filesystem │ Connected │ 8     │ 2m ago  │
│ web        │ Failed    │ -     │ Error   │
│ b\\u{1b}x   │ Disabled  │ -     │ -       │
└────────────┴───────────┴───────┴─────────┘

Use '/mcp list-tools' to see all tools
Use '/mcp debug <server>' for more details
"
        );
    }

    #[test]
    fn an_age_is_told_in_its_largest_unit() {
        let told = [0, 59, 60, 3599, 3600, 90_000].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(told, ["0s", "59s", "1m", "59m", "1h", "1d"]);
    }
}
