//! Runs what the pages of `docs/` and the README let a reader type: the blocks `sh`, and the blocks `console` that no other test
//! compares with what they show.
//!
//! A page is run in an empty folder with an empty home. The files in it are those that the page names or lets its reader save,
//! and what `commands/common.sh` and the script of the page beside it make. A command ends with 0, and one that listens is ready and
//! ends by SIGINT; what is different is in `commands/exceptions.txt`, with the reason.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use libtest_mimic::{Failed, Trial};
use regex::{Captures, Regex};

use super::docs::{Block, blocks, page_name, page_text};

/// Longer than any command takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(3 * 60);

/// Pages whose blocks `console` the tests of the command line compare with what they show.
const COMPARED: &str = "acts admin final-answer llm mcp-commands oauth repl results subagents";

/// One trial for each page with commands.
pub(crate) fn trials(pages: &[PathBuf]) -> Vec<Trial> {
    let rows: &str = fs::read_to_string(folder().join("exceptions.txt")).expect("a table").leak();
    let rows = rows.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows: Vec<_> = rows.map(|line| columns(line).unwrap_or_else(|| panic!("four columns: {line}"))).collect();
    let mut unused: Vec<_> = rows.iter().collect();
    let mut trials = Vec::new();
    for page in pages {
        let (name, blocks) = (page_name(page), blocks(&page_text(page)));
        let mut commands = Vec::new();
        for block in &blocks {
            let is_run = match &*block.language {
                "sh" => name != "admin",
                "console" => !COMPARED.split(' ').any(|compared| compared == name),
                _ => false,
            };
            for (line, text) in typed(block).into_iter().filter(|_| is_run) {
                let row = rows.iter().find(|[_, page, part, _]| (*page == "*" || *page == name) && text.contains(part));
                unused.retain(|it| Some(*it) != row);
                commands.push(Typed { line, text, codes: row.map_or("0", |row| row[0]) });
            }
        }
        commands.retain(|command| command.codes != "-");
        if !commands.is_empty() {
            let title = format!("docs::{name}::every_command_runs");
            trials.push(Trial::test(title, move || Reader::begin(&name, &blocks)?.run(&commands)));
        }
    }
    let unused = format!("{unused:?}");
    trials.push(Trial::test("docs::every_exception_is_one", move || match &*unused {
        "[]" => Ok(()),
        _ => Err(unused.into()),
    }));
    trials
}

/// A command, and the exit codes that it may have.
struct Typed {
    line: usize,
    text: String,
    codes: &'static str,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("snapshots/commands")
}

fn columns(line: &'static str) -> Option<[&'static str; 4]> {
    line.splitn(4, " | ").map(str::trim).collect::<Vec<_>>().try_into().ok()
}

/// The commands of a block, with the lines that continue them.
fn typed(block: &Block) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    for (text, line) in block.text.lines().zip(block.line + 1..) {
        match (commands.last_mut().filter(|(_, last)| last.ends_with('\\')), &*block.language) {
            (Some((_, last)), _) => *last += &format!("\n{text}"),
            (None, "console") => commands.extend(text.strip_prefix("$ ").map(|text| (line, text.to_owned()))),
            (None, _) if text.is_empty() || text.starts_with('#') => {}
            (None, _) => commands.push((line, text.to_owned())),
        }
    }
    commands
}

/// A reader who types what a page says.
struct Reader {
    folder: tempfile::TempDir,
    /// Where the servers of the page really are.
    addresses: BTreeMap<String, String>,
    running: Vec<Running>,
}

