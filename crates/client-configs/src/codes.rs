//! The kinds of findings, each with its stable name and its page in `docs/config-diagnostics.md`.

use rehearse_report::findings::{Code, Rule};

/// What to do if it is not clear which program a file is for.
pub const DIALECT_HINT: &str = "name the program with --dialect; `rehearse validate-config --list-dialects` lists them";

/// Declares the codes, and [`ALL`] with all of them.
macro_rules! codes {
    ($($constant:ident = $name:literal: $title:literal;)*) => {
        $(pub static $constant: Code = Code { name: $name, title: $title };)*
        /// Every code, in the order of the documentation.
        pub static ALL: &[&Code] = &[$(&$constant),*];
    };
}

codes! {
    FILE = "E-FILE": "a file that cannot be read";
    SYNTAX = "E-SYNTAX": "a file that cannot be parsed";
    JSON_COMMENT = "E-JSON-COMMENT": "a comment that the program does not read";
    JSON_COMMA = "E-JSON-COMMA": "a comma after the last value";
    JSON_FORM = "E-JSON-FORM": "JSON5 or another syntax that the program does not read";
    JSON_UNDOCUMENTED = "W-JSON-FORM": "a comment or trailing comma that the documentation does not allow";
    BYTE_ORDER_MARK = "E-BYTE-ORDER-MARK": "a byte order mark at the start of the file";
    ROOT = "E-ROOT": "no servers where the program looks for them";
    DIALECT = "E-DIALECT": "a file that programs read in different ways";
    PLACE = "W-PLACE": "a file that its program does not read";
    BARE = "A-BARE": "servers without the usual key around them";
    NO_SERVERS = "A-NO-SERVERS": "a file without servers";
    VALUE_TYPE = "E-VALUE-TYPE": "a value of the wrong type";
    DUPLICATE = "E-DUPLICATE": "a duplicate key, which the program rejects";
    DUPLICATE_KEY = "W-DUPLICATE-KEY": "a duplicate key, of which one is lost";
    DUPLICATE_SERVER = "W-DUPLICATE-SERVER": "two servers with one name, of which one is lost";
    UNKNOWN_KEY = "W-UNKNOWN-KEY": "an unknown key that looks like a known one";
    NOT_DISABLED = "W-NOT-DISABLED": "a server that is started although it looks switched off";
    KEY_REJECTED = "E-UNKNOWN-KEY": "an unknown key, for which the program rejects the file";
    EXTRA_KEY = "A-EXTRA-KEY": "an unknown key, which the program ignores";
    TRANSPORT = "E-TRANSPORT": "a transport that is missing, unknown or does not match the address";
    TRANSPORT_GUESSED = "W-TRANSPORT": "an unknown transport, which the program ignores";
    MISSING = "E-MISSING": "a required key is missing";
    FORBIDDEN = "E-FORBIDDEN": "a key that this transport may not have";
    IGNORED = "W-IGNORED": "a key or value that the program ignores here";
    TIMEOUT = "E-TIMEOUT": "a timeout out of range";
    TIMEOUT_UNIT = "W-TIMEOUT-UNIT": "a timeout that looks like the wrong unit";
    NAME = "E-NAME": "a server name that the program rejects";
    NAME_RESERVED = "W-NAME-RESERVED": "a server name that the program reserves";
    NAME_DISCOURAGED = "A-NAME": "a server name that the program advises against";
    NAME_CLASH = "W-NAME-CLASH": "two servers whose tools get the same names";
    COMMAND_LINE = "W-COMMAND-LINE": "a command line where one program or argument belongs";
    COMMAND_NOT_FOUND = "W-COMMAND-NOT-FOUND": "a command that is not on this machine";
    BATCH_FILE = "A-BATCH-FILE": "a batch file, which the program may not start on Windows";
    DIRECTORY = "W-DIRECTORY": "a working directory that is not on this machine";
    HOME = "W-HOME": "a `~` that nothing expands";
    RELATIVE_PATH = "W-RELATIVE-PATH": "a relative script path for a desktop program";
    WIDE_ACCESS = "W-WIDE-ACCESS": "a filesystem server that may access the whole home folder or disk";
    ENV_NAME = "W-ENV-NAME": "an invalid environment variable name";
    PACKAGE_PROMPT = "A-PACKAGE-PROMPT": "npx asks before it installs a package";
    PACKAGE_UNPINNED = "A-PACKAGE-UNPINNED": "a package without a version";
    CONTAINER_INPUT = "W-CONTAINER-INPUT": "a container that does not receive the client's input";
    CONTAINER_VARIABLE = "W-CONTAINER-ENV": "a variable that does not reach the container";
    MACHINE_PATH = "A-MACHINE-PATH": "a path that exists on one machine only";
    URL = "E-URL": "an invalid URL";
    URL_SCHEME = "E-URL-SCHEME": "a URL scheme that the transport does not support";
    URL_HOST = "W-URL-HOST": "a listen address instead of the server's address";
    URL_UNLISTED = "E-URL-UNLISTED": "a URL that the list of allowed hosts in the file does not have";
    URL_TRANSPORT = "W-URL-TRANSPORT": "a URL that looks like one for another transport";
    PLAIN_HTTP = "W-PLAIN-HTTP": "a secret that is sent unencrypted to another machine";
    HEADER = "E-HEADER": "an invalid HTTP header";
    HEADER_OVERRIDDEN = "W-HEADER": "a header that the protocol sets itself";
    HEADER_NEEDLESS = "A-HEADER": "a header that every client sends";
    FILTER = "E-FILTER": "tool lists that the program rejects";
    FILTER_CONFLICT = "W-FILTER-CONFLICT": "tool lists that contradict each other";
    FILTER_EMPTY = "W-FILTER-EMPTY": "a tool list that allows no tools";
    FILTER_PATTERN = "W-FILTER-PATTERN": "a pattern where the program expects tool names";
    VARIABLE_REJECTED = "E-VARIABLE-UNSET": "an unset variable, for which the program rejects the file";
    VARIABLE_UNSET = "W-VARIABLE-UNSET": "an unset variable";
    VARIABLE_FORM = "W-VARIABLE-FORM": "a reference that the program does not replace";
    INPUT_UNKNOWN = "E-INPUT-UNKNOWN": "a reference to an input that does not exist";
    INPUT = "E-INPUT": "an incomplete input";
    INPUT_UNUSED = "A-INPUT-UNUSED": "an unused input";
    SERVER_UNKNOWN = "A-SERVER-UNKNOWN": "a server list with a name that is not in the file";
    SECRET = "W-SECRET": "a secret in the file";
    PLACEHOLDER = "W-PLACEHOLDER": "a placeholder that was not filled in";
    INVISIBLE = "W-INVISIBLE": "an invisible or misleading character";
    RELEASE_VALUE = "E-RELEASE-VALUE": "a value that the format of a release file does not allow";
    RELEASE_VERSION = "W-RELEASE-VERSION": "a version of a server that is not SemVer";
    RELEASE_FILE = "W-RELEASE-FILE": "a file that a release file names and that is not there";
    RELEASE_PACKAGE = "E-RELEASE-PACKAGE": "a package that the registry does not take for this server";
    RELEASE_OTHER_PACKAGE = "W-RELEASE-PACKAGE": "a package beside a release file that says something else";
    SUBAGENT = "E-SUBAGENT": "a subagent that cannot run";
    MODEL = "E-MODEL": "a reference to a model that does not exist";
    CONNECT = "E-CONNECT": "a server that cannot be reached";
    TOOL_UNKNOWN = "W-TOOL-UNKNOWN": "a tool list with a name that the server does not have";
    OUTPUT = "W-OUTPUT": "output of a server that is not part of the protocol";
    TOOL = "W-TOOL": "a listed tool that cannot be used";
    PROFILE = "W-PROFILE": "what the program of the config does not accept of a server";
    TOOL_SHADOWED = "A-TOOL-SHADOWED": "tools of two servers with one name";
    TOOL_MENTION = "A-TOOL-MENTION": "a description that names a tool of another server";
    RELEASE_MISMATCH = "W-RELEASE-MISMATCH": "a release file that does not fit the server";
    RELEASE_NAME = "A-RELEASE-NAME": "a release file with another name than the server";
}

