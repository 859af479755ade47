//! The methods that both eras share; they differ only in the envelope of the result and in a few codes.

use std::sync::Arc;

use serde_json::{Map, Value as Json, value::RawValue};

use super::{
    Answer, Engine, Exchange, Incoming, Intake,
    exchange::Progress,
    params::{Meta, Params, invalid, optional_text, text},
};
use crate::{
    config::nearest,
    mock::{
        journal::Handling,
        matcher::Mismatch,
        script::{LogLevel, Rule, ToolStub},
        template::Context,
    },
    wire::{
        Era, Id, Request, RpcError, Version,
        message::{self, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
    },
};

/// A request on its way through the engine.
pub(super) struct Call<'a> {
    pub(super) version: Version,
    /// The least severe log message that the client wants; `None` for no messages at all.
    pub(super) log_level: Option<LogLevel>,
    pub(super) request: &'a Request<'a>,
    pub(super) params: Params<'a>,
    pub(super) meta: Meta<'a>,
    pub(super) incoming: Incoming<'a>,
}

impl Call<'_> {
    fn era(&self) -> Era {
        self.version.era()
    }

    /// What templates see of the request.
    fn context(&self, engine: &Engine, call: u64, seed: u64) -> Context {
        let params = self.request.params.map(|params| self.incoming.bytes.slice_ref(params.get().as_bytes()));
        let headers = self.incoming.headers.filter(|_| engine.script.templates.uses_headers());
        let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let id = self.request.id.clone();
        Context { params, id, headers: headers.into_iter().flatten().map(pair).collect(), call, seed }
    }
}

impl Engine {
    /// Whether the script has something for the method; the capability is declared then, and only then.
    pub(super) fn has_method(&self, method: &str) -> bool {
        match method {
            "tools/list" | "tools/call" => !self.script.tools.is_empty(),
            "resources/list" | "resources/read" | "resources/templates/list" => !self.script.resources.is_empty(),
            "prompts/list" | "prompts/get" => !self.script.prompts.is_empty(),
            _ => false,
        }
    }

    /// Answers a request; `None` if there is no such method here.
    ///
    /// # Errors
    /// The JSON-RPC error that answers it.
    pub(super) fn method(self: &Arc<Self>, call: &Call<'_>) -> Result<Option<Intake>, RpcError> {
        if !self.has_method(&call.request.method) {
            return Ok(None);
        }
        let list = |pages: &super::Pages| {
            let cursor = optional_text("cursor", call.params.cursor)?;
            let Some(page) = pages.get(cursor.as_deref()) else {
                return Err(invalid("Invalid cursor"));
            };
            Ok(self.answer(&call.request.id, call.era(), page, true, call.incoming))
        };
        match &*call.request.method {
            "tools/list" => list(&self.tools),
            "tools/call" => self.call_tool(call),
            "resources/list" => list(&self.resources),
            "resources/templates/list" => {
                Ok(self.answer(&call.request.id, call.era(), "\"resourceTemplates\":[]", true, call.incoming))
            }
            "resources/read" => self.read_resource(call),
            "prompts/list" => list(&self.prompts),
            _ => self.get_prompt(call),
        }
        .map(Some)
    }

    /// Answers from the script what failed in the script.
    fn rendered(&self, call: &Call<'_>, label: &str, members: Result<String, RpcError>, cacheable: bool) -> Intake {
        self.note(call.incoming, Handling::Rule(label.into()));
        let frame = match members {
            Ok(members) => message::result(&call.request.id, &self.result(call.era(), &members, None, cacheable)),
            Err(error) => message::error(Some(&call.request.id), &error),
        };
        Intake::Answer(Answer { status: 200, frame })
    }

    /// A request for something that the script does not have, with what it has that is most like it.
    fn miss(&self, call: &Call<'_>, error: &RpcError, name: &str, known: &[&str]) -> Intake {
        let nearest = nearest(name, known).map(str::to_owned);
        self.note(call.incoming, Handling::Miss { nearest, why: error.message.clone() });
        Intake::Answer(Answer { status: 200, frame: message::error(Some(&call.request.id), error) })
    }

