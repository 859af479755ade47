//! The methods that the items of the script answer; the eras differ in the envelope and in a few error codes.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{
    call::{Call, object},
    catalog::Catalog,
    decision::Decision,
    envelope::Envelope,
    frames::ResponseFrame,
    instance::Engine,
    params::{invalid, optional_text, text},
};
use crate::{
    journal::{AnswerKind, Handling, Refusal},
    script::{ItemKind, ItemRef},
};
use rehearse_document::{json_schema::Mismatch, nearest};
use rehearse_protocol::{
    Era, List, RpcError, Version,
    message::{self, HEADER_MISMATCH, INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND},
    names::{SKILLS_EXTENSION, TASKS_EXTENSION},
};

impl Catalog {
    /// Whether the server has a method: those of a capability are there if it is declared, and only then.
    pub(super) fn has_method(&self, era: Era, method: &str) -> bool {
        let declares = |path: &[&str]| self.script.capabilities.declares(era, path);
        let is_modern = era == Era::Modern;
        match method {
            "completion/complete" => declares(&["completions"]),
            "resources/subscribe" | "resources/unsubscribe" => !is_modern && declares(&["resources", "subscribe"]),
            "logging/setLevel" => !is_modern && declares(&["logging"]),
            // A message pattern, which every server has (2026-07-28, Basic: Overview); unsupported notifications are
            // left out of the acknowledgement (Subscriptions: Acknowledgment).
            "subscriptions/listen" => is_modern,
            "skills/list" | "skills/get" => is_modern && declares(&["extensions", SKILLS_EXTENSION]),
            "resources/directory/read" => is_modern && declares(&["extensions", SKILLS_EXTENSION, "directoryRead"]),
            "tasks/get" | "tasks/update" | "tasks/cancel" => is_modern && declares(&["extensions", TASKS_EXTENSION]),
            _ => List::of_method(method)
                .or_else(|| List::of_item_method(method))
                .is_some_and(|list| declares(&[list.capability()])),
        }
    }

    /// The script's own answer to a method.
    pub(super) fn method_item(&self, method: &str) -> Option<ItemRef> {
        let index = self.script.methods.iter().position(|it| it.item.name == method)?;
        Some(ItemRef { kind: ItemKind::Method, index })
    }
}

impl Engine {
    /// Answers a request; `None` if the server does not have the method.
    ///
    /// # Errors
    /// The JSON-RPC error that answers it.
    pub(super) fn method(self: &Arc<Self>, call: &Call<'_>) -> Result<Option<Decision>, RpcError> {
        let method = &*call.request.method;
        if let Some(item) = call.catalog.method_item(method) {
            return self.answer_by_rule(call, item, &Json::Null, None).map(Some);
        }
        if !call.catalog.has_method(call.era(), method) {
            return Ok(None);
        }
        let empty = |members: &str| self.answer(call.catalog, call.request, call.era(), members, call.incoming);
        if let Some(list) = List::of_method(method) {
            return self.list(call, list.into()).map(Some);
        }
        match method {
            "tools/call" => self.call_tool(call),
            "resources/read" => self.read_resource(call),
            "prompts/get" => self.get_prompt(call),
            "completion/complete" => self.complete(call),
            "skills/list" => self.list_skills(call),
            "skills/get" => self.get_skill(call),
            "resources/directory/read" => self.read_directory(call),
            "logging/setLevel" => self.set_log_level(call).map(|()| empty("")),
            "resources/subscribe" | "resources/unsubscribe" => self.subscribe(call).map(|()| empty("")),
            "subscriptions/listen" => self.listen(call).map(|listen| {
                self.note(call.incoming, Handling::Protocol);
                Decision::Subscribe(listen)
            }),
            _ => match self.task_method(call)? {
                Some(members) => Ok(empty(&members)),
                None => {
                    let error = invalid(format!("Unknown task: {}", text("taskId", call.params.task_id)?));
                    Ok(self.refuse(call.request, 200, Refusal::Expired, error, call.incoming))
                }
            },
        }
        .map(Some)
    }

    fn list(&self, call: &Call<'_>, kind: ItemKind) -> Result<Decision, RpcError> {
        let cursor = optional_text("cursor", call.params.cursor)?;
        let view = call.catalog.visible(kind).map(super::visible_items::VisibleItems::view);
        let page = view.as_ref().and_then(|view| view.page(call.era(), cursor.as_deref()));
        let page = page.ok_or_else(|| invalid("Invalid cursor"))?;
        Ok(self.answer(call.catalog, call.request, call.era(), page, call.incoming))
    }

