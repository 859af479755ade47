//! The surface of a server that is connected.

use rehearse_client::{CallOptions, Failure, Session};
use rehearse_diff::{List, Surface};
use rehearse_protocol::message::METHOD_NOT_FOUND;

/// Requests all that a server shows: every list that its capabilities name, with what its handshake said.
///
/// # Errors
/// A list cannot be read. One that the server has a capability for, and no method, is empty: many have no templates.
pub async fn read_surface(session: &Session, options: CallOptions) -> Result<Surface, Failure> {
    let mut surface = Surface::default();
    surface.add_handshake(&serde_json::from_str(session.info().raw.get()).unwrap_or_default());
    for list in List::ALL.into_iter().filter(|list| surface.list(*list).is_none()).collect::<Vec<_>>() {
        let options = options.clone();
        let listing = match list {
            List::Tools => session.list_tools(options).await,
            List::Prompts => session.list_prompts(options).await,
            List::Resources => session.list_resources(options).await,
            List::ResourceTemplates => session.list_resource_templates(options).await,
        };
        let items = match listing {
            Err(Failure::Rpc(error)) if error.code == METHOD_NOT_FOUND => Vec::new(),
            listing => listing?.items,
        };
        surface.set(list, items.iter().filter_map(|item| serde_json::from_str(item.get()).ok()).collect());
    }
    Ok(surface)
}
