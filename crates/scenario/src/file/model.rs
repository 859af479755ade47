//! A scenario file.

use std::{
    collections::{HashMap, HashSet},
    fmt, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Expectations, ModelDefinition, ModelOptions, ServerKind, ServerSpec, Step, TargetSpec, answers, capture_check,
    host::Host,
};
use crate::{
    keys::KEYS,
    snapshot::{self, Redaction},
};
use rehearse_client::{AnswerScript, InputKind, Target};
use rehearse_document::{Diagnostics, Node, Problem, Problems, Source, Span, nearest, parse_yaml, template::Templates};
use rehearse_mock::script::BuiltinScript;
use rehearse_protocol::{Protocol, Transport, Version};
use rehearse_report::Cell;

/// The names that a template of a scenario may use.
const NAMES: &[&str] = &["captured", "env"];

/// A parsed scenario.
///
/// ```
/// use std::path::Path;
///
/// use rehearse_document::Source;
/// use rehearse_scenario::Scenario;
///
/// let source = Source::new("ping.yaml", "servers: { s: { url: http://127.0.0.1:8888/mcp } }\nsteps: [{ ping: {} }]");
/// let scenario = Scenario::parse(&source, Path::new("ping.yaml"), &[]).map_err(|mistakes| mistakes.to_string())?;
/// assert_eq!(scenario.name, "ping");
/// assert_eq!(scenario.cells().len(), 2);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug)]
pub struct Scenario {
    /// The file's name without its extension; also the name of its snapshots' folder.
    pub name: String,
    /// The scenario file.
    pub path: PathBuf,
    /// The key `description`.
    pub description: Option<String>,
    /// The servers, in the order of the file. Empty only if no step needs a server.
    pub servers: Vec<ServerSpec>,
    /// The models that steps name.
    pub models: Vec<ModelDefinition>,
    /// The cells to run.
    pub matrix: Matrix,
    /// The default answers of the client to server requests.
    pub answers: AnswerScript,
    /// The steps, in order.
    pub steps: Vec<Step>,
    /// The redactions of snapshots.
    pub redactions: Vec<Redaction>,
    /// The compiled templates of the steps.
    pub templates: Templates,
}

/// The transports and protocol versions of a scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Matrix {
    /// The transports.
    pub transports: Vec<Transport>,
    /// The requested protocol versions.
    pub protocols: Vec<Protocol>,
}

/// Why a scenario cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file or folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The path.
        path: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The file has mistakes.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// Two files differ only in their extension.
    #[error("{} and {} would share their snapshots: rename one of them", path.display(), other.display())]
    SameName {
        /// The first file.
        path: PathBuf,
        /// The second file.
        other: PathBuf,
    },
}

/// The scenario files at a path: the file itself, or every `.yaml` and `.yml` file below a folder, sorted. A file or folder
/// that is also reachable through symbolic links is listed once.
///
/// # Errors
/// The path or a folder below it cannot be read, or two files would share their snapshots.
pub fn find_scenarios(path: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let mut files = Vec::new();
    find_below(path, &mut HashSet::new(), &mut files)?;
    files.sort();
    let mut names = HashMap::new();
    for path in &files {
        if let Some(other) = names.insert(path.with_extension(""), path) {
            return Err(ScenarioError::SameName { path: other.clone(), other: path.clone() });
        }
    }
    Ok(files)
}

/// Adds the files below a path, without the real paths in `visited`.
fn find_below(path: &Path, visited: &mut HashSet<PathBuf>, files: &mut Vec<PathBuf>) -> Result<(), ScenarioError> {
    let unreadable = |source| ScenarioError::Read { path: path.display().to_string(), source };
    if !visited.insert(path.canonicalize().map_err(unreadable)?) {
        return Ok(());
    }
    if !path.is_dir() {
        files.push(path.to_owned());
        return Ok(());
    }
    let entries = fs::read_dir(path).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(unreadable)?;
    let mut paths: Vec<_> = entries.iter().map(fs::DirEntry::path).collect();
    paths.sort();
    for path in paths {
        // Such as the folder behind the links of a mounted ConfigMap.
        if path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            continue;
        }
        let is_scenario = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
        if path.is_dir() || (is_scenario && path.exists()) {
            find_below(&path, visited, files)?;
        }
    }
    Ok(())
}

