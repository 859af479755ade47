//! Templates: what some programs replace by something that is no variable of the environment.

use crate::config::dialect::Template;

/// No longer name is shown.
const LONGEST: usize = 64;

/// The templates of the program in a text, in words that may be shown: whatever is no plain name stays hidden.
pub(super) fn templates(text: &str, template: Option<Template>) -> Vec<String> {
    let Some(Template { open, prefix }) = template else { return Vec::new() };
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some((_, after)) = rest.split_once(open) {
        let Some((inner, behind)) = after.split_once("}}") else { break };
        rest = behind;
        // What is open twice begins where it is open last.
        let inner = inner.rsplit_once(open).map_or(inner, |(_, inner)| inner);
        let name = inner.trim();
        if !name.starts_with(prefix) || name.is_empty() {
            continue;
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        found.push(match name.len() <= LONGEST && name.chars().all(is_plain) {
            true => format!("`{open}{inner}}}}}`"),
            false => format!("`{open}…}}}}`"),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::dialect::named;

    #[test]
    fn each_template_is_named_unless_it_may_be_something_else() {
        let of = |text: &str, dialect| templates(text, named(dialect).expect(dialect).variables.template).concat();
        assert_eq!(of("a {{ A }}{{B_1}} {{x {{C}} {{}} {{open", "librechat"), "`{{ A }}``{{B_1}}``{{C}}`");
        assert_eq!(of("{{se cret}}", "librechat"), "`{{…}}`");
        assert_eq!(of(&format!("{{{{{}}}}}", "a".repeat(65)), "librechat"), "`{{…}}`");
        assert_eq!(of("${{ inputs.A }} ${{ secrets.B }} ${{ other }} {{C}}", "continue"), "`${{ inputs.A }}`");
    }
}