/// The codes that only a connection shows.
pub static OF_CONNECTIONS: [&Code; 9] = [
    &CONNECT,
    &TOOL_UNKNOWN,
    &OUTPUT,
    &TOOL,
    &PROFILE,
    &TOOL_SHADOWED,
    &TOOL_MENTION,
    &RELEASE_MISMATCH,
    &RELEASE_NAME,
];

/// The codes that only a file with which a server is released has.
pub static OF_RELEASES: [&Code; 5] =
    [&RELEASE_VALUE, &RELEASE_VERSION, &RELEASE_FILE, &RELEASE_PACKAGE, &RELEASE_OTHER_PACKAGE];

/// The section of a code in the page `docs/config-diagnostics.md`, in Markdown and without its heading.
pub fn explanation<'p>(code: &Code, page: &'p str) -> Option<&'p str> {
    let mut sections = page.split("\n## ").skip(1);
    let (_, text) = sections.find_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        Some((heading.strip_prefix(code.name)?.strip_prefix(": ")?, text))
    })?;
    Some(text.trim())
}

/// Every code with its explanation in the page `docs/config-diagnostics.md`, for reports that list the rules of their tool.
pub fn rules(page: &'static str) -> Vec<Rule> {
    ALL.iter().map(|code| Rule { code, help: explanation(code, page).unwrap_or(code.title) }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_code_has_a_unique_name_with_its_severity() {
        let names: HashSet<_> = ALL.iter().map(|code| code.name).collect();
        assert_eq!(names.len(), ALL.len());
        for code in ALL {
            assert!(["E-", "W-", "A-"].iter().any(|letter| code.name.starts_with(letter)), "{}", code.name);
        }
    }

    #[test]
    fn a_code_is_explained_by_its_section_of_the_page() {
        let page = "# Findings\n\n## E-URL: a wrong URL\n\nText.\n\n## W-SECRET: a secret\n\nMore.\n";
        assert_eq!((explanation(&URL, page), explanation(&HEADER, page)), (Some("Text."), None));
    }
}