    /// The visible item of this name.
    fn find(&self, call: &Call<'_>, kind: ItemKind, name: &str) -> Option<ItemRef> {
        let index = call.catalog.visible(kind)?.view().find(name)?;
        Some(ItemRef { kind, index })
    }

    /// Answers a request for an unknown item; the journal names the closest one.
    fn miss(&self, call: &Call<'_>, kind: ItemKind, name: &str, error: &RpcError) -> Decision {
        let view = call.catalog.visible(kind).map(super::visible_items::VisibleItems::view);
        let known: Vec<_> = view.iter().flat_map(|view| view.names()).collect();
        let nearest = nearest(name, &known).map(str::to_owned);
        let handling = Handling::Unmatched { closest: nearest, why: error.message.clone() };
        self.note_answer(call.incoming, handling, AnswerKind::Error);
        Decision::Respond(ResponseFrame::ok(message::error(Some(&call.request.id), error)))
    }

    fn read_resource(self: &Arc<Self>, call: &Call<'_>) -> Result<Decision, RpcError> {
        let uri = text("uri", call.params.uri)?;
        if let Some(item) = self.find(call, ItemKind::Resource, &uri) {
            return self.answer_by_rule(call, item, &Json::Null, None);
        }
        let kind = ItemKind::ResourceTemplate;
        let templates = call.catalog.visible(kind).map(super::visible_items::VisibleItems::view);
        for &index in templates.iter().flat_map(|view| view.order()) {
            if let Some(variables) = call.catalog.script.resource_templates[index].template.match_uri(&uri) {
                let args = Json::Object(variables.into_iter().collect());
                return self.answer_by_rule(call, ItemRef { kind, index }, &args, Some(args.clone()));
            }
        }
        let code = if call.era() == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND };
        let error = RpcError::new(code, "Resource not found").with_data(json!({ "uri": uri }));
        Ok(self.miss(call, ItemKind::Resource, &uri, &error))
    }

    fn get_prompt(self: &Arc<Self>, call: &Call<'_>) -> Result<Decision, RpcError> {
        let name = text("name", call.params.name)?;
        let Some(item) = self.find(call, ItemKind::Prompt, &name) else {
            return Ok(self.miss(call, ItemKind::Prompt, &name, &invalid(format!("Unknown prompt: {name}"))));
        };
        let arguments = object("arguments", call.params.arguments)?;
        if let Some((name, _)) = arguments.iter().find(|(_, value)| !value.is_string()) {
            return Err(invalid(format!("The argument {name} must be a string")));
        }
        for required in &call.catalog.script.prompts[item.index].required {
            if !arguments.contains_key(required) {
                let error = invalid(format!("Missing required argument: {required}"));
                return Ok(self.refuse(call.request, 200, Refusal::Arguments, error, call.incoming));
            }
        }
        self.answer_by_rule(call, item, &Json::Object(arguments), None)
    }

    fn call_tool(self: &Arc<Self>, call: &Call<'_>) -> Result<Decision, RpcError> {
        let name = text("name", call.params.name)?;
        let Some(item) = self.find(call, ItemKind::Tool, &name) else {
            return Ok(self.miss(call, ItemKind::Tool, &name, &invalid(format!("Unknown tool: {name}"))));
        };
        let tool = &call.catalog.script.tools[item.index];
        let mirroring = call.incoming.mirror().filter(|_| call.era() == Era::Modern && !tool.mirrored.is_empty());
        let needs_arguments =
            tool.input.is_some() || mirroring.is_some() || tool.item.rules.iter().any(|rule| rule.when.is_some());
        let arguments = match needs_arguments || call.params.arguments.is_some_and(|it| !it.get().starts_with('{')) {
            true => Json::Object(object("arguments", call.params.arguments)?),
            false => Json::Null,
        };
        if let Some(headers) = mirroring {
            tool.mirrored.check(headers, &arguments).map_err(|why| RpcError::new(HEADER_MISMATCH, why.to_string()))?;
        }
        if let Some(violation) = tool.input.as_ref().and_then(|input| input.violations(&arguments).into_iter().next()) {
            return self.invalid_arguments(call, &name, &violation);
        }
        self.answer_by_rule(call, item, &arguments, None)
    }

    /// Until 2025-06-18 wrong arguments are a protocol error; later they are a tool error that a model can act on
    /// (2025-11-25, Tools: Error Handling).
    fn invalid_arguments(&self, call: &Call<'_>, name: &str, violation: &Mismatch) -> Result<Decision, RpcError> {
        let text = format!("Invalid arguments for tool {name}: {violation}");
        if call.version < Version::V2025_11_25 {
            return Ok(self.refuse(call.request, 200, Refusal::Arguments, invalid(text), call.incoming));
        }
        let handling = Handling::refused(Refusal::Arguments, text.clone());
        self.note_answer(call.incoming, handling, AnswerKind::ToolError);
        Ok(self.tool_error(call, &text))
    }

    pub(super) fn tool_error(&self, call: &Call<'_>, text: &str) -> Decision {
        let members = format!("\"content\":[{{\"type\":\"text\",\"text\":{}}}],\"isError\":true", Json::from(text));
        let result = call.catalog.result(call.era(), &members, Envelope::default());
        Decision::Respond(ResponseFrame::ok(message::result(&call.request.id, &result)))
    }

    /// 2025-11-25, Logging: Setting Log Level.
    fn set_log_level(&self, call: &Call<'_>) -> Result<(), RpcError> {
        let level = super::params::log_level("level", call.params.level)?;
        let level = level.ok_or_else(|| invalid("`level` is missing"))?;
        if let Some(session) = call.session {
            session.set_log_level(level);
        }
        Ok(())
    }

    /// 2025-11-25, Resources: Subscriptions.
    fn subscribe(&self, call: &Call<'_>) -> Result<(), RpcError> {
        let uri = text("uri", call.params.uri)?;
        let Some(session) = call.session else { return Ok(()) };
        match &*call.request.method {
            "resources/subscribe" => session.subscribe(&uri)?,
            _ => session.unsubscribe(&uri),
        }
        Ok(())
    }
}