impl Scenario {
    /// Reads a scenario file, the mock scripts that it names (files, or one of `builtins`), and its snapshots.
    ///
    /// # Errors
    /// [`ScenarioError::Read`] if the file cannot be read; [`ScenarioError::Invalid`] with every mistake in it.
    pub fn load(path: &Path, builtins: &[BuiltinScript]) -> Result<Scenario, ScenarioError> {
        let source =
            Source::read(path).map_err(|source| ScenarioError::Read { path: path.display().to_string(), source })?;
        let scenario = Scenario::parse(&source, path, builtins).map_err(ScenarioError::Invalid)?;
        snapshot::file::check_all(&scenario.snapshot_folder()).map_err(ScenarioError::Invalid)?;
        Ok(scenario)
    }

    /// Reads a scenario; relative paths in it start at the folder of `path`.
    ///
    /// # Errors
    /// Every mistake that was found, each with its position and a hint.
    pub fn parse(source: &Arc<Source>, path: &Path, builtins: &[BuiltinScript]) -> Result<Scenario, Diagnostics> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let read = parse_yaml(source).and_then(|root| Scenario::read(&root, source, path, folder, builtins));
        read.map_err(|problems| problems.in_source(source))
    }

    fn read(
        root: &Node,
        source: &Arc<Source>,
        path: &Path,
        folder: &Path,
        builtins: &[BuiltinScript],
    ) -> Result<Scenario, Problems> {
        let has = |key: &str| root.get(key).is_some();
        if !has("steps") && ["tools", "resources", "prompts", "methods"].iter().any(|key| has(key)) {
            let hint = "serve it with `rehearse mock`, or name it in a scenario: `servers: { s: { mock: FILE } }`";
            return Err(root.problem("this is a mock script, not a scenario").hint(hint).into());
        }
        if !has("steps") && has("rules") {
            let problem = root.problem("this is the script of a model, not a scenario");
            return Err(problem.hint("put it beside the folder of scenarios, as `../NAME.yaml`").into());
        }
        let fields = KEYS.fields(root, "scenario")?;
        let mut templates = Templates::new(source, NAMES);
        let server_nodes = fields.get("servers");
        let entries = server_nodes.map(Node::entries).transpose()?.unwrap_or_default();
        let names: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        let step_nodes = fields.required("steps")?.items()?;
        let steps = step_nodes.iter().map(|node| Step::read(node, source, folder, &names, &mut templates));
        let steps = Problems::collect(steps);
        let servers =
            Problems::collect(entries.iter().map(|entry| ServerSpec::read(&entry.key, &entry.node, folder, builtins)));
        let redactions = fields.read_each("redact", |node| Redaction::read(node, source));
        let models = fields.read("models", |node| ModelDefinition::read_all(node, folder));
        let (matrix, answers) = (fields.read("matrix", Matrix::read), fields.read("answers", answers::read));
        let settings = Problems::all4(matrix, answers, models, Ok(()));
        let (servers, steps, redactions, settings) = Problems::all4(servers, steps, redactions, settings)?;
        let (matrix, answers, models, ()) = settings;
        let models = models.unwrap_or_default();
        let matrix = matrix.unwrap_or_default().or_default(Matrix::for_servers(&servers));
        let needs_session = |step: &Step| step.with_parallel().any(|step| step.action.needs_session());
        if servers.is_empty() && (steps.is_empty() || steps.iter().any(needs_session)) {
            let at = server_nodes.map_or_else(|| fields.required("servers"), Ok)?;
            return Err(at.problem("a scenario needs at least one server").into());
        }
        if matrix.transports.is_empty() {
            let problem = server_nodes.unwrap_or(root).problem("the servers share no transport");
            return Err(problem.hint("set the transports of the mocks with `matrix: { transport: … }`").into());
        }
        if steps.is_empty() {
            return Err(fields.required("steps")?.problem("a scenario needs at least one step").into());
        }
        capture_check::check(&steps, step_nodes)?;
        check_names(&steps, step_nodes, &matrix, source)?;
        check_config_steps(&steps, step_nodes, &servers)?;
        check_models(&steps, &models)?;
        for (step, node) in steps.iter().zip(step_nodes) {
            if !matrix.cells().any(|cell| step.may_exist_in(cell)) {
                let at = node.get("only").unwrap_or(node);
                return Err(at.problem("`only` excludes the step in every cell of the matrix").into());
            }
            let is_too_old =
                |cell| step.may_exist_in(cell) && step.with_parallel().any(|step| step.is_too_old_for(cell));
            if matrix.cells().any(is_too_old) {
                let problem = node.problem("tasks exist in 2026-07-28 only, but the step also runs in other versions");
                return Err(problem.hint("add `only: { era: modern }`").into());
            }
            if matrix.cells().any(|cell| step.may_exist_in(cell) && !step.action.fits(cell)) {
                let problem = node.problem("a host has stdio and streamable HTTP, and chooses the version itself");
                let hint = "write `matrix: { transport: [stdio, http], protocol: negotiated }`, or `only` in the step";
                return Err(problem.hint(hint).into());
            }
        }
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(Scenario {
            name: stem.unwrap_or_else(|| "scenario".into()),
            path: path.to_owned(),
            description: fields.read("description", |node| Ok(node.str()?.to_owned()))?,
            matrix,
            answers: answers.unwrap_or_default(),
            steps,
            redactions,
            servers,
            models,
            templates,
        })
    }

    /// Whether models play a step.
    pub fn has_evals(&self) -> bool {
        self.steps.iter().any(|step| step.action.eval().is_some())
    }

    /// The models that play steps of the scenario, of those that may, and those that grade them.
    pub fn used_models(&self, options: &ModelOptions) -> impl Iterator<Item = &ModelDefinition> {
        let mut used = HashSet::new();
        for step in &self.steps {
            let players = step.action.eval().into_iter().flat_map(|eval| &eval.models).map(|(name, _)| name.as_str());
            let players: Vec<_> = players.filter(|name| options.may_play(name)).collect();
            let judge = step.expect.as_ref().and_then(Expectations::judge).filter(|_| !players.is_empty());
            used.extend(players.into_iter().chain(judge.map(|judge| judge.model.0.as_str())));
        }
        self.models.iter().filter(move |model| used.contains(&*model.name))
    }

    /// Lets the steps meet the server at `target` instead of the one that the file describes under this name. The matrix
    /// keeps its versions, and has the transport of the target. False if the file has no such server.
    #[must_use]
    pub fn set_target(&mut self, server: &str, target: Target) -> bool {
        let Some(server) = self.servers.iter_mut().find(|it| it.name == server) else { return false };
        self.matrix.transports = vec![target.transport()];
        server.kind = ServerKind::Targets(vec![TargetSpec { target, command: None }]);
        true
    }

    /// Leaves the cells that a program would use, in the version that it asks for.
    pub fn set_host(&mut self, host: &Host) {
        if let Some(protocol) = host.protocol {
            self.matrix.protocols = vec![protocol];
        }
        if let Some(known) = &host.transports {
            self.matrix.transports.retain(|transport| *transport == Transport::Memory || known.contains(transport));
        }
    }

    /// Every cell of the matrix, with the reason if it is not applicable.
    pub fn cells(&self) -> Vec<(Cell, Option<String>)> {
        self.matrix.cells().map(|cell| (cell, self.not_applicable(cell))).collect()
    }

    /// The kinds of requests that steps with this server answer, besides those that the scenario answers.
    pub(crate) fn questions(&self, server: usize) -> Vec<InputKind> {
        let steps = self.steps.iter().filter(|step| step.with_parallel().any(|step| step.server == server));
        steps.flat_map(|step| &step.answers).flat_map(AnswerScript::kinds).collect()
    }

    fn not_applicable(&self, cell: Cell) -> Option<String> {
        if !cell.protocol.is_carried_by(cell.transport) {
            return Some(format!("{} does not support {}", cell.transport, cell.protocol));
        }
        let other = self.servers.iter().find(|server| !server.transports().contains(&cell.transport))?;
        Some(format!("the server `{}` does not support {}", other.name, cell.transport))
    }

    /// The folder of the snapshots: in `snapshots` next to the folder `scenarios`, or else in the folder of the file.
    pub fn snapshot_folder(&self) -> PathBuf {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let root = match folder.file_name() {
            Some(name) if name == "scenarios" => folder.parent().unwrap_or(Path::new("")),
            _ => folder,
        };
        root.join("snapshots").join(&self.name)
    }
}

