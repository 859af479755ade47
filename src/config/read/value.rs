//! The values of a server's keys.

use std::time::Duration;

use super::{server::Reader, unknown::GLUED};
use crate::config::{
    Entry, Node, Problem, Span, Value,
    command_line::words_for_hint,
    dialect::{Field, Kind, Outside, Syntax, TimeoutRule},
    finding::{MOST_TOLD, codes},
    nearest, references,
    server::{At, Pair, ServerConfig},
    yaml::slip::{of_comment, of_item, of_key},
};

impl Reader<'_> {
    pub(super) fn fill(&mut self, server: &mut ServerConfig, field: Field, entry: &Entry) {
        let (key, node) = (&*entry.key, &entry.node);
        if node.is_null() && self.is_yaml_of_go() {
            return;
        }
        match field {
            Field::Command => server.command = self.text(key, node),
            Field::CommandLine => {
                let mut words = self.texts(key, node).into_iter();
                server.command = words.next();
                server.args = words.collect();
            }
            Field::Args => server.args = self.texts(key, node),
            Field::Env if node.is_null() && self.dialect.null_env => {}
            Field::Env => server.env = self.pairs(key, node),
            Field::EnvFile => server.env_file = self.text(key, node),
            Field::Cwd => server.cwd = self.text(key, node),
            Field::Url(_) => server.url = self.text(key, node),
            Field::Headers => server.headers = self.pairs(key, node),
            Field::Timeout => {
                let timeout = self.timeout(key, node);
                let timeouts = &mut server.timeouts;
                (timeouts.connect, timeouts.list, timeouts.call) = (timeout.clone(), timeout.clone(), timeout);
            }
            Field::CallTimeout => server.timeouts.call = self.timeout(key, node),
            Field::Include => server.tools.include = self.list(entry),
            Field::Exclude => server.tools.exclude = self.list(entry),
            Field::Enabled => server.enabled = self.flag(key, node),
            Field::Disabled => server.enabled = self.flag(key, node).map(|it| At { value: !it.value, ..it }),
            Field::Trust => server.approval.trust = self.flag(key, node),
            Field::AlwaysAllow => server.approval.always_allow = self.texts(key, node),
            Field::Debug => server.debug = self.flag(key, node),
            Field::Bearer => server.auth.bearer = self.text(key, node),
            Field::ClientId => server.auth.oauth.get_or_insert_default().client_id = self.text(key, node),
            Field::ClientSecret => server.auth.oauth.get_or_insert_default().client_secret = self.text(key, node),
            Field::MetadataUrl => server.auth.oauth.get_or_insert_default().metadata_url = self.text(key, node),
            Field::Scopes | Field::ScopeText => {
                let is_right = if field == Field::Scopes { node.as_items().is_some() } else { node.as_str().is_some() };
                if !is_right {
                    self.wrong_scopes(key, node, field);
                }
                server.auth.oauth.get_or_insert_default().scopes = self.scopes(key, node);
            }
            Field::CallbackPort => match node.integer() {
                Ok(port) => {
                    server.auth.oauth.get_or_insert_default().callback_port = Some(At { value: port, span: node.span })
                }
                Err(_) => self.wrong_type(key, node, "a port"),
            },
            Field::Setting(kind) => self.setting(key, node, kind),
            Field::Name | Field::Transport | Field::AuthKind | Field::Object(_) | Field::Own => {}
        }
    }

    /// What is wrong with a value that only its program understands.
    fn setting(&mut self, key: &str, node: &Node, kind: Kind) {
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ');
        match (kind, &node.value) {
            (Kind::Count(least), Value::Number(_)) if node.integer::<u64>().map_or(true, |number| number < least) => {
                let finding =
                    codes::VALUE_TYPE.at(node.span, format!("`{key}` must be a whole number, at least {least}"));
                self.findings.push(finding.hint("write a whole number that is not less"));
                return;
            }
            (Kind::WordOrCount(words), Value::String(text)) if !words.contains(&&**text) => {
                let finding =
                    codes::VALUE_TYPE.at(node.span, format!("there is no such `{key}` for {}", self.dialect.program));
                self.findings.push(match nearest(text, words) {
                    Some(near) => finding.hint(format!("did you mean `{near}`?")),
                    None => finding.hint(format!("one of {}, or a whole number", words.join(", "))),
                });
                return;
            }
            (Kind::Plain, Value::String(text)) if !is_plain(text) => {
                let message = format!("{} takes only letters, digits and blanks in a `{key}`", self.dialect.program);
                self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint("leave out the other characters"));
                return;
            }
            _ => {}
        }
        let least = |least| node.integer::<u64>().is_ok_and(|number| number >= least);
        let (is_right, expected) = match kind {
            Kind::Text | Kind::Plain => (node.as_str().is_some(), "a text"),
            Kind::Flag => (node.as_bool().is_some(), "true or false"),
            Kind::Count(0) => (least(0), "a whole number"),
            Kind::Count(smallest) => (least(smallest), "a whole number that is not 0"),
            Kind::TextOrFlag => (node.as_str().is_some() || node.as_bool().is_some(), "a text, or true or false"),
            Kind::WordOrCount(_) => (node.as_str().is_some() || least(0), "a text or a whole number"),
            Kind::Pairs => return drop(self.pairs(key, node)),
            Kind::Object => (node.as_entries().is_some(), "an object"),
        };
        if !is_right {
            self.wrong_type(key, node, expected);
        }
    }

    pub(super) fn wrong_type(&mut self, key: &str, node: &Node, expected: &str) {
        self.wrong_part("", key, node, expected);
    }

    /// As [`Self::wrong_type`] for a `part` of what a key has, or for all of it.
    fn wrong_part(&mut self, part: &str, key: &str, node: &Node, expected: &str) {
        let is_one = !["a list", "an object"].iter().any(|many| expected.starts_with(many));
        if self.may_be_collection(node) || is_one && self.may_be_anything(node) {
            return;
        }
        let message = format!("{part}`{key}` must be {expected}, found {}", node.kind());
        if let Some(Problem { span, hint: Some(hint), .. }) = self.slip(node, expected) {
            self.findings.push(codes::VALUE_TYPE.at(span, message).hint(hint));
            return;
        }
        let finding = codes::VALUE_TYPE.at(node.span, message);
        self.findings.push(match (&node.value, expected) {
            (Value::String(text), "a list of texts") => finding.hint(self.as_list(key, text)),
            (Value::Bool(_) | Value::Number(_), "a text") if self.is_key_of(key, Field::Command) => {
                finding.hint("name the program to start")
            }
            (Value::Bool(value), "a text") => finding.hint(format!("write \"{value}\"")),
            (Value::String(text), "a number") if text.parse::<f64>().is_err() => finding.hint("write a number"),
            (_, whole) if whole.contains("whole number") => finding.hint("write it in digits, without quotes"),
            (Value::Null, _) if part.is_empty() && self.dialect.required.contains(&key) => {
                finding.hint("write [] if there are none")
            }
            (Value::Null, _) => finding.hint("remove it, or give it a value"),
            (Value::String(text), "true or false") => finding.hint(match text.as_str() {
                "true" | "false" => "write it without quotes",
                _ if ["true", "false"].iter().any(|it| text.eq_ignore_ascii_case(it)) => {
                    "write it without quotes, in small letters"
                }
                _ => "write true or false, without quotes",
            }),
            (Value::String(_), "a number") if self.is_bare(node) => {
                finding.hint("write it in decimal, without underscores")
            }
            (Value::String(_), "a number") => finding.hint("write it without quotes"),
            (Value::Sequence(_), "a text") if key == "command" => finding.hint("put the rest into `args`"),
            (Value::Sequence(_), "a text") if !part.is_empty() => finding.hint("take the brackets away from its texts"),
            (Value::Sequence(_) | Value::Mapping(_), "a text") => finding.hint("write one text in its place"),
            (_, "a list of texts") => finding.hint("write [\"one\", \"two\"]"),
            (_, "an object of texts") => finding.hint("write { \"NAME\": \"value\" }"),
            (_, "an object") => finding.hint("write { … }"),
            (_, "a number" | "a port") => finding.hint("write it in digits"),
            (_, "true or false") => finding.hint("write true or false without quotes"),
            _ => finding.hint("write it in quotes"),
        });
    }

    /// What is wrong with the way in which a value of YAML is written, if that makes it what it is.
    fn slip(&self, node: &Node, expected: &str) -> Option<Problem> {
        let text = &self.source.text;
        match &node.value {
            Value::String(_) if !self.is_bare(node) => None,
            Value::String(_) if expected == "an object of texts" => of_key(text, node.span.start),
            Value::String(_) if expected == "a list of texts" => of_item(text, node.span.start),
            Value::String(value) if value.ends_with(',') && ["a number", "true or false"].contains(&expected) => {
                let comma = Span { start: node.span.end - 1, end: node.span.end };
                Some(Problem::new(comma, "in YAML this comma is a part of the value").hint("remove it"))
            }
            Value::Null if node.span.start == node.span.end => of_comment(text, node.span.start),
            _ => None,
        }
    }

    /// How to write as a list what is one text.
    fn as_list(&self, key: &str, text: &str) -> String {
        if text.trim_start().starts_with('[') {
            return "write it without the quotes around the brackets".to_owned();
        }
        if text.trim().is_empty() {
            return "write []".to_owned();
        }
        let are_words = self.is_key_of(key, Field::CommandLine) || self.is_key_of(key, Field::Args);
        let is_one = !text.trim().contains(' ') && (are_words || !text.contains(','));
        match words_for_hint(text) {
            Some(_) if is_one => format!("write [{text:?}]"),
            Some(words) if are_words => format!("write {words:?}"),
            _ if is_one => "put it into brackets: [\"…\"]".to_owned(),
            _ if self.is_key_of(key, Field::CommandLine) => {
                "write each word as a text of its own: [\"npx\", \"-y\", …]".to_owned()
            }
            _ if are_words => "write each argument as a text of its own: [\"-y\", \"package\"]".to_owned(),
            _ => "write each name as a text of its own: [\"one\", \"two\"]".to_owned(),
        }
    }

    /// Whether the dialect has this key for that.
    fn is_key_of(&self, key: &str, field: Field) -> bool {
        self.dialect.keys.iter().any(|it| it.name == key && it.field == field)
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<At<String>> {
        self.text_in("", key, node)
    }

    /// As [`Self::text`] for a `part` of what a key has, or for all of it.
    fn text_in(&mut self, part: &str, key: &str, node: &Node) -> Option<At<String>> {
        let text = self.as_text(node);
        if text.is_none() {
            self.no_text(part, key, node);
        }
        text
    }

    fn as_text(&self, node: &Node) -> Option<At<String>> {
        let text = match &node.value {
            Value::String(text) if self.read_by_others(text, node).is_none() => text,
            Value::Null if self.is_yaml_of_go() => "",
            Value::Bool(_) | Value::Number(_) if self.is_yaml_of_go() => {
                self.source.text.get(node.span.start..node.span.end).unwrap_or_default()
            }
            _ => return None,
        };
        Some(At { value: text.to_owned(), span: node.span })
    }

    fn no_text(&mut self, part: &str, key: &str, node: &Node) {
        let Some(read) = node.as_str().and_then(|text| self.read_by_others(text, node)) else {
            return self.wrong_part(part, key, node, "a text");
        };
        let message = format!("{part}`{key}` must be a text, and {} reads {read}", self.dialect.program);
        self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint("write it in quotes"));
    }

    /// Whether the text is YAML for a program in Go, whose reader (yaml.v3) takes any scalar for a text as it is written,
    /// and passes over what is null.
    fn is_yaml_of_go(&self) -> bool {
        self.dialect.variables.by_go && !self.source.name.ends_with(".json")
    }

    /// A number as that reader takes it: with underscores, and octal behind a zero.
    fn number_of_go(&self, text: &str, node: &Node) -> Option<f64> {
        let digits = text.replace('_', "");
        if !self.is_yaml_of_go() || !self.is_bare(node) {
            return None;
        }
        match digits.strip_prefix('0').filter(|rest| rest.bytes().all(|byte| matches!(byte, b'0'..=b'7'))) {
            Some(octal) => u32::from_str_radix(octal, 8).ok().map(f64::from),
            None => digits.parse::<f64>().ok(),
        }
    }

    /// What the program reads of a text that is none for it: in YAML 1.2 a number may begin with 0, and YAML 1.1 has dates.
    fn read_by_others(&self, text: &str, node: &Node) -> Option<&'static str> {
        if self.dialect.syntax != Syntax::Yaml || !text.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c)) {
            return None;
        }
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let is_number = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
        let read = match () {
            () if is_number => "a number",
            () if self.dialect.dates && is_date(text) => "a date",
            () => return None,
        };
        Some(read).filter(|_| self.is_bare(node))
    }

    fn texts(&mut self, key: &str, node: &Node) -> Vec<At<String>> {
        let Some(items) = node.as_items() else {
            self.wrong_type(key, node, "a list of texts");
            return Vec::new();
        };
        let mut wrong = Vec::new();
        let is_lost = |item: &&Node| item.is_null() && self.is_yaml_of_go();
        let mut texts = Vec::with_capacity(items.len());
        texts.extend(items.iter().filter(|item| !is_lost(item)).filter_map(|item| {
            let text = self.as_text(item);
            wrong.extend((text.is_none() && !self.may_be_anything(item)).then_some(item));
            text
        }));
        wrong.iter().take(MOST_TOLD).for_each(|item| self.no_text("each of ", key, item));
        if let Some(more) = wrong.len().checked_sub(MOST_TOLD) {
            let last = self.findings.pop().map(|last| last.followed_by(more));
            self.findings.extend(last);
        }
        texts
    }

    /// A list, of which the key is shown as long as there is something in it.
    fn list(&mut self, entry: &Entry) -> Option<At<Vec<At<String>>>> {
        let value = self.texts(&entry.key, &entry.node);
        let is_empty = entry.node.as_items()?.is_empty();
        Some(At { value, span: if is_empty { entry.node.span } else { entry.key_span } })
    }

    fn flag(&mut self, key: &str, node: &Node) -> Option<At<bool>> {
        let coerced = node.as_str().filter(|_| self.dialect.coerces);
        let value = match (node.as_bool(), coerced.map(str::to_ascii_lowercase).as_deref()) {
            (Some(value), _) => value,
            (_, Some("true")) => true,
            (_, Some("false")) => false,
            (_, Some(text)) if references(text).next().is_some() => return None,
            _ => {
                self.wrong_type(key, node, "true or false");
                return None;
            }
        };
        Some(At { value, span: node.span })
    }

    fn pairs(&mut self, key: &str, node: &Node) -> Vec<Pair> {
        let Some(entries) = node.as_entries() else {
            self.wrong_type(key, node, "an object of texts");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for entry in entries {
            let Entry { key, key_span, node } = entry;
            self.loose += u32::from(self.dialect.loose_values && node.as_str().is_none());
            if let Some((colon, _)) = self.glued(entry) {
                let takes_nothing = self.dialect.loose_values || self.is_yaml_of_go();
                let code = if takes_nothing { &codes::YAML_FORM } else { &codes::VALUE_TYPE };
                self.findings.push(code.at(colon, GLUED.0).hint(GLUED.1));
                continue;
            }
            let value = match &node.value {
                Value::Number(text) if self.dialect.loose_values => Some(At { value: text.clone(), span: node.span }),
                Value::Null if self.dialect.loose_values => continue,
                _ => self.text(key, node),
            };
            let name = At { value: key.clone(), span: *key_span };
            pairs.extend(value.map(|value| Pair { name, value }));
        }
        pairs
    }

    fn wrong_scopes(&mut self, key: &str, node: &Node, field: Field) {
        let (expected, hint) = match field {
            Field::Scopes => ("a list of texts", "write [\"one\", \"two\"]"),
            _ => ("a text", "write all of them in one text, with blanks between them"),
        };
        let message = format!("`{key}` must be {expected}, found {}", node.kind());
        self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
    }

    fn scopes(&mut self, key: &str, node: &Node) -> Vec<At<String>> {
        match &node.value {
            Value::String(text) => {
                text.split_whitespace().map(|scope| At { value: scope.to_owned(), span: node.span }).collect()
            }
            Value::Sequence(_) => self.texts(key, node),
            _ => Vec::new(),
        }
    }

    fn timeout(&mut self, key: &str, node: &Node) -> Option<At<Duration>> {
        let TimeoutRule { unit, least, most, whole, outside, .. } = self.dialect.timeout?;
        let number = match &node.value {
            Value::Number(text) => text.parse::<f64>().ok(),
            Value::String(text) if self.dialect.coerces && references(text).next().is_some() => return None,
            Value::String(text) if self.dialect.coerces => text.parse::<f64>().ok(),
            Value::String(text) if self.read_by_others(text, node) == Some("a number") => text.parse::<f64>().ok(),
            Value::String(text) => self.number_of_go(text, node),
            _ => None,
        };
        let Some(number) = number else {
            if outside == Outside::Clamped {
                let message = format!("`{key}` must be a number: {} takes its default instead", self.dialect.program);
                self.findings.push(codes::IGNORED.at(node.span, message).hint("write it without quotes"));
            } else {
                self.wrong_type(key, node, "a number");
            }
            return None;
        };
        let (name, other, meant) = match unit {
            1000 => ("seconds", "milliseconds", number / 1000.0),
            _ => ("milliseconds", "seconds", number * 1000.0),
        };
        let other_hint = format!("write {meant} if {other} were meant");
        #[expect(clippy::cast_precision_loss, reason = "the limits are far below 2^53, or none")]
        let (low, high) = (least as f64, most as f64);
        // Where there is a limit, nobody has to guess what is too long.
        let longest = if most == u64::MAX { 999.0 } else { high };
        let looks_like_other = if unit == 1000 { number > longest } else { number > 0.0 && number < 100.0 };
        let is_inside = (low..=high).contains(&number);
        let limits = match most {
            u64::MAX => format!("at least {least}"),
            _ => format!("from {least} to {most}"),
        };
        if whole && number.fract() != 0.0 {
            let hint = if looks_like_other { other_hint } else { format!("write {}", number.round()) };
            let message = format!("`{key}` must be a whole number, found {number}");
            self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
            return None;
        }
        // Nobody means a fraction of a unit.
        let is_likely = meant >= 1.0 && meant.fract() == 0.0;
        let hint = match looks_like_other {
            true if is_likely => other_hint,
            true if number > high => format!("write a number {limits}, or {meant} if {other} were meant"),
            true => other_hint,
            false => format!("write a number {limits}"),
        };
        let message = format!("`{key}` is in {name}");
        if !is_inside && outside == Outside::Rejected {
            let message = format!("{message}, {limits}, found {number}");
            self.findings.push(codes::TIMEOUT.at(node.span, message).hint(hint));
            return None;
        }
        // Where it may be 0, that means the default.
        if is_inside && number == 0.0 {
            return None;
        }
        let taken = number.clamp(low, high);
        if !is_inside {
            let fate = match outside {
                Outside::Clamped => format!("{} takes {taken} instead", self.dialect.program),
                _ => format!("{} ignores it", self.dialect.program),
            };
            let size = if number < low { "small" } else { "large" };
            let message = format!("{message}, and {number} is too {size}: {fate}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        } else if looks_like_other {
            let message = format!("{message}, and {number} looks like {other}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        }
        if !is_inside && outside == Outside::Ignored {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a unit is 1 or 1000")]
        let seconds = taken * (unit as f64) / 1000.0;
        Duration::try_from_secs_f64(seconds).ok().map(|value| At { value, span: node.span })
    }
}

/// Whether a text is a day, perhaps with a time (YAML 1.1, timestamp).
fn is_date(text: &str) -> bool {
    let (day, time) = text.split_at(text.find(['T', 't', ' ']).unwrap_or(text.len()));
    let is_of =
        |part: &str, lengths: &[usize]| lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = || {
        let parts: Vec<_> = time[1..].trim_start().splitn(3, ':').collect();
        matches!(parts[..], [hour, minute, _] if is_of(hour, &[1, 2]) && is_of(minute, &[2]))
    };
    match day.split('-').collect::<Vec<_>>()[..] {
        [year, month, day] if time.is_empty() => is_of(year, &[4]) && is_of(month, &[2]) && is_of(day, &[2]),
        [year, month, day] => is_of(year, &[4]) && is_of(month, &[1, 2]) && is_of(day, &[1, 2]) && is_time(),
        _ => false,
    }
}
