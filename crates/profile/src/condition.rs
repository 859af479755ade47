//! What a rule looks at, and what it must be.

use std::time::Duration;

use regex::Regex;
use serde_json::Value as Json;

use crate::{
    ServerEvidence,
    feature::{Feature, Use},
    keys::KEYS,
    schema::SchemaLimit,
    text_limit::{TextLimit, quoted},
    traffic::{ToolResult, Traffic},
};
use rehearse_document::{Entry, Node, Problems, nearest};
use rehearse_protocol::List;
use rehearse_protocol::Transport;

/// Why tokens are not counted.
const NO_TOKENS: &str = "this program was built without `tokens`";

/// What a rule looks at.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    /// The name of an item, or the one that the host gives a tool.
    Name {
        list: List,
        limit: TextLimit,
        is_prefixed: bool,
    },
    ServerName(TextLimit),
    Text {
        of: ItemText,
        limit: TextLimit,
    },
    Instructions(TextLimit),
    Annotations(Vec<String>),
    /// Annotations of which one must be true.
    TrueAnnotation(Vec<String>),
    Count {
        list: List,
        max: usize,
    },
    ListSize(Size),
    Schema {
        is_output: bool,
        limit: SchemaLimit,
    },
    Feature(Feature),
    Transports(Vec<Transport>),
    ProtocolVersions(Vec<String>),
    Content(Vec<String>),
    ResultSize(Size),
    ImageSize(usize),
    Time {
        of: Work,
        max: Duration,
    },
    Authorization(Authorization),
    Url(UrlLimit),
}

/// A text of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ItemText {
    Title,
    Description,
    ParameterDescription,
}

/// The most of something.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Size {
    Bytes(usize),
    Tokens(usize),
    Characters(usize),
}

/// What takes time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work {
    Call,
    Start,
    List,
}

/// How a host is authorized.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Authorization {
    /// It cannot do OAuth.
    NoOauth,
    /// A server must use OAuth.
    Required,
    /// A server that asks for a token must say where to get one.
    Discovery,
}

#[derive(Clone, Debug)]
pub(crate) enum UrlLimit {
    Scheme(String),
    Pattern(Regex),
    Public,
}

/// What a rule says of a server.
pub(crate) enum Judged {
    Kept,
    /// What breaks it, with the item if it is one.
    Broken(Vec<(Option<String>, String)>),
    /// Why it could not be tried.
    Untried(String),
}