impl Matrix {
    fn cells(&self) -> impl Iterator<Item = Cell> {
        self.transports.iter().flat_map(|transport| {
            self.protocols.iter().map(|protocol| Cell { transport: *transport, protocol: *protocol })
        })
    }

    /// Every common transport of the servers, in the newest version of each era; one transport if all servers are those of
    /// configs, and one cell if there are no servers.
    fn for_servers(servers: &[ServerSpec]) -> Matrix {
        let common = |transport: &Transport| servers.iter().all(|server| server.transports().contains(transport));
        let transports = match servers.iter().all(|server| matches!(server.kind, ServerKind::Config(_))) {
            true => vec![Transport::Memory],
            false => Transport::EXTERNAL.to_vec(),
        };
        let versions = [Version::LATEST_LEGACY, Version::LATEST];
        Matrix {
            transports: transports.into_iter().filter(common).collect(),
            protocols: versions[usize::from(servers.is_empty())..].iter().copied().map(Protocol::Exact).collect(),
        }
    }

    /// The matrix of the file; missing lists are empty.
    fn read(node: &Node) -> Result<Matrix, Problems> {
        let fields = KEYS.fields(node, "matrix")?;
        Ok(Matrix {
            transports: fields.read("transport", read_list)?.unwrap_or_default(),
            protocols: fields.read("protocol", read_protocols)?.unwrap_or_default(),
        })
    }

