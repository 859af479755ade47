//! `rehearse conformance-client`: the client that the official conformance suite tests.

use std::{env, sync::Arc};

use clap::Args;
use serde_json::{Map, Value, json, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{Exit, Failure, job::Job, process_guard::runtime, style};
use rehearse_client::{
    Answer, AnswerScript, Answers, CallOptions, Endpoint, InputHandler, InputKind, InputRequest, Listing, ServerParams,
    Session, Target, example, example_operation,
    oauth::{
        AuthError, Authorizer, ClientSecret, GrantKind, Identity, IdentityProvider, Interaction, Options,
        PreregisteredClient, Secret, SigningKey,
    },
    skill::{self, Skill},
};
use rehearse_client_configs::{
    policy::{Duplicates, Naming, Policy},
    server::ToolFilter,
};
use rehearse_hub::{
    Registry,
    registry::{AllowedCalls, ServerTools},
};
use rehearse_protocol::{Era, List, Protocol};

/// The client's metadata document, which the suite knows without fetching it.
const METADATA_DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";
/// The suffix of scenarios in which the client must not load skills.
const NO_PREFETCH: &str = "no-prefetch";
/// The redirect URI for the suite's authorization servers; nothing listens there.
const REDIRECT_URI: &str = "http://localhost:3000/callback";

const EXAMPLES: &str = "\
Examples:
  npx @modelcontextprotocol/conformance client --command 'rehearse conformance-client' --requirements 2025-11-25
  MCP_CONFORMANCE_PROTOCOL_VERSION=2026-07-28 rehearse conformance-client http://localhost:3000/mcp

The client calls every tool with arguments from its schema, reads every resource and gets every prompt. It answers \
elicitation with the defaults of the schema. The results are for the suite to check.

The suite sets the protocol version in MCP_CONFORMANCE_PROTOCOL_VERSION, and tool calls and credentials as JSON in \
MCP_CONFORMANCE_CONTEXT.

Exit codes:
  0  all requests were sent
  2  wrong usage
  3  the connection or the authorization failed";

/// Run as the client in the official MCP conformance suite
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConformanceArgs {
    /// The URL of the server; the suite appends it to the command
    url: String,
}

/// What the suite says about a scenario (`MCP_CONFORMANCE_CONTEXT`).
struct Context(Value);

pub(super) fn run(args: ConformanceArgs) -> Result<Exit, Failure> {
    let protocol = match env::var("MCP_CONFORMANCE_PROTOCOL_VERSION") {
        Ok(version) => version.parse::<Protocol>().map_err(|error| Failure::Usage(error.to_string()))?,
        Err(_) => Protocol::Auto,
    };
    let context = match env::var("MCP_CONFORMANCE_CONTEXT") {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| Failure::Usage(format!("MCP_CONFORMANCE_CONTEXT is not valid JSON: {error}")))?,
        Err(_) => Value::Null,
    };
    let context = Context(context);
    runtime()?.block_on(async {
        let stop = CancellationToken::new();
        let mut job = Job::start(stop.clone(), "interrupted: closing the connection\n")?;
        let used = job.run(Box::pin(use_everything(args.url, protocol, &context, stop))).await;
        used.filter(|_| !job.is_interrupted()).unwrap_or(Ok(Exit::CannotRun))
    })
}

async fn use_everything(
    url: String,
    protocol: Protocol,
    context: &Context,
    stop: CancellationToken,
) -> Result<Exit, Failure> {
    let authorizer = context.authorizer(&url).map_err(|error| Failure::Usage(error.to_string()))?;
    let mut config = ServerParams::new("server", Target::Http(Endpoint { url, headers: Vec::new() }));
    config.authorizer = Some(authorizer);
    let respondent: InputHandler = Arc::new(|asked| Box::pin(std::future::ready(Some(answer(&asked)))));
    config.answers = Answers::with_handler(AnswerScript::default(), respondent);
    config.shutdown = stop.clone();
    let session = tokio::select! {
        session = Session::connect(&config, protocol) => session.map_err(|error| Failure::cannot(error.to_string()))?,
        () = stop.cancelled() => return Ok(Exit::CannotRun),
    };
    let user = SuiteClient { session: &session, options: CallOptions { cancel: Some(stop), ..CallOptions::default() } };
    user.tools(context).await;
    user.items(List::Resources).await;
    user.items(List::Prompts).await;
    let are_wanted = !env::var("MCP_CONFORMANCE_SCENARIO").is_ok_and(|scenario| scenario.ends_with(NO_PREFETCH));
    user.skills(are_wanted).await;
    session.close().await;
    Ok(Exit::Success)
}

