//! The rules by which changes of schemas are classed.

use rehearse_report::diff::Class::{self, Addition, Behaviour, Breaking, Cosmetic};

/// A kind of change of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The stable id, such as `required-added`.
    pub id: &'static str,
    /// The class in a schema of values that clients write.
    pub input: Class,
    /// The class in a schema of values that the server writes.
    pub output: Class,
    /// What has changed and what follows from it, as sentences.
    pub meaning: &'static str,
    pub(super) effect: Effect,
    /// Whether the form alone shows the effect. Else a value must.
    pub(super) is_certain: bool,
}

/// What a change does to the set of accepted values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Narrows,
    Widens,
    /// The form does not show it.
    Unclear,
    /// Nothing.
    None,
}

use Effect::{Narrows, Unclear, Widens};

const fn form(id: &'static str, effect: Effect, [input, output]: [Class; 2], meaning: &'static str) -> Rule {
    Rule { id, input, output, meaning, effect, is_certain: true }
}

const fn evidence(id: &'static str, effect: Effect, [input, output]: [Class; 2], meaning: &'static str) -> Rule {
    Rule { id, input, output, meaning, effect, is_certain: false }
}

const NARROWER: [Class; 2] = [Breaking, Addition];
const WIDER: [Class; 2] = [Addition, Breaking];
const UNCLEAR: [Class; 2] = [Breaking, Breaking];

/// All rules. The class of a rule whose effect the form does not show is the worst that it may have: a change that only
/// widens an input, or only narrows an output, is an addition.
pub const RULES: &[Rule] = &[
    form("schema-added", Narrows, NARROWER, "There is a schema now. Before, every value was allowed."),
    form("schema-removed", Widens, WIDER, "There is no schema any more: nothing says what the values are."),
    form(
        "schema-invalid",
        Effect::None,
        UNCLEAR,
        "The schema is not valid any more. Clients may refuse the whole tool.",
    ),
    form("schema-mended", Effect::None, [Addition; 2], "The schema is valid now, and was not before."),
    form("value-forbidden", Narrows, NARROWER, "No value is allowed any more where some were."),
    form("value-allowed", Widens, WIDER, "Values are allowed where none were."),
    form("type-narrowed", Narrows, NARROWER, "Fewer types are allowed than before."),
    form("type-widened", Widens, WIDER, "More types are allowed than before."),
    form("type-changed", Unclear, UNCLEAR, "Some types were added and some removed."),
    form("enum-added", Narrows, NARROWER, "The values are listed now. Before, there was no list."),
    form("enum-removed", Widens, WIDER, "The values are not listed any more."),
    form("enum-value-removed", Narrows, NARROWER, "Values are not in the list any more."),
    form("enum-value-added", Widens, WIDER, "Values are in the list that were not. A reader may not know them."),
    form("limit-tightened", Narrows, NARROWER, "A limit of numbers, lengths or counts excludes more than before."),
    form(
        "limit-loosened",
        Widens,
        [Addition, Behaviour],
        "A limit of numbers, lengths or counts excludes less than before. In an output it is no more than a change of \
         behaviour, because readers rely on names, types and words and seldom on limits.",
    ),
    evidence("limit-changed", Unclear, UNCLEAR, "Numbers must be multiples of another number than before."),
    evidence("pattern-added", Narrows, NARROWER, "Texts must match a pattern now."),
    evidence(
        "pattern-removed",
        Widens,
        WIDER,
        "Texts need not match a pattern any more. A reader may take them apart by it.",
    ),
    evidence("pattern-changed", Unclear, UNCLEAR, "Texts must match another pattern than before."),
    evidence("format-added", Narrows, NARROWER, "Texts must have a format now, where formats are checked."),
    evidence("format-removed", Widens, WIDER, "Texts need not have a format any more. A reader may parse them by it."),
    evidence(
        "format-changed",
        Unclear,
        UNCLEAR,
        "Texts must have another format than before, where formats are checked.",
    ),
    form("property-added", Effect::None, [Addition; 2], "There is an optional property that was not there."),
    form(
        "property-removed",
        Effect::None,
        UNCLEAR,
        "A property is gone. In an input it is breaking if the schema refuses unknown properties, else a change of \
         behaviour: the value is ignored. In an output it is breaking if the property was always there, else possibly: \
         a reader had to expect that it is missing.",
    ),
    form(
        "required-added",
        Narrows,
        NARROWER,
        "A property must be there now. Calls without it fail; only possibly if it has a default, which the server may fill in.",
    ),
    form("required-removed", Widens, WIDER, "A property may be missing now. A reader may not expect that."),
    form("additional-properties-forbidden", Narrows, NARROWER, "Unknown properties are refused now."),
    form(
        "additional-properties-allowed",
        Widens,
        [Addition; 2],
        "Unknown properties are allowed now. In an output it is an addition, as every new property is.",
    ),
    evidence("alternative-added", Widens, WIDER, "One more schema is allowed (`anyOf`, `oneOf`)."),
    evidence("alternative-removed", Narrows, NARROWER, "One schema less is allowed (`anyOf`, `oneOf`)."),
    evidence("alternatives-changed", Unclear, UNCLEAR, "Alternative schemas came, went or exclude each other now."),
    evidence(
        "condition-added",
        Narrows,
        NARROWER,
        "One more condition must hold (`not`, `if`, `contains` and others).",
    ),
    evidence("condition-removed", Widens, WIDER, "One condition less must hold."),
    evidence("condition-changed", Unclear, UNCLEAR, "A condition has changed."),
    form("header-changed", Effect::None, UNCLEAR, "The argument is sent in another header (`x-mcp-header`)."),
    form("title-changed", Effect::None, [Behaviour; 2], "The title has changed. A model or a person reads it."),
    form("description-changed", Effect::None, [Behaviour; 2], "The description has changed. A model reads it."),
    form(
        "default-changed",
        Effect::None,
        [Behaviour; 2],
        "The default has changed: leaving the value out means something else.",
    ),
    form("examples-changed", Effect::None, [Behaviour; 2], "The examples have changed. A model reads them."),
    form("deprecation-added", Effect::None, [Behaviour; 2], "The value is deprecated now."),
    form("deprecation-removed", Effect::None, [Cosmetic; 2], "The value is not deprecated any more."),
    form("dialect-changed", Effect::None, [Cosmetic; 2], "`$schema` names another version of JSON Schema."),
    form(
        "annotation-changed",
        Effect::None,
        [Cosmetic; 2],
        "A keyword that neither allows nor forbids anything has changed.",
    ),
];

impl Rule {
    pub(super) fn by_id(id: &str) -> &'static Rule {
        RULES.iter().find(|rule| rule.id == id).expect("every rule is in the table")
    }
}
