//! The tool with which a model runs a program.

use serde_json::{Map, Value, json};

/// The longest time of a program if nothing else is configured, in seconds.
pub const MAX_TIMEOUT: u64 = 300;

/// The definition of the tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    pub name: &'static str,
    /// With the definitions of the tools that a program can call.
    pub description: String,
    pub input_schema: Value,
}

/// The arguments of a call of the tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    pub code: String,
    /// In seconds.
    pub timeout: u64,
}

/// Why arguments are not right; for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("code must be a string with the program")]
    Code,
    #[error("executionTimeout must be an integer from 1 to {0}, in seconds")]
    Timeout(u64),
}

impl Definition {
    pub(crate) fn new(name: &'static str, description: String, code: &str, max_timeout: u64) -> Definition {
        let input_schema = json!({
            "type": "object",
            "properties": {
                "code": { "type": "string", "description": code },
                "executionTimeout": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": max_timeout,
                    "description": format!("The longest time that the program may run, in seconds (1 to {max_timeout})"),
                },
            },
            "required": ["code", "executionTimeout"],
        });
        Definition { name, description, input_schema }
    }
}

impl Arguments {
    /// Reads the arguments of a call; `max_timeout` is that of the definition.
    ///
    /// # Errors
    /// They do not match the input schema.
    pub fn read(arguments: &Map<String, Value>, max_timeout: u64) -> Result<Arguments, ArgumentError> {
        let code = arguments.get("code").and_then(Value::as_str).ok_or(ArgumentError::Code)?;
        let timeout = arguments.get("executionTimeout").and_then(Value::as_u64);
        let timeout = timeout.filter(|timeout| (1..=max_timeout).contains(timeout));
        Ok(Arguments { code: code.to_owned(), timeout: timeout.ok_or(ArgumentError::Timeout(max_timeout))? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_need_a_program_and_a_timeout_within_the_limit() {
        let read = |arguments: Value| Arguments::read(arguments.as_object().expect("an object"), 300);
        assert_eq!(
            read(json!({ "code": "1", "executionTimeout": 300 })),
            Ok(Arguments { code: "1".into(), timeout: 300 })
        );
        assert_eq!(read(json!({ "executionTimeout": 1 })), Err(ArgumentError::Code));
        for timeout in [json!(0), json!(301), json!(1.5), json!("1"), Value::Null] {
            assert_eq!(read(json!({ "code": "", "executionTimeout": timeout })), Err(ArgumentError::Timeout(300)));
        }
    }
}