    fn read_resource(&self, call: &Call<'_>) -> Result<Intake, RpcError> {
        let uri = text("uri", call.params.uri)?;
        let Some(resource) = self.script.resources.iter().find(|resource| resource.uri == uri) else {
            let code = if call.era() == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
            let error = RpcError::new(code, "Resource not found").with_data(serde_json::json!({ "uri": uri }));
            let known: Vec<_> = self.script.resources.iter().map(|resource| &*resource.uri).collect();
            return Ok(self.miss(call, &error, &uri, &known));
        };
        let context = call.context(self, 1, self.seed).into_value();
        let mut members = String::from("\"contents\":");
        let written = self.script.templates.write_json(&resource.contents, &context, &mut members);
        let members = written.map(|()| members).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()));
        Ok(self.rendered(call, &format!("resources.{uri}"), members, true))
    }

    fn get_prompt(&self, call: &Call<'_>) -> Result<Intake, RpcError> {
        let name = text("name", call.params.name)?;
        let Some(prompt) = self.script.prompts.iter().find(|prompt| prompt.name == name) else {
            let known: Vec<_> = self.script.prompts.iter().map(|prompt| &*prompt.name).collect();
            return Ok(self.miss(call, &invalid(format!("Unknown prompt: {name}")), &name, &known));
        };
        let arguments = object("arguments", call.params.arguments)?;
        if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
            return Err(invalid(format!("The argument {name} must be a string")));
        }
        for required in &prompt.required {
            if !arguments.contains_key(required) {
                return Err(invalid(format!("Missing required argument: {required}")));
            }
        }
        let context = call.context(self, 1, self.seed).into_value();
        let mut members = match &prompt.description {
            Some(description) => format!("\"description\":{},", Json::from(description.as_str())),
            None => String::new(),
        };
        members.push_str("\"messages\":");
        let written = self.script.templates.write_json(&prompt.messages, &context, &mut members);
        let members = written.map(|()| members).map_err(|error| RpcError::new(INTERNAL_ERROR, error.to_string()));
        Ok(self.rendered(call, &format!("prompts.{name}"), members, false))
    }

    fn call_tool(self: &Arc<Self>, call: &Call<'_>) -> Result<Intake, RpcError> {
        let name = text("name", call.params.name)?;
        let Some(&index) = self.tool_index.get(&*name) else {
            let known: Vec<_> = self.script.tools.iter().map(|tool| &*tool.name).collect();
            return Ok(self.miss(call, &invalid(format!("Unknown tool: {name}")), &name, &known));
        };
        let tool = &self.script.tools[index];
        let needs_arguments = tool.input.is_some() || tool.rules.iter().any(|rule| rule.when.is_some());
        let arguments = match needs_arguments || call.params.arguments.is_some_and(|it| !it.get().starts_with('{')) {
            true => Json::Object(object("arguments", call.params.arguments)?),
            false => Json::Null,
        };
        if let Some(violation) = tool.input.as_ref().and_then(|input| input.violations(&arguments).into_iter().next()) {
            return self.invalid_arguments(call, &name, &violation);
        }
        match select(tool, &arguments) {
            Ok((number, rule)) => Ok(self.exchange(call, index, number, rule)),
            Err((nearest, why)) => {
                let text = match &nearest {
                    Some(rule) => format!("No rule of the tool {name} matches the arguments; nearest is {rule}: {why}"),
                    None => format!("The script does not say how the tool {name} answers"),
                };
                self.note(call.incoming, Handling::Miss { nearest, why });
                Ok(self.tool_error(call, &text))
            }
        }
    }

    /// Until 2025-06-18 wrong arguments are a protocol error; later they are a tool error that a model can act on
    /// (2025-11-25, Tools: Error Handling).
    fn invalid_arguments(&self, call: &Call<'_>, name: &str, violation: &Mismatch) -> Result<Intake, RpcError> {
        let text = format!("Invalid arguments for tool {name}: {violation}");
        if call.version < Version::V2025_11_25 {
            return Err(invalid(text));
        }
        self.note(call.incoming, Handling::Refused(text.clone()));
        Ok(self.tool_error(call, &text))
    }

    fn tool_error(&self, call: &Call<'_>, text: &str) -> Intake {
        let members = format!("\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true", Json::from(text));
        let frame = message::result(&call.request.id, &self.result(call.era(), &members, None, false));
        Intake::Answer(Answer { status: 200, frame })
    }

    fn exchange(self: &Arc<Self>, call: &Call<'_>, tool: usize, number: usize, rule: &Rule) -> Intake {
        let (tool_calls, rule_calls) = &self.calls[tool];
        let count =
            |counter: &std::sync::atomic::AtomicU64| counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let (nth_call, nth_of_rule) = (count(tool_calls), count(&rule_calls[number]));
        self.note(call.incoming, Handling::Rule(rule.label.clone()));
        let token = call.meta.progress_token.filter(|token| Id::parse(token).is_some());
        let token = token.map(|token| token.get().to_owned());
        let progress = Progress { token, log_level: call.log_level };
        let seed = self.seed ^ nth_call.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (tool as u64) << 32;
        let context = call.context(self, nth_call, seed);
        let id = call.request.id.clone();
        Intake::Exchange(Box::new(Exchange::new(
            self.clone(),
            id,
            call.era(),
            (tool, number),
            nth_of_rule,
            progress,
            context,
        )))
    }
}

/// The first rule that matches; or the label of the nearest one and where it differs.
fn select<'t>(tool: &'t ToolStub, arguments: &Json) -> Result<(usize, &'t Rule), (Option<String>, String)> {
    let mut nearest: Option<(usize, &Rule, Mismatch)> = None;
    for (number, rule) in tool.rules.iter().enumerate() {
        let mut mismatches = rule.when.as_ref().map(|when| when.mismatches(Some(arguments))).unwrap_or_default();
        if mismatches.is_empty() {
            return Ok((number, rule));
        }
        if nearest.as_ref().is_none_or(|(count, ..)| mismatches.len() < *count) {
            nearest = Some((mismatches.len(), rule, mismatches.remove(0)));
        }
    }
    Err(match nearest {
        Some((_, rule, mismatch)) => (Some(rule.label.to_string()), mismatch.to_string()),
        None => (None, "the tool has no reply".into()),
    })
}

/// A member that must be an object if it is there.
fn object(name: &str, value: Option<&RawValue>) -> Result<Map<String, Json>, RpcError> {
    let Some(value) = value else { return Ok(Map::new()) };
    if !message::is_object(Some(value)) {
        return Err(invalid(format!("`{name}` must be an object")));
    }
    serde_json::from_str(value.get()).map_err(|error| invalid(format!("`{name}` cannot be read: {error}")))
}