impl Reader {
    fn begin(page: &str, blocks: &[Block]) -> Result<Reader, Failed> {
        let reader = Reader { folder: tempfile::tempdir()?, addresses: BTreeMap::new(), running: Vec::new() };
        for name in ["page", "home", "bin", "tmp"] {
            fs::create_dir(reader.path(name))?;
        }
        let saved = Regex::new("(?:[Ss]ave (?:this|it) as|this as) `([^`]+)`")?;
        for block in blocks {
            let named = block.language.split_once(' ').map(|(_, name)| name).filter(|name| name.contains('.'));
            let named = named.or_else(|| Some(saved.captures_iter(&block.before).last()?.get(1)?.as_str()));
            if let Some(file) = named.map(|name| reader.path("page").join(name)) {
                fs::create_dir_all(file.parent().ok_or("no folder")?)?;
                fs::write(file, &block.text)?;
            }
        }
        for script in ["common", page].map(|name| folder().join(format!("{name}.sh"))) {
            if script.exists() {
                reader.output(&format!("set -e\n{}", fs::read_to_string(script)?), "0")?;
            }
        }
        Ok(reader)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, text: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", text]).current_dir(self.path("page")).env_clear().stdin(Stdio::null());
        command.env("REHEARSE", env!("CARGO_BIN_EXE_rehearse")).env("BIN", self.path("bin"));
        command.env("PATH", format!("{}:{path}", self.path("bin").display()));
        command.env("HOME", self.path("home")).env("TMPDIR", self.path("tmp"));
        command
    }

    fn output(&self, text: &str, codes: &str) -> Result<(), Failed> {
        let output = assert_cmd::Command::from_std(self.command(text)).timeout(TIMEOUT).output()?;
        match output.status.code() {
            Some(code) if codes.split(' ').any(|it| it == code.to_string()) => Ok(()),
            _ => {
                let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
                Err(format!("{}, not {codes}\n{out}\n{error}", output.status).into())
            }
        }
    }

    fn run(mut self, commands: &[Typed]) -> Result<(), Failed> {
        for Typed { line, text, codes } in commands {
            self.type_in(text, codes).map_err(|failed| {
                let why = failed.message().unwrap_or_default();
                Failed::from(format!("line {line}: {text}\n{why}"))
            })?;
        }
        self.running.drain(..).try_for_each(Running::stop)
    }

    fn type_in(&mut self, text: &str, codes: &str) -> Result<(), Failed> {
        let listens = Regex::new(r"(--listen )(?:127\.0\.0\.1:)?(\d+)")?;
        match listens.captures(text).filter(|_| !text.contains("--exec")) {
            Some(found) => self.start(&listens.replace(text, "${1}127.0.0.1:0"), format!("127.0.0.1:{}", &found[2])),
            None => {
                let text = self.with_addresses(text)?;
                self.output(&text, codes)
            }
        }
    }

    /// Starts what listens, in place of the server at this address of the page.
    fn start(&mut self, text: &str, address: String) -> Result<(), Failed> {
        let text = self.with_addresses(text)?;
        let (running, real) = Running::start(self.command(&format!("exec {text}")))?;
        self.addresses.insert(address, real);
        self.running.push(running);
        Ok(())
    }

    /// The command with the real addresses. A server that no command of the page has started is one of ours.
    fn with_addresses(&mut self, text: &str) -> Result<String, Failed> {
        let url = Regex::new(r"https?://(127\.0\.0\.1:[1-9]\d*|example\.com)")?;
        for found in url.captures_iter(text) {
            if !self.addresses.contains_key(&found[1]) {
                self.start("rehearse mock server.yaml --listen 127.0.0.1:0", found[1].to_owned())?;
            }
        }
        Ok(url.replace_all(text, |found: &Captures<'_>| format!("http://{}", self.addresses[&found[1]])).into_owned())
    }
}

/// A command that listens; killed on drop.
struct Running(Child);

impl Running {
    /// Waits until it says its address.
    fn start(mut command: Command) -> Result<(Running, String), Failed> {
        let mut running = Running(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?);
        let lines = BufReader::new(running.0.stderr.take().ok_or("no pipe")?).lines();
        let (said, heard) = mpsc::channel();
        // To the end, or it could not write any more.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(said.send(line))));
        let (address, mut seen) = (Regex::new(r"127\.0\.0\.1:[1-9]\d*")?, String::new());
        loop {
            let line = heard.recv_timeout(TIMEOUT).map_err(|_| format!("it says no address:\n{seen}"))?;
            if let Some(found) = address.find(&line) {
                return Ok((running, found.as_str().to_owned()));
            }
            seen += &format!("{line}\n");
        }
    }

    fn stop(mut self) -> Result<(), Failed> {
        Command::new("kill").args(["-INT", &self.0.id().to_string()]).status()?;
        match self.0.wait()? {
            status if status.success() => Ok(()),
            status => Err(format!("what listens ends with {status}").into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
