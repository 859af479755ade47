//! What of each server the scenarios of a run have used.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What of the servers was used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Coverage {
    /// How many items and branches were used.
    pub covered: usize,
    /// How many there are.
    pub total: usize,
    /// How many of a hundred were used, rounded down to a tenth; 100 if there are none.
    pub percent: f64,
    /// The percentage below which the run fails, if one was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_under: Option<f64>,
    /// Each server.
    pub servers: Vec<ServerCoverage>,
}

/// What of one server was used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerCoverage {
    /// The name that it gives itself, or that of the scenario.
    pub server: String,
    /// What it lists.
    pub items: Vec<CoverageItem>,
    /// What it declares and no scenario lists; of these only what was used is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_listed: Vec<CoverageKind>,
}

/// Something that a scenario may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageItem {
    /// What it is.
    pub kind: CoverageKind,
    /// Its name or URI; of an error that of the tool.
    pub name: String,
    /// Whether it was used.
    pub covered: bool,
    /// The branches of a tool's input schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<CoverageBranch>,
}

/// A kind of values that a schema allows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CoverageBranch {
    /// Where it is in the arguments, and what it is.
    pub name: String,
    /// Whether a call had such a value.
    pub covered: bool,
}

/// What can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CoverageKind {
    /// A call that had a result.
    Tool,
    /// A call that was refused or had an error.
    Error,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
}

impl CoverageKind {
    /// Every kind.
    pub const ALL: [CoverageKind; 5] =
        [CoverageKind::Tool, CoverageKind::Error, CoverageKind::Prompt, CoverageKind::Resource, CoverageKind::Template];

    /// The word for several.
    pub const fn plural(self) -> &'static str {
        match self {
            CoverageKind::Tool => "tools",
            CoverageKind::Error => "errors",
            CoverageKind::Prompt => "prompts",
            CoverageKind::Resource => "resources",
            CoverageKind::Template => "templates",
        }
    }
}

/// How many were used, and how many there are.
type Count = (usize, usize);

impl Coverage {
    /// What the columns of [`Coverage::rows`] count.
    pub(crate) const HEADS: [&str; 6] = ["tools", "errors", "prompts", "resources", "templates", "branches"];

    /// With its totals.
    pub fn new(servers: Vec<ServerCoverage>) -> Coverage {
        let counts = servers.iter().flat_map(ServerCoverage::counts);
        let (covered, total) = counts.fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
        let percent = (covered * 1000).checked_div(total).map_or(100.0, |tenths| tenths as f64 / 10.0);
        Coverage { covered, total, percent, fail_under: None, servers }
    }

    /// Adds what another part of the run has used.
    pub(crate) fn merge(&mut self, other: Coverage) {
        let mut servers = std::mem::take(&mut self.servers);
        for server in other.servers {
            match servers.iter_mut().find(|known| known.server == server.server) {
                Some(known) => known.merge(server),
                None => servers.push(server),
            }
        }
        servers.sort_by(|one, two| one.server.cmp(&two.server));
        let fail_under = self.fail_under.into_iter().chain(other.fail_under).reduce(f64::max);
        *self = Coverage { fail_under, ..Coverage::new(servers) };
    }

    /// Why the run fails if less was used than was asked for, as a sentence.
    pub fn shortfall(&self) -> Option<String> {
        let least = self.fail_under.filter(|least| self.percent < *least)?;
        Some(format!("the coverage is {} %, which is less than {least} %", self.percent))
    }

    /// A sentence with the totals.
    pub(crate) fn title(&self) -> String {
        format!("Coverage: {} % ({} of {})", self.percent, self.covered, self.total)
    }

    /// The counts of each server, by kind.
    pub(crate) fn rows(&self) -> Vec<(String, Vec<String>)> {
        let cell = |(covered, total)| if total == 0 { "–".to_owned() } else { format!("{covered}/{total}") };
        let row = |it: &ServerCoverage| (it.server.clone(), it.counts().map(cell).to_vec());
        self.servers.iter().map(row).collect()
    }

    /// What was not used, a line for each item.
    pub(crate) fn gaps(&self) -> Vec<String> {
        self.servers.iter().flat_map(ServerCoverage::gaps).collect()
    }
}

impl ServerCoverage {
    /// The counts of each kind of items, and of branches.
    fn counts(&self) -> [Count; 6] {
        let count = |all: &mut dyn Iterator<Item = bool>| {
            all.fold((0, 0), |(covered, total), is_covered| (covered + usize::from(is_covered), total + 1))
        };
        let of = |kind| count(&mut self.items.iter().filter(|it| it.kind == kind).map(|it| it.covered));
        let branches = count(&mut self.items.iter().flat_map(|it| &it.branches).map(|it| it.covered));
        let [tools, errors, prompts, resources, templates] = CoverageKind::ALL.map(of);
        [tools, errors, prompts, resources, templates, branches]
    }

    fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        for item in &self.items {
            let missing: Vec<_> = item.branches.iter().filter(|it| !it.covered).map(|it| it.name.as_str()).collect();
            let what = match (item.kind, item.covered) {
                (CoverageKind::Tool, true) if missing.is_empty() => continue,
                (CoverageKind::Tool, true) => format!("tool {}: no call with {}", item.name, missing.join(", ")),
                (_, true) => continue,
                (CoverageKind::Tool, false) => format!("tool {}: no call that works", item.name),
                (CoverageKind::Error, false) => format!("tool {}: no call that fails", item.name),
                (CoverageKind::Prompt, false) => format!("prompt {}", item.name),
                (CoverageKind::Resource, false) => format!("resource {}", item.name),
                (CoverageKind::Template, false) => format!("template {}", item.name),
            };
            gaps.push(format!("{}: {what}", self.server));
        }
        let not_listed = self.not_listed.iter().map(|kind| {
            format!("{}: no scenario lists the {}, so it is unknown which are not used", self.server, kind.plural())
        });
        gaps.extend(not_listed);
        gaps
    }

    fn merge(&mut self, other: ServerCoverage) {
        self.not_listed.retain(|kind| other.not_listed.contains(kind));
        for item in other.items {
            match self.items.iter_mut().find(|known| (known.kind, &known.name) == (item.kind, &item.name)) {
                Some(known) => known.merge(item),
                None => self.items.push(item),
            }
        }
        self.items.sort_by(|one, two| (one.kind, &one.name).cmp(&(two.kind, &two.name)));
    }
}

impl CoverageItem {
    fn merge(&mut self, other: CoverageItem) {
        self.covered |= other.covered;
        for branch in other.branches {
            match self.branches.iter_mut().find(|known| known.name == branch.name) {
                Some(known) => known.covered |= branch.covered,
                None => self.branches.push(branch),
            }
        }
    }
}
