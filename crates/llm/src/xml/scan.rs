//! Requests in a message.

use std::{collections::HashMap, ops::Range};

use serde_json::{Map, Value};

use super::{
    Grammar, ParameterError, Parser, RequestError, RequestErrorKind, Requests, Tool, ToolRequest,
    element::{Element, ElementError, children, elements_in},
    prose::{Prose, is_in_code_span, is_line_start},
    tag::{CDATA, Kind, Tag, Tags, comment, skip_blank},
    value,
};
use rehearse_document::json_schema::View;
use rehearse_document::nearest;

/// Elements that contain the name of the tool, and the elements that may contain its arguments.
const FORMS: [&str; 2] = ["use_mcp_tool", "use_tool"];
const ARGUMENTS: [&str; 2] = ["arguments", "parameters"];
/// Elements for reasoning, which contain no requests.
const THINKING: [&str; 2] = ["thinking", "think"];
/// Elements of HTML that contain only elements, or nothing.
const HTML: [&str; 19] = [
    "article", "body", "br", "div", "dl", "figure", "head", "hr", "html", "img", "main", "nav", "ol", "section", "svg",
    "table", "tbody", "tr", "ul",
];
/// The maximum number of elements that look like requests for unknown tools; with more, the message is a document.
const MAX_MISSES: usize = 100;
/// The maximum length of a quotation in an error.
const QUOTED_CHARS: usize = 40;

pub(super) struct Scanner<'p, 't> {
    parser: &'p Parser,
    text: &'t str,
    prose: Prose<'t>,
    count: usize,
    /// Cache of the next closing tag by name.
    closing: HashMap<&'t str, Option<Range<usize>>>,
    /// The number of elements that look like requests but are not.
    misses: usize,
    requests: Requests,
}

/// The parsed arguments of a request.
struct ParsedArguments<'t> {
    arguments: Map<String, Value>,
    elements: Vec<Element<'t>>,
    end: usize,
}

impl<'p, 't> Scanner<'p, 't> {
    pub(super) fn new(parser: &'p Parser, text: &'t str) -> Self {
        Scanner {
            parser,
            text,
            prose: Prose::new(text),
            count: 0,
            closing: HashMap::new(),
            misses: 0,
            requests: Requests::default(),
        }
    }

    pub(super) fn run(mut self) -> Requests {
        let mut at = 0;
        while let Some(found) = self.text[at..].find('<') {
            at += found;
            if self.prose.is_code(at) {
                at += 1;
            } else if let Some(end) = comment(&self.text[at..]) {
                at += end;
            } else if let Some(tag) = Tag::at(self.text, at) {
                let end = self.visit(&tag);
                if end > tag.range.end {
                    self.prose.skip_to(end);
                }
                at = end;
            } else {
                at += 1;
            }
        }
        self.requests
    }

    fn is_strict(&self) -> bool {
        self.parser.options.grammar == Grammar::Strict
    }

    /// Handles a tag and returns where to continue.
    fn visit(&mut self, tag: &Tag<'t>) -> usize {
        if tag.kind == Kind::Close {
            return tag.range.end;
        }
        let parser = self.parser;
        if let Some(tool) = parser.tool(tag.name()).or_else(|| parser.tool(tag.word())) {
            return self
                .request(tag, &tool.name, |scan| scan.parse_arguments(tag, tool).map(|written| (tool, written)));
        }
        if THINKING.contains(&tag.name()) && tag.kind == Kind::Open {
            return self.end_of(tag).unwrap_or(self.text.len());
        }
        if FORMS.contains(&tag.word()) && !self.is_strict() {
            return self.request(tag, tag.word(), |scan| scan.parse_wrapped(tag));
        }
        self.report_unknown(tag)
    }

    /// Parses an element as a request, if it is one.
    fn request(
        &mut self,
        tag: &Tag<'t>,
        name: &str,
        read: impl FnOnce(&Self) -> Result<(&'p Tool, ParsedArguments<'t>), RequestErrorKind>,
    ) -> usize {
        let nominal = if tag.kind == Kind::Empty { Some(tag.range.end) } else { self.end_of(tag) };
        let Some(nominal) = nominal else {
            if !is_line_start(self.text, tag.range.start) {
                return tag.range.end;
            }
            // The message is truncated, or the closing tag has another name.
            self.fail(name, tag.range.start..self.text.len(), RequestErrorKind::Unclosed(name.to_owned()));
            return self.text.len();
        };
        let result = match tag.name() == name {
            true => read(self),
            false => Err(RequestErrorKind::Attributes(name.to_owned())),
        };
        if matches!(result, Err(RequestErrorKind::StrayText(_) | RequestErrorKind::Unclosed(_)))
            && is_mention(self.text, tag)
        {
            return tag.range.end;
        }
        let range = tag.range.start..result.as_ref().map_or(nominal, |(_, written)| written.end);
        let end = range.end;
        if is_in_code_span(self.text, range.start, end) || self.is_strict() && !is_apart(self.text, &range) {
            return end;
        }
        match result {
            Ok((tool, written)) => self.call(tool, written, range),
            Err(kind) => self.fail(name, range, kind),
        }
        end
    }

