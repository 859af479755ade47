//! `${NAME}` and `${NAME:-default}` in values that name a server.

/// A variable without a value and without a default.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {0} is not set")]
pub struct Unset(pub String);

/// The text with every reference replaced by what `lookup` gives; `$$` is a dollar sign. A `$` before anything else
/// stays as it is.
///
/// # Errors
/// [`Unset`] names the first variable that has neither a value nor a default.
pub fn substitute(text: &str, lookup: impl Fn(&str) -> Option<String>) -> Result<String, Unset> {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(dollar) = rest.find('$') {
        out.push_str(&rest[..dollar]);
        rest = &rest[dollar + 1..];
        if let Some(tail) = rest.strip_prefix('$') {
            out.push('$');
            rest = tail;
            continue;
        }
        let Some((reference, tail)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
            out.push('$');
            continue;
        };
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default.to_owned())),
            None => (reference, None),
        };
        let value = lookup(name).filter(|value| default.is_none() || !value.is_empty());
        out.push_str(&value.or(default).ok_or_else(|| Unset(name.to_owned()))?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("h".into()),
            "EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_and_other_dollars_kept() {
        assert_eq!(
            substitute("http://${HOST}:${PORT:-80}/$1 $$5 ${EMPTY:-x}${EMPTY}", lookup).as_deref(),
            Ok("http://h:80/$1 $5 x")
        );
        assert_eq!(substitute("${NOPE}", lookup), Err(Unset("NOPE".into())));
        assert_eq!(substitute("${open", lookup).as_deref(), Ok("${open"));
    }
}
