//! The client that the official suite tests: it uses all that a server has. The suite sets the protocol version in
//! `MCP_CONFORMANCE_PROTOCOL_VERSION`, and tool calls and credentials as JSON in `MCP_CONFORMANCE_CONTEXT`.
#![expect(clippy::print_stderr, reason = "it is a program")]

use std::{env, error::Error, fmt::Display, future::ready, iter::once, sync::Arc};

use mcp_rehearsal::{
    client::{
        Answer, AnswerScript, Answers, CallOptions, InputKind, InputRequest, Listing, ServerParams, Session, Target,
        example, example_operation,
        oauth::{
            AuthError, Authorizer, ClientSecret, GrantKind, Identity, IdentityProvider, Interaction, Options,
            PreregisteredClient, Secret, SigningKey,
        },
        skill::{self, Skill},
    },
    client_configs::{
        policy::{Duplicates, Naming, Policy},
        server::ToolFilter,
    },
    hub::{
        Registry,
        registry::{AllowedCalls, ServerTools},
    },
    protocol::{Era, List, Protocol},
};
use serde_json::{Value, json, value::RawValue};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).ok_or("the URL of a server is missing")?;
    let variable = |name: &str| env::var(format!("MCP_CONFORMANCE_{name}")).ok();
    let protocol = variable("PROTOCOL_VERSION").map_or(Ok(Protocol::Auto), |version| version.parse())?;
    let context: Value = serde_json::from_str(&variable("CONTEXT").unwrap_or("null".to_owned()))?;
    let mut params = ServerParams::new("server", Target::http(&url));
    params.authorizer = Some(authorizer(&context, &url)?);
    let respondent = |asked| Box::pin(ready(Some(Answer::Result(answer(&asked))))) as _;
    params.answers = Answers::with_handler(AnswerScript::default(), Arc::new(respondent));
    let loads = !variable("SCENARIO").is_some_and(|scenario| scenario.ends_with("no-prefetch"));
    // Everything once more in a new session, if the server forgets the first one.
    for _ in 0..2 {
        let session = Session::connect(&params, protocol).await?;
        use_tools(&session, &context).await;
        use_items(&session, List::Resources).await;
        use_items(&session, List::Prompts).await;
        use_skills(&session, loads).await;
        let is_lost = session.is_lost();
        session.close().await;
        if !is_lost {
            break;
        }
    }
    Ok(())
}

/// Calls the tools that the suite names, or every tool, with the schema of another tool where one is wanted.
async fn use_tools(session: &Session, context: &Value) {
    if !session.info().declares("tools") {
        return;
    }
    let (listing, failure) = session.list_partial(List::Tools, usize::MAX, CallOptions::default()).await;
    succeeded("tools/list", failure.map_or(Ok(()), Err));
    let listed = ServerTools {
        server: &"server".into(),
        filter: &ToolFilter::default(),
        policy: &Policy::USUAL,
        tools: &listing.items,
        always_allow: AllowedCalls::All,
        mirrors: session.info().version.era() == Era::Modern,
    };
    let registry = Registry::build([listed], Naming::Bare, Duplicates::FirstWins).unwrap_or_default();
    let schema = |schema: &RawValue| serde_json::from_str::<Value>(schema.get()).unwrap_or_default();
    let usual = registry.tools().iter().map(|tool| {
        let input = schema(&tool.input_schema);
        let mut arguments = example::object(&input);
        let other = registry.tools().iter().find(|other| other.name != tool.name);
        if let (Some(other), true) = (other, input["properties"]["schema"]["type"] == "object") {
            arguments.insert("schema".to_owned(), schema(&other.input_schema));
        }
        json!({ "name": tool.original, "arguments": arguments })
    });
    let calls = context["toolCalls"].as_array().cloned().unwrap_or_else(|| usual.collect());
    for call in calls.into_iter().take_while(|_| !session.is_lost()) {
        let (name, arguments) = (call["name"].as_str().unwrap_or_default(), call["arguments"].as_object().cloned());
        let arguments = Some(arguments.unwrap_or_default());
        succeeded(name, session.call_tool(name, arguments, CallOptions::default()).await);
    }
}

