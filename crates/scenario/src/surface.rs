//! The surface of a server that is connected.

use std::collections::HashMap;

use rehearse_client::{CallOptions, Failure, Session};
use rehearse_diff::Surface;
use rehearse_protocol::{List, message::METHOD_NOT_FOUND};
use serde_json::{Value, value::RawValue};

/// Requests all that a server shows: every list that its capabilities name, with what its handshake said.
///
/// # Errors
/// A list cannot be read. One that the server has a capability for, and no method, is empty: many have no templates.
pub async fn read_surface(session: &Session, options: CallOptions) -> Result<Surface, Failure> {
    let mut surface = Surface::default();
    surface.add_handshake(&serde_json::from_str(session.info().raw.get()).unwrap_or_default());
    for list in List::ALL.into_iter().filter(|list| surface.list(*list).is_none()).collect::<Vec<_>>() {
        let items = match session.list(list, options.clone()).await {
            Err(Failure::Rpc(error)) if error.code == METHOD_NOT_FOUND => Vec::new(),
            listing => listing?.items,
        };
        let items: Result<Vec<_>, _> = items.iter().map(|item| parsed(list, item)).collect();
        surface.set(list, items?);
    }
    Ok(surface)
}

/// # Errors
/// It is nested too deeply to be kept: a surface without it would say that the server does not have it.
fn parsed(list: List, item: &RawValue) -> Result<Value, Failure> {
    serde_json::from_str(item.get()).map_err(|error| {
        let members: HashMap<&str, &RawValue> = serde_json::from_str(item.get()).unwrap_or_default();
        let name = members.get("name").map_or("", |name| name.get());
        Failure::Malformed(format!("the {} {name} cannot be kept: {error}", list.noun()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_that_cannot_be_kept_is_an_error_with_its_name() {
        let item = |depth: usize| {
            let text = format!(r#"{{"name":"two","inputSchema":{}{}}}"#, r#"{"a":"#.repeat(depth), "}".repeat(depth));
            RawValue::from_string(text.replace(r#""a":}"#, r#""a":1}"#)).expect("JSON")
        };
        assert!(parsed(List::Tools, &item(62)).is_ok());
        let Err(Failure::Malformed(why)) = parsed(List::Tools, &item(140)) else { panic!("it is too deep") };
        assert!(why.starts_with("the tool \"two\" cannot be kept: recursion limit"), "{why}");
    }
}
