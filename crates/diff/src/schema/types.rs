//! A set of JSON types.

use serde_json::Value as Json;

use rehearse_document::json_schema::Type;

/// A set of types, in which `number` is integers and fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const ALL: Types = Types(0x7f);
    pub(super) const NONE: Types = Types(0);
    pub(super) const NULL: Types = Types::of(Type::Null);

    pub(super) const fn of(kind: Type) -> Types {
        Types(match kind {
            Type::Array => 1,
            Type::Boolean => 2,
            Type::Integer => 4,
            Type::Null => 8,
            Type::Number => 4 | 16,
            Type::Object => 32,
            Type::String => 64,
        })
    }

    pub(super) fn of_value(value: &Json) -> Types {
        let all = [Type::Array, Type::Boolean, Type::Integer, Type::Null, Type::Number, Type::Object, Type::String];
        all.into_iter().find(|kind| kind.matches(value)).map_or(Types::NONE, Types::of)
    }

    pub(super) fn with(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub(super) fn common(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub(super) fn contains(self, other: Types) -> bool {
        self.0 & other.0 == other.0
    }

    /// Such as `string or null`.
    pub(super) fn describe(self) -> String {
        if self == Types::ALL {
            return "any type".to_owned();
        }
        let order = [Type::String, Type::Number, Type::Integer, Type::Boolean, Type::Array, Type::Object, Type::Null];
        let is_named = |kind: &Type| {
            self.contains(Types::of(*kind)) && !(*kind == Type::Integer && self.contains(Types::of(Type::Number)))
        };
        let names: Vec<_> = order.into_iter().filter(is_named).map(Type::as_str).collect();
        names.join(" or ")
    }
}