/// A session and the options of its requests.
struct SuiteClient<'s> {
    session: &'s Session,
    options: CallOptions,
}

impl SuiteClient<'_> {
    async fn tools(&self, context: &Context) {
        if !self.session.info().declares("tools") {
            return;
        }
        let (listing, failure) = self.session.list_partial(List::Tools, usize::MAX, self.options.clone()).await;
        self.print_failure("tools/list", failure.map_or(Ok(()), Err));
        let (server, filter) = ("server".into(), ToolFilter::default());
        let mirrors = self.session.info().version.era() == Era::Modern;
        let listed = ServerTools {
            server: &server,
            filter: &filter,
            policy: &Policy::USUAL,
            tools: &listing.items,
            always_allow: AllowedCalls::All,
            mirrors,
        };
        let registry = Registry::build([listed], Naming::Bare, Duplicates::FirstWins).unwrap_or_default();
        for notice in &registry.notices {
            style::print(&format!("{}\n", style::printable(&notice.to_string())));
        }
        for (name, arguments) in context.calls().unwrap_or_else(|| calls_of(&registry)) {
            let called = self.session.call_tool(&name, Some(arguments), self.options.clone()).await;
            self.print_failure(&format!("tools/call {name}"), called);
        }
    }

    /// Reads every resource, or gets every prompt.
    async fn items(&self, list: List) {
        if !self.session.info().declares(list.capability()) {
            return;
        }
        let listing = self.print_failure(list.method(), self.session.list(list, self.options.clone()).await);
        for item in listing.iter().flat_map(Listing::all_values) {
            let Some(operation) = example_operation(list, &item) else { continue };
            let what = format!("{} {}", operation.method, item[list.key()].as_str().unwrap_or_default());
            self.print_failure(&what, self.session.perform(operation, self.options.clone()).await);
        }
    }

    /// Lists the skills and loads each with all its files, up to the first invalid one.
    async fn skills(&self, loads: bool) {
        let capabilities: Value = serde_json::from_str(self.session.info().capabilities.get()).unwrap_or_default();
        if capabilities["extensions"][skill::EXTENSION].is_null() {
            return;
        }
        let listing = self.print_failure("skills/list", self.session.list_skills(self.options.clone()).await);
        let skills = listing.iter().flat_map(|listing| &listing.items).filter(|_| loads);
        for skill in skills.filter_map(|skill| serde_json::from_str::<Skill>(skill.get()).ok()) {
            let files = skill.resources.iter().map(|file| &file.uri).filter(|uri| **uri != skill.uri);
            for uri in std::iter::once(&skill.uri).chain(files) {
                if let Err(error) = self.session.read_skill(&skill, uri, self.options.clone()).await {
                    style::print(&format!("{}\n", style::printable(&error.to_string())));
                    break;
                }
            }
        }
    }

    /// Prints a failure; the suite judges it.
    fn print_failure<T>(&self, what: &str, result: Result<T, rehearse_client::Failure>) -> Option<T> {
        result
            .inspect_err(|failure| {
                style::print(&format!("{}\n", style::printable(&format!("{what}: {}: {failure}", failure.kind()))));
            })
            .ok()
    }
}