impl Condition {
    /// What a profile knows something of that has such a rule, if a reader would miss it.
    pub(crate) fn topic(&self) -> Option<&'static str> {
        match self {
            Condition::Schema { .. } => Some("schemas"),
            Condition::Content(_) | Condition::ResultSize(_) | Condition::ImageSize(_) => Some("results"),
            Condition::ProtocolVersions(_) => Some("versions"),
            _ => None,
        }
    }

    /// # Errors
    /// The value is not of the form that the key needs.
    pub(crate) fn read(entry: &Entry) -> Result<Condition, Problems> {
        let node = &entry.node;
        let name = |list| -> Result<Condition, Problems> {
            let limit = TextLimit::read(node, "itemName")?;
            let is_prefixed = match node.get("of").map(|of| Ok::<_, Problems>((of, of.str()?))).transpose()? {
                None | Some((_, "own")) => false,
                Some((_, "prefixed")) => true,
                Some((of, text)) => return Err(unknown(of, text, &["own", "prefixed"])),
            };
            Ok(Condition::Name { list, limit, is_prefixed })
        };
        let text = |of| Ok(Condition::Text { of, limit: TextLimit::read(node, "textLimit")? });
        let texts = || node.each(|it| Ok(it.str()?.to_owned()));
        let max = |object| KEYS.fields(node, object)?.required("max");
        let count = |list| Ok(Condition::Count { list, max: max("most")?.integer()? });
        let time = |of| Ok(Condition::Time { of, max: max("longest")?.duration()? });
        match entry.key.as_str() {
            "toolName" => name(List::Tools),
            "promptName" => name(List::Prompts),
            "resourceName" => name(List::Resources),
            "serverName" => Ok(Condition::ServerName(TextLimit::read(node, "textLimit")?)),
            "toolTitle" => text(ItemText::Title),
            "toolDescription" => text(ItemText::Description),
            "parameterDescription" => text(ItemText::ParameterDescription),
            "instructions" => Ok(Condition::Instructions(TextLimit::read(node, "textLimit")?)),
            "toolAnnotations" => {
                let entry = KEYS.choice(node, "toolAnnotations")?;
                let names = entry.node.each(|it| Ok(it.str()?.to_owned()))?;
                Ok(match entry.key.as_str() {
                    "required" => Condition::Annotations(names),
                    _ => Condition::TrueAnnotation(names),
                })
            }
            "toolCount" => count(List::Tools),
            "promptCount" => count(List::Prompts),
            "resourceCount" => count(List::Resources),
            "toolListSize" => Ok(Condition::ListSize(Size::read(node)?)),
            "inputSchema" => Ok(Condition::Schema { is_output: false, limit: SchemaLimit::read(node)? }),
            "outputSchema" => Ok(Condition::Schema { is_output: true, limit: SchemaLimit::read(node)? }),
            "feature" => {
                let name = node.str()?;
                let feature = Feature::named(name).ok_or_else(|| unknown(node, name, &Feature::names()))?;
                Ok(Condition::Feature(feature))
            }
            "transports" => Ok(Condition::Transports(node.each(Node::parsed)?)),
            "protocolVersions" => Ok(Condition::ProtocolVersions(texts()?)),
            "content" => Ok(Condition::Content(texts()?)),
            "resultSize" => Ok(Condition::ResultSize(Size::read(node)?)),
            "imageSize" => match Size::read(node)? {
                Size::Bytes(max) => Ok(Condition::ImageSize(max)),
                _ => Err(node.problem("`imageSize` needs `maxBytes`").into()),
            },
            "callTime" => time(Work::Call),
            "startTime" => time(Work::Start),
            "listTime" => time(Work::List),
            "authorization" => Authorization::read(node).map(Condition::Authorization),
            _ => UrlLimit::read(node).map(Condition::Url),
        }
    }

    /// Holds it against a server. `tool_name` makes the name that a model sees.
    pub(crate) fn judge(&self, server: &ServerEvidence<'_>, tool_name: &dyn Fn(&str) -> String) -> Judged {
        let of_server = |violation: Option<String>| match violation {
            Some(message) => Judged::Broken(vec![(None, message)]),
            None => Judged::Kept,
        };
        match self {
            Condition::Name { list, limit, is_prefixed } => each_item(server, *list, |item| {
                // A resource is known by its URI, and has a name.
                let name = item["name"].as_str()?;
                let (name, which) = match is_prefixed {
                    true => (tool_name(name), "The name that the model sees"),
                    false => (name.to_owned(), "The name"),
                };
                let shown = if *is_prefixed { format!("{which}, {},", quoted(&name)) } else { which.to_owned() };
                Some(format!("{shown} {}.", limit.violation(Some(&name))?))
            }),
            Condition::ServerName(limit) => match server.name {
                None => Judged::Untried("the name of the server in a config is not known".to_owned()),
                Some(name) => {
                    of_server(limit.violation(Some(name)).map(|what| format!("The name of the server {what}.")))
                }
            },
            Condition::Text { of, limit } => each_item(server, List::Tools, |tool| of.violation(tool, limit)),
            Condition::Instructions(limit) => match &server.surface.instructions {
                None => Judged::Untried("the instructions of the server are not known".to_owned()),
                Some(text) => {
                    of_server(limit.violation(Some(text)).map(|what| format!("The text of its instructions {what}.")))
                }
            },
            Condition::Annotations(keys) => each_item(server, List::Tools, |tool| {
                let has = |key: &str| {
                    let annotation = tool["annotations"].get(key);
                    annotation.is_some_and(|it| !it.is_null()) || (key == "title" && tool["title"].is_string())
                };
                let missing: Vec<_> = keys.iter().map(String::as_str).filter(|key| !has(key)).collect();
                (!missing.is_empty()).then(|| format!("It has no annotation {}.", missing.join(", ")))
            }),
            Condition::TrueAnnotation(keys) => each_item(server, List::Tools, |tool| {
                let is_true = |key: &String| tool["annotations"][key.as_str()] == true;
                (!keys.iter().any(is_true)).then(|| format!("None of its annotations {} is true.", keys.join(", ")))
            }),
            Condition::Count { list, max } => match server.surface.list(*list) {
                None => unknown_list(*list),
                Some(items) => of_server((items.len() > *max).then(|| {
                    format!("The server lists {} {}, and {max} are allowed.", items.len(), list.title().to_lowercase())
                })),
            },
            Condition::ListSize(size) => match server.surface.list(List::Tools) {
                None => unknown_list(List::Tools),
                Some(tools) => {
                    let text = Json::from(tools).to_string();
                    match size.of(&text, text.len(), server) {
                        None => Judged::Untried(NO_TOKENS.to_owned()),
                        Some(count) => {
                            of_server(size.violation(count).map(|what| format!("The list of tools {what}.")))
                        }
                    }
                }
            },
            Condition::Schema { is_output, limit } => {
                let (key, noun) =
                    if *is_output { ("outputSchema", "output schema") } else { ("inputSchema", "input schema") };
                each_item(server, List::Tools, |tool| {
                    Some(format!("The {noun} {}.", limit.violation(tool.get(key).filter(|it| !it.is_null())?)?))
                })
            }
            Condition::Feature(feature) => match feature.of(server) {
                Use::Used(how) => Judged::Broken(vec![(None, how)]),
                Use::Unused => Judged::Kept,
                Use::Unknown(why) => Judged::Untried(why.to_owned()),
            },
            Condition::Transports(known) => match server.transport {
                None => Judged::Untried("it is not known how the server is reached".to_owned()),
                Some(transport) => {
                    let is_known = known.contains(&transport);
                    of_server((!is_known).then(|| format!("The server is reached over {transport}.")))
                }
            },
            Condition::ProtocolVersions(known) => match &server.surface.protocol_versions {
                None => Judged::Untried("the protocol versions of the server are not known".to_owned()),
                Some(versions) => {
                    let is_known = versions.iter().any(|version| known.contains(version));
                    of_server((!is_known).then(|| format!("The server speaks {}.", versions.join(", "))))
                }
            },
            Condition::Content(known) => each_result(server, |result| {
                let other: Vec<_> =
                    result.kinds.iter().filter(|kind| !known.contains(kind)).map(String::as_str).collect();
                (!other.is_empty()).then(|| format!("A result has content of the type {}.", other.join(", ")))
            }),
            Condition::ResultSize(Size::Tokens(_)) if server.count_tokens.is_none() => {
                Judged::Untried(NO_TOKENS.to_owned())
            }
            Condition::ResultSize(size) => each_result(server, |result| {
                let count = size.of(&result.text, result.bytes, server)?;
                Some(format!("A result {}.", size.violation(count)?))
            }),
            Condition::ImageSize(max) => each_result(server, |result| {
                let size = result.image.filter(|size| size > max)?;
                Some(format!("A result has an image of {size} bytes, and {max} are allowed."))
            }),
            Condition::Time { of: Work::Call, max } => each_result(server, |result| {
                (result.time > *max)
                    .then(|| format!("A call took {}, and {} are allowed.", seconds(result.time), seconds(*max)))
            }),
            Condition::Time { of, max } => {
                let took = |traffic: &Traffic| match of {
                    Work::List => traffic.list(),
                    _ => traffic.start,
                };
                match server.traffic.and_then(took) {
                    None => Judged::Untried("it was not measured".to_owned()),
                    Some(time) => of_server((time > *max).then(|| {
                        let what = if matches!(of, Work::List) { "A list" } else { "The start with its handshake" };
                        format!("{what} took {}, and {} are allowed.", seconds(time), seconds(*max))
                    })),
                }
            }
            Condition::Authorization(authorization) => authorization.judge(server),
            Condition::Url(limit) => match server.url {
                None => Judged::Untried("no URL of the server is known".to_owned()),
                Some(url) => {
                    let is_kept = match limit {
                        UrlLimit::Scheme(scheme) => url.scheme() == scheme,
                        UrlLimit::Pattern(pattern) => pattern.is_match(url.as_str()),
                        UrlLimit::Public => is_public(url),
                    };
                    of_server((!is_kept).then(|| format!("The URL of the server is {url}.")))
                }
            },
        }
    }
}