    fn call(&mut self, tool: &Tool, written: ParsedArguments<'_>, range: Range<usize>) {
        let violations = tool.validator.violations(&written.arguments);
        if !violations.is_empty() {
            let error = |violation: crate::Violation| {
                let element = written.elements.iter().find(|element| is_part_of(&violation.parameter, element.name));
                ParameterError { range: element.map_or(range.clone(), |element| element.range.clone()), violation }
            };
            let errors = violations.into_iter().map(error).collect();
            return self.fail(&tool.name, range, RequestErrorKind::Parameters(errors));
        }
        if self.count_request(&tool.name, &range) {
            let (name, origin) = (tool.name.clone(), tool.origin.clone());
            self.requests.calls.push(ToolRequest { name, arguments: written.arguments, origin, range });
        }
    }

    fn fail(&mut self, name: &str, range: Range<usize>, kind: RequestErrorKind) {
        if self.count_request(name, &range) {
            self.requests.errors.push(RequestError { kind, range });
        }
    }

    /// Counts a request. Beyond the maximum, reports it and returns false.
    fn count_request(&mut self, name: &str, range: &Range<usize>) -> bool {
        self.count += 1;
        let max = self.parser.options.max_calls_per_message;
        if self.count > max {
            let kind = RequestErrorKind::TooMany { tool: name.to_owned(), max };
            self.requests.errors.push(RequestError { kind, range: range.clone() });
        }
        self.count <= max
    }

    /// Parses the arguments of a tool whose element begins with `tag`.
    fn parse_arguments(&self, tag: &Tag<'t>, tool: &Tool) -> Result<ParsedArguments<'t>, RequestErrorKind> {
        if self.is_strict() && !is_strict_name(&tool.name) {
            return Err(RequestErrorKind::ToolName(tool.name.clone()));
        }
        let schema = View::new(tool.validator.schema());
        if tag.kind == Kind::Empty {
            return self.parse_elements(Vec::new(), schema, tag.range.end);
        }
        if !self.is_strict() && self.is_json(tag.range.end, self.text.len()) {
            return self.parse_json(tag);
        }
        let is_known = |name: &str| schema.has_property(name);
        let (elements, end) =
            children(self.text, tag.range.end, tag.name(), &is_known).map_err(|error| self.error_kind(&error))?;
        self.parse_elements(elements, schema, end)
    }

    fn parse_elements(
        &self,
        elements: Vec<Element<'t>>,
        schema: View<'_>,
        end: usize,
    ) -> Result<ParsedArguments<'t>, RequestErrorKind> {
        if self.is_strict() {
            if elements.is_empty() {
                return Err(RequestErrorKind::NoParameters);
            }
            if let Some(element) = elements.iter().find(|element| !is_strict_name(element.name)) {
                return Err(RequestErrorKind::ParameterName(element.name.to_owned()));
            }
        }
        let (arguments, repeated) = value::members(self.text, &elements, Some(schema));
        match repeated.first() {
            Some(element) => Err(RequestErrorKind::Repeated(element.name.to_owned())),
            None => Ok(ParsedArguments { arguments, elements, end }),
        }
    }

    fn is_json(&self, from: usize, to: usize) -> bool {
        let at = skip_blank(self.text, from, to);
        let rest = &self.text[at..to];
        rest.starts_with('{') || rest.strip_prefix(CDATA).is_some_and(|rest| rest.trim_start().starts_with('{'))
    }