impl Context {
    /// Gets tokens without a browser, with the credentials of the suite.
    ///
    /// # Errors
    /// The URL or the key cannot be used.
    fn authorizer(&self, url: &str) -> Result<Authorizer, AuthError> {
        let text = |name: &str| self.0[name].as_str().map(str::to_owned);
        let secret = match (text("client_secret"), text("private_key_pem")) {
            (Some(secret), _) => ClientSecret::Text(Secret::new(secret)),
            (None, Some(key)) => ClientSecret::Key(Arc::new(SigningKey::from_pem(&key)?)),
            (None, None) => ClientSecret::None,
        };
        let registered = text("client_id").map(|id| PreregisteredClient { id, secret, issuer: None });
        let options = Options {
            identity: Identity { registered, document: Some(METADATA_DOCUMENT.to_owned()), ..Identity::default() },
            grant: self.grant(),
            interaction: Interaction::Headless { redirect_uri: REDIRECT_URI.to_owned() },
            ..Options::default()
        };
        Authorizer::new(url, options)
    }

    /// The grant that the credentials of the suite are for.
    fn grant(&self) -> GrantKind {
        let text = |name: &str| self.0[name].as_str().map(str::to_owned);
        let is_for_itself = || text("name").is_some_and(|name| name.contains("client-credentials"));
        match (text("valid_jwt"), text("idp_token_endpoint"), text("idp_client_id"), text("idp_id_token")) {
            (Some(certificate), ..) => GrantKind::WorkloadIdentity(Secret::new(certificate)),
            (None, Some(token_endpoint), Some(client_id), Some(id_token)) => {
                GrantKind::EnterpriseManaged(IdentityProvider {
                    token_endpoint,
                    client_id,
                    id_token: Secret::new(id_token),
                })
            }
            _ if is_for_itself() => GrantKind::ClientCredentials,
            _ => GrantKind::AuthorizationCode,
        }
    }

    /// The calls that the suite wants.
    fn calls(&self) -> Option<Vec<(String, Map<String, Value>)>> {
        let calls = self.0["toolCalls"].as_array()?.iter();
        let call = |call: &Value| {
            Some((call["name"].as_str()?.to_owned(), call["arguments"].as_object().cloned().unwrap_or_default()))
        };
        Some(calls.filter_map(call).collect())
    }
}

/// A call of every tool. A parameter named `schema` gets the schema of the first other tool.
fn calls_of(registry: &Registry) -> Vec<(String, Map<String, Value>)> {
    let schema = |schema: &RawValue| serde_json::from_str::<Value>(schema.get()).unwrap_or_default();
    let calls = registry.tools().iter().map(|tool| {
        let input = schema(&tool.input_schema);
        let mut arguments = example::object(&input);
        let other = registry.tools().iter().find(|other| other.name != tool.name);
        if let (Some(other), true) = (other, input["properties"]["schema"]["type"] == "object") {
            arguments.insert("schema".to_owned(), schema(&other.input_schema));
        }
        (tool.original.clone(), arguments)
    });
    calls.collect()
}

/// A call of a tool by the model.
fn tool_use(tool: &Value) -> Value {
    json!({ "type": "tool_use", "id": "call-1", "name": tool["name"], "input": example::object(&tool["inputSchema"]) })
}

/// The answer of a user who accepts every default.
fn answer(asked: &InputRequest) -> Answer {
    Answer::Result(match asked.kind {
        InputKind::Elicitation => match asked.params.get("requestedSchema") {
            Some(schema) => json!({ "action": "accept", "content": example::object(schema) }),
            None => json!({ "action": "accept" }),
        },
        InputKind::Sampling if asked.params["toolChoice"]["mode"] == "required" => json!({
            "role": "assistant",
            "content": tool_use(&asked.params["tools"][0]),
            "model": "rehearse",
            "stopReason": "toolUse",
        }),
        InputKind::Sampling => json!({
            "role": "assistant",
            "content": { "type": "text", "text": "test" },
            "model": "rehearse",
            "stopReason": "endTurn",
        }),
        InputKind::Roots => json!({ "roots": [] }),
    })
}
