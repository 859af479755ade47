//! Completion of commands, servers, tools, and the arguments of tools by their schemas. No IO.

use std::sync::Arc;

use serde_json::Value;

use super::command::{COMMANDS, definition, usage, without_prefix};
use crate::cli::mcp::arguments::{names_of, values_of};
use rehearse_hub::{ItemRegistry, RegisteredTool};
use rehearse_protocol::List;
use rehearse_report::text::is_harmful;
use rehearse_system::program::LineStart;

/// The known names.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNames {
    pub(super) servers: Vec<Arc<str>>,
    pub(super) tools: Vec<Arc<RegisteredTool>>,
    pub(super) resources: ItemRegistry,
    pub(super) prompts: ItemRegistry,
}

/// A completion.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Replaces the text from `start` to the cursor.
    pub(super) text: String,
    pub(super) start: usize,
    pub(super) about: Option<String>,
    /// Whether the word is complete.
    pub(super) is_whole: bool,
}

/// The text before the cursor.
struct PartialLine {
    command: &'static clap::Command,
    /// The finished words after the name of the command.
    words: Vec<String>,
    /// The word at the cursor, and where it begins.
    word: String,
    start: usize,
}

impl PartialLine {
    /// `None` if the name of the command is unfinished or unknown.
    fn parse(line: &str) -> Option<PartialLine> {
        let command = without_prefix(line);
        let (name, rest) = command.split_once(char::is_whitespace)?;
        let LineStart { words, word, begin, .. } = LineStart::posix(rest);
        let start = line.len() - rest.len() + begin;
        Some(PartialLine { command: definition(name)?, words, word: word.unwrap_or_default(), start })
    }

    /// The option that a word is, if it takes a value.
    fn option(&self, word: &str) -> Option<&'static clap::Arg> {
        let name = word.strip_prefix("--")?;
        let mut options = self.command.get_opts();
        options.find(|it| it.get_long() == Some(name) && it.get_action().takes_values())
    }

    /// The finished words that are not options, nor their values.
    fn operands(&self) -> impl Iterator<Item = &String> {
        let mut is_value = false;
        self.words.iter().filter(move |word| {
            let was_value = std::mem::replace(&mut is_value, self.option(word).is_some());
            !was_value && !word.starts_with('-')
        })
    }

    /// What the word at the cursor is a value of.
    fn argument(&self) -> Option<&'static clap::Arg> {
        let option = self.words.last().and_then(|word| self.option(word));
        let several = |argument: &&clap::Arg| matches!(argument.get_action(), clap::ArgAction::Append);
        let at = self.operands().count();
        option
            .or_else(|| self.command.get_positionals().nth(at))
            .or_else(|| self.command.get_positionals().last().filter(several))
    }

    fn tool<'k>(&self, known: &'k KnownNames) -> Option<&'k Arc<RegisteredTool>> {
        let name = self.operands().next().filter(|_| self.command.get_name() == "call")?;
        let tools = || known.tools.iter();
        tools().find(|tool| tool.name == *name).or_else(|| tools().find(|tool| tool.original == *name))
    }

    fn has_argument(&self, argument: &str) -> bool {
        self.operands().skip(1).any(|word| word.split(['=', ':']).next() == Some(argument))
    }
}