/// Judges each item of a list.
fn each_item(server: &ServerEvidence<'_>, list: List, violation: impl Fn(&Json) -> Option<String>) -> Judged {
    let Some(items) = server.surface.list(list) else { return unknown_list(list) };
    let subject = |item: &Json| format!("{} {}", list.noun(), item[list.key()].as_str().unwrap_or_default());
    let broken: Vec<_> = items.iter().filter_map(|item| Some((Some(subject(item)), violation(item)?))).collect();
    if broken.is_empty() { Judged::Kept } else { Judged::Broken(broken) }
}

/// Judges the results of each tool; the first that breaks the rule stands for all of the tool. An error shows what breaks
/// it and not that it is kept, and what answers to the name of no tool shows neither.
fn each_result(server: &ServerEvidence<'_>, violation: impl Fn(&ToolResult) -> Option<String>) -> Judged {
    let tools = server.surface.list(List::Tools);
    let is_listed =
        |it: &&ToolResult| tools.is_none_or(|tools| tools.iter().any(|tool| tool["name"] == it.tool.as_str()));
    let results: Vec<_> = server.traffic.into_iter().flat_map(|it| &it.results).filter(is_listed).collect();
    if results.is_empty() {
        return Judged::Untried("no tool was called".to_owned());
    }
    let mut broken: Vec<(Option<String>, String)> = Vec::new();
    for result in results.iter().copied() {
        let subject = Some(format!("tool {}", result.tool));
        if broken.iter().all(|(known, _)| *known != subject) {
            broken.extend(violation(result).map(|message| (subject, message)));
        }
    }
    match broken.is_empty() {
        false => Judged::Broken(broken),
        true if results.iter().all(|it| it.is_error) => Judged::Untried("every call ended with an error".to_owned()),
        true => Judged::Kept,
    }
}

