//! `rehearse init`: the first files of a project.

use std::{
    fs::{self, File},
    io::ErrorKind,
    path::{Path, PathBuf},
};

use super::{Exit, Failure, output};

const FILES: [(&str, &str); 3] = [
    ("mocks/weather.yaml", include_str!("mock.yaml")),
    ("scenarios/weather.yaml", include_str!("scenario.yaml")),
    (".github/workflows/rehearse.yml", include_str!("workflow.yml")),
];

const NEXT: &str = "
Next:
  rehearse run --update                           save the first snapshots
  rehearse run                                    compare with them
  rehearse mock mocks/weather.yaml --listen 8888  serve the mock
";

/// Write a first mock, a scenario and a CI workflow
#[derive(Debug, clap::Args)]
pub(super) struct InitArgs {
    /// The folder of the project
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

pub(super) fn run(args: &InitArgs) -> Result<Exit, Failure> {
    let mut report = String::new();
    for (name, text) in FILES {
        let is_new = write_new(&args.folder.join(name), text)
            .map_err(|error| Failure::cannot(format!("cannot write {}: {error}", args.folder.join(name).display())))?;
        report.push_str(&format!("{} {name}\n", if is_new { "wrote " } else { "exists" }));
    }
    output::write(format!("{report}{NEXT}").as_bytes())?;
    Ok(Exit::Success)
}

/// Writes a file unless it exists. Returns whether it is new.
fn write_new(path: &Path, text: &str) -> std::io::Result<bool> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match File::create_new(path) {
        Ok(file) => output::fill(file, path, text.as_bytes()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