/// All completions of the text before the cursor.
pub(super) fn choices(line: &str, known: &KnownNames) -> Vec<Candidate> {
    let Some(typed) = PartialLine::parse(line) else {
        return commands(line);
    };
    let whole = |text: &str, about: Option<String>| (text.to_owned(), about, true);
    let of = typed.argument();
    let found: Vec<(String, Option<String>, bool)> = match of.map(|argument| argument.get_id().as_str()) {
        _ if typed.word.starts_with("--") => {
            let options = typed.command.get_arguments().filter(|argument| !argument.is_hide_set());
            let names = options.filter_map(clap::Arg::get_long).filter(|name| *name != "help");
            names.map(|name| whole(&format!("--{name}"), None)).collect()
        }
        Some("server" | "named") => {
            let words = if typed.command.get_name() == "debug" { &["on", "off"][..] } else { &[] };
            let servers = known.servers.iter().map(|server| whole(server, None));
            servers.chain(words.iter().map(|word| whole(word, None))).collect()
        }
        Some("words") if typed.operands().next().is_none() => {
            known.tools.iter().map(|tool| whole(&tool.name, about(tool))).collect()
        }
        Some("words") => typed.tool(known).map(|tool| arguments(&typed, tool)).unwrap_or_default(),
        Some("uri") => names_in(&known.resources, "uri").map(|(uri, _)| whole(&uri, None)).collect(),
        Some("name") => names_in(&known.prompts, "name").map(|(name, _)| whole(&name, None)).collect(),
        Some("arguments") => {
            let prompt = names_in(&known.prompts, "name").find(|(name, _)| Some(name) == typed.operands().next());
            let arguments = prompt.and_then(|(_, prompt)| prompt["arguments"].as_array().cloned());
            let arguments = arguments.into_iter().flatten();
            let names = arguments.filter_map(|argument| Some(argument["name"].as_str()?.to_owned()));
            names.filter(|name| !typed.has_argument(name)).map(|name| (format!("{name}="), None, false)).collect()
        }
        Some("command") => COMMANDS.get_subcommands().map(|it| whole(it.get_name(), None)).collect(),
        _ => {
            let values = of.map(clap::Arg::get_possible_values).unwrap_or_default();
            values.iter().map(|value| whole(value.get_name(), None)).collect()
        }
    };
    let fits =
        |(text, ..): &(String, Option<String>, bool)| text.starts_with(&typed.word) && !text.chars().any(is_harmful);
    let choice = |(text, about, is_whole)| {
        let text = if is_whole { quoted(text) } else { escaped(&text) };
        Candidate { text, start: typed.start, about, is_whole }
    };
    found.into_iter().filter(fits).map(choice).collect()
}

/// The kind of items that can follow the text before the cursor.
pub(super) fn items_in(line: &str) -> Option<List> {
    match PartialLine::parse(line)?.command.get_name() {
        "read" => Some(List::Resources),
        "prompt" => Some(List::Prompts),
        _ => None,
    }
}

/// The items with their names.
fn names_in<'k>(items: &'k ItemRegistry, key: &'k str) -> impl Iterator<Item = (String, Value)> {
    items.items().filter_map(move |(_, item)| Some((item[key].as_str()?.to_owned(), item)))
}

/// The remaining arguments, shown after the cursor.
pub(super) fn hint(line: &str, known: &KnownNames) -> String {
    let Some(typed) = PartialLine::parse(line).filter(|typed| typed.word.is_empty()) else { return String::new() };
    if let Some(tool) = typed.tool(known) {
        let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
        let names = names_of(&schema);
        let open = names.iter().filter(|(name, _)| !typed.has_argument(name) && !name.chars().any(is_harmful));
        let words =
            open.map(|(name, is_required)| if *is_required { format!("{name}=") } else { format!("[{name}=]") });
        return words.collect::<Vec<_>>().join(" ");
    }
    let usage = usage(typed.command);
    let rest = usage.split_once(' ').map(|(_, rest)| rest.to_owned());
    rest.filter(|_| typed.words.is_empty()).unwrap_or_default()
}

fn commands(line: &str) -> Vec<Candidate> {
    let begin = without_prefix(line);
    if begin.contains(char::is_whitespace) {
        return Vec::new();
    }
    let start = line.len() - begin.len();
    let prefix = ("/mcp".starts_with(line.trim_start()) && line.trim_start().starts_with('/')).then(|| Candidate {
        text: "/mcp".to_owned(),
        start: line.len() - line.trim_start().len(),
        about: None,
        is_whole: true,
    });
    let fitting = COMMANDS.get_subcommands().filter(|it| it.get_name().starts_with(&begin.to_lowercase()));
    let commands = fitting.map(|command| Candidate {
        text: command.get_name().to_owned(),
        start,
        about: command.get_about().map(ToString::to_string),
        is_whole: true,
    });
    prefix.into_iter().chain(commands).collect()
}

