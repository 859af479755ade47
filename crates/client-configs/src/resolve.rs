//! Values with their variables replaced, as the program that owns the config does it.

use super::{
    At, ConfiguredServer, Variables, dialect::Dialect, dialect::EmptyVariable, dialect::Field, dialect::UnsetVariable,
    dialect::VariableRule, dialect::is_from_home,
};
use rehearse_document::{Form, Reference, Span};

/// A reference that needs a value and has none here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// The reference, or the value if escapes hide its place.
    pub span: Span,
    /// As it is written, without what may be secret in it.
    pub reference: String,
    pub reason: UnresolvedReason,
}

/// Why a reference has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnresolvedReason {
    /// The variable is not set.
    Unset,
    /// The program asks the user for it.
    Asked,
    /// Only the program knows it.
    Known,
}

impl Unresolved {
    /// A sentence about it, given the program that owns the config.
    pub fn describe(&self, program: &str) -> String {
        let reference = &self.reference;
        match self.reason {
            UnresolvedReason::Unset => format!("`{reference}` has no value: the variable is not set"),
            UnresolvedReason::Asked => format!("`{reference}` has no value: {program} asks the user for it"),
            UnresolvedReason::Known => format!("`{reference}` has no value: only {program} knows it"),
        }
    }
}

/// The server with every reference replaced that its program replaces. What the program knows by itself, such as
/// `workspaceFolder`, may be among the `variables`. Spans stay those of the text.
///
/// # Errors
/// Every reference without a value, where the program would not go on either.
pub fn resolve(
    server: &ConfiguredServer,
    dialect: &Dialect,
    variables: &Variables,
) -> Result<ConfiguredServer, Vec<Unresolved>> {
    let mut resolved = server.clone();
    if let Some(home) = variables.home() {
        let fields = [Field::Command, Field::Cwd].into_iter().zip([&mut resolved.command, &mut resolved.cwd]);
        let paths = fields.flat_map(|(field, path)| Some((field, path.as_mut()?)));
        let paths = paths.chain(resolved.args.iter_mut().map(|argument| (Field::Args, argument)));
        for (_, path) in
            paths.filter(|(field, path)| dialect.expands_home_in.contains(field) && is_from_home(&path.value))
        {
            path.value.replace_range(..1, home);
        }
    }
    let mut resolver = Resolver { dialect, variables, server, unresolved: Vec::new() };
    resolver.replace(&mut resolved.command, Field::Command);
    resolver.replace(&mut resolved.args, Field::Args);
    resolver.replace(resolved.env.iter_mut().map(|pair| &mut pair.value), Field::Env);
    resolver.replace(&mut resolved.env_file, Field::EnvFile);
    resolver.replace(&mut resolved.cwd, Field::Cwd);
    resolver.replace(&mut resolved.url, Field::Url(None));
    resolver.replace(resolved.headers.iter_mut().map(|pair| &mut pair.value), Field::Headers);
    resolver.replace(&mut resolved.auth.bearer, Field::Bearer);
    resolver.replace(resolved.auth.api_key.as_mut().map(|api_key| &mut api_key.key), Field::Bearer);
    if let Some(oauth) = &mut resolved.auth.oauth {
        resolver.replace(&mut oauth.client_id, Field::ClientId);
        resolver.replace(&mut oauth.client_secret, Field::ClientSecret);
    }
    if resolver.unresolved.is_empty() { Ok(resolved) } else { Err(resolver.unresolved) }
}

struct Resolver<'a> {
    dialect: &'a Dialect,
    variables: &'a Variables,
    server: &'a ConfiguredServer,
    unresolved: Vec<Unresolved>,
}

