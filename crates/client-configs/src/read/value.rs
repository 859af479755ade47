//! The values of a server's keys.

use std::{borrow::Cow, time::Duration};

use super::server::Reader;
use crate::{
    At, ConfiguredServer, Pair, codes,
    dialect::{Field, OutOfRange, SettingType, TimeoutRule},
};
use rehearse_document::{Entry, Node, Value, parse_duration, references};

impl Reader<'_> {
    pub(super) fn fill(&mut self, server: &mut ConfiguredServer, field: Field, entry: &Entry) {
        let (key, node) = (&*entry.key, &entry.node);
        if node.is_null() && self.is_go_yaml() {
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
            Field::StartTimeout => {
                let timeout = self.timeout(key, node);
                (server.timeouts.connect, server.timeouts.list) = (timeout.clone(), timeout);
            }
            Field::ToolTimeouts => {
                if node.as_entries().is_none() {
                    self.wrong_type(key, node, "an object");
                }
                for Entry { key, key_span, node } in node.as_entries().unwrap_or_default() {
                    let tool = At { value: key.clone(), span: *key_span };
                    server.timeouts.tools.extend(self.timeout(key, node).map(|timeout| (tool, timeout)));
                }
            }
            Field::Include => server.tools.include = self.list(entry),
            Field::Exclude => server.tools.exclude = self.list(entry),
            Field::Enabled => server.enabled = self.flag(key, node),
            Field::Disabled => server.enabled = self.flag(key, node).map(|it| At { value: !it.value, ..it }),
            Field::Trust => server.approval.trust = self.flag(key, node),
            Field::AlwaysAllow => server.approval.always_allow = self.texts(key, node),
            Field::Debug => server.debug = self.flag(key, node),
            Field::Bearer => server.auth.bearer = self.text(key, node),
            Field::RejectedBearer(instead) => {
                server.auth.bearer = self.text(key, node);
                let message = format!("{} rejects a file with `{key}`", self.dialect.program);
                let hint = format!("put the token into a variable, and its name into `{instead}`");
                self.findings.push(codes::KEY_REJECTED.at(entry.key_span, message).hint(hint));
            }
            Field::ClientId => server.auth.oauth.get_or_insert_default().client_id = self.text(key, node),
            Field::ClientSecret => server.auth.oauth.get_or_insert_default().client_secret = self.text(key, node),
            Field::MetadataUrl => server.auth.oauth.get_or_insert_default().metadata_url = self.text(key, node),
            Field::Scopes | Field::ScopeText => {
                match field {
                    Field::Scopes if node.as_items().is_none() => self.wrong_type(key, node, "an array of strings"),
                    Field::ScopeText if node.as_str().is_none() => self.wrong_type(key, node, "a string"),
                    _ => {}
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

    /// Checks a setting that only this program has.
    fn setting(&mut self, key: &str, node: &Node, kind: SettingType) {
        let is_plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == ' ');
        let least = |least| node.integer::<u64>().is_ok_and(|number| number >= least);
        let text = node.as_str();
        let (is_right, expected) = match kind {
            SettingType::Text => (text.is_some(), "a string"),
            SettingType::Plain => (text.is_some_and(is_plain), "a string of letters, digits and spaces"),
            SettingType::Flag => (node.as_bool().is_some(), "true or false"),
            SettingType::Count(0) => (least(0), "a whole number"),
            SettingType::Count(smallest) => (least(smallest), "a whole number that is not 0"),
            SettingType::TextOrFlag => (text.is_some() || node.as_bool().is_some(), "a string, or true or false"),
            SettingType::WordOrCount(words) => (
                text.is_some_and(|text| words.contains(&text)) || least(0),
                "a whole number or a word that the program knows",
            ),
            SettingType::Pairs => return drop(self.pairs(key, node)),
            SettingType::Object => (node.as_entries().is_some(), "an object"),
        };
        if !is_right {
            let finding = codes::VALUE_TYPE.at(node.span, format!("`{key}` must be {expected}"));
            self.findings.push(finding.hint("correct the value"));
        }
    }

    pub(super) fn wrong_type(&mut self, key: &str, node: &Node, expected: &str) {
        self.wrong_part("", key, node, expected);
    }

    /// As [`Self::wrong_type`] for a `part` of a value, or for all of it.
    fn wrong_part(&mut self, part: &str, key: &str, node: &Node, expected: &str) {
        let is_one = !["an array", "an object"].iter().any(|many| expected.starts_with(many));
        if self.may_be_collection(node) || is_one && self.may_be_anything(node) {
            return;
        }
        let message = format!("{part}`{key}` must be {expected}, found {}", node.kind());
        let hint: Cow<'static, str> = match (&node.value, expected) {
            (Value::String(text), "true or false" | "a number" | "a whole number" | "a port") => {
                self.unquoted(text, expected).into()
            }
            (value, expected) => self.correction(key, part, value, expected).into(),
        };
        self.findings.push(codes::VALUE_TYPE.at(node.span, message).hint(hint));
    }

    /// What to write for a value that cannot be a string.
    fn correction(&self, key: &str, part: &str, value: &Value, expected: &str) -> &'static str {
        match (value, expected) {
            (Value::Null, _) if part.is_empty() && self.dialect.required_keys.contains(&key) => {
                "write [] if there are none"
            }
            (Value::Null, _) => "remove it, or give it a value",
            (Value::Sequence(_), "a string") if key == "command" => "move the rest to `args`",
            (Value::Sequence(_) | Value::Mapping(_), "a string") => "write one string instead",
            (_, "an array of strings") => "write each item as a string of its own: [\"one\", \"two\"]",
            (_, "an object of strings") => "write { \"NAME\": \"value\" }",
            (_, "an object") => "write { … }",
            (_, "a string") => "write it in quotes",
            _ => "write another value",
        }
    }

    /// What to write for a string that should be a number, or true or false.
    fn unquoted(&self, text: &str, expected: &str) -> String {
        let text = text.trim().to_ascii_lowercase();
        if expected == "true or false" {
            return match &*text {
                "true" | "false" => "write it without quotes".into(),
                "yes" | "on" | "y" | "1" => "write true".into(),
                "no" | "off" | "n" | "0" => "write false".into(),
                _ => format!("write {expected}"),
            };
        }
        let unit = self.dialect.timeout.map_or(1, |rule| u128::from(rule.unit));
        let whole = |time: Duration| time.as_millis().is_multiple_of(unit).then(|| time.as_millis() / unit);
        match parse_duration(&text).filter(|_| expected == "a number").and_then(whole) {
            _ if text.parse::<f64>().is_ok() => "write it without quotes".into(),
            Some(number) => format!("write {number}"),
            None => format!("write {expected}"),
        }
    }

    fn text(&mut self, key: &str, node: &Node) -> Option<At<String>> {
        self.text_in("", key, node)
    }

    /// As [`Self::text`] for a `part` of what a key has, or for all of it.
    fn text_in(&mut self, part: &str, key: &str, node: &Node) -> Option<At<String>> {
        let text = self.as_text(node);
        if text.is_none() {
            self.wrong_part(part, key, node, "a string");
        }
        text
    }

    fn as_text(&self, node: &Node) -> Option<At<String>> {
        let text = match &node.value {
            Value::String(text) => text,
            Value::Null if self.is_go_yaml() => "",
            Value::Bool(_) | Value::Number(_) if self.is_go_yaml() => {
                self.source.text.get(node.span.start..node.span.end).unwrap_or_default()
            }
            _ => return None,
        };
        Some(At { value: text.to_owned(), span: node.span })
    }

    /// Whether the text is YAML for a program in Go, whose reader (yaml.v3) takes any scalar for a string, and ignores
    /// null.
    fn is_go_yaml(&self) -> bool {
        self.dialect.variables.by_go && !self.source.name.ends_with(".json")
    }

    /// A number as that reader takes it: with underscores, and octal after a zero.
    fn go_number(&self, text: &str, node: &Node) -> Option<f64> {
        let digits = text.replace('_', "");
        if !self.is_go_yaml() || !self.is_bare(node) {
            return None;
        }
        match digits.strip_prefix('0').filter(|rest| rest.bytes().all(|byte| matches!(byte, b'0'..=b'7'))) {
            Some(octal) => u32::from_str_radix(octal, 8).ok().map(f64::from),
            None => digits.parse::<f64>().ok(),
        }
    }

    fn texts(&mut self, key: &str, node: &Node) -> Vec<At<String>> {
        let Some(items) = node.as_items() else {
            self.wrong_type(key, node, "an array of strings");
            return Vec::new();
        };
        let mut texts = Vec::new();
        for item in items {
            match self.as_text(item) {
                _ if item.is_null() && self.is_go_yaml() => {}
                Some(text) => texts.push(text),
                None => self.wrong_part("each of ", key, item, "a string"),
            }
        }
        texts
    }

    /// An array, located by its key unless it is empty.
    fn list(&mut self, entry: &Entry) -> Option<At<Vec<At<String>>>> {
        let value = self.texts(&entry.key, &entry.node);
        let is_empty = entry.node.as_items()?.is_empty();
        Some(At { value, span: if is_empty { entry.node.span } else { entry.key_span } })
    }

    fn flag(&mut self, key: &str, node: &Node) -> Option<At<bool>> {
        let coerced = node.as_str().filter(|_| self.dialect.coerces_scalars);
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
            self.wrong_type(key, node, "an object of strings");
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for entry in entries {
            let Entry { key, key_span, node } = entry;
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
            Value::String(text) if self.dialect.coerces_scalars && references(text).next().is_some() => return None,
            Value::String(text) if self.dialect.coerces_scalars => text.parse::<f64>().ok(),
            Value::String(text) => self.go_number(text, node),
            _ => None,
        };
        let Some(number) = number else {
            if outside == OutOfRange::Clamped {
                let message = format!("`{key}` must be a number: {} uses its default instead", self.dialect.program);
                let hint = self.unquoted(node.as_str().unwrap_or_default(), "a number");
                self.findings.push(codes::IGNORED.at(node.span, message).hint(hint));
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
        // The limit of the program, if it has one, says what is too long.
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
        // A fraction of a unit is unlikely.
        let is_likely = meant >= 1.0 && meant.fract() == 0.0;
        let hint = match looks_like_other {
            true if is_likely => other_hint,
            true if number > high => format!("write a number {limits}, or {meant} if {other} were meant"),
            true => other_hint,
            false => format!("write a number {limits}"),
        };
        let message = format!("`{key}` is in {name}");
        if !is_inside && outside == OutOfRange::Rejected {
            let message = format!("{message}, {limits}, found {number}");
            self.findings.push(codes::TIMEOUT.at(node.span, message).hint(hint));
            return None;
        }
        // 0 means the default.
        if is_inside && number == 0.0 {
            return None;
        }
        let taken = number.clamp(low, high);
        if !is_inside {
            let fate = match outside {
                OutOfRange::Clamped => format!("{} uses {taken} instead", self.dialect.program),
                _ => format!("{} ignores it", self.dialect.program),
            };
            let size = if number < low { "small" } else { "large" };
            let message = format!("{message}, and {number} is too {size}: {fate}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        } else if looks_like_other {
            let message = format!("{message}, and {number} looks like {other}");
            self.findings.push(codes::TIMEOUT_UNIT.at(node.span, message).hint(hint));
        }
        if !is_inside && outside == OutOfRange::Ignored {
            return None;
        }
        #[expect(clippy::cast_precision_loss, reason = "a unit is 1 or 1000")]
        let seconds = taken * (unit as f64) / 1000.0;
        Duration::try_from_secs_f64(seconds).ok().map(|value| At { value, span: node.span })
    }
}