/// Reads every resource, or gets every prompt.
async fn use_items(session: &Session, list: List) {
    if session.is_lost() || !session.info().declares(list.capability()) {
        return;
    }
    let listing = succeeded(list.method(), session.list(list, CallOptions::default()).await);
    for item in listing.iter().flat_map(Listing::all_values).take_while(|_| !session.is_lost()) {
        if let Some(operation) = example_operation(list, &item) {
            succeeded(&item.to_string(), session.perform(operation, CallOptions::default()).await);
        }
    }
}

/// Lists the skills, and loads each with all its files, up to the first invalid one.
async fn use_skills(session: &Session, loads: bool) {
    let capabilities: Value = serde_json::from_str(session.info().capabilities.get()).unwrap_or_default();
    if session.is_lost() || capabilities["extensions"][skill::EXTENSION].is_null() {
        return;
    }
    let listing = succeeded("skills/list", session.list_skills(CallOptions::default()).await).unwrap_or_default();
    let skills = listing.items.iter().filter(|_| loads);
    for skill in skills.filter_map(|skill| serde_json::from_str::<Skill>(skill.get()).ok()) {
        let files = skill.resources.iter().map(|file| &file.uri).filter(|uri| **uri != skill.uri);
        for uri in once(&skill.uri).chain(files) {
            if succeeded(uri, session.read_skill(&skill, uri, CallOptions::default()).await).is_none() {
                break;
            }
        }
    }
}

/// Prints a failure; the suite judges it.
fn succeeded<T, E: Display>(what: &str, result: Result<T, E>) -> Option<T> {
    result.inspect_err(|error| eprintln!("{what:?}: {error}")).ok()
}

/// Gets tokens without a browser, with the credentials of the suite.
fn authorizer(context: &Value, url: &str) -> Result<Authorizer, AuthError> {
    let text = |name: &str| context[name].as_str().map(str::to_owned);
    let secret = match (text("client_secret"), text("private_key_pem")) {
        (Some(secret), _) => ClientSecret::Text(Secret::new(secret)),
        (None, Some(key)) => ClientSecret::Key(Arc::new(SigningKey::from_pem(&key)?)),
        (None, None) => ClientSecret::None,
    };
    let registered = text("client_id").map(|id| PreregisteredClient { id, secret, issuer: None });
    let provider = text("idp_token_endpoint").zip(text("idp_client_id")).zip(text("idp_id_token"));
    let grant = match (text("valid_jwt"), provider, text("name")) {
        (Some(certificate), ..) => GrantKind::WorkloadIdentity(Secret::new(certificate)),
        (_, Some(((token_endpoint, client_id), id_token)), _) => {
            let id_token = Secret::new(id_token);
            GrantKind::EnterpriseManaged(IdentityProvider { token_endpoint, client_id, id_token })
        }
        (.., Some(name)) if name.contains("client-credentials") => GrantKind::ClientCredentials,
        _ => GrantKind::AuthorizationCode,
    };
    // The suite knows the document without fetching it, and nothing listens at the redirect URI.
    let document = Some("https://conformance-test.local/client-metadata.json".to_owned());
    let interaction = Interaction::Headless { redirect_uri: "http://localhost:3000/callback".to_owned() };
    let identity = Identity { registered, document, ..Identity::default() };
    Authorizer::new(url, Options { identity, grant, interaction, ..Options::default() })
}

/// The answer of a user who accepts every default.
fn answer(asked: &InputRequest) -> Value {
    let content = match asked.kind {
        InputKind::Roots => return json!({ "roots": [] }),
        InputKind::Elicitation => {
            let content = asked.params.get("requestedSchema").map(example::object);
            return content.map_or(json!({ "action": "accept" }), |it| json!({ "action": "accept", "content": it }));
        }
        InputKind::Sampling if asked.params["toolChoice"]["mode"] == "required" => {
            let tool = &asked.params["tools"][0];
            let input = example::object(&tool["inputSchema"]);
            json!({ "type": "tool_use", "id": "call-1", "name": tool["name"], "input": input })
        }
        InputKind::Sampling => json!({ "type": "text", "text": "test" }),
    };
    let reason = if content["type"] == "text" { "endTurn" } else { "toolUse" };
    json!({ "role": "assistant", "content": content, "model": "rehearse", "stopReason": reason })
}
