//! What a few programs require of every file or server, beside what says how a server is reached.

use super::Dialect;

impl Dialect {
    /// Keys beside the servers without which the program rejects the file, and what is written there if nobody said.
    pub fn required_of_files(&self) -> &'static [(&'static str, &'static str)] {
        match self.name {
            "cpe" => &[("version", "1.0")],
            "continue" => &[("name", "MCP servers"), ("version", "1.0.0")],
            _ => &[],
        }
    }

    /// Whether a server that is started needs a list of arguments, if only an empty one.
    pub fn requires_args(&self) -> bool {
        self.name == "librechat"
    }
}