    /// Parses a body that is one JSON object. A closing tag in a string is part of the string.
    fn parse_json(&self, tag: &Tag<'t>) -> Result<ParsedArguments<'t>, RequestErrorKind> {
        const ATTEMPTS: usize = 4;
        let mut first = None;
        let closing = Tags::new(self.text, tag.range.end..self.text.len()).filter(|it| it.is(Kind::Close, tag.name()));
        for close in closing.take(ATTEMPTS) {
            match object(&self.text[tag.range.end..close.range.start]) {
                Ok(arguments) => return Ok(ParsedArguments { arguments, elements: Vec::new(), end: close.range.end }),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(RequestErrorKind::Json(first.unwrap_or_default()))
    }

    /// Parses a request that names its tool in an element.
    fn parse_wrapped(&self, tag: &Tag<'t>) -> Result<(&'p Tool, ParsedArguments<'t>), RequestErrorKind> {
        let form = tag.word();
        let is_known = |name: &str| matches!(name, "server_name" | "tool_name") || ARGUMENTS.contains(&name);
        let (elements, end) = match tag.kind {
            Kind::Empty => (Vec::new(), tag.range.end),
            _ => children(self.text, tag.range.end, form, &is_known).map_err(|error| self.error_kind(&error))?,
        };
        let element = |name: &str| elements.iter().find(|element| element.name == name);
        let text = |name: &str| element(name).map(|element| value::text(&self.text[element.inner.clone()]));
        let name = text("tool_name").filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| RequestErrorKind::MissingToolName(form.to_owned()))?;
        let server = text("server_name");
        let tool = self.parser.find_tool(server.as_deref(), &name);
        let tool = tool.map_err(|kind| kind.unwrap_or_else(|| self.unknown_tool(&name)))?;
        let Some(inner) = ARGUMENTS.iter().find_map(|name| element(name)).map(|element| element.inner.clone()) else {
            return Ok((tool, ParsedArguments { arguments: Map::new(), elements: Vec::new(), end }));
        };
        if self.is_json(inner.start, inner.end) {
            let arguments = object(&self.text[inner]).map_err(RequestErrorKind::Json)?;
            return Ok((tool, ParsedArguments { arguments, elements: Vec::new(), end }));
        }
        let schema = View::new(tool.validator.schema());
        let elements = elements_in(self.text, inner, &|name| schema.has_property(name))
            .map_err(|error| self.error_kind(&error))?;
        Ok((tool, self.parse_elements(elements, schema, end)?))
    }

    fn error_kind(&self, error: &ElementError<'_>) -> RequestErrorKind {
        match error {
            ElementError::StrayText(at) => {
                let text = self.text[*at..].split(['<', '\n']).next().unwrap_or_default();
                let text = if text.is_empty() { &self.text[*at..] } else { text };
                RequestErrorKind::StrayText(text.chars().take(QUOTED_CHARS).collect::<String>().trim_end().to_owned())
            }
            ElementError::Unclosed { name, .. } => RequestErrorKind::Unclosed((*name).to_owned()),
            ElementError::Attributes { name, .. } => RequestErrorKind::Attributes((*name).to_owned()),
        }
    }

    /// Reports a request for an unknown tool: an element at the start of a line that contains only elements, and has a name
    /// similar to a tool or with an underscore, or ends the message and is not HTML.
    fn report_unknown(&mut self, tag: &Tag<'t>) -> usize {
        let name = tag.name();
        let is_plain = name == tag.word() && is_line_start(self.text, tag.range.start);
        if !is_plain || self.misses >= MAX_MISSES || self.is_strict() && !is_strict_name(name) {
            return tag.range.end;
        }
        let kind = self.unknown_tool(name);
        let is_named = matches!(&kind, RequestErrorKind::UnknownTool { nearest: Some(_), .. }) || name.contains('_');
        let is_alike = is_named && tag.kind == Kind::Open;
        let end = match tag.kind {
            Kind::Open if self.text[tag.range.end..].trim().is_empty() => Some(tag.range.end),
            Kind::Open if self.is_json(tag.range.end, self.text.len()) => self.end_of(tag),
            Kind::Open => children(self.text, tag.range.end, name, &|_| true).ok().map(|(_, end)| end),
            Kind::Empty | Kind::Close => Some(tag.range.end),
        };
        let Some(end) = end else {
            self.misses += 1;
            return tag.range.end;
        };
        let ends_message = !self.is_strict() && self.text[end..].trim().is_empty() && !HTML.contains(&name);
        if !(is_alike || ends_message) || is_in_code_span(self.text, tag.range.start, end) {
            return tag.range.end;
        }
        self.fail(name, tag.range.start..end, kind);
        end
    }

    /// The end of the first closing tag for this one.
    fn end_of(&mut self, tag: &Tag<'t>) -> Option<usize> {
        let from = tag.range.end;
        let known = self.closing.get(tag.name()).filter(|it| it.as_ref().is_none_or(|close| close.start >= from));
        let close = known.cloned().unwrap_or_else(|| {
            let is_close = |it: &Tag<'_>| it.is(Kind::Close, tag.name()) || it.is(Kind::Close, tag.word());
            Tags::new(self.text, from..self.text.len()).find(is_close).map(|tag| tag.range)
        });
        self.closing.insert(tag.name(), close.clone());
        close.map(|close| close.end)
    }

    fn unknown_tool(&self, name: &str) -> RequestErrorKind {
        let names: Vec<_> = self.parser.tools.iter().map(|tool| &*tool.name).collect();
        RequestErrorKind::UnknownTool { name: name.to_owned(), nearest: nearest(name, &names).map(str::to_owned) }
    }
}

/// Whether the tag is only mentioned: the element begins again before it ends.
fn is_mention(text: &str, tag: &Tag<'_>) -> bool {
    let mut tags = Tags::new(text, tag.range.end..text.len());
    tags.find(|it| it.name() == tag.name()).is_some_and(|it| it.kind == Kind::Open)
}

fn object(raw: &str) -> Result<Map<String, Value>, String> {
    serde_json::from_str(value::text(raw).trim()).map_err(|error| error.to_string())
}

/// Whether white space is on both sides.
fn is_apart(text: &str, range: &Range<usize>) -> bool {
    let is_blank = |c: Option<char>| c.is_none_or(char::is_whitespace);
    is_blank(text[..range.start].chars().next_back()) && is_blank(text[range.end..].chars().next())
}

fn is_strict_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Whether a path of a violation begins with this parameter.
fn is_part_of(path: &str, parameter: &str) -> bool {
    path.strip_prefix(parameter).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
