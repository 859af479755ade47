//! The section of `rehearse host run`.

use super::{
    Case, Failure, Matrix, Outcome, Remark, Row, RowGroup, Section, Suite, Table, TableRow, counted, counted_word,
    readable,
};
use crate::{
    host::{HostResult, HostRun, HostTool},
    profile::Fit,
};

const HEADS: [&str; 6] = ["fit", "protocol", "asks the model after", "tools", "calls", "time"];

pub(super) fn section(result: &HostResult) -> Section {
    let mut section = Section {
        title: "Hosts",
        command: "rehearse host run",
        unit: "hosts",
        duration: result.duration,
        verdict: result.verdict,
        subjects: vec![(result.server.clone().unwrap_or_else(|| "server".to_owned()), vec![result.target.clone()])],
        counts: counted(result.hosts.iter().map(of_host)),
        suites: result.hosts.iter().map(suite).collect(),
        ..Section::default()
    };
    section.facts = vec![("duration", readable(result.duration)), ("rehearse", result.rehearse.clone())];
    let mut numbered: Vec<_> = result.hosts.iter().flat_map(failures).collect();
    numbered.sort_by_key(|(_, failure)| failure.outcome);
    let number = |host: &HostRun, tool: Option<&str>| {
        numbered.iter().position(|((name, about), _)| *name == host.host && about.as_deref() == tool)
    };
    section.matrix = Some(matrix(result, &number));
    let rows = result.hosts.iter().map(row).collect();
    section.tables.push(Table { rows, ..Table::new("Each host".to_owned(), &HEADS) });
    for host in &result.hosts {
        let tried = host.tried_to_reach.join(", ");
        let tried = (!tried.is_empty()).then(|| format!("{} tried to reach {tried}, and reached nothing", host.title));
        let others = host.other_tools.join(", ");
        let others = (!others.is_empty()).then(|| format!("{} also shows the model: {others}", host.title));
        section.remarks.extend(tried.map(|text| Remark::new(Outcome::Info, text)));
        section.remarks.extend(others.map(|text| Remark::detail(Outcome::Info, text)));
    }
    let fits = [
        (Outcome::Passed, "works"),
        (Outcome::Warning, "is degraded"),
        (Outcome::Failed, "is blocked"),
        (Outcome::Error, "was not run"),
    ];
    let count = |wanted| result.hosts.iter().filter(|host| of_host(host) == wanted).count();
    let fits = fits.map(|(outcome, what)| (count(outcome), what)).into_iter().filter(|(count, _)| *count > 0);
    let fits: Vec<_> = fits.map(|(count, what)| format!("{what} in {}", counted_word(count, "host"))).collect();
    section.sentence = Some(fits.join(", ")).filter(|sentence| !sentence.is_empty());
    section.failures = numbered.into_iter().map(|(_, failure)| failure).collect();
    section
}

fn of_host(host: &HostRun) -> Outcome {
    match host.fit {
        Some(Fit::Works) => Outcome::Passed,
        Some(Fit::Degraded | Fit::Unknown) => Outcome::Warning,
        Some(Fit::Blocked) => Outcome::Failed,
        None => Outcome::Error,
    }
}

fn of_tool(tool: &HostTool) -> Outcome {
    let call = tool.call.as_ref();
    match () {
        () if call.is_some_and(|call| !call.arrived) => Outcome::Failed,
        () if !tool.alike.is_empty() => Outcome::Warning,
        () if tool.shown.is_none() => Outcome::Failed,
        () if !tool.changes.is_empty() || call.is_some_and(|call| !call.changes.is_empty()) => Outcome::Warning,
        () if call.is_none() => Outcome::Info,
        () => Outcome::Passed,
    }
}

/// What is said of a tool.
fn messages(tool: &HostTool) -> Vec<String> {
    let hidden = match &tool.alike[..] {
        [] => tool.shown.is_none().then(|| "the model does not see it".to_owned()),
        alike => Some(format!("the host makes its name equal to that of {}", alike.join(", "))),
    };
    let call = tool.call.iter().flat_map(|call| {
        let lost = (!call.arrived).then(|| "its call did not come to the server".to_owned());
        lost.into_iter().chain(call.changes.iter().cloned())
    });
    hidden.into_iter().chain(tool.changes.iter().cloned()).chain(call).collect()
}

