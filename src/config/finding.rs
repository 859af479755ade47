//! What a validator has to say about a config: a code, a place, a sentence, a hint.

use std::{borrow::Cow, fmt, sync::Arc};

use super::{Problem, Span};

/// So many findings of one kind are told of one thing, and the rest is counted: nobody reads more.
pub(super) const MOST_TOLD: usize = 1000;

/// How bad a finding is. Its letter begins the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Correct, and yet there is a better way.
    Advice,
    /// The program takes it, but hardly as it was meant.
    Warning,
    /// The program that owns the format rejects it, or the server cannot be reached.
    Error,
}

/// The stable name of one kind of finding, such as `E-TRANSPORT`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Code {
    pub name: &'static str,
    /// What is the matter, in a few words.
    pub title: &'static str,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static Code,
    pub problem: Problem,
    /// The server that it is about.
    pub server: Option<Arc<str>>,
}

impl Code {
    pub fn severity(&self) -> Severity {
        match self.name.as_bytes().first() {
            Some(b'E') => Severity::Error,
            Some(b'W') => Severity::Warning,
            _ => Severity::Advice,
        }
    }

    /// A finding of this kind.
    pub fn at(&'static self, span: Span, message: impl Into<Cow<'static, str>>) -> Finding {
        Finding { code: self, problem: Problem::new(span, message), server: None }
    }
}

impl Finding {
    /// It is about this server.
    #[must_use]
    pub fn about(mut self, server: impl Into<Arc<str>>) -> Self {
        self.server = Some(server.into());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.problem = self.problem.hint(hint);
        self
    }

    /// So many more of its kind follow, which are not told.
    #[must_use]
    pub(super) fn followed_by(mut self, more: usize) -> Self {
        if more > 0 {
            self.problem.message = format!("{}; {more} more follow", self.problem.message).into();
        }
        self
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Error => "error",
        })
    }
}

