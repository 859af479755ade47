//! Strings and expressions of templates, and why rendering fails.

use minijinja::Expression;

use crate::state::StateTooLarge;

/// A string with `{{ … }}` or `{% … %}` in it, or without.
#[derive(Debug)]
pub enum Text {
    /// A string without a template.
    Literal(String),
    /// One expression and nothing else, which needs no template around it.
    Expression(Box<NativeExpression>),
    /// A template, by its name.
    Template { name: String },
}

/// A string that is one expression.
#[derive(Debug)]
pub struct NativeExpression {
    pub(super) expression: Expression<'static, 'static>,
    /// Its position: `file:line:column`.
    pub(super) position: String,
}

impl NativeExpression {
    /// Whether the expression is true, in the sense of Jinja.
    ///
    /// # Errors
    /// Like [`Templates::render`](super::Templates::render).
    pub fn is_true(&self, context: &minijinja::Value) -> Result<bool, RenderError> {
        Ok(self.eval(context)?.is_true())
    }

    pub(super) fn eval(&self, context: &minijinja::Value) -> Result<minijinja::Value, RenderError> {
        let value =
            self.expression.eval(context.clone()).map_err(|error| RenderError::at_position(&self.position, &error))?;
        match value.is_undefined() {
            true => Err(RenderError(format!("{}: {} has no value", self.position, self.missing(context)))),
            false => Ok(value),
        }
    }

    /// The missing name that the expression uses, if it is known.
    fn missing(&self, context: &minijinja::Value) -> String {
        let is_there = |path: &str| {
            let mut parts = path.split('.');
            let found = parts.try_fold(context.clone(), |value, part| value.get_attr(part).ok());
            found.is_some_and(|value| !value.is_undefined())
        };
        let mut names: Vec<_> = self.expression.undeclared_variables(true).into_iter().collect();
        names.sort();
        names.iter().find(|name| !is_there(name)).map_or("the expression".to_owned(), |name| format!("`{name}`"))
    }
}

/// A template could not be filled in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a template failed: {0}")]
pub struct RenderError(String);

impl From<StateTooLarge> for RenderError {
    fn from(error: StateTooLarge) -> Self {
        RenderError(error.to_string())
    }
}

impl RenderError {
    /// An error that is not about a position in a file.
    pub fn new(message: impl Into<String>) -> Self {
        RenderError(message.into())
    }

    pub(super) fn at_position(position: &str, error: &minijinja::Error) -> Self {
        let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
        let expression = error.template_source().and_then(|source| source.get(error.range()?));
        let expression = expression.map(|expression| format!(" in `{expression}`")).unwrap_or_default();
        RenderError(format!("{position}: {what}{expression}"))
    }
}

/// The message of a syntax error, without MiniJinja's position: it is one in the string, ours is one in the file.
pub(super) fn syntax_error(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}