fn unknown_list(list: List) -> Judged {
    Judged::Untried(format!("the {} of the server are not known", list.title().to_lowercase()))
}

fn unknown(node: &Node, text: &str, known: &[&str]) -> Problems {
    let near = nearest(text, known).map(|near| format!("did you mean {near}?"));
    node.problem(format!("unknown word `{text}`"))
        .hint(near.unwrap_or_else(|| format!("write {}", known.join(", "))))
        .into()
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// Whether machines of others can reach it: its host is no name or address of this machine or of a private network.
fn is_public(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => {
            name.contains('.') && !name.ends_with(".local") && !name.ends_with(".localhost")
        }
        Some(url::Host::Ipv4(ip)) => {
            !(ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified())
        }
        Some(url::Host::Ipv6(ip)) => !(ip.is_loopback() || ip.is_unique_local() || ip.is_unicast_link_local()),
        None => false,
    }
}

impl ItemText {
    fn violation(self, tool: &Json, limit: &TextLimit) -> Option<String> {
        match self {
            ItemText::Title => {
                let title = tool["title"].as_str().or(tool["annotations"]["title"].as_str());
                Some(format!("The title {}.", limit.violation(title)?))
            }
            ItemText::Description => {
                Some(format!("The description {}.", limit.violation(tool["description"].as_str())?))
            }
            ItemText::ParameterDescription => {
                let parameters = tool["inputSchema"]["properties"].as_object()?;
                parameters.iter().find_map(|(name, schema)| {
                    let what = limit.violation(schema["description"].as_str())?;
                    Some(format!("The description of `{name}` {what}."))
                })
            }
        }
    }
}

impl Size {
    fn read(node: &Node) -> Result<Size, Problems> {
        let entry = KEYS.choice(node, "limitOfSize")?;
        Ok(match entry.key.as_str() {
            "maxBytes" => Size::Bytes(entry.node.bytes()?),
            "maxTokens" => Size::Tokens(entry.node.integer()?),
            _ => Size::Characters(entry.node.integer()?),
        })
    }

    /// `None` if tokens cannot be counted.
    fn of(self, text: &str, bytes: usize, server: &ServerEvidence<'_>) -> Option<usize> {
        Some(match self {
            Size::Bytes(_) => bytes,
            Size::Tokens(_) => (server.count_tokens?)(text),
            Size::Characters(_) => text.chars().count(),
        })
    }

    fn violation(self, count: usize) -> Option<String> {
        let (max, unit) = match self {
            Size::Bytes(max) => (max, "bytes"),
            Size::Tokens(max) => (max, "tokens or so"),
            Size::Characters(max) => (max, "characters"),
        };
        (count > max).then(|| format!("has {count} {unit}, and {max} are allowed"))
    }
}

impl Authorization {
    fn read(node: &Node) -> Result<Authorization, Problems> {
        let entry = KEYS.choice(node, "authorization")?;
        match (entry.key.as_str(), &entry.node) {
            ("oauth", value) if !value.bool()? => Ok(Authorization::NoOauth),
            ("required", value) if value.bool()? => Ok(Authorization::Required),
            ("discovery", value) if value.bool()? => Ok(Authorization::Discovery),
            (_, value) => Err(value.problem("write `oauth: false`, `required: true` or `discovery: true`").into()),
        }
    }

    fn judge(&self, server: &ServerEvidence<'_>) -> Judged {
        let Some(traffic) = server.traffic.filter(|traffic| traffic.has_http) else {
            return Judged::Untried("it is not known whether the server asks for authorization".to_owned());
        };
        let of_server = |message: &str| Judged::Broken(vec![(None, message.to_owned())]);
        match (self, traffic.needs_authorization, traffic.has_discovery) {
            (Authorization::NoOauth, true, _) => of_server("The server asks for authorization."),
            (Authorization::Required, false, _) => of_server("The server answers without authorization."),
            (Authorization::Discovery, true, Some(false)) => {
                of_server("The server asks for a token, and says nowhere where to get one.")
            }
            (Authorization::Discovery, true, None) => {
                Judged::Untried("the server was not asked where to get a token".to_owned())
            }
            _ => Judged::Kept,
        }
    }
}

impl UrlLimit {
    fn read(node: &Node) -> Result<UrlLimit, Problems> {
        let entry = KEYS.choice(node, "url")?;
        Ok(match entry.key.as_str() {
            "scheme" => UrlLimit::Scheme(entry.node.str()?.to_owned()),
            "pattern" => UrlLimit::Pattern(entry.node.parsed()?),
            _ if entry.node.bool()? => UrlLimit::Public,
            _ => return Err(entry.node.problem("`public` must be true").into()),
        })
    }
}