/// The result of `completion/complete` may hold this many values (2025-11-25, Completion: Completion Results).
const MAX_COMPLETIONS: usize = 100;

impl Engine {
    /// 2025-11-25, Completion.
    fn complete(&self, call: &Call<'_>) -> Result<Decision, RpcError> {
        let reference = object("ref", call.params.reference)?;
        let argument = object("argument", call.params.argument)?;
        let member =
            |object: &Map<String, Json>, name: &str| object.get(name).and_then(Json::as_str).map(str::to_owned);
        let missing = |name: &str| invalid(format!("`{name}` is missing or not a string"));
        let name = member(&argument, "name").ok_or_else(|| missing("argument.name"))?;
        let typed = member(&argument, "value").ok_or_else(|| missing("argument.value"))?;
        let script = &call.catalog.script;
        let (kind, of) = match member(&reference, "type").as_deref() {
            Some("ref/prompt") => (ItemKind::Prompt, member(&reference, "name").ok_or_else(|| missing("ref.name"))?),
            Some("ref/resource") => {
                (ItemKind::ResourceTemplate, member(&reference, "uri").ok_or_else(|| missing("ref.uri"))?)
            }
            _ => return Err(invalid("`ref.type` is `ref/prompt` or `ref/resource`")),
        };
        let is_resource = kind == ItemKind::ResourceTemplate && self.find(call, ItemKind::Resource, &of).is_some();
        if self.find(call, kind, &of).is_none() && !is_resource {
            return Ok(self.miss(call, kind, &of, &invalid(format!("Unknown {}: {of}", kind.noun()))));
        }
        let completion = script.completions.iter().find(|it| it.reference.refers_to(kind, &of) && it.argument == name);
        let mut values = Vec::new();
        if let Some(completion) = completion {
            let mut json = String::new();
            let written = script.templates.write_json(&completion.values, &call.plain_context(self), &mut json);
            let failed = |error: &dyn std::fmt::Display| RpcError::new(INTERNAL_ERROR, error.to_string());
            written.map_err(|error| failed(&error))?;
            values = serde_json::from_str::<Vec<String>>(&json).map_err(|error| failed(&error))?;
        }
        let typed = typed.to_lowercase();
        values.retain(|value| value.to_lowercase().starts_with(&typed));
        let total = values.len();
        values.truncate(MAX_COMPLETIONS);
        let completion = json!({ "values": values, "total": total, "hasMore": total > values.len() });
        let members = format!("\"completion\":{completion}");
        Ok(self.answer(call.catalog, call.request, call.era(), &members, call.incoming))
    }
}