/// Declares the codes, and [`codes::ALL`] with all of them.
macro_rules! codes {
    ($($constant:ident = $name:literal: $title:literal;)*) => {
        $(pub static $constant: Code = Code { name: $name, title: $title };)*
        /// Every code, in the order of the documentation.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

/// The kinds of findings.
pub mod codes {
    use super::Code;

    codes! {
        SYNTAX = "E-SYNTAX": "a text that cannot be read";
        JSON_COMMENT = "E-JSON-COMMENT": "a comment where the program takes none";
        JSON_COMMA = "E-JSON-COMMA": "a comma too many, or one that is missing";
        JSON_UNCLOSED = "E-JSON-UNCLOSED": "an object or list without an end";
        JSON_FORM = "E-JSON-FORM": "a way to write a value that the program does not know";
        JSON_DOUBTFUL = "W-JSON-FORM": "a comment or a comma of which nobody says that the program takes it";
        JSON_BLANK = "E-JSON-BLANK": "a character between values that looks like a blank and is none";
        JSON_AFTER = "E-JSON-AFTER": "something after the end";
        BYTE_ORDER_MARK = "E-BYTE-ORDER-MARK": "a byte order mark before the text";
        ROOT = "E-ROOT": "no servers where the program looks for them";
        BARE = "A-BARE": "servers without the key that they are usually under";
        NO_SERVERS = "A-NO-SERVERS": "a file without servers";
        VALUE_TYPE = "E-VALUE-TYPE": "a value of the wrong type";
        DUPLICATE = "E-DUPLICATE": "a name that stands twice, which the program rejects";
        DUPLICATE_KEY = "W-DUPLICATE-KEY": "a key that stands twice, of which one is lost";
        DUPLICATE_SERVER = "W-DUPLICATE-SERVER": "two servers of one name, of which one is lost";
        UNKNOWN_KEY = "W-UNKNOWN-KEY": "a key that the program does not know but that looks like one it does";
        KEY_REJECTED = "E-UNKNOWN-KEY": "a key for which the program rejects the file";
        EXTRA_KEY = "A-EXTRA-KEY": "a key that the program ignores";
        TRANSPORT = "E-TRANSPORT": "a transport that is missing, unknown or at odds with the address";
        TRANSPORT_GUESSED = "W-TRANSPORT": "a word for a transport that the program passes over";
        MISSING = "E-MISSING": "something that must be there is missing";
        FORBIDDEN = "E-FORBIDDEN": "something that the transport does not have";
        IGNORED = "W-IGNORED": "something that the program ignores for this transport";
        TIMEOUT = "E-TIMEOUT": "a timeout out of its range";
        TIMEOUT_UNIT = "W-TIMEOUT-UNIT": "a timeout that looks like another unit";
        NAME = "E-NAME": "a name that the program rejects";
        NAME_RESERVED = "W-NAME-RESERVED": "a name that the program has for itself";
        NAME_DISCOURAGED = "A-NAME": "a name that the program advises against";
        NAME_CLASH = "W-NAME-CLASH": "two servers whose tools get the same names";
        COMMAND_LINE = "W-COMMAND-LINE": "a command with its arguments in it, or with what only a shell understands";
        COMMAND_NOT_FOUND = "W-COMMAND-NOT-FOUND": "a command that is not on this machine";
        DIRECTORY = "W-DIRECTORY": "a working directory that is not on this machine";
        HOME = "W-HOME": "a `~` that nobody replaces";
        ENV_NAME = "W-ENV-NAME": "a name that no environment variable should have";
        PACKAGE_PROMPT = "A-PACKAGE-PROMPT": "npx asks before it installs a package";
        CONTAINER_INPUT = "W-CONTAINER-INPUT": "a container that does not get what the client writes";
        MACHINE_PATH = "A-MACHINE-PATH": "a path that exists on one machine only";
        URL = "E-URL": "what should be a URL and is none";
        URL_SCHEME = "E-URL-SCHEME": "a URL whose scheme the transport does not speak";
        URL_HOST = "W-URL-HOST": "an address to listen on where one to dial belongs";
        PLAIN_HTTP = "W-PLAIN-HTTP": "a secret that goes to another machine in the clear";
        HEADER = "E-HEADER": "a header that HTTP cannot carry";
        FILTER = "E-FILTER": "lists of tools that the program rejects";
        FILTER_CONFLICT = "W-FILTER-CONFLICT": "lists of tools that contradict each other";
        FILTER_EMPTY = "W-FILTER-EMPTY": "a list of tools that lets nothing through";
        FILTER_PATTERN = "W-FILTER-PATTERN": "a pattern where the program wants names";
        VARIABLE_REJECTED = "E-VARIABLE-UNSET": "a variable that is not set, which the program rejects";
        VARIABLE_UNSET = "W-VARIABLE-UNSET": "a variable that is not set";
        VARIABLE_FORM = "W-VARIABLE-FORM": "a reference that the program does not replace";
        INPUT_UNKNOWN = "E-INPUT-UNKNOWN": "an input that is asked for nowhere";
        INPUT = "E-INPUT": "an input that nobody can be asked for";
        INPUT_UNUSED = "A-INPUT-UNUSED": "an input that nothing uses";
        SERVER_UNKNOWN = "A-SERVER-UNKNOWN": "a list with the name of a server that is not in the file";
        SECRET = "W-SECRET": "a secret in the file";
        PLACEHOLDER = "W-PLACEHOLDER": "a value that nobody has filled in";
        YAML_FORM = "W-YAML-FORM": "something that YAML takes for a part of the text before it";
        INVISIBLE = "W-INVISIBLE": "a character that nobody sees, or takes for another";
        SUBAGENT = "E-SUBAGENT": "a subagent that cannot be offered";
        MODEL = "E-MODEL": "a model that is not described";
        CONNECT = "E-CONNECT": "a server that cannot be reached";
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_has_a_name_of_its_own_and_a_severity() {
        let names: HashSet<_> = codes::ALL.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), codes::ALL.len());
        for name in names {
            assert!(["E-", "W-", "A-"].iter().any(|letter| name.starts_with(letter)), "{name}");
        }
        assert_eq!(codes::TRANSPORT.severity(), Severity::Error);
        assert!(Severity::Error > Severity::Warning && Severity::Warning > Severity::Advice);
    }
}
