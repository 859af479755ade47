//! What a client does, step by step.

use std::collections::BTreeSet;

use crate::{Call, Evidence, Kind};

/// What a client has done with a server. Two runs of a client that does the same work have the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// The methods of its requests. How it begins depends on the versions of the server, so that does not count, nor
    /// does what is refused for lack of a token.
    pub methods: BTreeSet<String>,
    /// How the client's process ended, if it was started and has ended: 0 is success.
    pub exit_code: Option<i32>,
}

impl Flow {
    /// What the client has done by its traffic.
    pub fn new(evidence: &Evidence<'_>) -> Flow {
        const BEGINNING: [&str; 3] = ["initialize", "server/discover", "ping"];
        let is_refused = |call: &Call<'_>| call.status() == Some(401);
        let requests = evidence.calls().filter(|call| call.request.kind == Kind::Request && !is_refused(call));
        let methods = requests.filter_map(|call| call.request.method()).filter(|method| !BEGINNING.contains(method));
        Flow { methods: methods.map(ToOwned::to_owned).collect(), exit_code: evidence.facts.exit_code }
    }

    /// What of this flow another one lacks, in words; `None` if it lacks nothing.
    pub fn missing_in(&self, other: &Flow) -> Option<String> {
        self.lacks(other).or_else(|| self.hangs_in(other)).or_else(|| match (self.exit_code, other.exit_code) {
            // A client that always fails says nothing by it.
            (Some(0), Some(code)) if code != 0 => Some(format!("the exit code {code}, which is 0 otherwise")),
            _ => None,
        })
    }

    /// Which request of this flow another one lacks.
    pub fn lacks(&self, other: &Flow) -> Option<String> {
        let method = self.methods.difference(&other.methods).next()?;
        Some(format!("no {method}, which it sends otherwise"))
    }

    /// Whether the client has ended in this flow, and not in another one.
    pub fn hangs_in(&self, other: &Flow) -> Option<String> {
        (self.exit_code.is_some() && other.exit_code.is_none())
            .then(|| "a client that does not end, as it does otherwise".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_always_fails_is_not_accused_of_success() {
        let ended = |code| Flow { exit_code: Some(code), ..Flow::default() };
        assert_eq!(ended(1).missing_in(&ended(0)), None);
        assert_eq!(ended(1).missing_in(&ended(2)), None);
        assert_eq!(ended(0).missing_in(&ended(1)), Some("the exit code 1, which is 0 otherwise".to_owned()));
    }
}
