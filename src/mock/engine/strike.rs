//! Which faults strike an answer.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{
    Engine, Incoming, Intake, Peer,
    call::{draw, drawn_seed, parsed},
    params::{Params, optional_text},
};
use crate::{
    mock::{
        faults::Chain,
        script::{Facts, Kind, Lazy, Target},
    },
    wire::{Era, Id, Message, Notification, Request, Version},
};

/// What is done about a frame, and the faults that strike it.
#[derive(Debug)]
pub struct Faulty {
    /// What would be done without faults.
    pub intake: Intake,
    /// The request that is answered; `None` if a notification is struck.
    pub id: Option<Id>,
    pub chain: Chain,
}

/// The faults draw apart from the rules of stubs, whose numbers are small.
const DRAWN_FOR: usize = usize::MAX;

impl Engine {
    /// Takes a message of the modern era.
    pub fn receive_modern(self: &Arc<Self>, message: Message<'_>, incoming: Incoming<'_>) -> Intake {
        match self.strike(None, &message, incoming) {
            None => self.modern_message(message, incoming),
            Some((id, chain)) => faulty(self.modern_message(message, incoming), id, chain),
        }
    }

    /// Takes a message of a legacy connection or session.
    pub fn receive_legacy(self: &Arc<Self>, peer: &Arc<Peer>, message: Message<'_>, incoming: Incoming<'_>) -> Intake {
        match self.strike(Some(peer), &message, incoming) {
            None => self.legacy_message(peer, message, incoming),
            Some((id, chain)) => faulty(self.legacy_message(peer, message, incoming), id, chain),
        }
    }

    /// Whether the script has any faults.
    pub fn has_faults(&self) -> bool {
        !self.catalog.load().script.faults.is_empty()
    }

    /// The faults that strike a message, with the id of what they strike.
    fn strike(
        &self,
        peer: Option<&Arc<Peer>>,
        message: &Message<'_>,
        incoming: Incoming<'_>,
    ) -> Option<(Option<Id>, Chain)> {
        let catalog = self.catalog.load();
        if catalog.script.faults.is_empty() {
            return None;
        }
        let (method, id, params) = match message {
            Message::Request(Request { method, id, params }) => (method, Some(id), *params),
            Message::Notification(Notification { method, params }) => (method, None, *params),
            Message::Response(_) => return None,
        };
        let of_params = Params::parse(params).unwrap_or_default();
        let meta = of_params.meta().unwrap_or_default();
        let text = |value| optional_text("", value).ok().flatten();
        let version = match peer {
            Some(peer) => peer.version().or_else(|| text(of_params.protocol_version)?.parse().ok()),
            None => text(meta.protocol_version).and_then(|version| version.parse().ok()),
        };
        let era = if peer.is_some() { Era::Legacy } else { Era::Modern };
        let latest = || Version::ALL.into_iter().rfind(|version| version.era() == era);
        let mut facts = Facts {
            args: Lazy::new(|| of_params.arguments.map_or_else(|| Json::Object(Map::new()), parsed)),
            params: Lazy::new(|| params.map_or_else(|| Json::Object(Map::new()), parsed)),
            headers: incoming.headers,
            version: version.filter(|version: &Version| version.era() == era).or_else(latest)?,
            transport: incoming.transport,
            capabilities: Lazy::new(|| match peer {
                Some(peer) => peer.capabilities(),
                None => meta.client_capabilities.map(parsed).unwrap_or_default(),
            }),
            call: 0,
            state: Lazy::new(|| Json::Object(Map::clone(&self.state.get()))),
            at: incoming.at,
            draw: 0.0,
        };
        let mut striking = Vec::new();
        for (index, rule) in catalog.script.faults.iter().enumerate() {
            let aimed = match &rule.target {
                // What has no answer is struck only by name.
                Target::Everything => id.is_some(),
                Target::Method(wanted) => wanted == method,
                Target::Stub(kind, name) => {
                    let member = if *kind == Kind::Resource { of_params.uri } else { of_params.name };
                    *method == kind_method(*kind) && text(member).is_some_and(|it| it == **name)
                }
            };
            if !aimed || !rule.when.covers(&facts) {
                continue;
            }
            facts.call = catalog.count_strike(index);
            facts.draw = draw(self.seed, facts.call, (DRAWN_FOR, index));
            if rule.when.mismatches(&facts).is_empty() {
                let exists = rule.faults.iter().filter(|it| it.about().transports.contains(&facts.transport));
                striking.extend(exists.map(|fault| (fault.clone(), facts.call, index)));
            }
        }
        if striking.is_empty() {
            return None;
        }
        let seeded = striking.into_iter().enumerate().map(|(position, (fault, nth, index))| {
            (fault, drawn_seed(self.seed, nth, (DRAWN_FOR - 1 - position, index)))
        });
        Some((id.cloned(), Chain::new(id, seeded)))
    }
}

fn faulty(intake: Intake, id: Option<Id>, chain: Chain) -> Intake {
    Intake::Faulty(Box::new(Faulty { intake, id, chain }))
}

/// The method that asks for what a stub of the kind answers.
fn kind_method(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool => "tools/call",
        Kind::Prompt => "prompts/get",
        Kind::Resource | Kind::ResourceTemplate | Kind::Method => "resources/read",
    }
}