/// The names of missing arguments; after a name, the values that its schema lists.
fn arguments(typed: &PartialLine, tool: &RegisteredTool) -> Vec<(String, Option<String>, bool)> {
    let schema: Value = serde_json::from_str(tool.input_schema.get()).unwrap_or_default();
    if let Some((name, _)) = typed.word.split_once('=') {
        let values = values_of(&schema, name.trim_end_matches(':'));
        return values.into_iter().map(|value| (format!("{name}={value}"), None, true)).collect();
    }
    let names = names_of(&schema).into_iter().filter(|(name, _)| !typed.has_argument(name));
    let about = |name: &str| schema["properties"][name]["description"].as_str().and_then(first_line);
    names.map(|(name, _)| (format!("{name}="), about(name), false)).collect()
}

fn about(tool: &RegisteredTool) -> Option<String> {
    let about = tool.description.as_deref().and_then(first_line);
    Some(match about {
        Some(about) => format!("{} ({})", about, tool.server),
        None => tool.server.to_string(),
    })
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(rehearse_report::text::printable(line).into_owned())
}

/// Quotes a text so that it is one word.
pub(super) fn quoted(text: String) -> String {
    match text {
        text if !text.contains(is_special) => text,
        text if !text.contains('\'') => format!("'{text}'"),
        text => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

/// Escapes a text that is the start of a word.
fn escaped(text: &str) -> String {
    let escaped = |character: char| is_special(character).then_some('\\').into_iter().chain([character]);
    text.chars().flat_map(escaped).collect()
}

fn is_special(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\'' | '"' | '\\')
}

#[cfg(test)]
mod tests {
    use rehearse_client::Listing;
    use rehearse_system::program::posix_words;
    use serde_json::{json, value::to_raw_value};

    use super::*;

    fn items(item: Value) -> ItemRegistry {
        let items = vec![to_raw_value(&item).expect("JSON")];
        let listing = Arc::new(Listing { items, ..Listing::default() });
        ItemRegistry { servers: vec![("files".into(), listing)], ..ItemRegistry::default() }
    }

    fn known() -> KnownNames {
        let tool = |server: &str, name: &str, schema: Value| {
            let raw = to_raw_value(&schema).expect("JSON");
            Arc::new(RegisteredTool {
                server: server.into(),
                name: format!("{server}__{name}"),
                original: name.to_owned(),
                description: Some("\n Does it.\nMore.".to_owned()),
                always_allow: false,
                annotations: Default::default(),
                definition: raw.clone(),
                input_schema: raw,
            })
        };
        let schema = json!({
            "properties": {
                "city": { "enum": ["Oslo", "New York"] }, "now": { "type": "boolean", "description": "At once" },
                "text": { "type": "string" },
            },
            "required": ["text"],
        });
        KnownNames {
            servers: vec!["files".into(), "my web".into()],
            tools: vec![tool("files", "echo", schema), tool("files", "bad\u{1b}", json!({}))],
            resources: items(json!({ "uri": "docs://index" })),
            prompts: items(json!({ "name": "greet", "arguments": [{ "name": "name" }] })),
        }
    }

    fn texts(line: &str) -> Vec<String> {
        choices(line, &known()).into_iter().map(|choice| format!("{}{}", &line[..choice.start], choice.text)).collect()
    }

    #[test]
    fn commands_are_completed_with_and_without_the_prefix() {
        assert_eq!(texts("re"), ["reconnect", "resources", "read", "reload"]);
        assert_eq!(texts("/mcp rel"), ["/mcp reload"]);
        assert_eq!(texts("/m"), ["/mcp"]);
        assert_eq!(texts("LIST"), ["list-tools"]);
        assert_eq!(
            (texts("").len(), texts("nonsense ").len(), texts("nonsense").len()),
            (COMMANDS.get_subcommands().count(), 0, 0)
        );
    }

    #[test]
    fn servers_are_completed_where_a_command_takes_one() {
        assert_eq!(texts("connect "), ["connect files", "connect 'my web'"]);
        assert_eq!(texts("/mcp disable m"), ["/mcp disable 'my web'"]);
        assert_eq!(texts("disable 'my"), ["disable 'my web'"]);
        assert_eq!(texts("connect files "), [""; 0]);
        assert_eq!(texts("debug files o"), ["debug files on", "debug files off"]);
        assert_eq!(texts("read x --server f"), ["read x --server files"]);
        assert_eq!(texts("read x --"), ["read x --server", "read x --output"]);
    }

    #[test]
    fn tools_and_their_arguments_are_completed_by_their_schemas() {
        assert_eq!(texts("call fi"), ["call files__echo"]);
        assert_eq!(
            texts("call files__echo "),
            ["text=", "city=", "now="].map(|name| format!("call files__echo {name}"))
        );
        assert_eq!(texts("call echo text=1 n"), ["call echo text=1 now="]);
        assert_eq!(texts("call echo now="), ["call echo now=true", "call echo now=false"]);
        assert_eq!(texts("call echo city="), ["call echo city=Oslo", "call echo 'city=New York'"]);
        assert_eq!(texts("call echo 'city=N"), ["call echo 'city=New York'"]);
        assert_eq!(texts("call unknown "), [""; 0]);
        let choices = choices("call files__echo ", &known());
        assert_eq!((choices[2].about.as_deref(), choices[2].is_whole), (Some("At once"), false));
    }

    #[test]
    fn a_name_with_quotes_and_spaces_can_be_continued() {
        let mut known = known();
        let tool = Arc::get_mut(&mut known.tools[0]).expect("alone");
        tool.input_schema =
            to_raw_value(&json!({ "properties": { "it's a": { "enum": ["x", "y z"] } } })).expect("JSON");
        let texts = |line: &str| choices(line, &known).into_iter().map(|choice| choice.text).collect::<Vec<_>>();
        for line in ["call echo it", "call echo it\\'s", "call echo \"it's"] {
            assert_eq!(texts(line), ["it\\'s\\ a="], "{line}");
        }
        assert_eq!(texts("call echo it\\'s\\ a="), ["\"it's a=x\"", "\"it's a=y z\""]);
        let words = posix_words("it\\'s\\ a=x \"it's a=y z\"");
        assert_eq!(words.expect("words"), ["it's a=x", "it's a=y z"]);
    }

    #[test]
    fn listed_resources_and_prompts_are_completed() {
        assert_eq!(texts("read d"), ["read docs://index"]);
        assert_eq!(texts("prompt "), ["prompt greet"]);
        assert_eq!(texts("prompt greet "), ["prompt greet name="]);
        assert_eq!(texts("prompt greet name=x "), [""; 0]);
    }

    #[test]
    fn the_hint_has_the_remaining_arguments() {
        let known = known();
        for (line, expected) in [
            ("connect ", "SERVER"),
            ("/mcp debug ", "[SERVER] [on|off]"),
            ("call files__echo ", "text= [city=] [now=]"),
            ("call echo text=1 ", "[city=] [now=]"),
            ("call echo text", ""),
            ("connect files ", ""),
            ("con", ""),
            ("what ", ""),
        ] {
            assert_eq!(hint(line, &known), expected, "{line}");
        }
    }

    #[test]
    fn quoted_text_is_one_word() {
        assert_eq!(quoted("it's \"so\"".to_owned()), "\"it's \\\"so\\\"\"");
    }
}