/// The failures of a host, each with the host and the tool that it is about.
fn failures(host: &HostRun) -> Vec<((&str, Option<String>), Failure)> {
    let place = host.title.clone();
    let failure = |outcome, title: String, messages| Failure {
        messages,
        places: vec![place.clone()],
        ..Failure::new(outcome, title)
    };
    let mut all = Vec::new();
    if host.connection.is_none() || host.error.is_some() {
        let unseen = host.connection.is_none().then(|| "it opened no session with the server".to_owned());
        let why = host.error.iter().cloned().chain(unseen).chain(host.printed.iter().cloned());
        let outcome = if host.fit.is_none() { Outcome::Error } else { of_host(host).min(Outcome::Warning) };
        all.push(((host.host.as_str(), None), failure(outcome, host.title.clone(), why.collect())));
    }
    let wrong = host.tools.iter().filter(|tool| of_tool(tool) <= Outcome::Warning);
    all.extend(wrong.map(|tool| {
        let printed = host.printed.iter().filter(|text| tool.shown.is_none() && text.contains(&tool.name)).cloned();
        let messages = messages(tool).into_iter().chain(printed).collect();
        let title = format!("{}: {}", host.title, tool.name);
        ((host.host.as_str(), Some(tool.name.clone())), failure(of_tool(tool), title, messages))
    }));
    all
}

/// The tools as rows and the hosts as columns.
fn matrix(result: &HostResult, number: &dyn Fn(&HostRun, Option<&str>) -> Option<usize>) -> Matrix {
    let mut names: Vec<&str> = Vec::new();
    for tool in result.hosts.iter().flat_map(|host| &host.tools) {
        if !names.contains(&tool.name.as_str()) {
            names.push(&tool.name);
        }
    }
    let cell = |host: &HostRun, name: &str| {
        let tool = host.tools.iter().find(|tool| tool.name == name)?;
        Some((of_tool(tool), number(host, Some(name))))
    };
    let whole = Row {
        name: "connects".to_owned(),
        note: "the host opens a session with the server".to_owned(),
        cells: result.hosts.iter().map(|host| Some(connects(host, number(host, None)))).collect(),
        duration: None,
    };
    let tools = names.iter().map(|name| Row {
        name: (*name).to_owned(),
        note: String::new(),
        cells: result.hosts.iter().map(|host| cell(host, name)).collect(),
        duration: None,
    });
    let columns = result.hosts.iter().map(|host| (host.title.clone(), host.version.clone().unwrap_or_default()));
    let rows = std::iter::once(whole).chain(tools).collect();
    Matrix {
        columns: columns.collect(),
        row: "tool",
        groups: vec![RowGroup { name: String::new(), title: String::new(), rows }],
    }
}

fn connects(host: &HostRun, number: Option<usize>) -> (Outcome, Option<usize>) {
    match (&host.connection, host.fit) {
        (Some(_), _) => (Outcome::Passed, None),
        (None, None) => (Outcome::Error, number),
        (None, Some(_)) => (Outcome::Failed, number),
    }
}

fn row(host: &HostRun) -> TableRow {
    let shown = host.tools.iter().filter(|tool| tool.shown.is_some()).count();
    let calls: Vec<_> = host.tools.iter().filter_map(|tool| tool.call.as_ref()).collect();
    let arrived = calls.iter().filter(|call| call.arrived).count();
    let connection = host.connection.as_ref();
    let cells = vec![
        host.fit.map_or_else(|| "not run".to_owned(), |fit| fit.to_string()),
        connection.map(|it| it.protocol.clone()).unwrap_or_default(),
        readable(host.asked_after),
        format!("{shown} of {}", host.tools.len()),
        format!("{arrived} of {}", calls.len()),
        readable(host.duration),
    ];
    let version = host.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
    TableRow { outcome: Some(of_host(host)), name: format!("{}{version}", host.host), cells }
}

fn suite(host: &HostRun) -> Suite {
    let case = |name: String, outcome, messages: Vec<String>| Case {
        name,
        outcome,
        message: messages.join("; "),
        ..Case::default()
    };
    let why = host.error.iter().chain(&host.printed).cloned().collect();
    let (outcome, _) = connects(host, None);
    let cases = std::iter::once(case("connects".to_owned(), outcome, why))
        .chain(host.tools.iter().map(|tool| case(tool.name.clone(), of_tool(tool), messages(tool))));
    Suite { name: format!("rehearse host {}", host.host), cases: cases.collect() }
}