    /// Replaces empty lists by those of `default`.
    fn or_default(self, default: Matrix) -> Matrix {
        let Matrix { transports, protocols } = self;
        Matrix {
            transports: if transports.is_empty() { default.transports } else { transports },
            protocols: if protocols.is_empty() { default.protocols } else { protocols },
        }
    }
}

/// The models that a step names, and where.
fn named_models(step: &Step) -> impl Iterator<Item = &(String, Span)> {
    let judge = step.expect.as_ref().and_then(Expectations::judge).map(|judge| &judge.model);
    step.action.eval().into_iter().flat_map(|eval| &eval.models).chain(judge)
}

/// # Errors
/// A problem for each name that is not in `models`.
fn check_models(steps: &[Step], models: &[ModelDefinition]) -> Result<(), Problems> {
    let known: Vec<_> = models.iter().map(|model| model.name.as_str()).collect();
    let unknown = steps.iter().flat_map(named_models).filter(|(name, _)| !known.contains(&name.as_str()));
    let problems: Vec<_> = unknown
        .map(|(name, span)| {
            let problem = Problem::new(*span, format!("`models` has no `{name}`"));
            match (nearest(name, &known), known.is_empty()) {
                (Some(near), _) => problem.hint(format!("did you mean `{near}`?")),
                (None, true) => problem.hint(format!("write `models: {{ {name}: anthropic:ID }}` beside `steps`")),
                (None, false) => problem.hint(format!("the models are {}", known.join(", "))),
            }
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// # Errors
/// A problem for each step that needs one session, but whose server is a config.
fn check_config_steps(steps: &[Step], nodes: &[Node], servers: &[ServerSpec]) -> Result<(), Problems> {
    let all = steps.iter().zip(nodes).flat_map(|(step, node)| step.with_nodes(node));
    let wrong = all.filter(|(step, _)| {
        let server = servers.get(step.server).map(|server| &server.kind);
        matches!(server, Some(ServerKind::Config(_))) && !step.action.exists_for_config()
    });
    let problems: Vec<_> = wrong
        .map(|(_, node)| {
            let at = KEYS.choices("step").iter().find_map(|key| node.get(key)).unwrap_or(node);
            at.problem(
                "a server of a config takes `discover`, `agent`, `parallel`, and `call` without `logLevel` and `task`",
            )
            .hint("for other steps, describe the server with `command` or `url`")
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// Checks that no two steps of a cell share a snapshot. Steps that depend on the negotiated version are ignored.
///
/// # Errors
/// A problem for each snapshot that an earlier step uses.
fn check_names(steps: &[Step], nodes: &[Node], matrix: &Matrix, source: &Source) -> Result<(), Problems> {
    let mut problems: Vec<Problem> = Vec::new();
    for cell in matrix.cells().filter(|cell| cell.protocol.is_carried_by(cell.transport)) {
        let mut known: Vec<(String, usize)> = Vec::new();
        let steps = steps.iter().zip(nodes).filter(|(step, _)| step.certainly_exists_in(cell));
        for (step, node) in steps.flat_map(|(step, node)| step.with_nodes(node)) {
            let Some(key) = step.certain_snapshot(cell) else { continue };
            match known.iter().find(|(other, _)| *other == key) {
                Some((_, line)) => {
                    let at = node.get("snapshot").unwrap_or(node);
                    if problems.iter().all(|problem| problem.span != at.span) {
                        let problem = at.problem(format!("the step in line {line} already uses the snapshot `{key}`"));
                        problems.push(problem.hint("give each step its own snapshot name"));
                    }
                }
                None => known.push((key, source.position(node.span.start).0)),
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
}

/// As [`read_list`]; `negotiated` is the version that client and server negotiate.
fn read_protocols(node: &Node) -> Result<Vec<Protocol>, Problems> {
    if node.as_str() == Some("negotiated") { Ok(vec![Protocol::Auto]) } else { read_list(node) }
}

/// One name or an array of distinct names.
pub(crate) fn read_list<T>(node: &Node) -> Result<Vec<T>, Problems>
where
    T: std::str::FromStr<Err: fmt::Display> + PartialEq,
{
    let list = node.one_or_more(Node::parsed)?;
    for (index, item) in list.iter().enumerate() {
        if list[..index].contains(item) {
            return Err(node.items()?[index].problem("duplicate value").into());
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Scenario, String> {
        let path = Path::new("dir/scenarios/demo.yaml");
        Scenario::parse(&Source::new("demo.yaml", text), path, crate::tests::BUILTINS)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_matrix_covers_every_transport_and_both_eras_unless_the_file_says_otherwise() {
        let scenario = parse("servers: { s: { mock: basic } }\nsteps: [{ connect: {} }]").expect("valid");
        let cells: Vec<_> = scenario
            .cells()
            .iter()
            .map(|(cell, no)| format!("{cell}{}", if no.is_some() { "!" } else { "" }))
            .collect();
        assert_eq!(
            cells,
            [
                "stdio/2025-11-25",
                "stdio/2026-07-28",
                "http/2025-11-25",
                "http/2026-07-28",
                "sse/2025-11-25",
                "sse/2026-07-28!",
                "ws/2025-11-25",
                "ws/2026-07-28",
            ]
        );
        assert_eq!(scenario.snapshot_folder(), Path::new("dir/snapshots/demo"));
        let scenario =
            parse("servers: { s: { command: x } }\nmatrix: { transport: [stdio, ws], protocol: auto }\nsteps: [{ connect: {} }]")
                .expect("valid");
        let reasons: Vec<_> = scenario.cells().into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, [None, Some("the server `s` does not support ws".into())]);
    }

    #[cfg(unix)]
    #[test]
    fn each_real_file_is_found_once_and_names_do_not_clash() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("sub")).expect("creates");
        for name in ["a.yaml", "b.yml", "sub/a.yaml", "sub/notes.txt"] {
            fs::write(path(name), "").expect("writes");
        }
        for (target, link) in [("", "sub/circle"), ("a.yaml", "again.yaml"), ("missing.yaml", "broken.yaml")] {
            std::os::unix::fs::symlink(path(target), path(link)).expect("links");
        }
        let found = find_scenarios(folder.path()).expect("scenarios");
        assert_eq!(found, ["a.yaml", "b.yml", "sub/a.yaml"].map(path));
        fs::write(path("a.yml"), "").expect("writes");
        let error = find_scenarios(folder.path()).expect_err("two files with one name").to_string();
        assert!(error.ends_with("a.yml would share their snapshots: rename one of them"), "{error}");
    }
}
