//! The system prompt: a file that is a MiniJinja template.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use minijinja::{Environment, UndefinedBehavior, context, syntax::SyntaxConfig};

use rehearse_document::text::text_of;

/// What a template can use.
#[derive(Clone, Debug, Default)]
pub struct PromptValues {
    /// The name of the agent: `name`.
    pub name: String,
    /// What the agent is for: `description`.
    pub description: String,
    /// The variables of the process: `env`.
    pub env: BTreeMap<String, String>,
}

/// Why there is no system prompt.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    #[error("could not open system prompt file {path:?}: {why}")]
    Unreadable { path: PathBuf, why: String },
    #[error("failed to render system prompt: {path}:{line}: {why}{hint}", path = path.display())]
    Template { path: PathBuf, line: usize, why: String, hint: &'static str },
}

/// Reads and renders the file. Templates can use `name`, `description`, `cwd`, `env.NAME`, `include_file(PATH)` and
/// `file_exists(PATH)`; relative paths start at the folder of the file.
///
/// # Errors
/// The file cannot be read, or its template is wrong; the error names the line.
pub fn load(path: &Path, values: &PromptValues) -> Result<String, PromptError> {
    let unreadable = |why: std::io::Error| PromptError::Unreadable { path: path.to_owned(), why: why.to_string() };
    let source = text_of(path).map_err(unreadable)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default());
    environment.set_fuel(Some(1_000_000));
    let included = folder.clone();
    environment.add_function("include_file", move |name: &str| {
        text_of(&included.join(name)).map_err(|error| {
            let message = format!("cannot read {name}: {error}");
            minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, message)
        })
    });
    environment.add_function("file_exists", move |name: &str| folder.join(name).exists());
    let cwd = std::env::current_dir().unwrap_or_default();
    let values = context! {
        name => &values.name,
        description => &values.description,
        env => &values.env,
        cwd => cwd.display().to_string(),
    };
    environment.render_str(&source, values).map_err(|error| {
        let is_go = source.contains("{{.") || source.contains("{{ .");
        let hint = if is_go { " (this looks like a Go template; here it is {{ name }}, {{ env.HOME }})" } else { "" };
        let why = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        PromptError::Template { path: path.to_owned(), line: error.line().unwrap_or(1), why, hint }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("rules.md"), "Be kind.\n").expect("writes");
        let path = folder.path().join("prompt.md");
        std::fs::write(&path, text).expect("writes");
        let env = BTreeMap::from([("LEVEL".to_owned(), "high".to_owned())]);
        let values = PromptValues { name: "reviewer".into(), description: "Reviews.".into(), env };
        let root = folder.path().display().to_string();
        load(&path, &values).map_err(|error| error.to_string().replace(&root, "").replace('\\', "/"))
    }

    #[test]
    fn a_template_knows_the_agent_its_environment_and_files_beside_it() {
        let text = "You are {{ name }} ({{ env.LEVEL }}).\n{% if file_exists('rules.md') %}{{ include_file('rules.md') }}{% endif %}";
        assert_eq!(rendered(text).expect("valid"), "You are reviewer (high).\nBe kind.\n");
    }

    #[test]
    fn errors_name_the_file_and_the_line() {
        let error = rendered("a\n{{ nothing }}").expect_err("undefined");
        assert!(error.starts_with("failed to render system prompt: /prompt.md:2: "), "{error}");
        assert!(rendered("{{.Name}}").expect_err("Go").contains("looks like a Go template"));
        assert!(rendered("{{ include_file('x') }}").expect_err("no file").contains("cannot read x"));
        let missing = load(Path::new("no/prompt.md"), &PromptValues::default()).expect_err("missing").to_string();
        assert!(missing.starts_with("could not open system prompt file \"no/prompt.md\": "), "{missing}");
    }
}
