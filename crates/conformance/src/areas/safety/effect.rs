//! Resources that differ after calls of tools that say that they change nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{TOOLS, is_read_only};
use crate::areas::common::{is_case_of, items};
use crate::{Call, Connection, Evidence, Judgement};

/// What was seen at one time.
struct Seen<'e> {
    /// The listed resources, if the list has one page.
    listed: Option<BTreeSet<&'e str>>,
    /// The text of each resource that was read, without digits.
    texts: BTreeMap<&'e str, Option<String>>,
}

impl Seen<'_> {
    /// What happened to a resource until it was seen again.
    fn change(&self, uri: &str, later: &Seen<'_>) -> Option<&'static str> {
        let is_in = |seen: &Seen<'_>| seen.listed.as_ref().map(|it| it.contains(uri));
        let text = |seen: &Seen<'_>| seen.texts.get(uri).cloned().flatten();
        match (text(self).zip(text(later)), is_in(self), is_in(later)) {
            (Some((one, other)), ..) if one != other => Some("another text in the resource"),
            (_, Some(true), Some(false)) => Some("no more the resource"),
            _ => None,
        }
    }
}

/// Judges calls between `effects/before`, which is seen twice, and `effects/after`. What differs without a call between,
/// in `effects/again` or in the connection `effects/idle`, changes by itself.
pub(super) fn judge(e: &Evidence<'_>, j: &mut Judgement) {
    let read_only: BTreeSet<_> =
        items(e, TOOLS).filter(|(tool, ..)| is_read_only(tool)).map(|(_, name, _)| name).collect();
    let idle: Vec<_> = e.connections.iter().map(|it| seen(it, "effects/idle")).collect();
    for connection in &e.connections {
        let (before, after) = (seen(connection, "effects/before"), seen(connection, "effects/after"));
        let ([first, second], Some(last)) = (before.as_slice(), after.first()) else { continue };
        let calls: Vec<_> = connection.calls().collect();
        let place = |case: &str| calls.iter().position(|call| is_case_of(call, case));
        let (Some(from), Some(to)) = (place("effects/before"), place("effects/after")) else { continue };
        let between = calls[from..to].iter().filter(|call| call.method() == "tools/call");
        let called: BTreeSet<_> = between.clone().filter_map(|call| call.text("/params/name")).collect();
        if called.is_empty() || !called.iter().all(|name| read_only.contains(name)) {
            j.untested("other tools were called at the same time");
            continue;
        }
        let again = seen(connection, "effects/again");
        let pairs = idle.iter().filter_map(|it| it.first().zip(it.last()));
        let mut controls: Vec<_> = pairs.chain([(first, second)]).collect();
        controls.extend(again.first().map(|again| (last, again)));
        let changes_alone = |uri: &str| controls.iter().any(|(one, other)| one.change(uri, other).is_some());
        let uris: BTreeSet<_> = second.listed.iter().flatten().chain(second.texts.keys()).copied().collect();
        let changed = uris.into_iter().filter(|uri| !changes_alone(uri));
        let changed = changed.filter_map(|uri| Some((uri, second.change(uri, last)?))).next();
        let mut places: Vec<_> = between.map(|call| call.request.place).collect();
        places.extend(calls[to..].iter().take(1).flat_map(Call::places));
        let names = called.into_iter().collect::<Vec<_>>().join(" or ");
        let found = || changed.map(|(uri, what)| format!("{what} {uri} after the call")).unwrap_or_default();
        j.check_at(changed.is_none(), Some(&names), places, found);
    }
}

/// Each time that the resources were seen in a case.
fn seen<'e>(connection: &'e Connection<'_>, case: &str) -> Vec<Seen<'e>> {
    let mut all: Vec<Seen<'e>> = Vec::new();
    for call in connection.calls().filter(|call| is_case_of(call, case)) {
        let result = call.result();
        if call.method() == "resources/list" {
            let listed = result.filter(|it| !it["nextCursor"].is_string()).and_then(|it| it["resources"].as_array());
            let listed = listed.map(|it| it.iter().filter_map(|it| it["uri"].as_str()).collect());
            all.push(Seen { listed, texts: BTreeMap::new() });
        } else if let (Some(seen), Some(uri)) = (all.last_mut(), call.text("/params/uri")) {
            seen.texts.insert(uri, result.and_then(text_of));
        }
    }
    all
}

/// The text of a resource. Clocks and counters differ only in their digits.
fn text_of(result: &Value) -> Option<String> {
    let texts = result["contents"].as_array()?.iter().map(|it| it["text"].as_str());
    let text: String = texts.collect::<Option<Vec<_>>>()?.join("\n");
    Some(text.replace(|it: char| it.is_ascii_digit(), ""))
}