impl Resolver<'_> {
    /// Replaces what is in these values of a field, if the program does.
    fn replace<'v>(&mut self, values: impl IntoIterator<Item = &'v mut At<String>>, field: Field) {
        let rule = self.dialect.rule(field);
        if rule.holds_in(field) {
            for value in values {
                value.value = self.replaced(value, rule);
            }
        }
    }

    fn replaced(&mut self, value: &At<String>, rule: &VariableRule) -> String {
        let text = &value.value;
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for reference in rule.references(text) {
            let is_known = rule.is_known(&reference);
            let is_whole = reference.range == (0..text.len());
            let is_replaced = is_known || rule.forms.contains(&reference.form);
            if !is_replaced || rule.blocked.contains(&reference.name) || (rule.whole && !is_whole) {
                continue;
            }
            out.push_str(&text[at..reference.range.start]);
            at = reference.range.end;
            match self.value(&reference, rule) {
                Ok(Some(value)) => out.push_str(&value),
                Ok(None) => out.push_str(&text[reference.range]),
                Err(reason) => self.unresolved.push(Unresolved {
                    span: self.server.source.part(value.span, text, reference.range.clone()),
                    reference: reference.shown(text),
                    reason,
                }),
            }
        }
        out.push_str(&text[at..]);
        out
    }

    /// The value of a reference; `None` if it stays as it is written.
    fn value(&self, reference: &Reference<'_>, rule: &VariableRule) -> Result<Option<String>, UnresolvedReason> {
        if reference.form == Form::Input {
            return Err(UnresolvedReason::Asked);
        }
        let value = self.variables.get(reference.name);
        let value = value.filter(|value| match rule.empty {
            EmptyVariable::Nothing => reference.default.is_none() || !value.is_empty(),
            EmptyVariable::Set => true,
            EmptyVariable::Unset => !value.is_empty(),
        });
        match (value.or(reference.default).map(str::to_owned), rule.unset) {
            (Some(value), _) => Ok(Some(value)),
            (None, _) if rule.is_known(reference) => Err(UnresolvedReason::Known),
            (None, UnsetVariable::Empty) => Ok(Some(String::new())),
            (None, UnsetVariable::Rejected) => Err(UnresolvedReason::Unset),
            (None, UnsetVariable::Kept | UnsetVariable::Unknown) => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{System, dialect, server::Pair};
    use rehearse_document::Source;
    use rehearse_protocol::Transport;
    use rehearse_testing::table;

    const TEXT: &str = "x";

    fn at(value: &str) -> At<String> {
        At { value: value.into(), span: Span { start: 0, end: 1 } }
    }

    /// A server with the value in each of its places.
    fn server(value: &str) -> ConfiguredServer {
        let transport = At { value: Transport::Stdio, span: Span::default() };
        let mut server = ConfiguredServer::new(Source::new("t", TEXT), at("s"), transport);
        server.command = Some(at(value));
        server.args = vec![at(value)];
        server.env = vec![Pair { name: at("A"), value: at(value) }];
        server.cwd = Some(at(value));
        server.url = Some(at(value));
        server.headers = vec![Pair { name: at("H"), value: at(value) }];
        server.auth.bearer = Some(at(value));
        server
    }

    fn resolve_value(dialect: &str, value: &str) -> Result<ConfiguredServer, Vec<Unresolved>> {
        let pairs = [("SET", "v"), ("EMPTY", ""), ("workspaceFolder", "/w"), ("HOME", "/h"), ("JWT_SECRET", "s")];
        let variables = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let variables = Variables::new(System::Linux, variables);
        resolve(&server(value), dialect::by_name(dialect).expect(dialect), &variables)
    }

    /// The value of a variable of the environment, which is where every program replaces something.
    fn env(dialect: &str, value: &str) -> String {
        match resolve_value(dialect, value) {
            Ok(server) => server.env[0].value.value.clone(),
            Err(unresolved) => format!("{:?}", unresolved[0].reason),
        }
    }

    #[test]
    fn each_program_replaces_its_forms_and_has_its_own_way_with_what_is_not_set() {
        let all = "$SET ${SET} ${SET:-d} ${env:SET} ${NO:-d} ${EMPTY:-d}.";
        for [dialect, expected] in table::rows(include_str!("resolve.txt"), "all forms") {
            assert_eq!(env(&dialect, all), expected, "{dialect}");
        }
        for [dialect, value, expected] in table::rows(include_str!("resolve.txt"), "one value") {
            assert_eq!(env(&dialect, &value), expected, "{dialect} {value}");
        }
    }

    #[test]
    fn only_the_places_change_in_which_the_program_replaces_something() {
        let places = |dialect: &str, value: &str| {
            let server = resolve_value(dialect, value).expect("resolves");
            assert_eq!(server.command.as_ref().map(|it| it.span), Some(Span { start: 0, end: 1 }));
            let text = |it: &Option<At<String>>| it.as_ref().map(|it| it.value.clone()).unwrap_or_default();
            let (args, env, headers) = (&server.args[0].value, &server.env[0].value.value, &server.headers[0].value);
            let [command, cwd, url, bearer] =
                [&server.command, &server.cwd, &server.url, &server.auth.bearer].map(text);
            [command, args.clone(), env.clone(), cwd, url, headers.value.clone(), bearer].map(|it| it == "v")
        };
        assert_eq!(places("gemini", "${SET}"), [true; 7]);
        assert_eq!(places("claude-code", "${SET}"), [true, true, true, false, true, true, false]);
        assert_eq!(places("code_agent", "${SET}"), [false, true, true, false, false, true, false]);
        assert_eq!(places("amazon-q", "$SET"), [true, false, false, false, false, false, false]);
        assert_eq!(places("amazon-q", "${env:SET}"), [false, false, true, false, false, true, false]);
        assert_eq!(places("mcpilot", "${SET}"), [false, false, true, false, false, false, false]);
        assert_eq!(places("claude-desktop", "${SET}"), [false; 7]);
    }

    #[test]
    fn a_tilde_is_the_home_folder_only_where_the_program_says_so() {
        let command = |dialect, value| resolve_value(dialect, value).ok().and_then(|it| it.command).map(|it| it.value);
        assert_eq!(command("vscode", "~/bin/x").as_deref(), Some("/h/bin/x"));
        assert_eq!(command("vscode", "~x").as_deref(), Some("~x"));
        assert_eq!(command("vscode", r"~\bin").as_deref(), Some(r"/h\bin"));
        assert_eq!(command("claude-code", "~/bin/x").as_deref(), Some("~/bin/x"));
        // Amazon Q replaces in the command what a shell would.
        for (value, expected) in
            [("~/x", "/h/x"), ("${NO:-d}", "d"), ("$NO/${NO}", "$NO/${NO}"), ("${env:SET}", "${env:SET}")]
        {
            assert_eq!(command("amazon-q", value).as_deref(), Some(expected));
        }
    }

    #[test]
    fn every_unset_variable_is_reported_with_its_position() {
        let source = Source::new("t", r#"{"args": ["-k", "é ${A} ${B}"]}"#);
        let mut server = server("");
        server.source = source.clone();
        server.args = vec![At { value: "é ${A} ${B}".into(), span: Span { start: 16, end: 30 } }];
        let code_agent = dialect::by_name("code_agent").expect("known");
        let unresolved = resolve(&server, code_agent, &Variables::default()).expect_err("nothing is set");
        let shown: Vec<_> = unresolved.iter().map(|it| &source.text[it.span.start..it.span.end]).collect();
        assert_eq!(shown, ["${A}", "${B}"]);
        assert_eq!(unresolved[0].describe("code_agent"), "`${A}` has no value: the variable is not set");
    }
}
