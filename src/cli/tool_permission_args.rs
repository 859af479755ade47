//! Which tools a command may call, and with which arguments.

use rehearse_client::ToolPermission;
use serde_json::Value;

#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ToolPermissionArgs {
    /// Call these tools too; `*` stands for any text (repeatable)
    #[arg(long = "allow-tool", value_name = "NAME")]
    allowed: Vec<String>,
    /// The arguments for a tool [default: made from its schema] (repeatable)
    #[arg(long = "tool-args", hide_short_help = true, value_name = "NAME=JSON", value_parser = arguments)]
    arguments: Vec<(String, Value)>,
}

impl ToolPermissionArgs {
    pub(crate) fn permission(&self) -> ToolPermission {
        ToolPermission { allowed: self.allowed.clone(), arguments: self.arguments.clone() }
    }

    /// The options as pairs of a flag and its value.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let arguments = self.arguments.iter().map(|(name, json)| ("--tool-args", format!("{name}={json}")));
        self.allowed.iter().map(|name| ("--allow-tool", name.clone())).chain(arguments)
    }

    /// The options with the tools that they name.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let arguments = self.arguments.iter().map(|(name, _)| ("--tool-args", &**name));
        self.allowed.iter().map(|name| ("--allow-tool", &**name)).chain(arguments)
    }
}

fn arguments(text: &str) -> Result<(String, Value), String> {
    let (name, json) = text.split_once('=').ok_or("it is not of the form NAME=JSON")?;
    let arguments = serde_json::from_str(json).map_err(|error| format!("not a JSON object: {error}"))?;
    Ok((name.to_owned(), Value::Object(arguments)))
}
