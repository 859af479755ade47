//! Typed definitions of tools.
//!
//! [`Language::bindings`] is a file that a program of your own uses with the official SDK of its language.
//! [`Language::definitions`] is what a model reads before it writes a program for code mode.
//!
//! JSON Schema says more than types can. What has no type is in a comment (formats, limits, defaults), or the type is
//! wider: any value.

mod go;
mod typescript;

use crate::{
    Tool,
    names::{javascript, pascal},
};

/// A language of definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    TypeScript,
    Go,
}

/// Two names in a program that are the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Collision {
    #[error(
        "code mode collision: tool {0:?} conflicts with reserved code mode tool name; either exclude this tool using \
         'excludedTools' configuration or remove the MCP server providing it"
    )]
    Reserved(String),
    #[error(
        "code mode collision: tools {first:?} and {second:?} both convert to {language} function name {function:?}; \
         exclude one using 'excludedTools' configuration or remove one of the MCP servers providing them"
    )]
    Function { first: String, second: String, language: &'static str, function: String },
}

impl Language {
    pub fn as_str(self) -> &'static str {
        match self {
            Language::TypeScript => "TypeScript",
            Language::Go => "Go",
        }
    }

    /// A source file with a type for the input and the output of every tool, and a function that calls it. Names that
    /// are the same get a number. The text depends only on the tools, not on their order.
    pub fn bindings(self, tools: &[Tool]) -> String {
        match self {
            Language::TypeScript => typescript::bindings(&sorted(tools)),
            Language::Go => go::bindings(&sorted(tools)),
        }
    }

    /// The types and the signatures of the functions.
    pub fn definitions(self, tools: &[Tool]) -> String {
        match self {
            Language::TypeScript => typescript::definitions(&sorted(tools)),
            Language::Go => go::definitions(&sorted(tools)),
        }
    }

    /// The name of the function that calls a tool, before numbers.
    fn function(self, tool: &str) -> String {
        match self {
            Language::TypeScript => javascript(tool),
            Language::Go => pascal(tool),
        }
    }

    /// Checks that each tool is a function of its own, and none has the name of the tool of code mode, `reserved`.
    ///
    /// # Errors
    /// The first collision, in the order of the names.
    pub fn check_names(self, tools: &[Tool], reserved: &str) -> Result<(), Collision> {
        let tools = sorted(tools);
        if let Some(tool) = tools.iter().find(|tool| tool.name == reserved) {
            return Err(Collision::Reserved(tool.name.clone()));
        }
        for (index, second) in tools.iter().enumerate() {
            let function = self.function(&second.name);
            if let Some(first) = tools[..index].iter().find(|first| self.function(&first.name) == function) {
                let (first, second) = (first.name.clone(), second.name.clone());
                return Err(Collision::Function { first, second, language: self.as_str(), function });
            }
        }
        Ok(())
    }
}

/// The functions of a JavaScript program and the names of their tools.
pub(crate) fn javascript_functions(tools: &[Tool]) -> Vec<(String, String)> {
    let tools = sorted(tools);
    let names = typescript::function_names(&tools);
    names.into_iter().zip(tools.iter().map(|tool| tool.name.clone())).collect()
}

/// The file of a Go program of code mode with the functions of its tools.
pub(crate) fn go_program(tools: &[Tool]) -> String {
    go::program(&sorted(tools))
}

fn sorted(tools: &[Tool]) -> Vec<&Tool> {
    let mut tools: Vec<_> = tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    tools
}

/// A text in lines, without other control characters.
fn comment_lines(text: &str) -> Vec<String> {
    let is_end = |c: char| matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}');
    let lines = text.trim().split(is_end).map(|line| {
        let line: String = line.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect();
        line.trim_end().to_owned()
    });
    lines.collect()
}

#[cfg(test)]
mod tests;
