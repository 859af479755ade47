//! The output schema of a tool (2026-07-28, Tools: Output Schema).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ToolOutcome;
use rehearse_document::{Source, json_schema::Schema, parse_yaml};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    name: String,
    #[serde(borrow)]
    output_schema: Option<&'a RawValue>,
}

impl ToolOutcome {
    /// How the structured content breaks the output schema of the tool, as `pointer: message`. Empty for an error of the
    /// tool, without structured content, and if `definitions`, the tools as the server listed them, have no valid schema
    /// for it.
    ///
    /// ```
    /// use rehearse_client::ToolOutcome;
    /// use serde_json::value::RawValue;
    ///
    /// let raw = |text: &str| RawValue::from_string(text.to_owned());
    /// let tool = raw(r#"{"name": "t", "inputSchema": {}, "outputSchema": {"properties": {"a": {"type": "integer"}}}}"#)?;
    /// let outcome = ToolOutcome::parse(raw(r#"{"content": [], "structuredContent": {"a": "x"}}"#)?)?;
    /// assert_eq!(outcome.schema_errors("t", &[tool]), ["/a: \"x\" is not of type \"integer\""]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn schema_errors(&self, tool: &str, definitions: &[Box<RawValue>]) -> Vec<String> {
        let Some(content) = self.structured_content.as_ref().filter(|_| !self.is_error) else { return Vec::new() };
        let parsed = definitions.iter().filter_map(|it| serde_json::from_str::<Definition<'_>>(it.get()).ok());
        let schema = parsed.filter(|it| it.name == tool).find_map(|it| it.output_schema);
        let read = |schema: &RawValue| {
            let node = parse_yaml(&Source::new("outputSchema", schema.get())).ok()?;
            Schema::read(&node).ok()
        };
        let (Some(schema), Ok(content)) = (schema.and_then(read), serde_json::from_str(content.get())) else {
            return Vec::new();
        };
        let mismatches = schema.violations(&content).into_iter();
        mismatches
            .map(|it| format!("{}: {}", if it.pointer.is_empty() { "/" } else { &it.pointer }, it.message))
            .collect()
    }
}
