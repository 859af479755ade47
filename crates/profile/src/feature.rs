//! Features of the protocol that a host may lack.

use serde_json::Value as Json;

use crate::ServerEvidence;
use rehearse_protocol::List;

/// Whether a server uses a feature.
pub(crate) enum Use {
    /// How it does, as a sentence.
    Used(String),
    Unused,
    /// Why it is not known, as a sentence without a point.
    Unknown(&'static str),
}

const NO_TRAFFIC: &str = "this shows only in what the server sends while it works";
const NO_LISTS: &str = "the lists of the server are not known";
const NO_CAPABILITIES: &str = "the capabilities of the server are not known";

/// How a feature shows.
enum Sign {
    /// A capability of the server, as a JSON pointer.
    Capability(&'static str),
    /// A list that is not empty.
    Listed(List),
    /// A member of a tool, as a JSON pointer.
    OfTool(&'static str),
    /// A member of any item.
    OfItem(&'static str),
    /// Instructions.
    Instructions,
    /// A request or a notification that the server sends: its method.
    Sent(&'static str),
    /// A result with structured content.
    StructuredContent,
    /// A list of more than one page.
    Pages,
    /// A request for input in a browser.
    UrlElicitation,
}

/// All features, and how they show.
const FEATURES: &[(&str, &str, Sign)] = &[
    ("resources", "resources", Sign::Listed(List::Resources)),
    ("resourceTemplates", "resource templates", Sign::Listed(List::ResourceTemplates)),
    ("resourceSubscriptions", "subscriptions of resources", Sign::Capability("/resources/subscribe")),
    ("prompts", "prompts", Sign::Listed(List::Prompts)),
    ("promptArguments", "arguments of prompts", Sign::OfItem("/arguments/0")),
    ("completions", "completions", Sign::Capability("/completions")),
    ("logging", "log messages", Sign::Capability("/logging")),
    ("instructions", "instructions", Sign::Instructions),
    ("listChanged", "changes of its list of tools", Sign::Capability("/tools/listChanged")),
    ("structuredContent", "structured content", Sign::StructuredContent),
    ("outputSchema", "output schemas", Sign::OfTool("/outputSchema")),
    ("annotations", "annotations of tools", Sign::OfTool("/annotations")),
    ("icons", "icons", Sign::OfItem("/icons/0")),
    ("titles", "titles", Sign::OfItem("/title")),
    ("progress", "progress", Sign::Sent("notifications/progress")),
    ("cancellation", "cancellation", Sign::Sent("notifications/cancelled")),
    ("pagination", "pages of the tool list", Sign::Pages),
    ("sampling", "sampling", Sign::Sent("sampling/createMessage")),
    ("elicitation", "elicitation", Sign::Sent("elicitation/create")),
    ("elicitationUrl", "elicitation by URL", Sign::UrlElicitation),
    ("roots", "roots", Sign::Sent("roots/list")),
    ("tasks", "tasks", Sign::Capability("/tasks")),
    ("apps", "apps", Sign::OfTool("/_meta/ui")),
    ("skills", "skills", Sign::Capability("/extensions/io.modelcontextprotocol~1skills")),
];

/// A feature, by its place in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature(usize);

impl Feature {
    /// The feature of this name.
    pub(crate) fn named(name: &str) -> Option<Feature> {
        FEATURES.iter().position(|(known, ..)| *known == name).map(Feature)
    }

    /// Its name.
    #[cfg(test)]
    pub(crate) fn name(self) -> &'static str {
        FEATURES[self.0].0
    }

    /// All names.
    pub(crate) fn names() -> Vec<&'static str> {
        FEATURES.iter().map(|(name, ..)| *name).collect()
    }

    pub(crate) fn of(self, server: &ServerEvidence<'_>) -> Use {
        let (_, noun, sign) = &FEATURES[self.0];
        let surface = server.surface;
        let items = |lists: &[List]| {
            let known = lists.iter().filter_map(|list| Some((*list, surface.list(*list)?)));
            known.flat_map(|(list, items)| items.iter().map(move |item| (list, item))).collect::<Vec<_>>()
        };
        let with = |pointer: &str, lists: &[List]| {
            let items = items(lists);
            let has = |item: &Json| item.pointer(pointer).is_some_and(|value| !value.is_null());
            let names: Vec<_> =
                items.iter().filter(|(_, item)| has(item)).map(|(list, item)| name(*list, item)).collect();
            match (&names[..], lists.iter().any(|list| surface.list(*list).is_some())) {
                (_, false) => Use::Unknown(NO_LISTS),
                ([], true) => Use::Unused,
                ([one], _) => Use::Used(format!("The server has {noun}: {one}.")),
                ([first, rest @ ..], _) => {
                    Use::Used(format!("The server has {noun}: {first} and {} more.", rest.len()))
                }
            }
        };
        let when = |is_used: bool, how: &str| if is_used { Use::Used(how.to_owned()) } else { Use::Unused };
        let seen = |is_used: bool, how: &str| match (is_used, server.traffic) {
            (true, _) => Use::Used(how.to_owned()),
            (false, Some(_)) => Use::Unknown("the server did not do so while it was watched"),
            (false, None) => Use::Unknown(NO_TRAFFIC),
        };
        let traffic = server.traffic;
        match sign {
            Sign::Capability(pointer) => match &surface.capabilities {
                Some(capabilities) => {
                    let declared = capabilities.pointer(pointer);
                    when(
                        declared.is_some_and(|it| !it.is_null() && it != false),
                        &format!("The server declares {noun}."),
                    )
                }
                None => Use::Unknown(NO_CAPABILITIES),
            },
            Sign::Listed(list) => match surface.list(*list).map(<[Json]>::len) {
                Some(count @ 1..) => Use::Used(format!("The server lists {count} {noun}.")),
                Some(0) => Use::Unused,
                None if surface.capabilities.as_ref().is_some_and(|it| it.get(list.capability()).is_none()) => {
                    Use::Unused
                }
                None => Use::Unknown(NO_LISTS),
            },
            Sign::OfTool(pointer) => with(pointer, &[List::Tools]),
            Sign::OfItem("/arguments/0") => with("/arguments/0", &[List::Prompts]),
            Sign::OfItem(pointer) => with(pointer, &List::ALL),
            Sign::Instructions => match surface.instructions.as_deref() {
                Some("") => Use::Unused,
                Some(_) => Use::Used("The server has instructions.".to_owned()),
                None => Use::Unknown("the instructions of the server are not known"),
            },
            Sign::Sent(method) => {
                seen(traffic.is_some_and(|it| it.sent.contains(*method)), &format!("The server sends {method}."))
            }
            Sign::StructuredContent => seen(
                traffic.is_some_and(|it| it.results.iter().any(|result| result.has_structured_content)),
                "The server answers with structured content.",
            ),
            Sign::Pages => match traffic {
                Some(traffic) => when(traffic.has_pages, "The server splits a list into pages."),
                None => Use::Unknown(NO_TRAFFIC),
            },
            Sign::UrlElicitation => {
                seen(traffic.is_some_and(|it| it.asks_for_url), "The server asks for input in a browser.")
            }
        }
    }
}

fn name(list: List, item: &Json) -> String {
    format!("{} {}", list.noun(), item.get(list.key()).and_then(Json::as_str).unwrap_or_default())
}
