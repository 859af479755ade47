//! Debug mode by server: printing its frames and its standard error.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// The variable of code_agent that enables debug mode for all servers.
pub(super) const VARIABLE: &str = "CODE_AGENT_MCP_DEBUG";

/// Debug mode of all servers and of single servers.
#[derive(Debug, Default)]
pub(super) struct DebugSwitch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    all: bool,
    /// Takes precedence over `all`.
    servers: BTreeMap<String, bool>,
}

impl DebugSwitch {
    /// The initial state from the command line and the environment.
    pub(super) fn new(is_on: bool, variable: Option<&str>) -> DebugSwitch {
        let is_set = variable.is_some_and(|value| !matches!(value, "" | "0" | "false"));
        DebugSwitch(Mutex::new(State { all: is_on || is_set, servers: BTreeMap::new() }))
    }

    /// Sets one server, or all.
    pub(super) fn set(&self, server: Option<&str>, is_on: bool) {
        let mut state = self.0.lock();
        match server {
            Some(server) => drop(state.servers.insert(server.to_owned(), is_on)),
            None => *state = State { all: is_on, servers: BTreeMap::new() },
        }
    }

    /// Sets the value from a config, unless the user has set another.
    pub(super) fn apply_default(&self, server: &str, is_on: bool) {
        let mut state = self.0.lock();
        if !state.all {
            state.servers.entry(server.to_owned()).or_insert(is_on);
        }
    }

    pub(super) fn is_on(&self, server: &str) -> bool {
        let state = self.0.lock();
        state.servers.get(server).copied().unwrap_or(state.all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_server_takes_precedence_over_all() {
        let switch = DebugSwitch::new(false, None);
        switch.apply_default("a", true);
        assert_eq!((switch.is_on("a"), switch.is_on("b")), (true, false));
        switch.set(Some("a"), false);
        switch.apply_default("a", true);
        switch.set(Some("b"), true);
        assert_eq!((switch.is_on("a"), switch.is_on("b"), switch.is_on("c")), (false, true, false));
        switch.set(None, true);
        assert!(switch.is_on("a") && switch.is_on("c"));
    }

    #[test]
    fn the_variable_enables_debug_mode() {
        let is_on = |value| DebugSwitch::new(false, value).is_on("a");
        assert_eq!(
            [Some("1"), Some("true"), Some("0"), Some("false"), Some(""), None].map(is_on),
            [true, true, false, false, false, false]
        );
        assert!(DebugSwitch::new(true, None).is_on("a"));
    }
}
